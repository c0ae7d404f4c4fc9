# Written by tools/gen_stubs.py.
from mycelia.ops.operations import (
    Assert as Assert, DumpGradient as DumpGradient, HistogramSummary as HistogramSummary,
    ImageSummary as ImageSummary, Print as Print, ScalarSummary as ScalarSummary, TensorDump as TensorDump,
    TensorSummary as TensorSummary,
)
from mycelia.ops.primitives.checks import choice as choice, integer as integer
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "Assert", "DumpGradient", "HistogramSummary", "ImageSummary", "Print", "ScalarSummary", "TensorDump",
    "TensorSummary", "choice", "integer", "primitive",
]
