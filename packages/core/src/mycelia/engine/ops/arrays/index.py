"""Ops that pick elements by position: slices and gathers, with what writes a slice.

`indexing.py` builds NumPy-style ``x[...]`` from these. What chooses by a condition is in `masks.py`, what
writes by position in `scatter.py`, what orders elements in `order.py`.
"""

import builtins
import math

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.arrays.shape import as_ints, constant, movedim, positive_axis, reshape, shaped_by
from mycelia.engine.ops.define import find, op, registry
from mycelia.engine.ops.infer import broadcast_shapes, unbroadcast
from mycelia.engine.ops.late import ops

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


def _check_places(shape, begin, size, stride):
    """Raises ValueError if a strided slice of a tensor of `shape` reads outside of it."""
    if not len(begin) == len(size) == len(stride) == len(shape):
        raise ValueError(
            f"begin {begin}, size {size} and stride {stride} must have {len(shape)} entries each"
        )
    for n, b, count, step in zip(shape, begin, size, stride):
        if any(v.__class__ is not int for v in (n, b, count, step)) or UNKNOWN in shape or count == 0:
            continue
        last = b + (count - 1) * step
        if count < 0 or not (0 <= b < n and 0 <= last < n):
            raise ValueError(f"{count} elements from {b} on, every {step}th, do not lie in an axis of {n}")


def _sliced_shape(given, begin, size, stride, shape):
    _check_places(given, begin, size, stride)
    numbers = (*given, *size, *shape)
    if all(n.__class__ is int and n != UNKNOWN for n in numbers) and math.prod(size) != math.prod(shape):
        raise ValueError(f"a slice of size {size} has no shape {shape}")
    return shape


def _placed_shape(given, begin, stride, shape):
    _check_places(shape, begin, given, stride)
    return shape


def _keeps_axes(node):
    return tuple(node.attrs["shape"]) == tuple(node.attrs["size"])


def _sliced_channels_last(rewriter, node):
    turned = {name: _layout.nhwc_shape(v) for name, v in node.attrs.items()}
    return _layout.same_attributes(rewriter, node, [rewriter.last(node.inputs[0])], **turned)


@op(
    infer=shaped_by(_sliced_shape),
    cost=_cost.picks(0),
    layout=_layout.where(_keeps_axes, _layout.images((0,), (0,))._replace(emit=_sliced_channels_last)),
    moves=True,
)
def _strided_slice(x, *, begin: "ints", size: "ints", stride: "ints", shape: "ints"):
    """``size[i]`` elements along axis i from ``begin[i]`` on, every ``stride[i]``-th,
    in the end reshaped to `shape`.

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


@_strided_slice.batch
def _strided_slice(call):
    a = call.attrs
    return call.run(
        call.operands,
        begin=(0, *a["begin"]),
        size=(call.size, *a["size"]),
        stride=(1, *a["stride"]),
        shape=(call.size, *a["shape"]),
    )


@op(
    infer=shaped_by(_placed_shape),
    layout=_layout.images((0,), (0,))._replace(emit=_sliced_channels_last),
    moves=True,
)
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


@_strided_place.batch
def _strided_place(call):
    a = call.attrs
    return call.run(
        call.operands, begin=(0, *a["begin"]), stride=(1, *a["stride"]), shape=(call.size, *a["shape"])
    )


def _assigned(x, value, begin, size, stride):
    if value.dtype is not x.dtype:
        raise TypeError(f"value must have dtype {x.dtype.name}, but got {value.dtype.name}")
    if broadcast_shapes(value.shape, size) != size:
        raise ValueError(f"a value of shape {value.shape} does not fit a selection of shape {size}")
    _check_places(x.shape, begin, size, stride)
    return x


def _batched_assign(call):
    a = call.attrs
    value = call.aligned(len(a["size"]))[1]
    return find("strided_assign")(
        call.whole(0), value, (0, *a["begin"]), (call.size, *a["size"]), (1, *a["stride"])
    )


@op(infer=lambda x, value, **attrs: _assigned(x, value, **attrs), batch=_batched_assign, moves=True)
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


@op(
    infer=lambda x, value, **attrs: _assigned(x, value, **attrs),
    updates=("x",),
    nondiff=True,
    batch=_batched_assign,
    cost=0,
)
def _strided_write(x, value, *, begin: "ints", size: "ints", stride: "ints"):
    """`_strided_assign` into the memory of `x`: the cost is that of the selection,
    where nothing shares the memory.

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

    Bit i of a mask changes entry i: begin_mask, end_mask = ignore the limit; ellipsis_mask = stand for
    all axes that are not named; new_axis_mask = a new axis of size 1; shrink_axis_mask = take the element
    at begin and drop the axis.
    Errors: ValueError for a zero stride or vectors of different length,
    IndexError for a dropped axis out of range.
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


def _check_tensors(owner, input, src):
    for name, value in (("input", input), ("src", src)):
        if not is_tensor(value):
            raise errors.type_error(f"{owner}: {name} must be a Tensor, got {type(value).__name__}")


def select_scatter(input, src, axis, index):
    """`input` with `src` in place of its slice `index` along `axis`.

    Errors: TypeError unless both are Tensors, IndexError for an index outside of the axis.
    """
    _check_tensors("select_scatter", input, src)
    axis = positive_axis(axis, input.ndim)
    n = input.shape[axis]
    if not -n <= index < n:
        raise errors.index_error(
            f"select_scatter: index {index} is out of bounds for axis {axis} with size {n}"
        )
    begin, size, stride = _axis_slice(input, axis, index % n, index % n + 1, 1)
    return _strided_assign(input, reshape(src, size), begin, size, stride)


def slice_scatter(input, src, axis=0, start=None, end=None, step=1):
    """`input` with `src` in place of its part ``start:end:step`` along `axis`.

    Errors: TypeError unless both are Tensors, ValueError if `src` does not have the shape of the part.
    """
    _check_tensors("slice_scatter", input, src)
    axis = positive_axis(axis, input.ndim)
    length = len(range(*builtins.slice(start, end, step).indices(input.shape[axis])))
    part = (*input.shape[:axis], length, *input.shape[axis + 1 :])
    if tuple(src.shape) != part:
        raise errors.value_error(f"slice_scatter: src must have shape {part}, but it is {tuple(src.shape)}")
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


def _grid(index, axis):
    """Index arrays that name, for each entry of `index`, the element with this position along `axis`."""
    grid = list(np.ogrid[tuple(builtins.slice(0, n) for n in index.shape)])
    grid[axis] = index
    return tuple(grid)


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


def positions_nd(indices, shape, op_name):
    """The columns of `indices` as one index array an axis, negative entries counted from the end."""
    return tuple(wrapped(indices[..., i], shape[i], i, op_name) for i in range(indices.shape[-1]))


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


def _linear(indices, dims):
    for index in indices:
        check_index_dtype(index)
    return TensorType(dtypes.int64, broadcast_shapes(*(index.shape for index in indices)))


@op(infer=lambda indices, dims: _linear(indices, dims), nondiff=True)
def _linear_index(indices: "tensors", *, dims: "ints"):
    """Positions in row-major order of the elements named by one index tensor an axis,
    which broadcast to each other.

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


__all__ = [
    "is_tensor", "strided_slice", "narrow", "slice", "select_scatter", "slice_scatter", "gather",
    "index_select", "take", "embedding", "gather_d", "gather_elements", "gather_nd",
]  # fmt: skip
