"""Sparse tensors given by their parts: coordinates and values, or the compressed rows of a batch of matrices.

How many values a result holds depends on the data, so these run on arrays; under a graph their callers run as
Python. Sums over segments are compositions of ops, with gradients.
"""

from collections.abc import Callable

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.shape import as_ints
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitives.checks import anything, boolean, integer
from mycelia.ops.primitives.define import primitive

# ---- sums over segments of chosen rows --------------------------------------------------------------------


def _segments(x, indices, segment_ids, count, how):
    if count is None:
        ids = segment_ids.asnumpy()
        count = int(ids[-1]) + 1 if ids.size else 0
    else:
        count = int(count.asnumpy().reshape(-1)[0]) if isinstance(count, Tensor) else int(count)
    total = ops.unsorted_segment_sum(ops.gather(x, indices, 0), segment_ids, count)
    if how == "sum":
        return total
    number = ops.unsorted_segment_sum(ops.ones(indices.shape, x.dtype), segment_ids, count)
    number = ops.maximum(number, 1).reshape((-1,) + (1,) * (x.ndim - 1))
    return total / (number if how == "mean" else ops.sqrt(number))


def _segment_primitives(called: str, how: str, known: bool) -> None:
    def of_ids(x, indices, segment_ids):
        return _segments(x, indices, segment_ids, None, how)

    def of_count(x, indices, segment_ids, num_segments):
        return _segments(x, indices, segment_ids, num_segments, how)

    made = of_count if known else of_ids
    made.__doc__ = f"Rows of `x` chosen by `indices`, reduced over segments: {how}."
    primitive(made, name=called)


for _how, _name in (("sum", "Sum"), ("mean", "Mean"), ("sqrtn", "SqrtN")):
    if _how != "mean":
        _segment_primitives(f"SparseSegment{_name}", _how, known=False)
    _segment_primitives(f"SparseSegment{_name}WithNumSegments", _how, known=True)


@primitive
def SparseSegmentMeanGrad(x, indices, segment_ids, output_dim0):
    """Gradient of `SparseSegmentMean`: each row's share, added up in `output_dim0` rows."""
    number = ops.unsorted_segment_sum(ops.ones(indices.shape, x.dtype), segment_ids, x.shape[0])
    share = ops.gather(x / ops.maximum(number, 1).reshape((-1,) + (1,) * (x.ndim - 1)), segment_ids, 0)
    return ops.unsorted_segment_sum(share, indices, int(output_dim0.asnumpy()))


# ---- coordinates and values -------------------------------------------------------------------------------


def _array(value) -> np.ndarray:
    return value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)


def _sorted(indices: np.ndarray) -> np.ndarray:
    """The order of coordinates, row by row."""
    return np.lexsort(indices.T[::-1]) if len(indices) else np.zeros(0, np.int64)


@primitive
def SparseReorder(indices, values, shape):
    """The same sparse tensor with its coordinates in order."""
    order = _sorted(_array(indices))
    return Tensor(_array(indices)[order]), Tensor(_array(values)[order])


@primitive
def SparseReshape(indices, shape, new_shape):
    """Coordinates in another shape of as many elements; a size of -1 follows from the others."""
    old, new = [int(n) for n in _array(shape)], [int(n) for n in _array(new_shape)]
    if -1 in new:
        rest = -int(np.prod(new))
        new[new.index(-1)] = int(np.prod(old)) // rest if rest else 0
    if np.prod(new) != np.prod(old):
        raise errors.value_error("SparseReshape", f"shape {old} cannot become {new}")
    flat = np.ravel_multi_index(tuple(_array(indices).T), old)
    return Tensor(np.stack(np.unravel_index(flat, new), 1).astype(np.int64)), Tensor(new, dtypes.int64)


