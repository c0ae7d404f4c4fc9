# Written by tools/gen_stubs.py.
from mycelia.ops.operations import Betainc as Betainc, Mvlgamma as Mvlgamma, Polygamma as Polygamma
from mycelia.ops.operations.array_ops import positive as positive
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "Betainc", "Mvlgamma", "Polygamma", "positive", "primitive",
]
