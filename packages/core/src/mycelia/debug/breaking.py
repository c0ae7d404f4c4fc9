"""Conditional breakpoints in eager code."""

from __future__ import annotations

import os
import pdb
import sys
from collections.abc import Callable
from typing import Any

from mycelia.debug.conditions import NO_INPUTS, check, condition
from mycelia.debug.statistics import array_of
from mycelia.debug.watch_conditions import ConditionBase
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor

_CHOICE = "PYTHONBREAKPOINT"  # Python's own variable, no setting of ours
#: Who takes over at a breakpoint instead of Python's debugger: the debugger of the running training.
takers: list[Callable[[str], bool]] = []


def break_if(tensor: Tensor, wanted: str | ConditionBase | Callable[[Tensor], Any]) -> bool:
    """Stop here if `tensor` meets a condition; whether it does.

    `wanted`: a watch condition, by its class (`TensorTooLargeCondition(max_gt=1e4)`) or its name where its
    defaults serve ("tensor_overflow"), or a function of the tensor. A training that is debugged online waits
    for its service; else Python's debugger opens at the line of the call, or what `PYTHONBREAKPOINT` says.
    Errors: NotSupportedError in a compiled function, whose tensors have no values when this is called: watch
    it online; TypeError, ValueError for a condition that is none, or needs the step before.
    """
    if not isinstance(tensor, Tensor):
        raise errors.type_error("break_if", f"tensor must be a Tensor, but got {type(tensor).__name__}")
    if tensor.traced is not None:
        raise errors.NotSupportedError(
            "break_if: a compiled function has no values here; run it in PyNative mode, or set a watchpoint"
        )
    if not _meets(tensor, wanted):
        return False
    frame = sys._getframe(1)
    place = f"break_if at {frame.f_code.co_filename}:{frame.f_lineno}"
    if any(take(place) for take in takers):
        return True
    if os.environ.get(_CHOICE):  # another debugger, or "0" for none
        sys.breakpointhook()
    else:
        pdb.Pdb().set_trace(frame)
    return True


def _meets(tensor: Tensor, wanted: Any) -> bool:
    if isinstance(wanted, str):
        known, given = condition(wanted), {}
    elif isinstance(wanted, ConditionBase):
        known, given = condition(wanted.condition_id), wanted.values
    elif callable(wanted):
        return bool(wanted(tensor))
    else:
        raise errors.type_error("break_if", f"{wanted!r} is no condition and no function")
    if known.depth(known.values(given)):
        raise errors.value_error("break_if", f"{known.id} compares with the step before: watch it online")
    if known.compares_ranks:
        raise errors.value_error("break_if", f"{known.id} compares ranks: ask a DumpAnalyzer of their dumps")
    found = check(known, given, array_of(tensor))
    if found.error_code & NO_INPUTS:
        raise errors.value_error("break_if", f"{known.id} needs what the operator read: watch it online")
    return found.hit
