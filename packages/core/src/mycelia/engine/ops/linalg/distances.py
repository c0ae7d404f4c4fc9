"""Distances between vectors, norms that are limited."""

from mycelia.engine.base import errors
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast as _cast
from mycelia.engine.ops.reductions import moments as _moments
from mycelia.engine.tensors.attach import attach


def cdist(x1, x2, p=2.0):
    """Distances between rows: `p`-norms of differences. Shapes: [.., m, d], [.., n, d] -> [.., m, n]."""
    difference = _math.sub(_shape.expand_dims(x1, -2), _shape.expand_dims(x2, -3))
    return _moments.vector_norm(difference, p, -1)


def renorm(input, p, axis, maxnorm):
    """Scale every slice along `axis` whose `p`-norm exceeds `maxnorm` down to it. Shapes: any -> same."""
    if not isinstance(p, int):
        raise errors.type_error(f"For 'renorm', p must be an int, but got {type(p).__name__}")
    axis = _shape.positive_axis(axis, input.ndim)
    others = tuple(d for d in range(input.ndim) if d != axis)
    norm = _moments.vector_norm(input, p, others, True)
    scale = _masks.where(
        _comparison.greater(norm, maxnorm), _math.true_div(maxnorm, _math.add(norm, 1e-7)), 1.0
    )
    return _math.mul(input, _cast(scale, input.dtype))


attach("renorm", renorm)


__all__ = ["cdist", "renorm"]
