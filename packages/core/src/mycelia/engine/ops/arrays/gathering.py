"""Elements picked by positions: along an axis, by rows of positions, out of a table."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.arrays.axes import movedim
from mycelia.engine.ops.arrays.index import _grid, check_index_dtype, positions_nd, wrapped
from mycelia.engine.ops.arrays.shape import constant, positive_axis, reshape, shaped_by
from mycelia.engine.ops.define import op, registry
from mycelia.engine.ops.late import ops


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


def _picks_one_axis(node):
    """Whether a gather keeps the rank: by indices of rank 1, without batch axes."""
    return len(node.inputs[1].type.shape) == 1 and not node.attrs["batch_dims"]


def _picked_channels_last(rewriter, node):
    changed = dict(axis=_layout.AXIS[node.attrs["axis"] % 4])
    if "shape" in node.attrs:
        changed["shape"] = _layout.nhwc_shape(node.attrs["shape"])
    return _layout.same_attributes(rewriter, node, [rewriter.last(node.inputs[0]), node.inputs[1]], **changed)


@op(
    infer=lambda x, indices, axis, batch_dims: _gathered(x, indices, axis, batch_dims),
    mindir="Gather",
    cost=_cost.picks(0),
    layout=_layout.where(_picks_one_axis, _layout.images((0,), (0,))._replace(emit=_picked_channels_last)),
    moves=True,
)
def gather(input_params, input_indices, *, axis: "int", batch_dims: "int" = 0):
    """The slices of `input_params` along `axis` at the given indices,
    which count from the end where negative.

    Shapes: x [B.., n, R..], indices [B.., I..] -> [B.., .., I.., R..], batch_dims = number
    of common leading axes B.
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


@gather.batch
def gather(call):
    """Shared table: one gather; shared indices: another axis; both differ: batch axes of the op."""
    x, indices = call.operands
    axis, batch_dims = call.attrs["axis"] % call.rank(), call.attrs["batch_dims"]
    if call.batched[0]:
        if not call.batched[1] and not batch_dims:
            return call.shaped(call.run([x, indices], axis=axis + 1))
        return call.shaped(call.run([x, call.whole(1)], axis=axis + 1, batch_dims=batch_dims + 1))
    if batch_dims:
        return call.shaped(call.run([call.whole(0), indices], axis=axis + 1, batch_dims=batch_dims + 1))
    found = call.run([x, indices], axis=axis)[0]  # [.., batch, I.., R..]
    return call.shaped((movedim(found, axis, 0),))


def _gather_grad_type(rows, indices, *, shape, axis, batch_dims):
    axis, batch = positive_axis(axis, len(shape)), positive_axis(batch_dims, indices.rank + 1, "batch_dims")
    expected = (*shape[:axis], *indices.shape[batch:], *shape[axis + 1 :])
    if not TensorType(rows.dtype, rows.shape).accepts(TensorType(rows.dtype, expected)):
        raise ValueError(f"rows must have shape {list(expected)}, got {list(rows.shape)}")
    return TensorType(rows.dtype, shape)


@op(
    infer=_gather_grad_type,
    layout=_layout.where(_picks_one_axis, _layout.images((0,), (0,))._replace(emit=_picked_channels_last)),
)
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


@op(
    infer=lambda input, weight, padding_idx: _embedded(input, weight, padding_idx),
    batch=_batch.first_leading,
    cost=_cost.picks(1),
    moves=True,
)
def _embedding(input, weight, *, padding_idx: "int?" = None):
    """The rows of `weight` at `input`; no gradient flows into row `padding_idx`.

    Shapes: ids [I..], weight [n, d] -> [I.., d].  dtypes: any, integer ids.
    Errors: IndexError for ids out of range.
    """
    return weight[wrapped(input, weight.shape[0], 0, "embedding")]


@_embedding.vjp
def _embedding(ct, input, weight_shape, *, padding_idx):
    if padding_idx is not None:
        is_padding = input == padding_idx % weight_shape[0]
        ct = ops.masked_fill(ct, reshape(is_padding, (*input.shape, 1)), 0.0)
    return None, _gather_grad(ct, input, weight_shape, 0)


@_embedding.samples
def _embedding(rand):
    yield rand.ints(0, 5, (2, 3)), rand(5, 4), dict(_dtypes=())
    yield rand.ints(0, 3, (4,)), rand(3, 2), dict(padding_idx=1, _grad=False)
    yield rand.ints(0, 3, (4,), "int64"), rand(3, 2), dict(padding_idx=-1, _grad=False)
    yield rand.ints(0, 3, (0,)), rand(3, 2)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    """The rows of the table `weight` at the positions `input`; no gradient flows into row `padding_idx`.

    With `max_norm`, used rows with a longer `norm_type`-norm are shortened to it (in the result,
    not in the table); with `scale_grad_by_freq` a row's gradient is divided by the number of its uses.
    Shapes: ids [I..], weight [n, d] -> [I.., d].  Errors: IndexError for ids out of range.
    """
    rows = _embedding(input, weight, padding_idx=padding_idx)
    if max_norm is not None:
        norm = ((rows.abs() ** norm_type).sum(-1, keepdims=True)) ** (1.0 / norm_type)
        rows = ops.where(norm > max_norm, rows * (max_norm / (norm + 1e-7)), rows)
    if scale_grad_by_freq:
        once = ops.ones(input.shape, weight.dtype)
        uses = gather(_gather_grad(once, input, (weight.shape[0],), 0), input, 0)
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


@_scale_gradient.batch
def _scale_gradient(call):
    return _batch.one_by_one(call) if call.batched[1] else call.run(call.operands)


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


@op(
    infer=lambda x, index, dim: _gathered_d(x, index, dim),
    mindir="GatherD",
    batch=_batch.along("dim"),
    cost=_cost.picks(0),
    moves=True,
)
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
    zeros = ops.zeros(x_shape, ct.dtype)
    return registry["scatter_elements"](zeros, index, ct, axis=dim, reduction="add"), None


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


@op(
    infer=lambda x, indices: _gathered_nd(x, indices),
    mindir="GatherNd",
    method=True,
    cost=_cost.picks(0),
    primitive=True,
    moves=True,
)
def gather_nd(input_x, indices):
    """The slices named by the rows of `indices`: ``y[i] = x[indices[i, 0], indices[i, 1], ...]``.

    Shapes: x [n1, .., nk, R..], indices [I.., k] -> [I.., R..].  dtypes: any, integer indices.
    Errors: IndexError for an index out of range.
    """
    return input_x[positions_nd(indices, input_x.shape, "gather_nd")]


@gather_nd.vjp
def gather_nd(ct, indices, input_x_shape):
    return ops.scatter_nd(indices, ct, input_x_shape), None


@gather_nd.samples
def gather_nd(rand):
    more = ("int32", "bool", "float64", "float16")
    yield rand(3, 4), rand.ints(0, 3, (5, 2)), dict(_dtypes=more)
    yield rand(3, 4), rand.ints(0, 3, (2, 2, 1), "int64")
    yield rand(3, 4, 2), rand.ints(-3, 3, (2,))
    yield rand(3, 4), rand.ints(0, 3, (0, 1))


@gather_nd.batch
def gather_nd(call):
    if not call.batched[0]:
        return call.run(call.operands)
    return call.run([call.operands[0], _batch.with_example_numbers(call, call.whole(1))])


__all__ = ["gather", "index_select", "take", "embedding", "gather_d", "gather_elements", "gather_nd"]
