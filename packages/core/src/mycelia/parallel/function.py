"""Functions on divided tensors."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.sharding import annotate
from mycelia.parallel.layout import Layout


def reshard(tensor, layout):
    """The tensor, divided as `layout` says among the ranks of `semi_auto_parallel`; a process that trains
    alone has it whole.

    Errors: TypeError unless a Layout; ShapeError if an axis cannot be cut so; RuntimeError if it runs
    eagerly.
    """
    if not isinstance(layout, Layout):
        raise errors.type_error("reshard", f"layout must be a Layout, but got {type(layout).__name__}")
    return annotate.of_tensors("reshard", (tensor,), (layout,), "layout")[0]
