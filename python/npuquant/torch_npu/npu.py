# SPDX-License-Identifier: BSD-3-Clause
"""torch_npu.npu, and torch.npu while the stand-in is installed: one device, number 0, which is the CPU.

Work is done when a call returns, so there is nothing to wait for: streams are all alike, and the times that events
measure are those of this machine.
"""
from __future__ import annotations

import itertools
import os
import re
import threading
import time
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch import (BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor,
                   LongTensor, ShortTensor)

from npuquant import __version__

from .._arguments import ArgumentTypeError, as_annotated, names_operator, shown
from ._absent import absent_from, module

__all__ = [
    "Event", "ExternalEvent", "NPUGraph", "Stream", "StreamContext", "clear_npu_overflow_flag", "config", "conv",
    "current_device", "current_stream", "default_stream", "device", "device_count", "device_of", "empty_cache",
    "get_device_name", "get_device_properties", "get_npu_overflow_flag", "get_rng_state", "get_rng_state_all",
    "get_soc_version", "graph", "graph_pool_handle", "graph_task_group_begin", "graph_task_group_end",
    "graph_task_update_begin", "graph_task_update_end", "init", "initial_seed", "ipc_collect", "is_available",
    "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "is_jit_compile_false", "manual_seed",
    "manual_seed_all", "matmul", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_cached", "memory_reserved", "memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats", "seed", "seed_all",
    "set_compile_mode", "set_device", "set_option", "set_rng_state", "set_rng_state_all", "set_stream", "stream",
    "synchronize",
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor",
]

__path__: List[str] = []  # a package, whose modules are in _modules.py
__getattr__ = absent_from("torch_npu.npu", ("temperature", "utilization"))

# ---- the device ------------------------------------------------------------------------------------------------------


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    pass


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def expect_device(device: Any) -> None:
    """Refuses words and numbers that are no device's."""
    known = not isinstance(device, str) or re.fullmatch(r"(npu|cpu|cuda)(:\d+)?|meta|\d+", device)
    if not known or type(device) in (float, list, tuple):  # a packed sequence is a tuple, and has a device
        raise ArgumentTypeError(f"device: is {shown(device)}; expected a device's name or number, such as npu:0")


@names_operator
def set_device(device: Any) -> None:
    """Any device is the CPU."""
    expect_device(device)


def get_device_name(device: Any = None) -> str:
    """A name that begins like that of the device whose arithmetic the operators have. Scripts then act as for it."""
    return f"Ascend910B (npuquant {__version__}, CPU)"


def get_soc_version() -> int:
    """The number of the Ascend910B1, for the same reason."""
    return 220


def is_bf16_supported() -> bool:
    return True


class device:
    """A context with another current device. All devices are the CPU."""

    def __init__(self, device: Any = None) -> None:
        names_operator(expect_device, "device")(device)
        self.idx = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: Any) -> None:
        pass


device_of = device


def synchronize(device: Any = None) -> None:
    """All work is done."""


# ---- streams and events ----------------------------------------------------------------------------------------------


