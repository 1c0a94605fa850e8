# SPDX-License-Identifier: BSD-3-Clause
"""What may be handed over, what is refused, and that memory is given back."""
import ctypes
import functools
import gc
import inspect
import re
import struct
import sys

import numpy as np
import npuquant
import numpy_operators as expected
import pytest
from calls import usual
from npuquant._tensors import FLOAT4, FLOAT8
from npuquant_facts.dtypes import TYPES
from npuquant_facts.operators import OPERATORS
from numpy_operators import as_dtype, f4

ONE = np.ones(1, f4)
INT8 = np.ones((1, 1), np.int8)


def quantize(x, scales=ONE, zero_points=None, dtype=np.int8, axis=-1):
    return npuquant.npu_quantize(x, scales, zero_points, dtype, axis)


def each_tensor():
    """Of each operator each tensor: its operator and row, its name in the package, itself, and a call with another.
    Arrays of codes are left out, which are uint8 whatever the type."""
    for operator, facts in OPERATORS.items():
        usual_call = usual(operator)
        for row, (name, array) in zip(facts.inputs, usual_call.inputs.items()):
            argument = usual_call.names[name]

            def call(other, usual_call=usual_call, argument=argument):
                return usual_call.function(**{**usual_call.hard_call, argument: other})

            if not TYPES[row.types[0]].has_codes:
                yield operator, row, argument, array, call


def in_words(types):
    """As messages list them."""
    order = ("float32", "float16", "bfloat16", "int8", "uint8", "int32", "quint4x2", "int64", "uint64")
    said = {"bfloat16": "bfloat16 (or its bits as uint16)", "quint4x2": "int32 (words of eight int4)"}
    *others, last = [said.get(dtype, dtype) for dtype in order if dtype in types]
    return f"{', '.join(others)} or {last}" if others else last


# ---- NumPy ----


#: What messages add to a type that no operator of this package has.
MISSING = ", which npuquant does not implement"


@pytest.mark.parametrize("dtype", ["f8", "i2", "u4", "c8", "?", "O", "U1", "M8[s]"])
def test_other_types_are_refused(dtype):
    """With a list of those that this very argument takes."""
    wrong = np.zeros(1, dtype)
    for argument, wanted, call in (
        *((argument, in_words(row.types), functools.partial(call, np.zeros(array.shape, dtype)))
          for _, row, argument, array, call in each_tensor()),
        ("x1", "int8 or int32", lambda: npuquant.npu_quant_matmul(wrong, INT8, ONE)),
        ("pertoken_scale", "float32",
         lambda: npuquant.npu_quant_matmul(INT8, INT8, ONE, pertoken_scale=wrong, output_dtype="float16")),
    ):
        says = f"{argument}: is {wrong.dtype}{MISSING}; expected {wanted}"
        says += ", as div_mode is true" * (argument == "zero_points")
        with pytest.raises(TypeError, match=rf"\A{re.escape(says)} \[\w+\]\Z"):
            call()


def test_tensors_that_are_refused(threads):
    """By the library, in each place, with the names that it has for the operator and the tensor."""
    for operator, row, _, array, call in each_tensor():
        other = next(dtype for dtype in ("int64", "float32") if dtype not in row.types)
        for status, wrong in (("DTYPE", np.ones(array.shape, other)),
                              ("SHAPE", array.reshape(*[1] * (9 - array.ndim), *array.shape))):
            if operator != "row_quant":  # which is no function of the library
                with pytest.raises(npuquant.NpuquantError) as caught:
                    call(wrong)
                assert caught.value.status == f"NPUQ_ERROR_{status}"
                assert str(caught.value).startswith(f"{operator}: {row.name}: ") and "\n" not in str(caught.value)
                assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [1.5, 3, [1.0, 2.0], (), "x", b"x", None, object()])
def test_what_has_no_type_is_refused(value):
    with pytest.raises(TypeError, match=r"\Ainput: is \w+; expected a NumPy array or an object with __dlpack__"):
        quantize(value)


def test_numpy_scalars_are_arrays_of_no_dimension():
    x = f4([[1, 2]])
    got = npuquant.npu_group_quant(x, x, np.array([1]), offset=f4(10))
    assert got.tolist() == [[11, 14]]
    y = npuquant.npu_anti_quant(np.int8(3), f4([0.5]))
    assert (y.shape, y) == ((), 1.5)


