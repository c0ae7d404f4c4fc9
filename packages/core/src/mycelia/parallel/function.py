"""Functions on divided tensors."""

from __future__ import annotations

from mycelia import errors
from mycelia.parallel.layout import Layout


def reshard(tensor, layout):
    """The tensor divided as `layout` says: on one device it is whole.  Errors: TypeError unless a Layout."""
    if not isinstance(layout, Layout):
        raise errors.type_error("reshard", f"layout must be a Layout, but got {type(layout).__name__}")
    return tensor
