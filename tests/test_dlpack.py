#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tensors that NumPy and PyTorch export through DLPack, as views and as operands.

NPUQUANT_DLPACK is the path of the module built from dlpack_module.c. NPUQ_TEST_SEED repeats a run.
"""
import ctypes
import os
import unittest

import numpy as np

try:
    import torch
except ImportError:
    torch = None

module = ctypes.CDLL(os.path.abspath(os.environ["NPUQUANT_DLPACK"]))
seed = int(os.environ.get("NPUQ_TEST_SEED") or 20261121)
rng = np.random.default_rng(seed)

FLOAT32, FLOAT16, INT8, INT32, UINT8, INT64, UINT64, BFLOAT16 = 0, 1, 2, 3, 4, 9, 10, 27
OK, ERROR_DTYPE, ERROR_SHAPE = 0, 2, 3
DTYPES = {"float32": FLOAT32, "float16": FLOAT16, "int8": INT8, "int32": INT32, "uint8": UINT8, "int64": INT64,
          "uint64": UINT64}
REFUSED = ("float64", "int16", "complex64")


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("ndim", ctypes.c_int32),
                ("shape", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8)]


get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def managed(capsule):
    """The DLManagedTensor of a capsule; it lives as long as the capsule."""
    return ctypes.c_void_p(get_pointer(capsule, b"dltensor"))


def view_of(tensor):
    """(status, view, message)"""
    capsule = tensor.__dlpack__()
    view = Tensor()
    message = ctypes.create_string_buffer(160)
    status = module.view_of(managed(capsule), ctypes.byref(view), message, ctypes.c_size_t(len(message)))
    return status, view, message.value.decode()


def quantize(x, scales, zero_points, axis, div_mode, y, words=False):
    capsules = [None if t is None else t.__dlpack__() for t in (x, scales, zero_points, y)]
    px, ps, pz, py = (None if c is None else managed(c) for c in capsules)
    message = ctypes.create_string_buffer(256)
    status = module.quantize(px, ps, pz, ctypes.c_int32(axis), ctypes.c_bool(div_mode), py, ctypes.c_bool(words),
                             message, ctypes.c_size_t(len(message)))
    assert status == OK, message.value.decode()


class Elements:
    """The elements of a view, as __array_interface__ for np.asarray."""

    def __init__(self, view, dtype):
        size = np.dtype(dtype).itemsize
        self.__array_interface__ = {
            "version": 3, "typestr": np.dtype(dtype).str, "data": (view.data, False),
            "shape": tuple(view.shape[:view.ndim]), "strides": tuple(s * size for s in view.strides[:view.ndim])}


def saturated(t, low, high):
    assert t.dtype == np.float32
    return np.clip(np.rint(t), low, high)


def packed(values):
    """Eight int4 in a word, the first in the lowest bits."""
    nibbles = (values.astype(np.int64) & 0xF).reshape(values.shape[:-1] + (-1, 8))
    return (nibbles << np.arange(0, 32, 4)).sum(axis=-1).astype(np.uint32).view(np.int32)


class NumPy(unittest.TestCase):
    def arrays(self, dtype):
        """Every kind of layout."""
        whole = rng.integers(0, 100, (4, 6, 5)).astype(dtype)
        yield whole
        yield whole.T
        yield whole[1:, ::-2, 2:]
        yield whole[::-1, :, ::-1]
        yield whole[:, 3:4, :]
        yield whole[2, 3, 1]  # a scalar; NumPy copies it
        yield whole[2, 3, 1:2].reshape(())
        yield whole[:, :0]
        yield np.lib.stride_tricks.as_strided(whole, (7, 5), (0, whole.strides[2]))
        yield whole.reshape(1, 2, 2, 1, 2, 3, 5, 1)

    def test_views(self):
        for name, dtype in DTYPES.items():
            for array in self.arrays(name):
                array = np.asarray(array)
                status, view, message = view_of(array)
                with self.subTest(dtype=name, shape=array.shape, strides=array.strides):
                    self.assertEqual((status, message), (OK, ""))
                    self.assertEqual(view.dtype, dtype)
                    self.assertEqual(tuple(view.shape[:view.ndim]), array.shape)
                    if array.size:
                        self.assertEqual(view.data, array.ctypes.data)
                        for d, extent in enumerate(array.shape):
                            if extent > 1:
                                self.assertEqual(view.strides[d] * array.itemsize, array.strides[d])
                        np.testing.assert_array_equal(np.asarray(Elements(view, name)), array)

    def test_errors(self):
        for name in REFUSED:
            status, _, message = view_of(np.zeros(3, name))
            self.assertEqual(status, ERROR_DTYPE)
            self.assertRegex(message, r"^dlpack: dtype has code \d \((float|int|complex)\), bits (16|64), lanes 1; exp")
        status, _, message = view_of(np.zeros((1,) * 9, "f4"))
        self.assertEqual((status, message), (ERROR_SHAPE, "dlpack: has 9 dimensions; expected 0 to 8"))

    def test_quantize(self):
        """Each step is one operation in float32."""
        x = rng.normal(0, 20, (6, 10, 16)).astype("f4")
        scales = rng.uniform(0.1, 2, 10).astype("f4")
        zero_points = rng.integers(-9, 9, 10).astype("i4")
        expected = saturated(x / scales[:, None] + zero_points.astype("f4")[:, None], -128, 127)
        for turn in (lambda a: a, lambda a: a[::-1], lambda a: a[:, :, ::2]):
            y = np.full((6, 10, 16), 99, "i1", order="F")
            quantize(turn(x), scales, zero_points, 1, True, turn(y))
            np.testing.assert_array_equal(turn(y), turn(expected))

    def test_words(self):
        x = rng.normal(0, 5, (7, 24)).astype("f2")
        y = np.zeros((7, 6), "i4")[:, ::2]
        quantize(x, np.float32([0.75]), None, -1, False, y, words=True)
        np.testing.assert_array_equal(y, packed(saturated(x.astype("f4") * np.float32(0.75), -8, 7)))


@unittest.skipUnless(torch, "no PyTorch")
class PyTorch(unittest.TestCase):
    def tensors(self, dtype):
        whole = torch.from_numpy(rng.integers(0, 100, (4, 6, 5))).to(dtype)
        yield whole
        yield whole.permute(2, 0, 1)
        yield whole[1:, ::2, 2:]
        yield whole[:, 3:4, :]
        yield whole[2, 3, 1]
        yield whole[:, :0]
        yield whole[0, 0].expand(7, 5)

    def test_views(self):
        dtypes = {name: dtype for name, dtype in DTYPES.items() if name != "uint64"}
        for name, dtype in {**dtypes, "bfloat16": BFLOAT16}.items():
            for tensor in self.tensors(getattr(torch, name)):
                status, view, message = view_of(tensor)
                with self.subTest(dtype=name, shape=tensor.shape, strides=tensor.stride()):
                    self.assertEqual((status, message), (OK, ""))
                    self.assertEqual(view.dtype, dtype)
                    self.assertEqual(tuple(view.shape[:view.ndim]), tensor.shape)
                    if tensor.numel():
                        self.assertEqual(view.data, tensor.data_ptr())
                        for d, extent in enumerate(tensor.shape):
                            if extent > 1:
                                self.assertEqual(view.strides[d], tensor.stride(d))
                        bits = tensor.clone(memory_format=torch.contiguous_format)
                        if name == "bfloat16":  # NumPy has none
                            bits = bits.view(torch.int16)
                        bits = bits.numpy()
                        np.testing.assert_array_equal(np.asarray(Elements(view, bits.dtype)), bits)

    def test_errors(self):
        for name in REFUSED:
            status, _, message = view_of(torch.zeros(3, dtype=getattr(torch, name)))
            self.assertEqual(status, ERROR_DTYPE)
            self.assertIn("expected float32, float16, bfloat16, int8", message)

    def test_quantize(self):
        """bfloat16 everywhere; the output's memory is transposed."""
        x = (torch.from_numpy(rng.normal(0, 20, (12, 16)))).to(torch.bfloat16)
        scales = torch.from_numpy(rng.uniform(0.1, 2, 16)).to(torch.bfloat16)
        offsets = torch.from_numpy(rng.uniform(-9, 9, 16)).to(torch.bfloat16)
        y = torch.full((16, 12), 99, dtype=torch.int8).T
        quantize(x, scales, offsets, -1, False, y)
        product = x.float().numpy() * scales.float().numpy()
        expected = saturated(product + offsets.float().numpy(), -128, 127)
        np.testing.assert_array_equal(y.numpy(), expected)


if __name__ == "__main__":
    print(f"NPUQ_TEST_SEED={seed}, NumPy {np.__version__}, PyTorch {torch.__version__ if torch else 'is not there'}",
          flush=True)
    unittest.main(verbosity=2)
