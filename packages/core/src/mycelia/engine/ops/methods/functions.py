"""Tensor methods that are functions of `ops` with the tensor in front, and methods that work in place.

Loaded after all families: the functions are found by name.
"""

import functools
import math as _math

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.ops.arrays.masks import masked_fill
from mycelia.engine.ops.arrays.row_updates import index_copy, index_fill, index_put
from mycelia.engine.ops.arrays.scatter import scatter_add_along
from mycelia.engine.ops.arrays.shape import broadcast_to, constant, reshape
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.linalg.solvers import triangular_matrix_solve
from mycelia.engine.tensors.attach import attach

# Method -> the function of `ops` that it is. None: of the same name.
_FUNCTIONS = {
    "angle": None, "conj": None, "real": None, "imag": None, "approximate_equal": None, "col2im": None,
    "fold": None, "unfold": None, "hsplit": None, "vsplit": None, "dsplit": None, "hardshrink": None,
    "multinomial": None, "random_categorical": None, "soft_shrink": "softshrink",
    "top_k": None, "unique_with_pad": None, "unsorted_segment_max": None, "unsorted_segment_min": None,
    "unsorted_segment_prod": None, "normal_": None, "exponential_": None, "random_": None,
}  # fmt: skip


def _function(method: str, name: str):
    known = getattr(ops, name, None)
    if known is not None:
        return known

    def late(self, *args, **kwargs):
        return getattr(ops, name)(self, *args, **kwargs)

    late.__name__ = method
    late.__doc__ = f"`ops.{name}` of this tensor."
    return late


def _reverse_sequence(self, seq_lengths, seq_dim=0, batch_dim=0):
    """`ops.reverse_sequence` of this tensor."""
    return ops.reverse_sequence(self, seq_lengths, seq_dim, batch_dim)


def _softmax(self, axis, dtype=None):
    """Softmax along an axis, computed in `dtype`."""
    return ops.softmax(self, axis, dtype=dtype)


def _triangular_solve(self, A, upper=True, transpose=False, unitriangular=False):
    """The solution of a triangular system with the matrix `A` and this right side, and `A`."""
    matrix = A.mT if transpose else A
    lower = upper if transpose else not upper
    return triangular_matrix_solve(matrix, self, lower, False, unitriangular), A


# ---------------------------------------------------------------------------------------- picks and sums


def _choose(self, choices, mode="clip"):
    """At each place the element of the tensor of `choices` that this integer tensor names.

    `mode` "clip": numbers out of range name the nearest; "wrap": they are counted around.
    """
    if mode not in ("clip", "wrap"):
        raise NotImplementedError(f"For 'Tensor.choose', mode must be 'clip' or 'wrap', but got {mode!r}")
    if not self.dtype.is_integer:
        raise errors.value_error(
            f"For 'Tensor.choose', the tensor must hold integers, but its dtype is {self.dtype}"
        )
    if not isinstance(choices, _C.Tensor):
        choices = [c if isinstance(c, _C.Tensor) else constant(np.asarray(c)) for c in choices]
        shape = np.broadcast_shapes(self.shape, *(c.shape for c in choices))
        choices = ops.stack([broadcast_to(c, shape) for c in choices], 0)
    shape = np.broadcast_shapes(self.shape, choices.shape[1:])
    n = choices.shape[0]
    picks = broadcast_to(self.clip(0, n - 1) if mode == "clip" else self % n, shape)
    rows = reshape(picks, (1, *shape))
    return reshape(ops.gather_d(broadcast_to(choices, (n, *shape)), 0, cast(rows, "int64")), shape)


def _sum_to_size(self, *size):
    """Summed over the axes that broadcasting from the shape `size` has added or stretched."""
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    lead = self.ndim - len(size)
    if lead < 0 or any(n not in (1, m) for n, m in zip(size, self.shape[lead:])):
        raise errors.value_error(
            f"For 'Tensor.sum_to_size', the shape {size} cannot be broadcast to {tuple(self.shape)}"
        )
    axes = [*range(lead), *(lead + i for i, n in enumerate(size) if n != self.shape[lead + i])]
    return reshape(ops.sum(self, tuple(axes)), size) if axes else self


