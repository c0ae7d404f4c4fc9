"""Limits for gradients: of each element, and of the norm of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from mycelia.engine.base import errors


def clip_by_value(x, clip_value_min=None, clip_value_max=None):
    """Limit the elements of a Tensor, or of each Tensor in a list or tuple,
    to [clip_value_min, clip_value_max].
    """
    from mycelia.engine.ops.elementwise.clipping import clamp

    if isinstance(x, (list, tuple)):
        return type(x)(clip_by_value(t, clip_value_min, clip_value_max) for t in x)
    return clamp(x, clip_value_min, clip_value_max)


def clip_by_global_norm(x: Sequence, clip_norm: float = 1.0, use_norm=None):
    """Scale the Tensors so that the 2-norm of all elements together is at most `clip_norm`.

    `use_norm`: a norm that is already known.  Raises ValueError for a clip_norm that is not positive.
    """
    from mycelia.engine.ops.elementwise.clipping import maximum
    from mycelia.engine.ops.elementwise.math import mul, square
    from mycelia.engine.ops.elementwise.powers import sqrt as root

    if not isinstance(x, (list, tuple)) or not x:
        raise errors.type_error(
            "clip_by_global_norm", f"x must be a list or tuple of Tensors, but got {type(x).__name__}"
        )
    if not clip_norm > 0:
        raise errors.value_error("clip_by_global_norm", f"clip_norm must be positive, but got {clip_norm}")
    if use_norm is None:
        total = square(x[0]).sum()
        for t in x[1:]:
            total = total + square(t).sum()
        use_norm = root(total)
    scale = clip_norm / maximum(use_norm, clip_norm)
    return tuple(mul(t, scale) for t in x)
