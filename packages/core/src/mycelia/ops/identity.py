"""Functions that return their argument: `identity`, `stop_gradient`, `depend`."""

from mycelia import _C, errors


def identity(input_x):
    """The argument itself."""
    return input_x


def stop_gradient(value):
    """`value` without its history: the gradient that flows through it is zero.

    Shapes, dtypes: any -> same.  Errors: TypeError unless `value` is a Tensor.
    """
    if not isinstance(value, _C.Tensor):
        raise errors.type_error("stop_gradient", f"value must be a Tensor, but got {type(value).__name__}")
    return value._detach()


def depend(value, expr):
    """`value`, after `expr` was computed: Python's own order is kept, so nothing needs to be done."""
    return value


__all__ = ["depend", "identity", "stop_gradient"]
