"""Tensors in nested tuples, lists, dicts and sparse tensors."""

from __future__ import annotations

from mycelia.engine import _C

Tensor = _C.Tensor


def flatten(value, leaves: list):
    """Collect the Tensors of nested tuples, lists and dicts;
    returns a function that rebuilds the structure.
    """
    if isinstance(value, Tensor):
        index = len(leaves)
        leaves.append(value)
        return lambda items: items[index]
    if isinstance(value, (tuple, list)):
        parts = [flatten(v, leaves) for v in value]
        kind = type(value)
        if hasattr(value, "_fields"):
            return lambda items: kind(*(p(items) for p in parts))
        return lambda items: kind(p(items) for p in parts)
    if isinstance(value, dict):
        parts = {k: flatten(v, leaves) for k, v in value.items()}
        return lambda items: {k: p(items) for k, p in parts.items()}
    if getattr(value, "_members", None):  # a sparse tensor
        parts = [flatten(v, leaves) for v in value.parts()]
        return lambda items: type(value)(*(p(items) for p in parts), value.shape)
    return lambda items: value