def test_several_types_that_are_refused():
    """The first is told; elements of no size are not counted."""
    nothing = np.zeros(2, np.dtype([]))
    for wrong in (nothing, np.broadcast_to(nothing[:1], (3, 4))):
        with pytest.raises(TypeError, match=r"\Ascales: is float64, "):
            quantize(ONE, np.ones(1), wrong)
        with pytest.raises(TypeError, match=r"\Ainput: is \[\], "):
            quantize(wrong, np.ones(1), wrong)


def test_the_other_byte_order_is_refused():
    swapped = np.ones(3, f4).astype(np.dtype(f4).newbyteorder())
    with pytest.raises(TypeError, match=r"\Ainput: is in the other byte order"):
        quantize(swapped)
    with pytest.raises(TypeError, match=r"\Adtype: "):
        quantize(np.ones(3, f4), dtype=np.dtype(np.int32).newbyteorder())


def test_fields_of_records():
    """Strides of whole elements are taken as they are; others cannot be said in elements."""
    whole = np.zeros(3, [("a", "f4"), ("b", "i4"), ("c", "f4")])
    whole["c"] = [1, 2, 3]
    assert quantize(whole["c"]).tolist() == [1, 2, 3]
    packed = np.zeros(3, [("a", "f4"), ("b", "i1")])
    with pytest.raises(ValueError, match=r"\Ainput: stride 0 is 5 bytes; expected a multiple of 4"):
        quantize(packed["a"])
    assert quantize(packed["a"][:1]).tolist() == [0]
    assert quantize(np.zeros((0, 3), packed.dtype)["a"]).shape == (0, 3)


def test_misaligned_data_is_refused():
    x = np.zeros(13, "u1")[1:].view(f4)
    with pytest.raises(npuquant.NpuquantError, match="align") as caught:
        quantize(x)
    assert caught.value.status == "NPUQ_ERROR_LAYOUT"


def test_more_dimensions_than_the_library_has():
    with pytest.raises(npuquant.NpuquantError, match=r"\Aquantize: x: .*9") as caught:
        quantize(np.ones((1,) * 9, f4))
    assert caught.value.status == "NPUQ_ERROR_SHAPE"


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = f4([1.5, -2.5, 3e38, np.nan]).astype(ml_dtypes.bfloat16)
    assert quantize(x).tolist() == [2, -2, 127, 0]
    y = npuquant.npu_anti_quant(INT8, ONE, dst_dtype=ml_dtypes.bfloat16)
    out = np.zeros_like(y).view(ml_dtypes.bfloat16)
    assert npuquant.npu_anti_quant(INT8, ONE, dst_dtype=ml_dtypes.bfloat16, out=out) is out
    assert out.astype(f4) == y.view(ml_dtypes.bfloat16).astype(f4) == 1


def destinations():
    """For each type of a result that is chosen: its argument, what messages expect, and a call that takes it."""
    small = "float8_e4m3fn, float8_e5m2 or hifloat8"
    yield "dtype", f"int8, uint8, int32, {small}, as div_mode is true", functools.partial(quantize, ONE)
    yield "dtype", f"int8, quint4x2, {small}, as div_mode is false", lambda dtype: npuquant.npu_quantize(
        np.ones((1, 8), f4), ONE, None, dtype, -1, False)
    yield "output_dtype", "int8, float16, bfloat16, float32 or int32", functools.partial(
        npuquant.npu_quant_matmul, INT8, INT8, ONE)
    for operator, facts in OPERATORS.items():
        call = usual(operator)
        if operator != "quantize" and "dtype" in call.names:
            argument, types = call.names["dtype"], facts.results[0].types
            if operator in ("dynamic_quant", "dynamic_block_quant"):  # in torch_npu one operator makes all
                types = *types, "float8_e4m3fn", "float8_e5m2", "hifloat8"
            others = {name: value for name, value in call.hard_call.items() if name != argument}
            yield argument, f"{', '.join(types[:-1])} or {types[-1]}", functools.partial(call.function, **others)


@pytest.mark.parametrize("dtype", ["float32", np.float16, float, "float64", np.uint16, 2, 7, 99, True, [], "rubbish",
                                   "i4,i4", "i4,(", object(), None, "int", "int8", np.float32])
