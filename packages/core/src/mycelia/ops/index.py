"""Ops that pick elements by position or condition: slice, gather, where, masks, diagonals, one-hot.

`indexing.py` builds NumPy-style ``x[...]`` from these. What writes by position is in `scatter.py`, what
orders
elements in `order.py`.
"""

import builtins
import math

import numpy as np

from mycelia import _C, dtypes, errors
from mycelia.ir.types import TensorType
from mycelia.ops.cast import cast
from mycelia.ops.define import op
from mycelia.ops.infer import broadcast_shapes, unbroadcast
from mycelia.ops.shape import (
    as_ints,
    broadcast_to,
    constant,
    positive_axes,
    positive_axis,
    reshape,
    shaped_by,
)

# ------------------------------------------------------------------------------------ rules and arguments


def wrapped(index, n, axis, op_name):
    """`index` with negative entries counted from the end; IndexError if one is not in [-n, n)."""
    bad = (index < -n) | (index >= n)
    if bad.any():
        raise errors.index_error(
            f"{op_name}: index {index[bad].flat[0]} is out of bounds for axis {axis} with size {n}"
        )
    return np.where(index < 0, index + n, index)


def check_index_dtype(index, name="index"):
    if not index.dtype.is_integer:
        raise errors.type_error(f"{name} must hold integers, but got {index.dtype.name}")


def is_tensor(obj):
    """True if `obj` is a Tensor."""
    return isinstance(obj, _C.Tensor)


# ----------------------------------------------------------------------------------------------- slices


def _places(begin, size, stride):
    """The slices that select `size` elements from `begin` on, every `stride`-th."""
    return tuple(
        builtins.slice(b, b + n * s if b + n * s >= 0 else None, s) if n else builtins.slice(0, 0)
        for b, n, s in zip(begin, size, stride)
    )


@op(infer=shaped_by(lambda _, begin, size, stride, shape: shape))
def _strided_slice(x, *, begin: "ints", size: "ints", stride: "ints", shape: "ints"):
    """``size[i]`` elements along axis i from ``begin[i]`` on, every ``stride[i]``-th, in the end reshaped to
    `shape`.

    The normal form of every basic index: begin in range, strides of both signs.
    Shapes: any -> `shape`, as many elements as `size`.  dtypes: any.
    """
    return x[_places(begin, size, stride)].reshape(shape)


@_strided_slice.vjp
def _strided_slice(ct, x_shape, *, begin, size, stride):
    return _strided_place(reshape(ct, size), begin, stride, x_shape)


