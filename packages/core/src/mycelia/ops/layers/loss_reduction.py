"""What losses share: checks of their inputs, and `reduction` of the value an element has."""

from mycelia import errors
from mycelia.ops.reductions import reduce as _reduce

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
    return total * (1.0 / max(1, loss.size)) if reduction == "mean" else total


def _check_same_shape(name, x, y):
    if tuple(x.shape) != tuple(y.shape):
        raise errors.value_error(
            f"{name}: both shapes must be equal, got {tuple(x.shape)} and {tuple(y.shape)}"
        )
