"""What the ops of a graph become in ONNX: for each op a rule that writes operators.

A rule gets the GraphWriter, the node, and the Refs of its inputs (None for an absent one), and returns the
Ref of the result, or a list with one for each output (None: no operator gives it; a function: it writes what
gives it, if something uses it). Ops without a rule are written by the operator that they name themselves
(`@op(onnx=...)`), with the same inputs and attributes, or else as other ops (`io/compositions`).
"""

from mycelia.io.onnx.rules import (  # noqa: F401  (they fill the table)
    activations,
    control,
    elementwise,
    indices,
    layers,
    order,
    products,
    reductions,
    shapes,
    slices,
    windows,
)
from mycelia.io.onnx.rules.table import find

__all__ = ["find"]
