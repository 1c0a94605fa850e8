# SPDX-License-Identifier: BSD-3-Clause
"""For the tests of a kernel."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from ._arguments import shown
from ._causes.diagnosis import Operator, diagnose
from ._tensors import TensorLike

__tracebackhide__ = True  # pytest shows the line that calls the package

__all__ = ["assert_equal"]


def assert_equal(actual: Union[TensorLike, Sequence[Optional[TensorLike]]], operator: Operator, /, *args: Any,
                 admissible: bool = False, **kwargs: Any) -> None:
    """Raises AssertionError, with the diagnosis, if a kernel's result differs from an operator's.

    Args:
        actual, operator, args, kwargs: as for diagnose().
        admissible: True lets differences pass that the device's division may make. It is for npu_quantize() with
            div_mode=True, npu_dynamic_quant(), npu_dynamic_block_quant(), npu_moe_init_routing_v2() with quant_mode=1,
            and row_quant() except by the rule "grouped_swiglu".

    >>> import numpy as np
    >>> x, scales = np.array([[0.25, 2.5]], np.float32), np.array([0.5], np.float32)
    >>> assert_equal(np.array([[0, 5]], np.int8), "npu_quantize", x, scales, None, np.int8)
    """
    diagnosis = diagnose(actual, operator, *args, **kwargs)
    name = operator if isinstance(operator, str) else operator.__name__
    if admissible and diagnosis.admissible is None:
        raise ValueError(f"admissible: is {shown(admissible)}; expected False, as {name} has no division on the device's "
                         "vector unit here: every bit must be equal")
    if diagnosis.verdict != "equal" and not (admissible and diagnosis.verdict == "admissible"):
        counts = ", ".join(f"{result.differing} of {result.elements} elements of {result.name} differ"
                           for result in diagnosis.results if result.differing > 0)
        raise AssertionError(f"{name}: {counts}\n{diagnosis}")
