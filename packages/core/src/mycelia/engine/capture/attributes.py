"""Attributes that captured code sets."""

from __future__ import annotations

from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.capture.outside import note_attribute
from mycelia.engine.capture.trace import active, is_traced
from mycelia.engine.capture.values import NUMBERS, Undefined, in_place
from mycelia.engine.tensors.tensor import Tensor


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """``owner.name = value``. A tensor that was there before takes the value over: it is written back
    after each run."""
    if type(owner) is Undefined or type(value) is Undefined:
        return
    old = getattr(owner, name, None)
    if old is value:
        return
    if isinstance(old, Tensor) and old._is_parameter and (is_traced(value) or type(value) in NUMBERS):
        from mycelia.engine.ops.control_flow.state import assign

        assign(old, value if isinstance(value, Tensor) else Tensor(value, old.dtype))
        return
    trace = active()
    # Under a condition a tensor that the graph does not have yet gives its place to the value; what the
    # branches or rounds leave in the attribute it takes over where they meet.
    takes_over = trace is None or trace.parent is None or is_traced(old)
    if (
        takes_over
        and is_traced(value)
        and isinstance(old, Tensor)
        and (trace is None or trace.is_outside(old))
        and (old.dtype, old.shape) == (value.dtype, value.shape)
    ):
        if trace is not None:
            trace.value_of(old)  # known from now on as what it was
        old._assign(value)
        return
    if (value is None or type(value) is str) and isinstance(old, Tensor) and old._is_parameter and trace:
        text = f"the Parameter '{name}' takes a Tensor or a number, but got {value!r}"
        raise errors.type_error("assign", text)
    if trace is not None:
        note_attribute(trace, owner, name)
    setattr(owner, name, value)


def update_attribute(owner: Any, name: str, how: str, value: Any) -> None:
    """``owner.name += value`` and the like."""
    set_attribute(owner, name, in_place(getattr(owner, name), how, value))