def _fill_diagonal(self, fill_value, wrap=False):
    """A copy with `fill_value` on the main diagonal; with `wrap` again and again down a tall matrix.

    Errors: ValueError for rank 0 and 1, and for unequal sizes above rank 2.
    """
    shape = self.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise errors.value_error(
            f"For 'fill_diagonal', a matrix or equal sizes are needed, but the shape is {tuple(shape)}"
        )
    step = 1 + sum(_math.prod(shape[i:]) for i in range(1, len(shape)))
    last = self.size if wrap or len(shape) > 2 else min(self.size, shape[1] * shape[1])
    mask = np.zeros(self.size, bool)
    mask[:last:step] = True
    return masked_fill(self, constant(mask.reshape(shape)), fill_value)


def _cauchy(self, median=0.0, sigma=1.0):
    """A tensor of this shape with samples of the Cauchy distribution, float32."""
    return median + sigma * ops.tan(_math.pi * (ops.rand(*self.shape) - 0.5))


def _log_normal(self, mean=1.0, std=2.0):
    """A tensor of this shape with samples of the log-normal distribution."""
    return cast(ops.exp(ops.randn(*self.shape) * std + mean), self.dtype)


def _uniform(self, from_=0.0, to=1.0, generator=None):
    """A tensor of this shape with samples that are uniform in [from_, to)."""
    return ops.uniform_(cast(self, self.dtype).copy(), from_, to, generator=generator)


def _bernoulli(self, *, generator=None):
    """1 with the probability that each element gives, else 0."""
    drawn = ops.uniform_(ops.zeros_like(cast(self, "float32")), generator=generator)
    return cast(drawn < self, self.dtype)


def _bernoulli_p(self, p=0.5, *, generator=None):
    """1 with probability `p`, else 0."""
    drawn = ops.uniform_(ops.zeros_like(cast(self, "float32")), generator=generator)
    return cast(drawn < p, self.dtype)


# ----------------------------------------------------------------------------------------------- in place


def _zeros(self):
    """0 everywhere."""
    return ops.zeros_like(self)


def _put(self, index, source, accumulate=False):
    """The elements at the positions `index` of the flattened tensor set to `source`, or added to."""
    flat = reshape(self, (-1,))
    return reshape(index_put(flat, (reshape(index, (-1,)),), reshape(source, (-1,)), accumulate), self.shape)


def _index_copy(self, dim, index, tensor):
    """The slices along `dim` at the positions `index` replaced by those of `tensor`."""
    return index_copy(self, dim, index, tensor)


def _index_fill(self, dim, index, value):
    """The slices along `dim` at the positions `index` filled with `value`."""
    return index_fill(self, dim, index, value)


def _scatter_add(self, dim, index, src):
    """The elements of `src` added along `dim` at the positions `index`."""
    return scatter_add_along(self, dim, index, src)


def _copied(self, src, non_blocking=False):
    """The elements of `src`, broadcast and cast."""
    del non_blocking  # done when the call returns
    src = src if isinstance(src, _C.Tensor) else constant(np.asarray(src))
    return broadcast_to(src, self.shape)


def _in_place(function):
    @functools.wraps(function)
    def method(self, *args, **kwargs):
        result = function(self, *args, **kwargs)
        return self._assign(result if result.dtype is self.dtype else cast(result, self.dtype))

    method.__doc__ = (function.__doc__ or "").split("\n")[0] + " In place; returns this tensor."
    return method


_METHODS = {
    "softmax": _softmax, "reverse_sequence": _reverse_sequence, "triangular_solve": _triangular_solve,
    "choose": _choose, "sum_to_size": _sum_to_size,
    "fill_diagonal": _fill_diagonal, "cauchy": _cauchy, "log_normal": _log_normal, "uniform": _uniform,
    "bernoulli": _bernoulli, "uniform_": ops.uniform_,
}  # fmt: skip

_IN_PLACE = {
    "sigmoid_": ops.sigmoid, "zero_": _zeros, "put_": _put, "index_copy_": _index_copy,
    "index_fill_": _index_fill,
    "scatter_add_": _scatter_add, "masked_scatter_": ops.masked_scatter, "fill_diagonal_": _fill_diagonal,
    "addmm_": ops.addmm, "copy_": _copied, "bernoulli_": _bernoulli_p,
}  # fmt: skip

for _name, _of in _FUNCTIONS.items():
    attach(_name, _function(_name, _of or _name))
for _name, _method in _METHODS.items():
    attach(_name, _method)
for _name, _method in _IN_PLACE.items():
    attach(_name, _in_place(_method))

__all__ = []