def test_other_destinations_are_refused(dtype):
    """With a list of those that there are."""
    for argument, wanted, call in destinations():
        default = inspect.signature(call).parameters[argument].default
        if dtype is None and default is None or getattr(dtype, "__name__", str(dtype)) in re.split(", | or ", wanted):
            continue
        with pytest.raises(TypeError, match=rf"\A{argument}: is .*; expected {wanted} \[\w+\]\Z"):
            call(**{argument: dtype})


@pytest.mark.parametrize("dtype, described", [
    (2, "2 (int16)" + MISSING), (24, "24 (float8_e4m3fn)" + MISSING), (257, "torch_npu.float16 (257)"),
    (285, "torch_npu.int4 (285)"), (290, "torch_npu.hifloat8 (290)" + MISSING),
    ("float8_e5m2", "'float8_e5m2'" + MISSING), ("float8", "'float8'"), ("float64", "'float64'" + MISSING),
    (291, "torch_npu.float8_e5m2 (291)" + MISSING), (np.int64(296), "torch_npu.float4_e2m1fn_x2 (296)" + MISSING),
    (261, "261"), (np.int64(298), "298"), (-1, "-1"),
])
def test_numbers_are_named(dtype, described):
    for argument, wanted, call in destinations():
        is_taken = any(name in described and name in wanted for name in (*FLOAT8, *FLOAT4))
        if "float16" not in wanted and not is_taken:
            with pytest.raises(TypeError, match=rf"\A{argument}: is {re.escape(described)}; expected {wanted} \[\w+\]\Z"):
                call(**{argument: dtype})


# ---- DLPack ----

CODES = {"f4": (2, 32), "f2": (2, 16), "u2": (4, 16), "i1": (0, 8), "u1": (1, 8), "i4": (0, 32), "i8": (0, 64),
         "u8": (1, 64)}
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
NEW = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
GET_NAME = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))


