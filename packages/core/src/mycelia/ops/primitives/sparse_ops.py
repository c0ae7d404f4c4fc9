"""Tensors given as indices and values, and ids of distributed tables."""

from mycelia import ops
from mycelia.engine.base import dtypes
from mycelia.engine.ops.arrays.shape import as_ints
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.ops.reductions.segments import sparse_slice, subtracted_and_kept
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitives.checks import anything, boolean, positive
from mycelia.ops.primitives.define import primitive


def _dense(indices, values, shape):
    return ops.scatter_nd(indices, values, as_ints(shape))


@primitive
def SparseToDense(indices, values, sparse_shape):
    """A tensor with the values at the indices and zeros elsewhere."""
    return _dense(indices, values, sparse_shape)


@primitive
def SparseTensorDenseAdd(x1_indices, x1_values, x1_shape, x2):
    """A sparse tensor added to a dense one."""
    return _dense(x1_indices, x1_values, x1_shape) + x2


@primitive(extra={"adjoint_a": False, "adjoint_b": False})
def SparseTensorDenseMatmul(
    indices, values, sparse_shape, dense, *, adjoint_st: boolean = False, adjoint_dt: boolean = False
):
    """Matrix product of a sparse matrix and a dense one, each transposed if it is asked for."""
    sparse = _dense(indices, values, sparse_shape)
    sparse = ops.transpose(sparse, (1, 0)) if adjoint_st else sparse
    return ops.matmul(sparse, ops.transpose(dense, (1, 0)) if adjoint_dt else dense)


@primitive
def SparseSlice(indices, values, shape, start, size):
    """The part of a sparse tensor from `start` of the given size: indices, values, shape."""
    return sparse_slice(indices, values, shape, start, size)


@primitive
def SubAndFilter(input_x, max_num, offset):
    """``input_x - offset`` where that is in [0, max_num), and the places where it is."""
    number = [int(v.item()) if isinstance(v, Tensor) else v for v in (max_num, offset)]
    return subtracted_and_kept(input_x, max_num=number[0], offset=number[1])


@primitive
def MapUniform(input, per_group_size, group_num):
    """Ids dealt out to groups: ``input % group_num * per_group_size + input // group_num``."""
    return ops.floor_mod(input, group_num) * per_group_size + ops.floor_div(input, group_num)


@primitive
def PadAndShift(input_x, cum_sum_arr, shift_idx):
    """The first elements of `input_x` where slot `shift_idx` of `cum_sum_arr`'s slots lies, -1 elsewhere.

    Shapes: input_x [n], cum_sum_arr [slots + 1] -> [last of cum_sum_arr].
    """
    bounds, slot = as_ints(cum_sum_arr), int(shift_idx)
    begin, end = bounds[slot : slot + 2] if slot + 1 < len(bounds) else (0, 0)
    before, after = (ops.full((n,), -1, dtype=input_x.dtype) for n in (begin, bounds[-1] - end))
    return ops.concat((before, input_x[: end - begin], after))


@primitive
def ConfusionMatrix(labels, predictions, weights=None, *, num_classes: positive, dtype: anything = "int32"):
    """How often each label was predicted as which class."""
    cells = ops.cast(labels, dtypes.int32) * num_classes + ops.cast(predictions, dtypes.int32)
    weights = ops.ones_like(cells) if weights is None else weights
    total = ops.scatter_nd(cells.reshape((-1, 1)), weights.reshape((-1,)), (num_classes * num_classes,))
    return ops.cast(total.reshape((num_classes, num_classes)), dtypes.as_dtype(dtype))


@primitive
def UpdateCache(input_x, indices, updates, max_num):
    """Overwrite the rows of `input_x` that `indices` name; those below 0 or from `max_num` on are left out.

    Shapes: input_x [N, ...], indices k elements, updates [k, ...] -> [1], a zero.
    """
    places, count = ops.reshape(indices, (-1,)), input_x.shape[0]
    kept = ops.logical_and(places >= 0, places < max_num)
    places = ops.where(kept, places, ops.full_like(places, count))  # a row more takes what is left out
    longer = ops.concat((input_x + 0, ops.zeros((1, *input_x.shape[1:]), input_x.dtype)))
    assign(input_x, ops.tensor_scatter_update(longer, ops.expand_dims(places, -1), updates)[:count])
    return ops.zeros((1,), input_x.dtype)
