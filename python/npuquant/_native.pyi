# SPDX-License-Identifier: BSD-3-Clause
# What _native.c and _cause.c have.
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

VERSION: str
ABI_VERSION: int
FUNCTIONS: Tuple[str, ...]

def bind(addresses: Tuple[Any, ...], array_type: type, to_array: Any, refuse: Any, /) -> None: ...

# The arguments of each are in _native.c; behind them come whether the result is words of int4, and the threads.
quantize: Callable[..., None]
group_quant: Callable[..., None]
trans_quant_param: Callable[..., None]
dynamic_quant_asymmetric: Callable[..., None]
dynamic_quant: Callable[..., None]
anti_quant: Callable[..., None]
dequant: Callable[..., None]
requant: Callable[..., None]

def keep(operation: Any, arguments: Sequence[Any], threads: int, /) -> Any: ...
def diagnose(call: Any, actual: Sequence[Optional[np.ndarray]], threads: int, /) -> Tuple[str, str]: ...
def explain(call: Any, element: int, /) -> Tuple[str, str]: ...
def hypotheses(operation: Any, /) -> Sequence[Tuple[str, str, str]]: ...
def operands(operation: Any, /) -> Dict[str, bool]: ...
def shape_hard_inputs(operation: Any, shape: Tuple[Any, ...], types: Dict[str, Optional[str]], axis: Any, divides: bool,
                      /) -> Dict[str, Any]: ...
def hard_inputs(call: Any, seed: int, /) -> Tuple[Dict[str, Any], Tuple[str, str]]: ...