class Stream:
    """All streams are alike: work is done when the call returns. Those with the same stream_id are equal."""

    device_index, device_type = 0, 20  # PrivateUse1

    def __init__(self, device: Any = None, priority: int = 0, *, stream_id: Optional[int] = None,
                 **other: Any) -> None:
        names_operator(expect_device, "Stream")(device)
        names_operator(as_annotated, "Stream")("priority", priority, "int")
        self.device = torch.device("cpu")
        self.stream_id = self.npu_stream = next(_streams) if stream_id is None else stream_id

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        pass

    def record_event(self, event: Optional[Event] = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event


class Event:
    """A point in time, of this machine's clock."""

    npu_event = 0  # no handle: there is nothing behind the event

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._time: Optional[float] = None

    def record(self, stream: Optional[Stream] = None) -> None:
        self._time = time.perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def wait(self, stream: Optional[Stream] = None) -> None:
        pass

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to the other."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("elapsed_time: both events must have been recorded")
        return 1000 * (end_event._time - self._time)


class ExternalEvent:
    """An event that streams wait for. Here nothing waits: work is done when a call returns."""

    def record(self, stream: Optional[Stream] = None) -> None:
        pass

    wait = reset = record


_streams = itertools.count()  # their numbers
_default_stream = Stream()
_thread = threading.local()


def default_stream(device: Any = None) -> Stream:
    return _default_stream


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread has set."""
    return getattr(_thread, "stream", _default_stream)


def set_stream(stream: Optional[Stream]) -> None:
    if stream is not None:
        _thread.stream = stream


class StreamContext:
    """A context in which the stream is the current one; None changes nothing."""

    def __init__(self, stream: Optional[Stream]) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self._former = current_stream()
        set_stream(self.stream)

    def __exit__(self, *raised: Any) -> None:
        set_stream(self._former)


def stream(stream: Optional[Stream]) -> StreamContext:
    return StreamContext(stream)


# ---- graphs: nothing is captured, so nothing that replays is made ----------------------------------------------------


def is_current_stream_capturing() -> bool:
    return False


def _no_graph(name: str) -> Callable[..., None]:
    def refuse(*args: Any, **options: Any) -> None:
        raise NotImplementedError(f"torch_npu.npu.{name}: npuquant's stand-in for torch_npu captures no graph, so it "
                                  "could not replay one; run the script without graphs of the device")

    return refuse


class NPUGraph:
    __init__ = _no_graph("NPUGraph")


class graph:
    __init__ = _no_graph("graph")


class _NPUTaskGroupHandle:
    """The type that graph_task_group_end() returns on the device. Scripts use the name in annotations."""


graph_pool_handle = _no_graph("graph_pool_handle")
graph_task_group_begin = _no_graph("graph_task_group_begin")
graph_task_group_end = _no_graph("graph_task_group_end")
graph_task_update_begin = _no_graph("graph_task_update_begin")
graph_task_update_end = _no_graph("graph_task_update_end")


# ---- memory: the device has none of its own --------------------------------------------------------------------------


def empty_cache() -> None:
    pass


def ipc_collect() -> None:
    pass


def reset_peak_memory_stats(device: Any = None) -> None:
    pass


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def memory_allocated(device: Any = None) -> int:
    """0: tensors are in the CPU's memory, which PyTorch does not count."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = memory_allocated

_POOLED = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
           "inactive_split_bytes", "requested_bytes")


def memory_stats(device: Any = None) -> Dict[str, int]:
    """0 for each name of torch.cuda.memory_stats(), for the same reason."""
    stats = [f"{stat}.{pool}" for stat in _POOLED for pool in ("all", "large_pool", "small_pool")]
    stats += ["oversize_allocations", "oversize_segments"]
    names = [f"{stat}.{number}" for stat in stats for number in ("current", "peak", "allocated", "freed")]
    return dict.fromkeys([*names, "num_alloc_retries", "num_ooms"], 0)


def mem_get_info(device: Any = None) -> Tuple[int, int]:
    """The free bytes and all bytes of this machine's memory; on Linux only."""
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def get_device_properties(device: Any = None) -> types.SimpleNamespace:
    return types.SimpleNamespace(name=get_device_name(), total_memory=mem_get_info()[1])


# ---- random numbers: the CPU's generator -----------------------------------------------------------------------------
# torch.manual_seed() and torch.seed() call the functions of torch.cuda, which are these after transfer_to_npu.


def manual_seed(seed: int) -> None:
    torch.default_generator.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    torch.default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    return torch.initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    return torch.get_rng_state()


def get_rng_state_all() -> Tuple[torch.Tensor, ...]:
    return (torch.get_rng_state(),)


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    torch.set_rng_state(new_state)


def set_rng_state_all(new_states: Tuple[torch.Tensor, ...]) -> None:
    torch.set_rng_state(new_states[0])


# ---- settings, which change nothing here -----------------------------------------------------------------------------


def set_compile_mode(jit_compile: bool = False) -> None:
    pass


def is_jit_compile_false() -> bool:
    return True


def set_option(option: Any) -> None:
    pass


def get_npu_overflow_flag() -> bool:
    return False


def clear_npu_overflow_flag() -> None:
    pass


config = types.SimpleNamespace(allow_internal_format=False)
matmul = types.SimpleNamespace(allow_hf32=False)
conv = types.SimpleNamespace(allow_hf32=True)

#: The device's default; on CPUs PyTorch 1 has autocast to bfloat16 only.
AUTOCAST_DTYPE = torch.float16 if hasattr(torch, "compile") else torch.bfloat16


class autocast(torch.autocast):
    """torch.autocast of the CPU."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = AUTOCAST_DTYPE, cache_enabled: bool = True) -> None:
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


# Not in __all__, by which transfer_to_npu replaces what torch.cuda has: torch.cuda.amp has more.
amp = module("torch_npu.npu.amp", autocast)
