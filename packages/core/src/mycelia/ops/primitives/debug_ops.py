"""Printing, assertions, summaries and dumps."""

from mycelia.engine.base import errors
from mycelia.engine.ops.control_flow import debug as _debug
from mycelia.ops.primitives.checks import choice, integer
from mycelia.ops.primitives.define import primitive

_IO = {"side_effect_io": True}


@primitive(extra=_IO)
def Print(*inputs):
    """Each of the inputs, tensors and other values, on a line of its own."""
    _debug.print_values(*inputs)


@primitive(extra=_IO)
def Assert(condition, input_data, *, summarize: integer = 3):
    """RuntimeError if `condition` is false, after the first `summarize` numbers of the data were printed."""
    from mycelia.engine.tensors.tensor import Tensor

    condition = Tensor(condition) if isinstance(condition, bool) else condition
    return _debug._assert_true([condition, *input_data], summarize=summarize)


@primitive(extra=_IO)
def ScalarSummary(name, value):
    """Record one number under a name."""
    _debug.summarize("scalar", name, value)


@primitive(extra=_IO)
def ImageSummary(name, value):
    """Record images [N, C, H, W] under a name."""
    _debug.summarize("image", name, value)


@primitive(extra=_IO)
def TensorSummary(name, value):
    """Record a tensor under a name."""
    _debug.summarize("tensor", name, value)


@primitive(extra=_IO)
def HistogramSummary(name, value):
    """Record the distribution of a tensor's numbers under a name."""
    _debug.summarize("histogram", name, value)


@primitive(extra=_IO)
def TensorDump(file, input_x, *, input_output: choice("out", "in", "all") = "out"):
    """Write a tensor to ``{file}_{dtype}_{number}.npy``."""
    if not isinstance(file, str):
        raise errors.type_error("TensorDump", f"file must be a str, but got {type(file).__name__}")
    _debug._dump_tensor(input_x, file=file)


@primitive(extra=_IO)
def DumpGradient(path, x, input_output):
    """`x`, whose gradient is written to a file in the backward pass."""
    return _debug._dump_gradient(x, file=path)
