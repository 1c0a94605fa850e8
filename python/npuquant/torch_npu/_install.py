# SPDX-License-Identifier: BSD-3-Clause
"""install() and uninstall(): lets `import torch_npu` find the stand-in, and PyTorch take "npu" for the CPU."""
from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import re
import sys
import threading
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set

import torch

from npuquant_facts import operators as facts

from .. import torch as operators
from .._arguments import ArgumentTypeError, Refusal, listed
from .._serving import unset as _unset
from .._tensors import ON_DEVICE, result_type, types_made
from .._torch.arguments import UNDEFINED, quant_matmul_undefined
from .._torch.chosen import CANN, VALUES, cann as cann_of_choice, chosen
from .._torch.registered import Operator, OperatorOnSelf, renamed
from . import npu
from ._absent import OPERATORS, absent_from, spec_of
from ._modules import MODULES, npu_backend

#: Names of devices that mean the CPU.
_devices: Set[str] = set()

# ---- what is changed, and how it is put back -------------------------------------------------------------------------
# Other versions of PyTorch may lack names that begin with an underscore. Without such a name the stand-in works, except
# for the function that uses the name.

_MISSING = object()
_lock = threading.RLock()
_undo: List[Callable[[], Any]] = []


def _set(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute until uninstall(), which deletes the attribute again if the owner only inherited it."""
    former = vars(owner).get(name, _MISSING)
    if former is _MISSING:
        _undo.append(functools.partial(delattr, owner, name))
    else:
        _undo.append(functools.partial(setattr, owner, name, former))
    setattr(owner, name, value)


def _set_module(name: str, module: Any) -> None:
    """Lets imports find a module, also as an attribute of its parent module, until uninstall()."""
    former = sys.modules.get(name)
    if former is None:
        _undo.append(functools.partial(sys.modules.pop, name, None))
    else:
        _undo.append(functools.partial(sys.modules.__setitem__, name, former))
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        _set(sys.modules[parent], child, module)


@functools.lru_cache(maxsize=None)
def _distribution() -> Any:
    """What importlib.metadata knows of torch_npu."""
    import importlib.metadata as metadata  # which takes long

    here = sys.modules[__package__]
    texts = {"METADATA": f"Metadata-Version: 2.1\nName: torch-npu\nVersion: {here.__version__}\n",
             "top_level.txt": "torch_npu\n"}

    class Distribution(metadata.Distribution):
        def read_text(self, filename: str) -> Optional[str]:
            return texts.get(filename)

        def locate_file(self, path: Any) -> Any:
            return pathlib.Path(here.__path__[0], path)

    return Distribution()


class _Finder:
    """Finds the stand-in's modules for importlib.reload(), and after a script has removed them from sys.modules. For
    importlib.metadata it finds their version."""

    def __init__(self, modules: Dict[str, Any]) -> None:
        self.modules = modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        module = self.modules.get(name)
        if module is None or module.__spec__.name != name:  # a module has one of its names
            return None
        module.__spec__.loader.contents = dict(vars(module))
        return module.__spec__

    def find_distributions(self, context: Any) -> Iterator[Any]:
        everywhere = "path" not in vars(context)
        name = context.name  # of any spelling; None: all
        if everywhere and (name is None or re.sub("[-_.]+", "-", name).lower() == "torch-npu"):
            yield _distribution()


def _forget_finder() -> None:
    """Removes the finder from Python's list, which may have other finders by now."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]


def _forget_submodules() -> None:
    """Lets parts of torch_npu be imported again after the next install()."""
    for name in [name for name in sys.modules if name.startswith("torch_npu.")]:
        del sys.modules[name]
    vars(MODULES["torch_npu.contrib"]).pop("transfer_to_npu", None)


def _forget_functions() -> None:
    """Lets the compiler of PyTorch 2, which has a table of torch's functions, find the present ones."""
    table: Any = getattr(sys.modules.get("torch._dynamo.trace_rules"), "get_torch_obj_rule_map", None)
    if hasattr(table, "cache_clear"):
        table.cache_clear()


# ---- mocks -----------------------------------------------------------------------------------------------------------


def _all_modules() -> Dict[str, Any]:
    return {"torch_npu": sys.modules[__package__], **MODULES}


def _is_mock(found: Any) -> bool:
    """Also of a module that a test has made."""
    return not isinstance(found, types.ModuleType) or getattr(found, "__file__", None) is None


def mocks() -> List[str]:
    """The places of the stand-in's modules that have mocks, and the types of these. Another module is no mock."""
    modules = _all_modules()
    parents = {"torch": torch, **modules}
    places = {}
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        places[name] = getattr(parents.get(parent), child, module)
        places[f'sys.modules["{name}"]'] = sys.modules.get(name, module)
    kept = [*map(id, modules.values())]
    return [f"{place} ({'ModuleType' if type(found) is types.ModuleType else type(found).__name__})"
            for place, found in places.items() if id(found) not in kept and _is_mock(found)]


def to_remove(places: Sequence[str]) -> str:
    """What a message says of mocks."""
    return (f"mocks are in the place of npuquant's stand-in for torch_npu: {', '.join(places)}. Remove the lines that "
            "put them there, often in conftest.py (docs/torch.md, CI without a device)")


# ---- operators -------------------------------------------------------------------------------------------------------


_absent_operator = absent_from("torch.ops.npu", OPERATORS)


def declared(name: str) -> Any:
    """The operator of this name without values; None if there is no such operator."""
    if not name.startswith("npu_"):
        return None
    from .._torch import declared as _declared  # at its first use: a script may do without

    return _declared.operator(name) if name in _declared.ROWS else None


#: Operators whose dst_type may be uint8, as an extension, with their other types in words. The stand-in refuses it, as
#: the device.
_MADE_ON_DEVICE = {f"npu_{operator.name}": listed([name for name in types_made(operator.name) if name != "uint8"])
                   for operator in facts.OPERATORS.values()
                   if "SYMMETRIC" in operator.traits and "uint8" in operator.results[0].types}
#: Operators whose arguments only strict checks: without strict a call costs no more.
_BY_RULES = ("npu_anti_quant", "npu_dynamic_quant_asymmetric", "npu_group_quant", "npu_quant_scatter", "npu_quantize",
             "npu_trans_quant_param")

def _undefined_product(values: Sequence[Any], keywords: Dict[str, Any]) -> str:
    """What of npu_quant_matmul's arguments selects types that npuquant does not define; "" if nothing does."""
    for given in UNDEFINED:
        if keywords.get(given) is not None:
            return given
    dtype = str(getattr(values[0] if values else keywords.get("x1"), "dtype", ""))
    return f"x1 of {dtype[len('torch.'):]}" if "float8" in dtype else ""


class _OperatorOfDevice(Operator):
    """An operator that takes the device's arguments: fewer types, types that npuquant does not compute, and with strict
    the device's rules."""

    def __call__(*args: Any, **keywords: Any) -> Any:
        try:
            return _OperatorOfDevice._call(*args, **keywords)
        except Refusal as error:
            error.set_operator(args[0].__name__)
            raise

    def _call(*args: Any, **keywords: Any) -> Any:
        self, args = args[0], args[1:]
        name = self.__name__
        if name in _MADE_ON_DEVICE and isinstance(keywords.get("dst_type"), (int, torch.dtype)):
            try:
                result_type("dst_type", keywords["dst_type"], ON_DEVICE, _MADE_ON_DEVICE[name])
            except ArgumentTypeError as error:
                if error.float8 is None:  # of these the operator has shapes
                    raise
        undefined = _undefined_product(args, keywords) if name == "npu_quant_matmul" else ""
        if chosen.strict or undefined:
            from .._torch import declared as _declared

            arguments = _declared.check(name, args, keywords)
            if undefined:
                made = quant_matmul_undefined(arguments)
                return made if made.is_meta else _declared.zeros_for(f"{name} with {undefined}", made)
        return Operator.__call__(self, *args, **keywords)


class _OperatorOnSelfOfDevice(_OperatorOfDevice):
    """The same for an operator that takes its first argument as self or input."""

    def __call__(*args: Any, **keywords: Any) -> Any:
        return _OperatorOfDevice.__call__(*args, **renamed(keywords, "input", "self"))


@functools.lru_cache(maxsize=None)
def operator_of_device(name: str) -> Any:
    """An operator of torch.ops.npuquant, or another with the same overloads that takes the device's arguments."""
    operator = getattr(torch.ops.npuquant, name)
    if name not in (*_MADE_ON_DEVICE, *_BY_RULES, "npu_quant_matmul"):
        return operator
    operator.default  # PyTorch makes it at the first use: it is to be the same in both
    beside: Any = object.__new__(type(operator) if name in _BY_RULES else _OperatorOfDevice)
    beside.__dict__.update(operator.__dict__)
    return beside


class _Operators(type(torch.ops.npuquant)):  # type: ignore[misc]
    """torch.ops.npu: the stand-in's operators, and what scripts register in this namespace."""

    def __getattr__(self, name: str) -> Any:
        if declared(name) is not None or hasattr(torch.ops.npuquant, name):
            setattr(self, name, operator_of_device(name))  # not to come here again
            return getattr(self, name)
        with contextlib.suppress(AttributeError):
            return super().__getattr__(name)
        return _absent_operator(name)


#: The device's keys, and the keys under which PyTorch finds a script's kernels for the CPU's tensors. A kernel that the
#: script registers for the CPU comes first.
_KEYS = {"PrivateUse1": "CompositeExplicitAutograd", "AutogradPrivateUse1": "AutogradCPU"}


def _library_init(real: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(real)
    def init(self: torch.library.Library, ns: str, kind: str, dispatch_key: str = "") -> None:
        # A library with its own key takes no other key.
        real(self, ns, kind, "" if dispatch_key in _KEYS else dispatch_key)
        self.dispatch_key = dispatch_key

    return init


def _library_impl(real: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(real)
    def impl(self: torch.library.Library, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "",
             **options: Any) -> None:
        key = dispatch_key or self.dispatch_key
        try:
            # PyTorch's own operators compute on the CPU, and what is registered for the device may call them.
            real(self, op_name, fn, key if self.ns == "aten" else _KEYS.get(key, key), **options)
        except RuntimeError:
            if key != "PrivateUse1" or self.ns == "aten":
                raise
            real(self, op_name, fn, "CPU", **options)  # the script has a kernel for all devices, too

    return impl


def _key_of_device(real: Callable[[str], str]) -> Callable[[str], str]:
    """Finds the key for torch.library.custom_op(device_types="npu") and the like."""

    @functools.wraps(real)
    def key(device: str) -> str:
        return "PrivateUse1" if device in _devices else real(device)

    return key


# ---- devices ---------------------------------------------------------------------------------------------------------


def _cpu(device: Any) -> Any:
    """The CPU for a name or number of the device; all other values unchanged."""
    if isinstance(device, str):
        name, colon, index = device.partition(":")
        return "cpu" if name in _devices and (not colon or index.isdigit()) else device
    return "cpu" if isinstance(device, int) and not isinstance(device, bool) and device >= 0 else device


def _on_cpu(function: Callable[..., Any], keyword: str = "device",
            position: Optional[int] = None) -> Callable[..., Any]:
    """A function that takes the device in one argument, by keyword or by position."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if keyword in kwargs:
            kwargs[keyword] = _cpu(kwargs[keyword])
        kwargs.pop("pin_memory", None)  # it makes moves to the device faster, and PyTorch may refuse it without one
        if position is not None and position < len(args):
            args = (*args[:position], _cpu(args[position]), *args[position + 1:])
        return function(*args, **kwargs)

    return call


def _stand_in_type(real: type) -> type:
    """A class that makes objects of the real one, and has them as its instances.

    It is equal to the real one, because the compiler of PyTorch 2 keeps types in tables.
    """

    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if "type" in kwargs:  # torch.device(type=, index=)
                args = (kwargs.pop("type"), *((kwargs.pop("index"),) if "index" in kwargs else ()))
            device = args[0] if args else kwargs.get("device")
            if device is not None and _cpu(device) is not device:
                return real("cpu")
            return real(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

        def __getattr__(cls, name: str) -> Any:
            return getattr(real, name)

        def __eq__(cls, other: Any) -> bool:
            return other is cls or other is real

        def __hash__(cls) -> int:
            return hash(real)

    return Meta(real.__name__, (), {"__module__": "torch", "__doc__": real.__doc__})


_TYPES = {name: _stand_in_type(getattr(torch, name)) for name in ("device", "Generator")}

# Functions that make tensors. Some versions of PyTorch lack some of them.
_FACTORIES = {
    torch: (
        "arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty", "empty_like", "empty_permuted",
        "empty_quantized", "empty_strided", "eye", "from_file", "full", "full_like", "hamming_window", "hann_window",
        "kaiser_window", "linspace", "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint",
        "randint_like", "randn", "randn_like", "randperm", "range", "scalar_tensor", "sparse_bsc_tensor",
        "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor",
        "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
    ),
    torch.Tensor: ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros"),
    torch.fft: ("fftfreq", "rfftfreq"),
    torch.nested: ("as_nested_tensor", "nested_tensor"),
}


def _as_tensor(function: Callable[..., Any]) -> Callable[..., Any]:
    """torch.as_tensor(), whose result may share the host's memory. With the device as argument it is a copy."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        return made if kwargs.get("device") is None else made.clone()

    return call


def _asarray(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for torch.asarray(), which makes the copy itself: with requires_grad the copy must be a leaf."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is not None:
            kwargs["copy"] = True
        return function(*args, **kwargs)

    return call


_NOTHING = (None,)
_overridden = torch.overrides.has_torch_function  # also if there is a mode; the compiler knows this function
_is_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", bool)


def _factory(function: Callable[..., Any], takes_tensors: bool) -> Callable[..., Any]:
    """A function that takes the device, and that classes and modes with __torch_function__ get as func: they compare
    it with torch's names. PyTorch itself would give them its own function."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        relevant = (*args, *kwargs.values()) if takes_tensors else _NOTHING
        if _overridden(relevant) and not _is_compiling():
            others = [value for value in relevant if type(value) is not torch.Tensor]
            return torch.overrides.handle_torch_function(call, others, *args, **kwargs)
        if "device" in kwargs:
            kwargs["device"] = _cpu(kwargs["device"])
        kwargs.pop("pin_memory", None)
        return function(*args, **kwargs)

    return call


def _set_factory(owner: Any, name: str) -> None:
    """Lets a function that makes tensors take the device, and TorchScript still know the function."""
    former = getattr(owner, name)
    copying = {"as_tensor": _as_tensor, "asarray": _asarray}.get(name)
    function = former if copying is None else copying(former)
    if isinstance(former, types.BuiltinFunctionType):
        function = _factory(function, former not in torch.overrides.get_ignored_functions())
    else:  # Python's functions do not ask classes, and for methods PyTorch takes the attribute of torch.Tensor
        function = _on_cpu(function)
    _set(owner, name, function)
    builtins: Dict[int, Any] = getattr(torch.jit._builtins, "_get_builtin_table", dict)()
    if id(former) in builtins:
        builtins[id(function)] = builtins[id(former)]
        _undo.append(functools.partial(builtins.pop, id(function)))


def _moved(former: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """The result of a move to another memory: another tensor, as on the device, unless it is lazy."""
    return tensor.clone() if tensor is former and not torch.nn.parameter.is_lazy(tensor) else tensor


def _tensor_to(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        device = args[0] if args else kwargs.get("device")
        if not isinstance(device, (str, int, torch.device)):
            return real(self, *args, **kwargs)
        if args:
            return _moved(self, real(self, _cpu(device), *args[1:], **kwargs))
        kwargs["device"] = _cpu(device)
        return _moved(self, real(self, **kwargs))

    return to


def _tensor_cpu(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def cpu(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return _moved(self, real(self, *args, **kwargs))

    return cpu


def _tensor_npu(self: torch.Tensor, device: Any = None, non_blocking: bool = False,
                memory_format: torch.memory_format = torch.preserve_format) -> torch.Tensor:
    """A copy: the device's memory is not the CPU's."""
    return self.to("cpu" if device is None else device, memory_format=memory_format)


def _module_npu(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
    return self._apply(lambda tensor: tensor.npu(device))


def _is_npu(self: torch.Tensor) -> bool:
    return self.is_cpu


def _restore(storage: Any, location: str) -> Any:
    """For torch.load(): a storage that was saved on the device stays in the CPU's memory."""
    return storage if _cpu(location) == "cpu" else None


_LOADER = (5, lambda storage: None, _restore)  # of storages that are saved it says nothing


def _forget_loader() -> None:
    """Removes the loader from PyTorch's list, which may have other loaders by now."""
    loaders = torch.serialization._package_registry
    loaders[:] = [loader for loader in loaders if loader != _LOADER]


def _autocast(real: Callable[..., None]) -> Callable[..., None]:
    """torch.autocast.__init__() that takes the device, and its type unless one is given."""

    @functools.wraps(real)
    def init(self: torch.autocast, device_type: str, dtype: Optional[torch.dtype] = None, *args: Any,
             **kwargs: Any) -> None:
        if dtype is None and _cpu(device_type) is not device_type:
            dtype = npu.AUTOCAST_DTYPE
        real(self, _cpu(device_type), dtype, *args, **kwargs)

    return init


def _compile(real: Any) -> Callable[..., Any]:
    """torch.compile() with the device's backend. If PyTorch has no torch.compile(), it returns its argument."""

    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("backend") == "npu":
            kwargs["backend"] = npu_backend
        if real is not None:
            return real(model, *args, **kwargs)
        return (lambda decorated: decorated) if model is None else model

    return compile if real is None else functools.wraps(real)(compile)


def _name_device(name: str) -> None:
    """Lets a name of a device mean the CPU."""
    _devices.add(name)
    _undo.append(functools.partial(_devices.discard, name))
    _set(torch.Tensor, name, _tensor_npu)
    _set(torch.nn.Module, name, _module_npu)


def transfer_cuda() -> None:
    """Lets "cuda" mean the CPU too, and torch.cuda have the functions of torch.npu."""
    with _lock:
        _name_device("cuda")
        for name in npu.__all__:
            if hasattr(torch.cuda, name):
                _set(torch.cuda, name, getattr(npu, name))
        _set(torch.cuda.amp, "autocast", npu.amp.autocast)
        _set(torch.Tensor, "is_cuda", property(_is_npu))


def _patch_torch() -> None:
    torch.overrides.get_ignored_functions()  # PyTorch makes the set at the first use: of its own functions
    devices = getattr(torch.utils, "_device", None)
    constructors: Any = getattr(devices, "_device_constructors", set)
    own = constructors()
    for owner, names in _FACTORIES.items():
        for name in names:
            if hasattr(owner, name):
                _set_factory(owner, name)
    if own:  # the functions for which torch.set_default_device() and `with torch.device()` add the device
        functions = own | getattr(constructors, "__wrapped__", constructors)()
        _set(devices, "_device_constructors", lambda: constructors() if _is_compiling() else functions)
    _set(torch.Tensor, "to", _tensor_to(torch.Tensor.to))
    _set(torch.Tensor, "cpu", _tensor_cpu(torch.Tensor.cpu))
    # Tensors without elements allow these functions only.
    lazy = torch.nn.parameter.UninitializedTensorMixin
    _set(lazy, "_allowed_methods", [*getattr(lazy, "_allowed_methods", ()), torch.Tensor.to, torch.Tensor.cpu])
    _set(torch.Tensor, "pin_memory", lambda self, device=None: self.clone())
    _set(torch.Tensor, "record_stream", lambda self, stream: None)
    _set(torch.nn.Module, "to", _on_cpu(torch.nn.Module.to, position=1))
    _set(torch.nn.Module, "to_empty", _on_cpu(torch.nn.Module.to_empty))
    for name, stand_in in _TYPES.items():
        _set(torch, name, stand_in)
    if hasattr(torch, "set_default_device"):
        _set(torch, "set_default_device", _on_cpu(torch.set_default_device, position=0))
    _set(torch.autocast, "__init__", _autocast(torch.autocast.__init__))
    _set(torch, "compile", _compile(getattr(torch, "compile", None)))
    _set(torch.Tensor, "is_npu", property(_is_npu))
    _set(torch.ops, "npu", _Operators("npu"))
    _set(torch.library.Library, "__init__", _library_init(torch.library.Library.__init__))
    _set(torch.library.Library, "impl", _library_impl(torch.library.Library.impl))
    _set(torch.distributed, "is_hccl_available", lambda: False)
    if hasattr(torch._C, "_dispatch_key_for_device"):
        _set(torch._C, "_dispatch_key_for_device", _key_of_device(torch._C._dispatch_key_for_device))

    torch.serialization.register_package(*_LOADER)
    _undo.append(_forget_loader)


def _apply_rules() -> None:
    for name in _BY_RULES:
        plain = type(getattr(torch.ops.npuquant, name))
        checked = _OperatorOnSelfOfDevice if plain is OperatorOnSelf else _OperatorOfDevice
        operator_of_device(name).__class__ = checked if chosen.strict else plain


def _float8_results(*arguments: Any) -> Any:
    from .._torch import declared as _declared  # at its first use: a script may do without

    return _declared.float8_results(*arguments)


def _choose(values: str, strict: bool, unset: str, cann: Optional[str]) -> None:
    _undo.append(_apply_rules)  # it is done after what follows is put back
    _set(chosen, "values", values)
    _set(chosen, "strict", strict)
    _set(chosen, "cann", cann)
    _set(torch.version, "cann", CANN[cann_of_choice()])
    _set(_unset.chosen, "unset", unset)
    _set(operators, "float8_results", _float8_results)
    _apply_rules()


def _choice(name: str, value: Optional[str], choices: Sequence[str]) -> str:
    """A choice of install(), or that of the environment; the first is the usual one."""
    chosen = os.environ.get(f"NPUQUANT_{name.upper()}") or choices[0] if value is None else value
    if chosen not in choices:
        raise ValueError(f"{name}: is {chosen!r}; expected {listed([*map(repr, choices)])}")
    return chosen


def install(scale_form: str = "product", *, values: Optional[str] = None, strict: Optional[bool] = None,
            unset: Optional[str] = None, cann: Optional[str] = None) -> None:
    """Lets `import torch_npu` find the stand-in, and PyTorch take "npu" for the CPU, in this process until uninstall().

    Args:
        scale_form: the form of npu_dynamic_quant()'s scales: "product", as in CANN 9.0 and later, or "inverse", as in
            CANN 8.5 and earlier.
        values: for operators of which npuquant knows only the shapes and types of results. "exact": they raise a
            NotImplementedError. "zeros": they return zeros, and each operator warns once. "near": PyTorch's functions
            in float32 compute some of them, and a report at the end of the process names these. None: the value of
            the environment variable NPUQUANT_VALUES, or "exact".
        strict: True refuses what devices of the series A2 and A3 refuse. None: True if the environment has
            NPUQUANT_STRICT=1.
        unset: what fills rows that the device does not write: "zeros", or "nan", which for integers means the most
            negative one. None: the value of the environment variable NPUQUANT_UNSET, or "zeros".
        cann: the device's software, which npu_moe_init_routing_v2() depends on: "9.0", "9.2" for what comes after 9.1,
            or "8.5". None: the one that has this scale_form, "9.0" or "8.5".

    Raises:
        RuntimeError: the real torch_npu is imported already, or a mock is in its place.
        ValueError: values, unset or cann is none of these.
    """
    values, unset = _choice("values", values, VALUES), _choice("unset", unset, _unset.FILLS)
    cann = None if cann is None else _choice("cann", cann, [*CANN])
    if strict is None:
        strict = os.environ.get("NPUQUANT_STRICT", "0") not in ("", "0")
    with _lock:
        here = sys.modules[__package__]
        found = sys.modules.get("torch_npu", here)
        if found is not here:
            if _is_mock(found):
                raise RuntimeError(to_remove(mocks()))
            raise RuntimeError("torch_npu is imported already, and nothing can stand in for it. If PyTorch itself "
                               "imports it, set the environment variable TORCH_DEVICE_BACKEND_AUTOLOAD=0.")
        if _undo:
            operators.set_scale_form(scale_form)
            _choose(values, strict, unset, cann)
            return
        _undo.append(functools.partial(operators.set_scale_form, operators.set_scale_form(scale_form)))
        try:
            _undo.append(_forget_functions)
            _name_device("npu")
            _patch_torch()
            _choose(values, strict, unset, cann)
            _undo.append(_forget_submodules)
            modules = _all_modules()
            for name, module in modules.items():
                _set_module(name, module)
            # These two modules have other names, too.
            _set(here, "__spec__", spec_of("torch_npu", here))
            _set(npu, "__spec__", spec_of("torch_npu.npu", npu))
            _undo.append(_forget_finder)
            sys.meta_path.insert(0, _Finder(modules))
        except BaseException:
            uninstall()
            raise


def uninstall() -> None:
    """Undoes the changes of install()."""
    with _lock:
        while _undo:
            _undo.pop()()
