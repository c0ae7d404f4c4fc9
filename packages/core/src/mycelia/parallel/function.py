"""Functions on divided tensors."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored
from mycelia.parallel.layout import Layout


def reshard(tensor, layout):
    """The tensor, to be divided as `layout` says: on one device it is whole, and a warning says so.

    Errors: TypeError unless a Layout.
    """
    if not isinstance(layout, Layout):
        raise errors.type_error("reshard", f"layout must be a Layout, but got {type(layout).__name__}")
    ignored.tell("reshard", "layout", layout, "no other process takes part")
    return tensor
