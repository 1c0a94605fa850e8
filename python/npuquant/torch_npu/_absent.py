# SPDX-License-Identifier: BSD-3-Clause
"""The error for a name that the stand-in does not have."""
from __future__ import annotations

import importlib.abc
import types
from importlib.machinery import ModuleSpec
from typing import Any, Callable, Collection, Dict

from .._torch.chosen import by_a_test

#: Operators that serving code calls, and that are not known here: vllm-project/vllm-ascend, 2026-08-22 (182b75ea84). A
#: test can replace them. A call raises an error.
OPERATORS = frozenset("""
    _npu_flash_attention _npu_flash_attention_unpad _npu_flash_attention_unpad_v2 _npu_flash_attention_v3
    _npu_fused_infer_attention_score_get_max_workspace _npu_fused_infer_attention_score_v2_get_max_workspace
    _npu_group_topk _npu_matmul_add_fp32 _npu_paged_attention _npu_paged_attention_get_workspace
    _npu_paged_attention_splitfuse _npu_paged_attention_splitfuse_v2 _npu_reshape_and_cache _npu_rotary_embedding
    npu_apply_rotary_pos_emb npu_attention_update npu_chunk_gated_delta_rule npu_fast_gelu
    npu_fused_infer_attention_score npu_fused_infer_attention_score_v2 npu_fusion_attention npu_gather_pa_kv_cache
    npu_interleave_rope npu_kv_quant_sparse_flash_attention npu_kv_rmsnorm_rope_cache npu_lightning_indexer
    npu_mla_prolog_v2 npu_mla_prolog_v3 npu_mm_all_reduce_base npu_mm_reduce_scatter_base npu_mrope
    npu_prompt_flash_attention npu_quant_lightning_indexer npu_recurrent_gated_delta_rule npu_rotary_mul
    npu_scatter_pa_cache npu_scatter_pa_kv_cache
    npu_sparse_attention_score npu_top_k_top_p npu_transpose_batchmatmul
""".split())


class Absent(NotImplementedError, AttributeError):
    """The stand-in does not have the name. The class is an AttributeError, too, so that hasattr() returns False."""


def _absent(module: str, name: str, hint: str = "") -> Absent:
    return Absent(f"{module}.{name} is not in npuquant's stand-in for torch_npu, which has the quantisation "
                  f"operators and what scripts need around them (docs/torch.md lists them){hint}")


def _refusing(module: str, name: str) -> Callable[..., Any]:
    """A function that raises the error."""

    def refuse(*args: Any, **keywords: Any) -> Any:
        raise _absent(module, name, f"; {by_a_test(f'{module}.{name}')}")

    return refuse


def absent_class(module: str, name: str, *inner: str) -> type:
    """A class for annotations and isinstance(), with other such classes in it. To make an object raises the error."""
    contents: Dict[str, Any] = {one: absent_class(module, f"{name}.{one}") for one in inner}
    return type(name.rpartition(".")[2], (), {"__module__": module, "__init__": _refusing(module, name), **contents})


def absent_from(module: str, known: Collection[str] = ()) -> Callable[[str], Any]:
    """The __getattr__ of a stand-in module. A known name is a function that raises the error when it is called. So a
    test can replace the function."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name not in known:
            raise _absent(module, name)
        return _refusing(module, name)

    return get


class Loader(importlib.abc.Loader):
    """Of stand-in modules, which are all there from the start: neither an import nor a reload executes anything."""

    def __init__(self, made: types.ModuleType) -> None:
        self.module, self.contents = made, dict(vars(made))

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self.module

    def exec_module(self, made: types.ModuleType) -> None:
        """A reload has set the module's name, loader and package."""
        vars(made).update(self.contents)


def spec_of(name: str, made: types.ModuleType) -> ModuleSpec:
    """What importlib.util.find_spec() returns for a stand-in module under this name."""
    spec = ModuleSpec(name, Loader(made), origin=getattr(made, "__file__", "npuquant's stand-in for torch_npu"))
    spec.submodule_search_locations = list(made.__path__)
    return spec


def module(name: str, *contents: Any, known: Collection[str] = (), **more: Any) -> types.ModuleType:
    """A stand-in module with these classes, functions and other names. A known name is as in absent_from()."""
    made = types.ModuleType(name, "Part of npuquant's stand-in for torch_npu.")
    made.__dict__.update({value.__name__: value for value in contents}, __getattr__=absent_from(name, known))
    made.__dict__.update({"__path__": [], "__package__": name, **more})  # a package without other modules
    made.__spec__ = spec_of(name, made)
    made.__loader__ = made.__spec__.loader
    return made