def _merged(parts: list[tuple[np.ndarray, np.ndarray]], combine: Callable) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of two sparse tensors together, in order, and ``combine(a, b)`` with zeros for what is not
    held."""
    together = np.concatenate([i for i, _ in parts])
    unique, inverse = np.unique(together, axis=0, return_inverse=True)
    inverse, first = inverse.reshape(-1), len(parts[0][0])
    a = np.zeros(len(unique), parts[0][1].dtype)
    b = np.zeros_like(a)
    np.add.at(a, inverse[:first], parts[0][1])
    np.add.at(b, inverse[first:], parts[1][1])
    return unique, combine(a, b)


@primitive
def SparseAdd(x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape, thresh):
    """The sum of two sparse tensors, without values smaller than `thresh`."""
    both = [(_array(x1_indices), _array(x1_values)), (_array(x2_indices), _array(x2_values))]
    indices, values = _merged(both, np.add)
    kept = np.abs(values) >= _array(thresh).reshape(-1)[0]
    return Tensor(indices[kept]), Tensor(values[kept]), x1_shape


def _pairwise(called: str, combine: Callable) -> None:
    def pairwise(x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape):
        both = [(_array(x1_indices), _array(x1_values)), (_array(x2_indices), _array(x2_values))]
        return tuple(map(Tensor, _merged(both, combine)))

    pairwise.__doc__ = f"{combine.__name__} of two sparse tensors, element by element."
    primitive(pairwise, name=called)


_pairwise("SparseSparseMaximum", np.maximum)
_pairwise("SparseSparseMinimum", np.minimum)


def _with_dense(called: str, combine: Callable) -> None:
    def with_dense(x1_indices, x1_values, x1_shape, x2):
        spread = ops.broadcast_to(x2, as_ints(x1_shape))
        return combine(x1_values, ops.gather_nd(spread, x1_indices))

    with_dense.__doc__ = "The values of a sparse tensor with those of a dense one in their places."
    primitive(with_dense, name=called)


_with_dense("SparseDenseCwiseAdd", ops.add)
_with_dense("SparseDenseCwiseMul", ops.mul)
_with_dense("SparseDenseCwiseDiv", ops.div)


@primitive
def SparseConcat(sp_input_indices, sp_input_values, sp_input_shapes, *, concat_dim: integer = 0):
    """Sparse tensors one after the other along an axis."""
    shapes = [_array(s).astype(np.int64) for s in sp_input_shapes]
    axis, start, moved = concat_dim % len(shapes[0]), 0, []
    for indices, shape in zip(sp_input_indices, shapes):
        indices = _array(indices).copy()
        indices[:, axis] += start
        start += int(shape[axis])
        moved.append(indices)
    indices, values = np.concatenate(moved), np.concatenate([_array(v) for v in sp_input_values])
    order, shape = _sorted(indices), shapes[0].copy()
    shape[axis] = start
    return Tensor(indices[order]), Tensor(values[order]), Tensor(shape)


@primitive
def SparseFillEmptyRows(indices, values, dense_shape, default_value):
    """Rows without a value get one: coordinates, values, which rows were empty, where each value went."""
    indices, values = _array(indices), _array(values)
    rows = int(_array(dense_shape)[0])
    empty = np.bincount(indices[:, 0], minlength=rows) == 0
    added = np.zeros((int(empty.sum()), indices.shape[1]), indices.dtype)
    added[:, 0] = np.flatnonzero(empty)
    together = np.concatenate([indices, added])
    filled = np.concatenate([values, np.full(len(added), _array(default_value), values.dtype)])
    order = np.argsort(together[:, 0], kind="stable")
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    places = Tensor(back[: len(indices)])
    return Tensor(together[order]), Tensor(filled[order]), Tensor(empty), places


@primitive
def SparseSoftmax(indices, values, shape):
    """Softmax over the values of each row."""
    indices, values = _array(indices), _array(values)
    _, row = np.unique(indices[:, :-1], axis=0, return_inverse=True)
    row = row.reshape(-1)
    top = np.full(row.max(initial=-1) + 1, -np.inf, values.dtype)
    np.maximum.at(top, row, values)
    shares = np.exp(values - top[row])
    total = np.zeros_like(top)
    np.add.at(total, row, shares)
    return Tensor(shares / total[row])


@primitive
def SparseToDenseV2(indices, output_shape, values, default_value, *, validate_indices: boolean = True):
    """A dense tensor with the values at the indices and `default_value` elsewhere."""
    where, shape = _array(indices), as_ints(output_shape)
    values, rest = _array(values), _array(default_value)
    dense = np.full(shape, rest.reshape(-1)[0], values.dtype)
    where = where.reshape(-1, len(shape)) if where.ndim > 1 or len(shape) == 1 else where.reshape(1, -1)
    dense[tuple(where.T)] = values.reshape(-1) if values.ndim else values
    return Tensor(dense)


@primitive
def SparseAddmm(indices, values, sparse_shape, x2_dense, x3_dense, alpha, beta):
    """``alpha * sparse @ x2 + beta * x3``."""
    sparse = ops.scatter_nd(indices, values, as_ints(sparse_shape))
    return ops.matmul(sparse, x2_dense) * alpha + x3_dense * beta


@primitive
def SetSize(set_indices, set_values, set_shape, *, validate_indices: boolean = True):
    """How many different values each set of the last axis has."""
    rows, shape = _array(set_indices), as_ints(set_shape)
    found = np.zeros(shape[:-1], np.int32)
    for row in {tuple(r) for r in rows[:, :-1]}:
        mine = np.all(rows[:, :-1] == row, axis=1)
        found[row] = len(np.unique(_array(set_values)[mine]))
    return Tensor(found)


@primitive
def SparseSliceGrad(backprop_val_grad, indices, start, new_indices):
    """Gradient of the values of `SparseSlice`: each goes back to its place."""
    before, after = _array(indices), _array(new_indices) + _array(start)
    places = {tuple(row): k for k, row in enumerate(after)}
    given = _array(backprop_val_grad)
    back = [given[places[tuple(row)]] if tuple(row) in places else 0 for row in before]
    return Tensor(np.array(back, given.dtype))


@primitive
def RaggedTensorToSparse(rt_nested_splits, rt_dense_values, *, Tsplits: anything):
    """A ragged tensor as coordinates, values and shape."""
    splits, values = [_array(s).astype(np.int64) for s in rt_nested_splits], _array(rt_dense_values)
    rows = np.arange(len(splits[0]) - 1).reshape(-1, 1)
    widths = [len(splits[0]) - 1]
    for split in splits:
        counts = np.diff(split)
        widths.append(int(counts.max(initial=0)))
        inner = np.concatenate([np.arange(n) for n in counts]) if len(counts) else np.zeros(0, np.int64)
        rows = np.column_stack([np.repeat(rows, counts, axis=0), inner])
    for axis in range(1, values.ndim):
        inner = np.tile(np.arange(values.shape[axis]), len(rows))
        rows = np.column_stack([np.repeat(rows, values.shape[axis], axis=0), inner])
        widths.append(values.shape[axis])
    return Tensor(rows.astype(np.int64)), Tensor(values.reshape(-1)), Tensor(widths, dtypes.int64)


@primitive
def SparseCountSparseOutput(
    indices, values, dense_shape, weights,
    *, binary_output: boolean = False, minlength: integer = -1, maxlength: integer = -1,
):  # fmt: skip
    """How often each row of a sparse tensor holds each value, by weights: a sparse tensor too.

    Shapes: indices [n, rank], values [n], dense_shape [rank], weights [n] -> indices [k, rank], values [k],
    shape [rank], whose last size is one more than the largest value.  dtypes: values int32 or int64.
    """
    owner = "SparseCountSparseOutput"
    if values.dtype not in (dtypes.int32, dtypes.int64):
        raise errors.type_error(owner, f"values must be int32 or int64, but they are {values.dtype}")
    places, counted, sizes, shares = map(_array, (indices, values, dense_shape, weights))
    if counted.shape != shares.shape:
        raise errors.runtime_error(
            owner, f"values and weights must have one shape, but they are {counted.shape} and {shares.shape}"
        )
    if (counted < 0).any() or (places >= sizes).any():
        raise errors.runtime_error(
            owner, f"values must be 0 or more and indices below the shape {tuple(sizes.tolist())}"
        )
    chosen = (counted < maxlength) | (maxlength < 0)
    rows = places[:, 0] if len(sizes) > 1 else np.zeros(len(places), np.int64)
    found, which = np.unique(np.column_stack([rows, counted])[chosen], axis=0, return_inverse=True)
    totals = np.zeros(len(found), shares.dtype)
    np.add.at(totals, which.reshape(-1), shares[chosen])
    width = maxlength if maxlength >= 0 else max(int(counted.max(initial=0)) + 1, minlength)
    shape = [int(sizes[0]), width] if len(sizes) > 1 else [width]
    return (
        Tensor(found[:, 2 - len(shape) :].astype(np.int64)),
        Tensor(np.ones_like(totals) if binary_output else totals),
        Tensor(shape, dtypes.int64),
    )


# ---- compressed rows of a batch of matrices ----------------------------------------------------------------


def _dense_of(shape, batches, rows, columns, values) -> np.ndarray:
    """The dense matrices, [..., rows, columns]."""
    sizes = [int(n) for n in _array(shape)]
    starts, rows, columns, values = map(_array, (batches, rows, columns, values))
    if starts.ndim == 0:  # how many values one matrix has
        starts = np.array([0, starts])
    count, height = (sizes[0] if len(sizes) == 3 else 1), sizes[-2]
    dense = np.zeros((count, height, sizes[-1]), values.dtype)
    for b in range(count):
        pointers = rows[b * (height + 1) : (b + 1) * (height + 1)]
        row = np.repeat(np.arange(height), np.diff(pointers))
        part = slice(starts[b], starts[b + 1])
        np.add.at(dense[b], (row, columns[part]), values[part])
    return dense if len(sizes) == 3 else dense[0]


def _compressed(dense: np.ndarray, held: np.ndarray, like) -> tuple[Tensor, ...]:
    """Shape, batch pointers, row pointers, columns and values of what is `held` of matrices."""
    kind = like.asnumpy().dtype
    matrices, masks = (a.reshape(-1, *dense.shape[-2:]) for a in (dense, held))
    rows = [np.concatenate([[0], np.cumsum(mask.sum(1))]) for mask in masks]
    batches = np.concatenate([[0], np.cumsum([mask.sum() for mask in masks])])
    columns = np.concatenate([np.nonzero(mask)[1] for mask in masks])
    parts = (np.array(dense.shape), batches, np.concatenate(rows), columns)
    return (*(Tensor(p.astype(kind)) for p in parts), Tensor(matrices[masks]))


def _held(shape, batches, rows, columns, values) -> np.ndarray:
    return _dense_of(shape, batches, rows, columns, np.ones(_array(values).shape, np.int64)) > 0


def _csr(called: str):
    """A primitive whose inputs are the five parts of compressed matrices."""

    def make(function: Callable) -> Callable:
        def of_parts(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values):
            parts = (x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values)
            return function(*parts)

        of_parts.__doc__ = function.__doc__
        return primitive(of_parts, name=called)

    return make


@_csr("CSRSparseMatrixToDense")
def _to_dense(*parts):
    """Compressed matrices as dense ones."""
    return Tensor(_dense_of(*parts))


@_csr("CSRSparseMatrixToSparseTensor")
def _to_coordinates(*parts):
    """Compressed matrices as coordinates, values and shape."""
    dense, held = _dense_of(*parts), _held(*parts)
    kind = _array(parts[3]).dtype
    return Tensor(np.argwhere(held).astype(kind)), Tensor(dense[held]), parts[0]


@_csr("SparseMatrixNNZ")
def _nonzeros(*parts):
    """How many values each matrix of the batch holds."""
    return Tensor(np.diff(_array(parts[1])).astype(np.int32))


@primitive
def SparseMatrixTranspose(
    x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values, *, conjugate: boolean = False
):
    """Transposed compressed matrices."""
    parts = (x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values)
    dense, held = (np.swapaxes(a, -1, -2) for a in (_dense_of(*parts), _held(*parts)))
    return _compressed(np.conj(dense) if conjugate else dense, held, x_row_pointers)


@primitive
def SparseMatrixSoftmax(
    x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values, *, dtype: anything
):
    """Softmax over the values that each row holds."""
    parts = (x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values)
    held = _held(*parts)
    powers = np.where(held, _dense_of(*parts), -np.inf)
    top = powers.max(-1, keepdims=True)
    shares = np.exp(powers - np.where(np.isfinite(top), top, 0))
    total = shares.sum(-1, keepdims=True)
    soft = (shares / np.where(total == 0, 1, total)).astype(x_values.asnumpy().dtype)
    return _compressed(soft, held, x_row_pointers)


@primitive
def SparseMatrixAdd(
    x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values, x2_dense_shape,
    x2_batch_pointers, x2_row_pointers, x2_col_indices, x2_values, alpha, beta,
):  # fmt: skip
    """``alpha * x1 + beta * x2`` of compressed matrices; what either holds is held."""
    one = (x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values)
    two = (x2_dense_shape, x2_batch_pointers, x2_row_pointers, x2_col_indices, x2_values)
    total = _dense_of(*one) * _array(alpha) + _dense_of(*two) * _array(beta)
    return _compressed(total.astype(x1_values.asnumpy().dtype), _held(*one) | _held(*two), x1_row_pointers)


@primitive
def SparseMatrixMatMul(
    x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values, x2_dense, *,
    transpose_x1: boolean = False, transpose_x2: boolean = False, adjoint_x1: boolean = False,
    adjoint_x2: boolean = False, transpose_output: boolean = False, conjugate_output: boolean = False,
):  # fmt: skip
    """Products of compressed matrices and dense ones."""
    a = _dense_of(x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values)
    b = _array(x2_dense)
    if transpose_x1 or adjoint_x1:
        a = np.swapaxes(np.conj(a) if adjoint_x1 else a, -1, -2)
    if transpose_x2 or adjoint_x2:
        b = np.swapaxes(np.conj(b) if adjoint_x2 else b, -1, -2)
    product = a @ b
    product = np.swapaxes(product, -1, -2) if transpose_output else product
    return Tensor(np.ascontiguousarray(np.conj(product) if conjugate_output else product))


@primitive
def DenseToCSRSparseMatrix(dense_input, indices):
    """What `indices` names of dense matrices, compressed."""
    dense, held = _array(dense_input), np.zeros(dense_input.shape, bool)
    held[tuple(_array(indices).T)] = True
    return _compressed(dense, held, indices)


@primitive
def SparseTensorToCSRSparseMatrix(x_indices, x_values, x_dense_shape):
    """Coordinates and values of matrices, compressed."""
    where, shape = tuple(_array(x_indices).T), as_ints(x_dense_shape)
    values = _array(x_values)
    dense, held = np.zeros(shape, values.dtype), np.zeros(shape, bool)
    dense[where], held[where] = values, True
    return _compressed(dense, held, x_indices)