class Producer:
    """An exporter that lays out its structures with struct, not with what is tested."""

    NAMES = {False: b"dltensor", True: b"dltensor_versioned"}

    def __init__(self, array, code=None, device=1, lanes=1, strides=True, offset=0, versioned=False, major=1,
                 with_deleter=True, on_delete=lambda: None, ndim=None, shape=True, data=None, flags=1):
        self.array = array
        self.versioned = versioned
        self.device = device
        self.deleted = []
        self.on_delete = on_delete
        self.deleter = DELETER(self.delete)
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p).value if with_deleter else 0
        sizes = [stride // array.itemsize for stride in array.strides]
        self.shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        self.strides = (ctypes.c_int64 * max(1, array.ndim))(*sizes)
        code, bits = code or CODES[array.dtype.str[1:]]
        tensor = struct.pack("@PiiiBBHPPQ", array.ctypes.data - offset if data is None else data, device, 0,
                             array.ndim if ndim is None else ndim, code, bits, lanes,
                             ctypes.addressof(self.shape) if shape else 0,
                             ctypes.addressof(self.strides) if strides else 0, offset)
        if versioned:
            content = struct.pack("@IIPPQ", major, 2, 0, deleter, flags) + tensor
        else:
            content = tensor + struct.pack("@PP", 0, deleter)
        self.memory = ctypes.create_string_buffer(content, len(content))
        self.address = ctypes.addressof(self.memory)
        self.capsule = NEW(self.address, self.NAMES[versioned], None)

    def delete(self, address):
        self.deleted.append(address)
        self.on_delete()

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream is None
        assert not self.versioned or max_version >= (1, 0)
        return self.capsule

    def was_given_back(self):
        return self.deleted == [self.address] and GET_NAME(self.capsule) == b"used_" + self.NAMES[self.versioned]


class Forwarder:
    """The DLPack of another object, and nothing else of it."""

    def __init__(self, value):
        self.value = value

    def __dlpack_device__(self):
        return self.value.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.value.__dlpack__(**keywords)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_dlpack_of_numpy(dtype):
    x = np.arange(-12, 12).astype(dtype).reshape(4, 6)
    for view in (x, x.T, x[::-1, ::2], x[:0], x[0, 0:1]):
        assert quantize(Forwarder(view)).tolist() == view.astype(int).tolist()


def test_dlpack_of_parameters():
    """PyTorch's refuse to be exported as they are."""
    producers = []  # what a producer has exported lives until it is given back

    class Parameter:
        requires_grad = True

        def detach(self):
            producers.append(Producer(f4([1, 2])))
            return producers[-1]

        def __dlpack__(self, **keywords):
            raise BufferError("requires its gradient")

        __dlpack_device__ = __dlpack__

    assert quantize(Parameter(), Parameter().detach()).tolist() == [1, 1]
    assert len(producers) == 2 and all(producer.was_given_back() for producer in producers)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f2", "u2"])
def test_dlpack_types_strides_and_offsets(dtype, versioned, threads):
    values = as_dtype(np.arange(-60, 60).astype(f4).reshape(4, 5, 6), dtype)
    wanted = np.arange(-60, 60).reshape(4, 5, 6)
    for view, result in ((values, wanted), (values.T, wanted.T), (values[::-1, 1:4, ::-2], wanted[::-1, 1:4, ::-2])):
        for offset in (0, 48):
            producer = Producer(view, offset=offset, versioned=versioned)
            assert quantize(producer).tolist() == result.tolist()
            assert producer.was_given_back()
    for view, result in ((values, wanted), (values[0, 0], wanted[0, 0]), (values[:, :, :0].copy(), wanted[:, :, :0])):
        producer = Producer(view, strides=False, versioned=versioned)
        assert quantize(producer).tolist() == result.tolist()
        assert producer.was_given_back()


def test_the_shape_of_an_unknown_type_does_not_matter():
    offset = Producer(np.zeros(3, f4), code=(2, 64))
    with pytest.raises(TypeError, match=r"\Aoffset: is float64, which npuquant does not implement; expected float32 \[\w+\]\Z"):
        npuquant.npu_trans_quant_param(np.ones((1, 1), f4), offset)


def test_dlpack_of_bits_of_bfloat16():
    assert quantize(Producer(as_dtype(f4([1, -2]), "u2"), code=(1, 16))).tolist() == [1, -2]


def test_dlpack_memory_is_kept_for_the_call(threads):
    x = np.full((300, 5000), 7, f4)
    producer = Producer(x, on_delete=lambda: x.fill(0))
    assert (quantize(producer) == 7).all()
    assert producer.was_given_back() and (x == 0).all()


def outcome(call, *arguments):
    """The bytes of the results, or the error: not every type goes with those of the other arguments."""
    try:
        results = call(*arguments)
    except ValueError as error:
        return str(error)
    return [np.asarray(one).tobytes() for one in (results if isinstance(results, tuple) else (results,))]


def each_type():
    """Of each operator each tensor, in each of its types: its array, and a call with another."""
    for _, row, _, array, call in each_tensor():
        for dtype in row.types:
            if dtype != "quint4x2":  # which is int32 in arrays
                yield as_dtype(array, "u2" if dtype == "bfloat16" else dtype), call


def test_dlpack_in_every_argument():
    computed = 0
    for array, call in each_type():
        producer = Producer(array)
        got = outcome(call, producer)
        assert got == outcome(call, array) and producer.was_given_back()
        computed += isinstance(got, list)
    assert computed > 30
    producers = [Producer(array) for array in (INT8 * 5, INT8 * 7, ONE, ONE, ONE)]
    got = npuquant.npu_quant_matmul(*producers[:3], pertoken_scale=producers[3], bias=producers[4],
                                    output_dtype="float32")
    assert got.tolist() == [[36]]
    assert npuquant.npu_anti_quant(Producer(np.array([0x76543210], "i4")), ONE).tolist() == [*range(8)]
    x = f4([[1, 2], [3, 4], [5, 7]])
    offset = Producer(np.array(2, f4))  # no dimension: neither shape nor strides are read
    assert npuquant.npu_group_quant(x, x, np.array([0, 1, 3]), offset=offset).tolist() == [[5, 10], [17, 30], [27, 51]]


@pytest.mark.parametrize("versioned", [False, True])
def test_dlpack_as_out(versioned, threads):
    """What is given is what is returned; its memory is written to in its layout."""
    def producer(array, **change):
        return Producer(array, versioned=versioned, flags=0, **change)

    bits = np.zeros((3, 4), "u2")
    y, transposed = producer(bits[:, ::2]), producer(np.zeros((2, 3), "u2").T, code=(1, 16))
    x, scale = np.arange(6, dtype="i1").reshape(3, 2), f4([0.5])
    for out in (y, transposed):
        assert npuquant.npu_anti_quant(x, scale, dst_dtype="bfloat16", out=out) is out
        np.testing.assert_array_equal(expected.floats(out.array), x * scale)
        assert out.was_given_back()
    assert not bits[:, 1::2].any()
    outs = producer(np.zeros((1, 1), "i4")), producer(np.zeros(1, f4))
    got = npuquant.npu_dynamic_quant(np.ones((1, 8), f4), dst_type="quint4x2", out=outs)
    assert got[0] is outs[0] and got[1] is outs[1]
    assert (outs[0].array == 0x77777777).all() and (outs[1].array == f4(1 / 7)).all()
    matrix = np.ones((2, 2), "i1")
    out = producer(np.zeros((2, 2), "i4"))
    assert npuquant.npu_quant_matmul(matrix, matrix, scale, output_dtype="int32", out=out) is out
    assert (out.array == 2).all() and out.was_given_back()
    for wrong, error, says in (
        (producer(np.zeros((3, 2), "f2")), TypeError, r"is float16; expected bfloat16 \(or its bits as uint16\)"),
        (producer(bits, code=(2, 64)), TypeError, r"is float64; expected bfloat16 \(or its bits as uint16\)"),
        (producer(bits, device=2), ValueError, r"is on a device .*; expected the CPU"),
        (np.float32(1), TypeError, r"is float32; expected a NumPy array or an object with __dlpack__"),
        (Producer(bits[:, :2], versioned=True), ValueError, "is read-only; expected an array that can be written to"),
    ):
        with pytest.raises(error, match=rf"\Aout: {says} \[\w+\]\Z"):
            npuquant.npu_anti_quant(x, scale, dst_dtype="bfloat16", out=wrong)


def test_dlpack_without_data():
    """Nothing is there: elements are not missed, and an offset does not count."""
    for offset in (0, 48):
        producer = Producer(np.zeros((3, 0), f4), data=0, offset=offset)
        assert quantize(producer).shape == (3, 0)
        assert producer.was_given_back()


def test_dlpack_without_deleter():
    producer = Producer(f4([1, 2]), with_deleter=False)
    assert quantize(producer).tolist() == [1, 2]
    assert producer.deleted == []


@pytest.mark.parametrize("device", [2, 4, 12])
def test_dlpack_of_other_devices_is_refused(device):
    producer = Producer(f4([1, 2]), device=device)
    with pytest.raises(ValueError, match=rf"\Ascales: is on a device \(DLPack's number {device}\); expected the CPU"):
        quantize(ONE, producer)
    assert producer.deleted == []  # never asked for its capsule
    assert GET_NAME(producer.capsule) == b"dltensor"


@pytest.mark.parametrize("device", [3, 11])
def test_dlpack_of_pinned_memory(device):
    assert quantize(Producer(f4([1, 2]), device=device)).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("error", "says", "change"),
    [
        (TypeError, rf"\Ainput: is float64{MISSING}; expected float32, float16 or bfloat16", {"code": (2, 64)}),
        (TypeError, r"\Ainput: is complex32" + MISSING, {"code": (5, 32)}),
        (TypeError, r"\Ainput: is DLPack type code 17, bits 4" + MISSING, {"code": (17, 4)}),
        (TypeError, r"\Ainput: is float8_e4m3fn" + MISSING, {"code": (10, 8)}),
        (TypeError, r"\Ainput: is float8_e5m2" + MISSING, {"code": (12, 8)}),
        (TypeError, r"\Ainput: is float8_e8m0fnu" + MISSING, {"code": (14, 8)}),
        (TypeError, r"\Ainput: is float4_e2m1fn_x2" + MISSING, {"code": (17, 4), "lanes": 2}),
        (TypeError, r"\Ainput: is float32 with 4 lanes" + MISSING, {"lanes": 4}),
        (ValueError, r"\Ainput: is DLPack 2; expected 1", {"versioned": True, "major": 2}),
        (ValueError, r"\Ainput: has -1 dimensions", {"ndim": -1}),
        (ValueError, r"\Ainput: has 1 dimensions and no shape", {"shape": False}),
        (ValueError, r"\Ainput: data is null; expected the tensor's elements", {"data": 0}),
        (ValueError, r"\Ainput: data is null; expected the tensor's elements", {"data": 0, "offset": 4096}),
        (ValueError, rf"\Ainput: byte_offset is {2**64 - 1}; ", {"data": 16, "offset": 2**64 - 1}),
    ],
)
def test_dlpack_that_is_not_understood_is_given_back(error, says, change):
    producer = Producer(f4([1, 2]), **change)
    with pytest.raises(error, match=says):
        quantize(producer)
    assert producer.was_given_back()


