"""Elementwise arithmetic, comparison, logic and reductions."""

from mycelia import ops
from mycelia.ops.operations.checks import boolean
from mycelia.ops.operations.define import primitive, renamed, table

table(ops, {"Abs": "abs", "Add": "add"})

renamed({"TensorAdd": "Add"})


@primitive
def ReduceMean(x, axis=(), *, keep_dims: boolean = False):
    """Mean over `axis`, by default over all."""
    return ops.mean(x, axis, keep_dims)
