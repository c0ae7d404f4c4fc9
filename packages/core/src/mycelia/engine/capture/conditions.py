"""Truth: `and`, `or`, `not`, `in`, and tensors as conditions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mycelia.engine.base import dtypes, errors
from mycelia.engine.capture.names import require_names
from mycelia.engine.capture.numbers import is_number, marked
from mycelia.engine.capture.trace import is_traced
from mycelia.engine.capture.values import NUMBERS
from mycelia.engine.ir import types as ir_types
from mycelia.engine.ir.sizes import is_open
from mycelia.engine.tensors.tensor import Tensor


def predicate(value: Tensor, what: str, *branches: Callable) -> Tensor:
    """`value` if it can decide. Errors: ValueError for several elements, UndefinedName for a name that
    nothing has in the code that it decides about.
    """
    if (
        any(map(is_open, value.shape))
        or value.size in (1, ir_types.UNKNOWN)
        or ir_types.UNKNOWN in value.shape
    ):
        return value
    require_names(*branches)
    raise errors.value_error(
        "jit",
        f"{what}: The truth value of an array with more than one element is ambiguous. Only tensor which "
        f"shape is () or (1,) can be converted to bool, but got tensor shape is {value.shape}",
        hint="use x.any() or x.all()",
    )


def as_bool(value: Any) -> Any:
    """A traced tensor as a bool tensor; anything else as a Python bool."""
    if not is_traced(value):
        return bool(value)
    from mycelia.engine.ops.elementwise.cast import cast

    if value.dtype is dtypes.bool_:
        return value
    truth = cast(value, dtype=dtypes.bool_)
    return marked(truth) if is_number(value) else truth


def and_(*operands: Callable[[], Any]) -> Any:
    """`a and b ...`; from the first traced tensor on, all operands are computed and combined."""
    return _combine(operands, "logical_and", False)


def or_(*operands: Callable[[], Any]) -> Any:
    """`a or b ...`; from the first traced tensor on, all operands are computed and combined."""
    return _combine(operands, "logical_or", True)


def _combine(operands: Sequence[Callable[[], Any]], op: str, deciding: bool) -> Any:
    from mycelia.engine.ops.arrays import masks
    from mycelia.engine.ops.elementwise import logic

    value = operands[0]()
    for operand in operands[1:]:
        if not is_traced(value):
            if bool(value) is deciding:
                return value
            value = operand()
            continue
        other = operand()
        if _are_alike(value, other):  # the result is one of the operands
            test = as_bool(predicate(value, "an operand of 'and' or 'or'"))
            pair = (other, value) if op == "logical_and" else (value, other)
            value = masks.where(test, *pair)
            continue
        left, right = as_bool(predicate(value, "an operand of 'and' or 'or'")), as_bool(other)
        if is_traced(right):
            value = getattr(logic, op)(left, right)
        else:
            value = deciding if right is deciding else left
        if value is deciding:
            return value
    return value


def _are_alike(a: Tensor, b: Any) -> bool:
    return isinstance(b, Tensor) and a.dtype is b.dtype is not dtypes.bool_ and a.shape == b.shape


def not_(value: Any) -> Any:
    if not is_traced(value):
        return not value
    from mycelia.engine.ops.elementwise import logic

    return logic.logical_not(as_bool(predicate(value, "the operand of 'not'")))


def _same(a: Any, b: Any) -> Any:
    if a is b or (is_traced(a) and is_traced(b) and a.traced is b.traced):
        return True
    return a == b


def in_(item: Any, container: Any) -> Any:
    """`item in container`: with traced tensors among a few candidates, a chain of comparisons."""
    if isinstance(container, (dict, set, frozenset, range)) and is_traced(item) and is_number(item):
        container = tuple(container)
    if isinstance(container, (tuple, list)) and (is_traced(item) or any(is_traced(c) for c in container)):
        comparable = [c for c in container if isinstance(c, (Tensor, *NUMBERS))]
        if not comparable:
            return False
        return or_(*(functools.partial(_same, item, c) for c in comparable))
    return item in container