@_strided_slice.samples
def _strided_slice(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(5, 6), dict(begin=(1, 2), size=(3, 2), stride=(1, 2), shape=(3, 2), _dtypes=more)
    yield rand(5, 6), dict(begin=(4, 5), size=(5, 3), stride=(-1, -2), shape=(5, 3))
    yield rand(2, 3, 4), dict(begin=(1, 0, 0), size=(1, 3, 4), stride=(1, 1, 1), shape=(3, 4))
    yield rand(2, 3, 4), dict(begin=(0, 0, 3), size=(2, 3, 1), stride=(1, 1, 1), shape=(2, 3))
    yield rand(4), dict(begin=(3,), size=(0,), stride=(1,), shape=(0,))
    yield rand(), dict(begin=(), size=(), stride=(), shape=(1,))


@op(infer=shaped_by(lambda _, begin, stride, shape: shape))
def _strided_place(x, *, begin: "ints", stride: "ints", shape: "ints"):
    """Zeros of `shape` with `x` at the places that a strided slice would read: the adjoint of
    `_strided_slice`.

    Shapes: x has the rank of `shape`.  dtypes: any.
    """
    y = np.zeros(shape, x.dtype)
    y[_places(begin, x.shape, stride)] = x
    return y


@_strided_place.vjp
def _strided_place(ct, x_shape, *, begin, stride):
    return _strided_slice(ct, begin, x_shape, stride, x_shape)


@_strided_place.samples
def _strided_place(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(3, 2), dict(begin=(1, 2), stride=(1, 2), shape=(5, 6), _dtypes=more)
    yield rand(3, 2), dict(begin=(4, 0), stride=(-2, 1), shape=(5, 2))
    yield rand(1, 4), dict(begin=(2, 0), stride=(1, 1), shape=(3, 4))
    yield rand(0, 2), dict(begin=(0, 0), stride=(1, 1), shape=(3, 2))
    yield rand(), dict(begin=(), stride=(), shape=())


def _assigned(x, value, begin, size, stride):
    if value.dtype is not x.dtype:
        raise TypeError(f"value must have dtype {x.dtype.name}, but got {value.dtype.name}")
    if broadcast_shapes(value.shape, size) != size:
        raise ValueError(f"a value of shape {value.shape} does not fit a selection of shape {size}")
    return x


@op(infer=lambda x, value, **attrs: _assigned(x, value, **attrs))
def _strided_assign(x, value, *, begin: "ints", size: "ints", stride: "ints"):
    """`x` with `value` at the places that a strided slice reads.

    Shapes: value broadcasts to `size`; -> shape of x.  dtypes: any, one for both.
    """
    y = x.copy()
    y[_places(begin, size, stride)] = value
    return y


@_strided_assign.vjp
def _strided_assign(ct, value_shape, needs, *, begin, size, stride):
    return (
        _strided_assign(ct, constant(0, ct.dtype), begin, size, stride) if needs[0] else None,
        unbroadcast(_strided_slice(ct, begin, size, stride, size), value_shape) if needs[1] else None,
    )


@_strided_assign.samples
def _strided_assign(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(5, 6), rand(3, 2), dict(begin=(1, 2), size=(3, 2), stride=(1, 2), _dtypes=more)
    yield rand(5, 6), rand(3, 1), dict(begin=(4, 5), size=(3, 2), stride=(-2, -1))
    yield rand(5, 6), rand(6), dict(begin=(0, 0), size=(2, 6), stride=(1, 1))
    yield rand(3), rand(), dict(begin=(0,), size=(3,), stride=(1,))
    yield rand(3), rand(0), dict(begin=(0,), size=(0,), stride=(1,))
    yield rand(), rand(), dict(begin=(), size=(), stride=())


@op(infer=lambda x, value, **attrs: _assigned(x, value, **attrs), updates=("x",), nondiff=True)
def _strided_write(x, value, *, begin: "ints", size: "ints", stride: "ints"):
    """`_strided_assign` into the memory of `x`: the cost is that of the selection, where nothing shares the
    memory.

    Shapes: value broadcasts to `size`.  dtypes: any, one for both.
    """
    y = x.copy()
    y[_places(begin, size, stride)] = value
    return y


@_strided_write.samples
def _strided_write(rand):
    yield (
        rand(5, 6),
        rand(3, 2),
        dict(begin=(1, 2), size=(3, 2), stride=(1, 2), _dtypes=("int32", "bool", "float64")),
    )
    yield rand(5, 6), rand(), dict(begin=(4, 5), size=(3, 2), stride=(-2, -1))
    yield rand(3), rand(0), dict(begin=(0,), size=(0,), stride=(1,))


def slice_axis(start, stop, step, n):
    """(begin, size, stride) of ``start:stop:step`` on an axis of size n, as Python slices it."""
    places = range(*builtins.slice(start, stop, step).indices(n))
    size = len(places)
    return (places.start if size else 0), size, places.step


def strided_slice(
    input_x,
    begin,
    end,
    strides,
    begin_mask=0,
    end_mask=0,
    ellipsis_mask=0,
    new_axis_mask=0,
    shrink_axis_mask=0,
):
    """The part of a tensor from `begin` to `end` (not included) in steps of `strides`, one entry an axis.

    Bit i of a mask changes entry i: begin_mask, end_mask = ignore the limit; ellipsis_mask = stand for all
    axes that
    are not named; new_axis_mask = a new axis of size 1; shrink_axis_mask = take the element at begin and drop
    the axis.
    Errors: ValueError for a zero stride or vectors of different length, IndexError for a dropped axis out of
    range.
    """
    begin, end, strides = as_ints(begin, "begin"), as_ints(end, "end"), as_ints(strides, "strides")
    if not len(begin) == len(end) == len(strides):
        raise errors.value_error(
            f"For 'strided_slice', begin {begin}, end {end} and strides {strides} differ in length"
        )
    if 0 in strides:
        raise errors.value_error("For 'strided_slice', 'strides' cannot contain 0")
    if ellipsis_mask & (ellipsis_mask - 1):
        raise errors.value_error("For 'strided_slice', ellipsis_mask can have only one bit")
    key = []
    for i, (b, e, s) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(b)
        else:
            key.append(builtins.slice(None if begin_mask & bit else b, None if end_mask & bit else e, s))
    return input_x[tuple(key)]


def narrow(input, axis, start, length):
    """`length` elements along `axis` from `start` on.

    Shapes: [.., n, ..] -> [.., length, ..].  Errors: ValueError if the range does not lie in the axis.
    """
    axis = positive_axis(axis, input.ndim)
    n = input.shape[axis]
    begin = start + n if start < 0 else start
    if begin < 0 or length < 0 or begin + length > n:
        raise errors.value_error(
            f"For 'narrow', start {start} and length {length} do not lie in axis {axis} of size {n}"
        )
    rest = input.ndim - axis - 1
    size = (*input.shape[:axis], length, *input.shape[axis + 1 :])
    return _strided_slice(input, (0,) * axis + (begin,) + (0,) * rest, size, (1,) * input.ndim, size)


def slice(input_x, begin, size):
    """`size` elements along each axis from `begin` on; a size of -1 takes all that follow.

    Errors: ValueError if the selection does not lie in the input.
    """
    begin, size = as_ints(begin, "begin"), as_ints(size, "size")
    if not len(begin) == len(size) == input_x.ndim:
        raise errors.value_error(
            f"For 'slice', begin {begin} and size {size} must have an entry for each axis of {input_x.shape}"
        )
    size = tuple(n - b if s == -1 else s for b, s, n in zip(begin, size, input_x.shape))
    if any(b < 0 or s < 0 or b + s > n for b, s, n in zip(begin, size, input_x.shape)):
        raise errors.value_error(
            f"For 'slice', begin {begin} and size {size} do not lie in shape {input_x.shape}"
        )
    return _strided_slice(input_x, begin, size, (1,) * input_x.ndim, size)


def _axis_slice(x, axis, start, end, step):
    """(begin, size, stride) that select ``start:end:step`` on one axis and everything on the others."""
    if step == 0:
        raise errors.value_error("step cannot be 0")
    begin, size, stride = [0] * x.ndim, list(x.shape), [1] * x.ndim
    begin[axis], size[axis], stride[axis] = slice_axis(start, end, step, x.shape[axis])
    return tuple(begin), tuple(size), tuple(stride)


def select_scatter(input, src, axis, index):
    """`input` with `src` in place of its slice `index` along `axis`."""
    axis = positive_axis(axis, input.ndim)
    n = input.shape[axis]
    if not -n <= index < n:
        raise errors.index_error(
            f"select_scatter: index {index} is out of bounds for axis {axis} with size {n}"
        )
    begin, size, stride = _axis_slice(input, axis, index % n, index % n + 1, 1)
    return _strided_assign(input, reshape(src, size), begin, size, stride)


def slice_scatter(input, src, axis=0, start=None, end=None, step=1):
    """`input` with `src` in place of its part ``start:end:step`` along `axis`."""
    return _strided_assign(input, src, *_axis_slice(input, positive_axis(axis, input.ndim), start, end, step))


# ----------------------------------------------------------------------------------------------- gather


def _gathered(x, indices, axis, batch_dims):
    check_index_dtype(indices, "input_indices")
    axis = positive_axis(axis, x.rank)
    batch = positive_axis(batch_dims, indices.rank + 1, "batch_dims")
    if batch > axis:
        raise ValueError(f"batch_dims {batch_dims} must not exceed axis {axis}")
    if x.shape[:batch] != indices.shape[:batch]:
        raise ValueError(
            f"the first {batch} axes of {x.shape} and of the indices {indices.shape} must be equal"
        )
    return shaped_by(lambda shape: shape[:axis] + indices.shape[batch:] + shape[axis + 1 :])(x)


@op(infer=lambda x, indices, axis, batch_dims: _gathered(x, indices, axis, batch_dims), mindir="Gather")
def gather(input_params, input_indices, *, axis: "int", batch_dims: "int" = 0):
    """The slices of `input_params` along `axis` at the given indices, which count from the end where
    negative.

    Shapes: x [B.., n, R..], indices [B.., I..] -> [B.., .., I.., R..], batch_dims = number of common leading
    axes B.
    dtypes: any, integer indices.  Errors: IndexError for an index not in [-n, n).
    """
    return _take(
        input_params, wrapped(input_indices, input_params.shape[axis], axis, "gather"), axis, batch_dims
    )


def _take(x, index, axis, batch_dims):
    axis, batch = axis % x.ndim, batch_dims % (index.ndim + 1)
    if batch == 0:
        return np.take(x, index, axis)
    shape = x.shape[:axis] + index.shape[batch:] + x.shape[axis + 1 :]
    y = np.empty(shape, x.dtype)
    for b in np.ndindex(*x.shape[:batch]):
        y[b] = np.take(x[b], index[b], axis - batch)
    return y


@gather.vjp
def gather(ct, input_indices, input_params_shape, *, axis, batch_dims):
    return _gather_grad(ct, input_indices, input_params_shape, axis, batch_dims), None


@gather.samples
def gather(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(5, 3), rand.ints(0, 5, (4,)), dict(axis=0, _dtypes=more)
    yield rand(5, 3), rand.ints(-3, 3, (2, 4), "int64"), dict(axis=1)
    yield rand(2, 5, 3), rand.ints(0, 5, ()), dict(axis=-2)
    yield rand(2, 5, 3), rand.ints(0, 5, (2, 4)), dict(axis=1, batch_dims=1)
    yield rand(2, 3, 5), rand.ints(-5, 5, (2, 4)), dict(axis=2, batch_dims=1)
    yield rand(5, 3), rand.ints(0, 5, (0,)), dict(axis=0)
    yield rand(5, 0), rand.ints(0, 5, (2,)), dict(axis=0)
    yield rand(7), rand.ints(0, 7, (3, 1, 2)), dict(axis=0)


@op(infer=lambda rows, indices, shape, axis, batch_dims: TensorType(rows.dtype, shape))
def _gather_grad(rows, indices, *, shape: "ints", axis: "int", batch_dims: "int" = 0):
    """Zeros of `shape` to which the slices of `rows` are added at the given indices: the adjoint of `gather`.

    Shapes: rows [B.., .., I.., R..], indices [B.., I..] -> `shape` [B.., .., n, R..].  dtypes: numbers,
    integer indices.
    """
    y = np.zeros(shape, rows.dtype)
    axis, batch = axis % len(shape), batch_dims % (indices.ndim + 1)
    index = wrapped(indices, shape[axis], axis, "gather_grad")
    for b in np.ndindex(*shape[:batch]):
        part, first = index[b], axis - batch
        moved = np.moveaxis(rows[b], range(first, first + part.ndim), range(part.ndim))
        np.add.at(np.moveaxis(y[b], first, 0), part, moved)
    return y


@_gather_grad.vjp
def _gather_grad(ct, indices, *, axis, batch_dims):
    return gather(ct, indices, axis, batch_dims), None


@_gather_grad.samples
def _gather_grad(rand):
    yield rand(4, 3), rand.ints(0, 5, (4,)), dict(shape=(5, 3), axis=0, _dtypes=("int32", "float64"))
    yield rand(6, 2, 4), rand.ints(-3, 3, (2, 4), "int64"), dict(shape=(6, 3), axis=1)
    yield rand(2, 3), rand.ints(0, 5, ()), dict(shape=(2, 5, 3), axis=-2)
    yield rand(2, 4, 3), rand.ints(0, 5, (2, 4)), dict(shape=(2, 5, 3), axis=1, batch_dims=1)
    yield rand(0, 3), rand.ints(0, 5, (0,)), dict(shape=(5, 3), axis=0)
    yield rand(2, 40), rand.ints(0, 3, (2,)), dict(shape=(3, 40), axis=0)


def take_constant(x, positions, axis):
    """`gather` along one axis at positions that are known now (a NumPy array)."""
    return gather(x, constant(positions, dtypes.int64), axis)


def index_select(input, axis, index):
    """The slices along `axis` at the positions `index`, a vector.

    Shapes: [.., n, ..], [k] -> [.., k, ..].  Errors: IndexError for an index not in [-n, n).
    """
    if index.ndim > 1:
        raise errors.value_error(f"For 'index_select', index must be a vector, but got shape {index.shape}")
    return gather(input, reshape(index, (-1,)), axis)


def take(input, index):
    """The elements of the flattened input at the positions `index`.

    Shapes: any, [I..] -> [I..].  Errors: IndexError for a position out of range.
    """
    return gather(reshape(input, (-1,)), index, 0)


def _embedded(ids, weight, padding_idx):
    check_index_dtype(ids, "input")
    if weight.rank != 2:
        raise ValueError(f"weight must be a matrix, but got shape {weight.shape}")
    if padding_idx is not None:
        positive_axis(padding_idx, weight.shape[0], "padding_idx")
    return shaped_by(lambda shape: (*shape, weight.shape[1]))(TensorType(weight.dtype, ids.shape))


@op(infer=lambda input, weight, padding_idx: _embedded(input, weight, padding_idx))
def _embedding(input, weight, *, padding_idx: "int?" = None):
    """The rows of `weight` at `input`; no gradient flows into row `padding_idx`.

    Shapes: ids [I..], weight [n, d] -> [I.., d].  dtypes: any, integer ids.  Errors: IndexError for ids out
    of range.
    """
    return weight[wrapped(input, weight.shape[0], 0, "embedding")]


@_embedding.vjp
def _embedding(ct, input, weight_shape, *, padding_idx):
    if padding_idx is not None:
        is_padding = input == padding_idx % weight_shape[0]
        ct = masked_fill(ct, reshape(is_padding, (*input.shape, 1)), 0.0)
    return None, _gather_grad(ct, input, weight_shape, 0)


@_embedding.samples
def _embedding(rand):
    yield rand.ints(0, 5, (2, 3)), rand(5, 4), dict(_dtypes=())
    yield rand.ints(0, 3, (4,)), rand(3, 2), dict(padding_idx=1, _grad=False)
    yield rand.ints(0, 3, (4,), "int64"), rand(3, 2), dict(padding_idx=-1, _grad=False)
    yield rand.ints(0, 3, (0,)), rand(3, 2)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    """The rows of the table `weight` at the positions `input`; no gradient flows into row `padding_idx`.

    With `max_norm`, used rows with a longer `norm_type`-norm are shortened to it (in the result, not in the
    table);
    with `scale_grad_by_freq` a row's gradient is divided by the number of its uses.
    Shapes: ids [I..], weight [n, d] -> [I.., d].  Errors: IndexError for ids out of range.
    """
    rows = _embedding(input, weight, padding_idx=padding_idx)
    if max_norm is not None:
        norm = ((rows.abs() ** norm_type).sum(-1, keepdims=True)) ** (1.0 / norm_type)
        rows = where(norm > max_norm, rows * (max_norm / (norm + 1e-7)), rows)
    if scale_grad_by_freq:
        from mycelia.ops.create import ones

        uses = gather(_gather_grad(ones(input.shape, weight.dtype), input, (weight.shape[0],), 0), input, 0)
        rows = _scale_gradient(rows, reshape(1.0 / uses, (*input.shape, 1)))
    return rows


@op(infer=lambda x, scale: x)
def _scale_gradient(x, scale):
    """`x` itself, with its gradient multiplied by `scale` (which broadcasts to it).

    Shapes: x -> same.  dtypes: floating.
    """
    return x.copy()


@_scale_gradient.vjp
def _scale_gradient(ct, scale):
    return ct * scale, None


@_scale_gradient.samples
def _scale_gradient(rand):
    yield rand(2, 3), rand(2, 1), dict(_grad=False)


def _gathered_d(x, index, dim):
    check_index_dtype(index)
    at = positive_axis(dim, x.rank, "dim")
    if index.rank != x.rank or any(
        m > n != -1 for i, (m, n) in enumerate(zip(index.shape, x.shape)) if i != at
    ):
        raise ValueError(
            f"index of shape {index.shape} must not exceed the input's {x.shape} except on axis {dim}"
        )
    return TensorType(x.dtype, index.shape)


def _grid(index, axis):
    """Index arrays that name, for each entry of `index`, the element with this position along `axis`."""
    grid = list(np.ogrid[tuple(builtins.slice(0, n) for n in index.shape)])
    grid[axis] = index
    return tuple(grid)


@op(infer=lambda x, index, dim: _gathered_d(x, index, dim), mindir="GatherD")
def _gather_d(x, index, *, dim: "int"):
    """Elements picked along one axis: ``y[i, j] = x[i, index[i, j]]`` for dim 1.

    Shapes: index has the rank of x and is nowhere larger except along `dim`; -> shape of index.
    dtypes: any, integer index.  Errors: IndexError for an index out of range.
    """
    if index.ndim == 0:
        return x.reshape(index.shape)
    return x[_grid(wrapped(index, x.shape[dim], dim, "gather_d"), dim)]


@_gather_d.vjp
def _gather_d(ct, index, x_shape, *, dim):
    from mycelia.ops.create import zeros
    from mycelia.ops.scatter import _scatter_elements

    return _scatter_elements(zeros(x_shape, ct.dtype), index, ct, axis=dim, reduction="add"), None


@_gather_d.samples
def _gather_d(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(3, 4), rand.ints(-4, 4, (3, 2)), dict(dim=1, _dtypes=more)
    yield rand(3, 4), rand.ints(0, 3, (5, 4), "int64"), dict(dim=0)
    yield rand(3, 4, 2), rand.ints(0, 4, (2, 3, 1)), dict(dim=-2)
    yield rand(3, 4), rand.ints(0, 4, (3, 0)), dict(dim=1)


def gather_d(x, dim, index):
    """Elements picked along axis `dim`: ``y[i, j] = x[i, index[i, j]]`` for dim 1.

    Shapes: index has the rank of x and is nowhere larger except along `dim`; -> shape of index.
    """
    return _gather_d(x, index, dim=dim)


def gather_elements(input, dim, index):
    """`gather_d` under its other name."""
    return _gather_d(input, index, dim=dim)


def _gathered_nd(x, indices):
    check_index_dtype(indices, "indices")
    depth = indices.shape[-1] if indices.rank else 0
    if not 0 < depth <= x.rank:
        raise ValueError(
            f"the last axis of indices {indices.shape} must be in [1, {x.rank}] for an input of {x.shape}"
        )
    return shaped_by(lambda shape: indices.shape[:-1] + shape[depth:])(x)


def positions_nd(indices, shape, op_name):
    """The columns of `indices` as one index array an axis, negative entries counted from the end."""
    return tuple(wrapped(indices[..., i], shape[i], i, op_name) for i in range(indices.shape[-1]))


@op(infer=lambda x, indices: _gathered_nd(x, indices), mindir="GatherNd", method=True)
def gather_nd(input_x, indices):
    """The slices named by the rows of `indices`: ``y[i] = x[indices[i, 0], indices[i, 1], ...]``.

    Shapes: x [n1, .., nk, R..], indices [I.., k] -> [I.., R..].  dtypes: any, integer indices.
    Errors: IndexError for an index out of range.
    """
    return input_x[positions_nd(indices, input_x.shape, "gather_nd")]


@gather_nd.vjp
def gather_nd(ct, indices, input_x_shape):
    from mycelia.ops.scatter import scatter_nd

    return scatter_nd(indices, ct, input_x_shape), None


@gather_nd.samples
def gather_nd(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(3, 4), rand.ints(0, 3, (5, 2)), dict(_dtypes=more)
    yield rand(3, 4), rand.ints(0, 3, (2, 2, 1), "int64")
    yield rand(3, 4, 2), rand.ints(-3, 3, (2,))
    yield rand(3, 4), rand.ints(0, 3, (0, 1))


def _linear(indices, dims):
    for index in indices:
        check_index_dtype(index)
    return TensorType(dtypes.int64, broadcast_shapes(*(index.shape for index in indices)))


@op(infer=lambda indices, dims: _linear(indices, dims), nondiff=True)
def _linear_index(indices: "tensors", *, dims: "ints"):
    """Positions in row-major order of the elements named by one index tensor an axis, which broadcast to each
    other.

    Shapes: broadcast.  dtypes: integer -> int64.  Errors: IndexError for an index not in [-n, n) of its axis.
    """
    linear = np.zeros((), np.int64)
    for axis, (index, n) in enumerate(zip(indices, dims)):
        linear = linear * n + wrapped(index, n, axis, "index").astype(np.int64)
    return linear


@_linear_index.samples
def _linear_index(rand):
    yield [rand.ints(-3, 3, (4,)), rand.ints(0, 5, (2, 1))], dict(dims=(3, 5))
    yield [rand.ints(0, 3, ()), rand.ints(-5, 5, (3,)), rand.ints(0, 2, (3,))], dict(dims=(3, 5, 2))
    yield [rand.ints(0, 3, (0,), "int64")], dict(dims=(3,))


# ------------------------------------------------------------------------------------ conditions, masks


def _selected(condition, input, other):
    if not condition.dtype.is_bool:
        raise TypeError(f"condition must be a bool tensor, but got {condition.dtype.name}")
    return TensorType(input.dtype, broadcast_shapes(condition.shape, input.shape, other.shape))


@op(infer=lambda *types: _selected(*types), promote=("input", "other"), mindir="Select")
def _where(condition, input, other):
    """`input` where `condition` is true, `other` elsewhere.

    Shapes: broadcast.  dtypes: bool condition, the others any.
    """
    return np.where(condition, input, other)


@_where.vjp
def _where(ct, condition, input_shape, other_shape, needs):
    return (
        None,
        unbroadcast(_where(condition, ct, 0.0), input_shape) if needs[1] else None,
        unbroadcast(_where(condition, 0.0, ct), other_shape) if needs[2] else None,
    )


@_where.samples
def _where(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand.bools(2, 3), rand(2, 3), rand(2, 3), dict(_dtypes=more)
    yield rand.bools(3), rand(2, 1), rand(2, 3)
    yield rand.bools(4, 1, 3), rand(2, 1), rand()
    yield rand.bools(), rand(3), rand(3)
    yield rand.bools(0, 3), rand(3), rand(3)


def where(condition, input, other):
    """`input` where `condition` is true, `other` elsewhere; numbers may stand for either.

    Shapes: broadcast.  dtypes: bool condition; the others are promoted.  Errors: TypeError for another
    condition.
    """
    if not is_tensor(input) and not is_tensor(other):
        kinds = (type(input), type(other))
        dtype = dtypes.float32 if float in kinds else dtypes.bool_ if kinds == (bool, bool) else dtypes.int64
        other = constant(other, dtype)
        input = constant(input, dtype)
    return _where(condition, input, other)


def select(condition, input, other):
    """`where` under its other name."""
    return where(condition, input, other)


def _filled(input_x, mask, value):
    if not mask.dtype.is_bool:
        raise TypeError(f"mask must be a bool tensor, but got {mask.dtype.name}")
    if value.rank != 0:
        raise ValueError(f"value must be a number or a tensor of rank 0, but got shape {value.shape}")
    if value.dtype is not input_x.dtype:
        raise TypeError(f"value must have dtype {input_x.dtype.name}, but got {value.dtype.name}")
    return TensorType(input_x.dtype, broadcast_shapes(input_x.shape, mask.shape))


@op(infer=lambda *types: _filled(*types), mindir="MaskedFill")
def _masked_fill(input_x, mask, value):
    """`value` where `mask` is true, `input_x` elsewhere.

    Shapes: x and mask broadcast, value of rank 0.  dtypes: any, bool mask.
    """
    return np.where(mask, value, input_x)


@_masked_fill.vjp
def _masked_fill(ct, mask, input_x_shape, needs):
    return (
        unbroadcast(_masked_fill(ct, mask, 0.0), input_x_shape) if needs[0] else None,
        None,
        _where(mask, ct, 0.0).sum() if needs[2] else None,
    )


@_masked_fill.samples
def _masked_fill(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(2, 3), rand.bools(2, 3), rand(), dict(_dtypes=more)
    yield rand(2, 3), rand.bools(3), rand()
    yield rand(3), rand.bools(2, 1), rand()
    yield rand(2, 4, 3, 3), rand.bools(2, 1, 1, 3), rand()
    yield rand(0, 3), rand.bools(3), rand()


def masked_fill(input_x, mask, value):
    """`value` where `mask` is true, `input_x` elsewhere; the value is brought to the input's dtype.

    Shapes: x and mask broadcast, value a number or of rank 0.  Errors: TypeError if the mask is not bool.
    """
    if is_tensor(value) and value.dtype is not input_x.dtype:
        value = cast(value, input_x.dtype)
    return _masked_fill(input_x, mask, value)


def _mask_selected(input, mask):
    if not mask.dtype.is_bool:
        raise TypeError(f"mask must be a bool tensor, but got {mask.dtype.name}")
    broadcast_shapes(input.shape, mask.shape)
    return TensorType(input.dtype, (-1,))


@op(infer=lambda input, mask: _mask_selected(input, mask), dynamic=True, mindir="MaskedSelect", method=True)
def masked_select(input, mask):
    """The elements where `mask` is true, in row-major order.

    Shapes: broadcast -> [number of true entries].  dtypes: any, bool mask.
    """
    input, mask = np.broadcast_arrays(input, mask)
    return input[mask]


@masked_select.vjp
def masked_select(ct, mask, input_shape):
    from mycelia.ops.create import zeros

    shape = broadcast_shapes(input_shape, mask.shape)
    return unbroadcast(masked_scatter(zeros(shape, ct.dtype), mask, ct), input_shape), None


@masked_select.samples
def masked_select(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(3, 4), rand.bools(3, 4), dict(_dtypes=more)
    yield rand(3, 4), rand.bools(4)
    yield rand(4), rand.bools(3, 1)
    yield rand(0), rand.bools(0)


def _mask_scattered(input_x, mask, source):
    if not mask.dtype.is_bool:
        raise TypeError(f"mask must be a bool tensor, but got {mask.dtype.name}")
    if source.dtype is not input_x.dtype:
        raise TypeError(f"source must have dtype {input_x.dtype.name}, but got {source.dtype.name}")
    if broadcast_shapes(input_x.shape, mask.shape) != input_x.shape:
        raise ValueError(f"a mask of shape {mask.shape} does not broadcast to the input's {input_x.shape}")
    return input_x


@op(infer=lambda *types: _mask_scattered(*types), mindir="MaskedScatter", method=True)
def masked_scatter(input_x, mask, source):
    """`input_x` with its elements where `mask` is true replaced by the first elements of `source`, in order.

    Shapes: mask broadcasts to x; source has at least as many elements as the mask true entries.  dtypes: any.
    Errors: ValueError if source is too small.
    """
    mask = np.broadcast_to(mask, input_x.shape)
    count = int(mask.sum())
    if count > source.size:
        raise ValueError(f"source has {source.size} elements, but {count} are to be replaced")
    y = input_x.copy()
    y[mask] = source.ravel()[:count]
    return y


@masked_scatter.vjp
def masked_scatter(ct, mask, source_shape, needs):
    from mycelia.ops.shape import pad

    taken = None
    if needs[2]:
        taken = masked_select(ct, mask)
        taken = reshape(pad(taken, (0, math.prod(source_shape) - taken.size)), source_shape)
    return _masked_fill(ct, mask, 0.0) if needs[0] else None, None, taken


@masked_scatter.samples
def masked_scatter(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(3, 4), rand.bools(3, 4), rand(12), dict(_dtypes=more)
    yield rand(3, 4), rand.bools(4), rand(4, 4)
    yield rand(2, 0), rand.bools(2, 0), rand(1)


@op(infer=lambda x: TensorType(dtypes.int64, (-1, x.rank)), dynamic=True, nondiff=True, mindir="NonZero")
def _nonzero(input):
    """The positions of the elements that are not zero, one a row, in row-major order.

    Shapes: [n1, .., nk] -> [number, k].  dtypes: any -> int64.
    """
    return np.argwhere(input)


@_nonzero.samples
def _nonzero(rand):
    yield rand.bools(3, 4), dict(_dtypes=("int32", "float32"))
    yield rand(5)
    yield rand.ints(0, 2, (2, 3, 2))
    yield rand(0, 3)


def nonzero(input, *, as_tuple=False):
    """The positions of the elements that are not zero: one a row, or (`as_tuple`) one vector an axis.

    Shapes: [n1, .., nk] -> [number, k], or k times [number].
    """
    places = _nonzero(input)
    if not as_tuple:
        return places
    return tuple(places[:, i] for i in range(input.ndim))


def argwhere(input):
    """The positions of the elements that are not zero, one a row."""
    return _nonzero(input)


@op(infer=lambda mask: TensorType(dtypes.int64, (-1,)), dynamic=True, nondiff=True)
def _flat_nonzero(mask):
    """The positions of the true elements in the flattened mask, in order.

    Shapes: any -> [number].  dtypes: bool -> int64.
    """
    return np.flatnonzero(mask)


@_flat_nonzero.samples
def _flat_nonzero(rand):
    yield rand.bools(3, 4)
    yield rand.bools(200)
    yield rand.bools()
    yield rand.bools(0)


def _one_hotted(indices, on_value, off_value, depth, axis):
    check_index_dtype(indices, "indices")
    at = positive_axis(axis, indices.rank + 1)
    if depth < 0:
        raise ValueError(f"depth cannot be negative, but got {depth}")
    if on_value.rank or off_value.rank:
        raise ValueError(
            f"on_value and off_value must have rank 0, but got {on_value.shape} and {off_value.shape}"
        )
    shape = (*indices.shape[:at], depth, *indices.shape[at:])
    return shaped_by(lambda _: shape)(TensorType(on_value.dtype, shape))


@op(
    infer=lambda *types, **attrs: _one_hotted(*types, **attrs),
    promote=("on_value", "off_value"),
    mindir="OneHot",
)
def _one_hot(indices, on_value, off_value, *, depth: "int", axis: "int" = -1):
    """`on_value` at the position that the index names along a new axis of size `depth`, `off_value`
    elsewhere.

    Shapes: [I..] -> [I.., depth] for axis -1.  dtypes: integer indices -> dtype of the values; an index
    outside
    [0, depth) gives `off_value` everywhere.
    """
    axis %= indices.ndim + 1
    steps = np.arange(depth).reshape((depth,) + (1,) * (indices.ndim - axis))
    return np.where(np.expand_dims(indices, axis) == steps, on_value, off_value)


@_one_hot.vjp
def _one_hot(ct, indices, needs, *, depth, axis):
    is_on = _one_hot(indices, constant(True), constant(False), depth, axis)
    return (
        None,
        _where(is_on, ct, 0.0).sum() if needs[1] else None,
        _where(is_on, 0.0, ct).sum() if needs[2] else None,
    )


@_one_hot.samples
def _one_hot(rand):
    yield rand.ints(0, 4, (3,)), rand(), rand(), dict(depth=4)
    yield rand.ints(-1, 5, (2, 3), "int64"), rand(), rand(), dict(depth=4, axis=0)
    yield rand.ints(0, 4, (2, 3)), rand(), rand(), dict(depth=3, axis=1)
    yield rand.ints(0, 4, ()), rand(), rand(), dict(depth=4)
    yield rand.ints(0, 4, (0,)), rand(), rand(), dict(depth=2)


def one_hot(indices, depth, on_value=1, off_value=0, axis=-1):
    """`on_value` at the position that the index names along a new axis of size `depth`, `off_value`
    elsewhere.

    Shapes: [I..] -> [I.., depth] for axis -1.  dtypes: integer indices -> dtype of the values (Python ints:
    int64).
    An index outside [0, depth) gives `off_value` everywhere.
    """
    if not is_tensor(on_value) and not is_tensor(off_value):
        dtype = dtypes.float32 if float in (type(on_value), type(off_value)) else dtypes.int64
        on_value, off_value = constant(on_value, dtype), constant(off_value, dtype)
    return _one_hot(indices, on_value, off_value, depth=int(depth), axis=axis)


# ------------------------------------------------------------------------------ triangles and diagonals


def _is_matrix(shape, diagonal):
    if len(shape) < 2:
        raise ValueError(f"the input must have at least 2 axes, but got shape {shape}")
    return shape


@op(infer=shaped_by(_is_matrix), mindir="Tril", method=True)
def tril(input, *, diagonal: "int" = 0):
    """The lower triangle of the last two axes, zero above the given diagonal.

    Shapes: [.., m, n] -> same.  dtypes: any.  Errors: ValueError for rank below 2.
    """
    return np.tril(input, diagonal)


@tril.vjp
def tril(ct, *, diagonal):
    return tril(ct, diagonal)


@tril.samples
def tril(rand):
    yield rand(4, 5), dict(_dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 3, 3), dict(diagonal=1)
    yield rand(5, 2), dict(diagonal=-2)
    yield rand(3, 3), dict(diagonal=-9)
    yield rand(3, 3), dict(diagonal=9)
    yield rand(0, 3)


@op(infer=shaped_by(_is_matrix), mindir="Triu", method=True)
def triu(input, *, diagonal: "int" = 0):
    """The upper triangle of the last two axes, zero below the given diagonal.

    Shapes: [.., m, n] -> same.  dtypes: any.  Errors: ValueError for rank below 2.
    """
    return np.triu(input, diagonal)


@triu.vjp
def triu(ct, *, diagonal):
    return triu(ct, diagonal)


@triu.samples
def triu(rand):
    yield rand(4, 5), dict(_dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 3, 3), dict(diagonal=1)
    yield rand(5, 2), dict(diagonal=-2)
    yield rand(3, 3), dict(diagonal=-9)
    yield rand(3, 3), dict(diagonal=9)
    yield rand(0, 3)


def _diagonal_length(m, n, offset):
    return max(min(m, n - offset) if offset >= 0 else min(m + offset, n), 0)


def _diagonal_shape(shape, offset, dim1, dim2):
    if len(shape) < 2:
        raise ValueError(f"the input must have at least 2 axes, but got shape {shape}")
    i, j = positive_axes((dim1, dim2), len(shape), "dim1 and dim2")
    rest = (n for d, n in enumerate(shape) if d not in (i, j))
    return (*rest, _diagonal_length(shape[i], shape[j], offset))


@op(infer=shaped_by(_diagonal_shape), mindir="Diagonal")
def diagonal(input, *, offset: "int" = 0, dim1: "int" = 0, dim2: "int" = 1):
    """The diagonal of the planes spanned by two axes, as the last axis of the result.

    Shapes: [m, n, R..] -> [R.., k], k = length of the diagonal `offset` steps above the main one.  dtypes:
    any.
    """
    return np.diagonal(input, offset, dim1, dim2)


@diagonal.vjp
def diagonal(ct, input_shape, *, offset, dim1, dim2):
    return _diagonal_place(ct, input_shape, offset, dim1, dim2)


@diagonal.samples
def diagonal(rand):
    yield rand(3, 4), dict(_dtypes=("int32", "bool", "float64", "float16"))
    yield rand(3, 4), dict(offset=-1)
    yield rand(2, 3, 4), dict(offset=1, dim1=-2, dim2=-1)
    yield rand(2, 3, 4), dict(dim1=2, dim2=0)
    yield rand(3, 4), dict(offset=7)


@op(infer=shaped_by(lambda _, shape, offset, dim1, dim2: shape))
def _diagonal_place(x, *, shape: "ints", offset: "int" = 0, dim1: "int" = 0, dim2: "int" = 1):
    """Zeros of `shape` with `x` on the diagonal that `diagonal` reads: its adjoint.

    Shapes: x [R.., k] -> `shape`.  dtypes: any.
    """
    y = np.zeros(shape, x.dtype)
    planes = np.moveaxis(y, (dim1, dim2), (-2, -1))
    k = np.arange(x.shape[-1])
    planes[..., k - min(offset, 0), k + max(offset, 0)] = x
    return y


@_diagonal_place.vjp
def _diagonal_place(ct, *, offset, dim1, dim2):
    return diagonal(ct, offset, dim1, dim2)


@_diagonal_place.samples
def _diagonal_place(rand):
    yield rand(3), dict(shape=(3, 4), _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 2), dict(shape=(2, 3, 4), offset=-1, dim1=1, dim2=2)
    yield rand(3, 2), dict(shape=(2, 3, 4), dim1=2, dim2=0)
    yield rand(0), dict(shape=(2, 2), offset=2)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices with the last axis of the input on a diagonal, zero elsewhere, spanned by the new axes dim1
    and dim2.

    Shapes: [R.., n] -> [R.., n + |offset|, n + |offset|].  Errors: ValueError if dim1 equals dim2.
    """
    if input.ndim < 1:
        raise errors.value_error("For 'diag_embed', the input must have at least 1 axis, but got rank 0")
    rank = input.ndim + 1
    i, j = positive_axes((dim1, dim2), rank, "dim1 and dim2")
    side = input.shape[-1] + abs(offset)
    rest = iter(input.shape[:-1])
    shape = tuple(side if d in (i, j) else next(rest) for d in range(rank))
    return _diagonal_place(input, shape, offset, i, j)


def diagflat(input, offset=0):
    """A matrix with the elements of the input, flattened, on the given diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


def diag(input):
    """A tensor of twice the rank with the input on its diagonal: ``y[i, j, i, j] = x[i, j]``, zero
    elsewhere."""
    if input.ndim == 0:
        raise errors.value_error("For 'diag', the input must have at least 1 axis, but got rank 0")
    return reshape(diagflat(input), input.shape * 2)


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """`input` with `src` on the diagonal that `diagonal` reads."""
    place = dict(shape=input.shape, offset=offset, dim1=dim1, dim2=dim2)
    true = broadcast_to(constant(True), src.shape)
    return _where(_diagonal_place(true, **place), _diagonal_place(src, **place), input)


def tril_indices(row, col, offset=0, *, dtype=dtypes.int64):
    """The positions of the lower triangle of a `row` x `col` matrix: a row of rows, a row of columns."""
    return constant(np.stack(np.tril_indices(row, offset, col)), dtype)


def triu_indices(row, col, offset=0, *, dtype=dtypes.int64):
    """The positions of the upper triangle of a `row` x `col` matrix: a row of rows, a row of columns."""
    return constant(np.stack(np.triu_indices(row, offset, col)), dtype)


__all__ = [
    "is_tensor", "strided_slice", "narrow", "slice", "select_scatter", "slice_scatter", "gather",
    "index_select", "take", "embedding", "gather_d", "gather_elements", "gather_nd", "where", "select",
    "masked_fill", "masked_select", "masked_scatter", "nonzero", "argwhere", "one_hot", "tril", "triu",
    "diagonal", "diag_embed", "diagflat", "diag", "diagonal_scatter", "tril_indices", "triu_indices",
]  # fmt: skip
