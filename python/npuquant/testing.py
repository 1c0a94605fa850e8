# SPDX-License-Identifier: BSD-3-Clause
"""For the tests of a kernel."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from ._diagnosis import Operator, diagnose
from ._tensors import TensorLike

__all__ = ["assert_equal"]


def assert_equal(actual: Union[TensorLike, Sequence[Optional[TensorLike]]], operator: Operator, /, *args: Any,
                 **kwargs: Any) -> None:
    """Raises AssertionError if what a kernel returned is not what an operator returns; its text is the diagnosis.

    Args:
        actual, operator, args, kwargs: as for diagnose().

    >>> import numpy as np
    >>> x, scales = np.array([[0.25, 2.5]], np.float32), np.array([0.5], np.float32)
    >>> assert_equal(np.array([[0, 5]], np.int8), "npu_quantize", x, scales, None, np.int8)
    """
    __tracebackhide__ = True  # pytest shows the line that calls this
    diagnosis = diagnose(actual, operator, *args, **kwargs)
    if diagnosis.verdict != "equal":
        name = operator if isinstance(operator, str) else operator.__name__
        counts = ", ".join(f"{result.differing} of {result.elements} elements of {result.name} differ"
                           for result in diagnosis.results if result.differing > 0)
        raise AssertionError(f"{name}: {counts}\n{diagnosis}")