def test_dlpack_is_given_back_after_errors(threads):
    x = Producer(f4([[1, 2]]))
    scales = Producer(f4([1, 2, 3]))
    with pytest.raises(npuquant.NpuquantError):
        quantize(x, scales)
    assert x.was_given_back() and scales.was_given_back()
    x = Producer(f4([[1, 2]]))
    with pytest.raises(TypeError, match="dtype"):
        quantize(x, dtype="float32")
    assert x.was_given_back()


def test_dlpack_device_of_the_tensor_counts():
    producer = Producer(f4([1, 2]), device=2)
    producer.device = 1
    with pytest.raises(ValueError, match=r"\Ainput: is on a device"):
        quantize(producer)
    assert producer.was_given_back()


def test_dlpack_capsules_are_consumed_once():
    producer = Producer(f4([1, 2]))
    quantize(producer)
    with pytest.raises(TypeError, match=r"\Ainput: __dlpack__\(\) returned .*; expected a capsule named dltensor"):
        quantize(producer)
    assert producer.was_given_back()
    producer.capsule = "no capsule"
    with pytest.raises(TypeError, match=r"\Ainput: __dlpack__\(\) returned 'no capsule'"):
        quantize(producer)


def test_dlpack_errors_of_the_producer():
    producer = Producer(f4([1, 2]))
    for method in ("__dlpack__", "__dlpack_device__"):
        class Refusing(Producer):
            pass

        def refuse(self, **keywords):
            raise BufferError("not today")

        setattr(Refusing, method, refuse)
        with pytest.raises(ValueError, match=r"\Ainput: cannot be read through DLPack: not today") as caught:
            quantize(Refusing(producer.array))
        assert isinstance(caught.value.__cause__, BufferError)


