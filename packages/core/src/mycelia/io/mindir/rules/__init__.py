"""What the ops of a graph become in MindIR: for each op a rule that writes MindSpore operators.

A rule gets the GraphWriter, the node, and the names of its inputs (None for an absent one), and returns the
name of the result, or a list with one for each output (None: no operator gives it; a function: it writes
what gives it, if something uses it). Ops without a rule are written by the operator that they name themselves
(`@op(mindir=...)`), with the arguments in the same order, or else as other ops (`io/compositions.py`).
`mindir.operators` has the other direction.
"""

from mycelia.io.compositions import Unsupported
from mycelia.io.mindir.rules import (  # noqa: F401  (they fill the table)
    communication,
    control,
    math,
    nn,
    normalization,
    shape,
    sizes,
    training,
    windows,
)
from mycelia.io.mindir.rules.table import find

__all__ = ["Unsupported", "find"]
