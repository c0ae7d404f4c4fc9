"""What losses share: checks of their inputs, and `reduction` of the value an element has."""

import warnings

from mycelia.engine.base import errors
from mycelia.engine.ir.symint import applied
from mycelia.engine.ops.reductions import reduce as _reduce

_REDUCTIONS = ("mean", "sum", "none")


def _check_reduction(name, reduction, allowed=_REDUCTIONS):
    if reduction not in allowed:
        raise errors.value_error(f"{name}: reduction must be one of {', '.join(allowed)}, got {reduction!r}")


def _reduced(name, loss, reduction):
    """The elementwise `loss` as `reduction` wants it."""
    _check_reduction(name, reduction)
    if reduction == "none":
        return loss
    total = _reduce.sum(loss)
    return total * (1.0 / applied(max, loss.size, 1)) if reduction == "mean" else total


def _check_same_shape(name, x, y):
    if tuple(x.shape) != tuple(y.shape):
        raise errors.value_error(
            f"{name}: both shapes must be equal, got {tuple(x.shape)} and {tuple(y.shape)}"
        )


_told: set[tuple] = set()  # (file, line, loss, shapes) of the warnings given


def _warn_of_broadcasting(name, input, target):
    """Warns, once a line and pair of shapes, where `target` has another shape than `input`: [N, 1] and [N]
    give all N * N differences, which hardly anybody wants.
    """
    shapes = tuple(input.shape), tuple(target.shape)
    if shapes[0] == shapes[1]:
        return
    place = errors.user_place(2)
    file, line = (place.file, place.line) if place else ("mycelia", 0)
    if (file, line, name, shapes) in _told:
        return
    _told.add((file, line, name, shapes))
    text = (
        f"{name}: the target has the shape {list(shapes[1])}, the input {list(shapes[0])}. "
        "They are broadcast, which likely gives another loss than intended: give both the same shape"
    )
    warnings.warn_explicit(text, UserWarning, file, line)
