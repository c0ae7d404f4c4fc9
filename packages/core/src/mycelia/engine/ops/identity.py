"""Functions that return their argument: `identity`, `depend`."""


def identity(x):
    """The argument itself."""
    return x


def depend(value, expr):
    """`value`, after `expr` was computed: Python's own order is kept, so nothing needs to be done."""
    del expr  # it was computed before the call
    return value


__all__ = ["depend", "identity"]