# ---- memory ----


def test_nothing_is_kept(threads):
    x, scales = np.ones((300, 2000), f4), np.ones(2000, f4)
    npuquant.npu_quantize(x, scales, None, np.int8)
    before = [sys.getrefcount(array) for array in (x, scales)]
    for _ in range(5):
        y = npuquant.npu_quantize(x, scales, None, np.int8)
    with pytest.raises(npuquant.NpuquantError):
        npuquant.npu_quantize(x, scales[1:], None, np.int8)
    gc.collect()
    assert [sys.getrefcount(array) for array in (x, scales)] == before
    assert sys.getrefcount(y) == 2


# ---- PyTorch ----


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        self.torch = pytest.importorskip("torch")

    def test_types_and_strides(self):
        torch = self.torch
        values = np.arange(-24, 24).reshape(6, 8)
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x = torch.arange(-24, 24).reshape(6, 8).to(dtype)
            scales = torch.ones(8).to(dtype)
            assert npuquant.npu_quantize(x, scales, None, torch.qint8).tolist() == values.tolist()
            assert quantize(x.t(), dtype=torch.quint8).tolist() == np.maximum(values.T, 0).tolist()
            assert quantize(x[1::2, 3:7], dtype=torch.qint32).tolist() == values[1::2, 3:7].tolist()
            assert quantize(x[:1].expand(5, 8)).tolist() == np.broadcast_to(values[:1], (5, 8)).tolist()
            assert quantize(x[0, 0].reshape(1)).tolist() == [-24]
            assert quantize(x[:, :0]).shape == (6, 0)
            assert quantize(torch.nn.Parameter(x[0])).tolist() == values[0].tolist()

    def test_all_operators(self):
        """As with NumPy's arrays, in every argument and each of its types."""
        torch = self.torch
        computed = 0
        for array, call in each_type():
            if array.dtype != "u8":  # which few versions of PyTorch have
                is_bfloat16 = array.dtype == "u2"
                tensor = torch.from_numpy(array.view("i2") if is_bfloat16 else array)
                got = outcome(call, tensor.view(torch.bfloat16) if is_bfloat16 else tensor)
                assert got == outcome(call, array)
                computed += isinstance(got, list)
        assert computed > 30

    def test_a_layer(self):
        torch = self.torch
        x = torch.from_numpy(expected.random_floats((40, 32), "f4", special=0)).bfloat16()
        scales = x[0, :1].abs()
        y, scale = (torch.from_numpy(array) for array in npuquant.npu_dynamic_quant(x, dst_type=torch.int8))
        bits = [tensor.contiguous().view(torch.int16).numpy().view("u2") for tensor in (scales, x[:, 0])]
        wanted = expected.quant_matmul(y.numpy(), y.t().numpy(), bits[0], None, scale.numpy(), bits[1], "bfloat16")
        options = {"pertoken_scale": scale, "bias": x[:, 0], "output_dtype": torch.bfloat16}
        np.testing.assert_array_equal(npuquant.npu_quant_matmul(y, y.t(), scales, **options), wanted)
        out = torch.empty(40, 40, dtype=torch.bfloat16)
        assert npuquant.npu_quant_matmul(y, y.t(), scales, **options, out=out) is out
        np.testing.assert_array_equal(out.float().numpy(), expected.floats(wanted))
        assert npuquant.npu_anti_quant(y, scale[:1], src_dtype=torch.int8).dtype == np.float16
        with pytest.raises(ValueError, match=r"\Aout: cannot be read through DLPack: .*gradient"):
            npuquant.npu_anti_quant(y, scale[:1], out=torch.nn.Parameter(out.half()))
        assert npuquant.npu_dynamic_quant(x, dst_type=torch.quint4x2)[0].dtype == np.int32

    def test_negated_views(self):
        """Their memory has other numbers than they have."""
        torch = self.torch
        x = torch.tensor([[1 + 2j, 3 - 4j]]).conj().imag
        assert x.is_neg() and quantize(x).tolist() == [[-2, 4]]
        with pytest.raises(ValueError, match=r"\Aout: is a negated view; expected a tensor whose memory has its "):
            npuquant.dequant(torch.ones(1, 2, dtype=torch.int32), ONE, dtype="float32", out=x)

    def test_out(self):
        """Of whatever layout and type: what the extension reads itself, and what it does not."""
        torch = self.torch
        x, scales = torch.arange(-24, 24).reshape(6, 8).float(), torch.ones(1)
        for out in (torch.empty(6, 8, dtype=torch.int8), torch.empty(8, 6, dtype=torch.int8).t(),
                    torch.nn.Parameter(torch.empty(6, 8, dtype=torch.int8), requires_grad=False)):
            assert npuquant.npu_quantize(x, scales, None, "int8", -1, out=out) is out
            assert out.tolist() == x.tolist()
        y, scale = torch.empty(0, 8, dtype=torch.int8), torch.empty(0)
        assert npuquant.npu_dynamic_quant(x[:0], out=(y, scale))[0] is y
        with pytest.raises(TypeError, match=r"\Aout: is uint8; expected int8 \[\w+\]\Z"):
            npuquant.npu_quantize(x, scales, None, "int8", -1, out=y.byte())
        with pytest.raises(npuquant.NpuquantError, match="shape"):
            npuquant.npu_quantize(x, scales, None, "int8", -1, out=y)

    def test_refusals(self):
        torch = self.torch
        for tensor, error in (
            (torch.ones(3, device="meta"), ValueError),
            (torch.ones(3).double(), TypeError),
        ):
            with pytest.raises(error, match=r"\Ainput: "):
                quantize(tensor)
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            with pytest.raises(TypeError, match=r"\Adtype: is torch"):
                quantize(ONE, dtype=dtype)
        with pytest.raises(TypeError, match=r"\Ax1: is float32; expected int8 or int32 \[\w+\]\Z"):
            npuquant.npu_quant_matmul(torch.ones(2, 2), torch.ones(2, 2), ONE)
