# Written by tools/gen_stubs.py.
from mycelia.ops.operations import GRUV2 as GRUV2, GRUV2Grad as GRUV2Grad, LSTM as LSTM
from mycelia.ops.operations.array_ops import natural as natural, positive as positive
from mycelia.ops.primitives.checks import boolean as boolean, real as real, within as within
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "GRUV2", "GRUV2Grad", "LSTM", "boolean", "natural", "positive", "primitive", "real", "within",
]
