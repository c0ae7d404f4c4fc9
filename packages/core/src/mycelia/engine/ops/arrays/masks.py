"""Ops that choose elements by a condition: where, masks, positions of non-zeros, one-hot, triangles.

What picks elements by their position is in `index.py`.
"""

import math

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.sizes import exact
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import fusion as _fusion
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.arrays.create import zeros
from mycelia.engine.ops.arrays.index import check_index_dtype, is_tensor
from mycelia.engine.ops.arrays.padding import pad
from mycelia.engine.ops.arrays.shape import constant, positive_axis, reshape, shaped_by
from mycelia.engine.ops.define import find, op
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import broadcast_shapes, unbroadcast


def _selected(condition, input, other):
    if not condition.dtype.is_bool:
        raise TypeError(f"condition must be a bool tensor, but got {condition.dtype.name}")
    return TensorType(input.dtype, broadcast_shapes(condition.shape, input.shape, other.shape))


def _select_step(p, *values):
    return p.step("select", *values)


def _selects_numbers(inputs, output):
    kinds = _fusion.KINDS
    return output in kinds and output is not dtypes.bool_ and all(d in kinds for d in inputs)


@op(
    elementwise="broadcast",
    infer=lambda *types: _selected(*types),
    promote=("input", "other"),
    mindir="Select",
    fuse=_fusion.Fusion(_select_step, _selects_numbers),
    moves=True,
)
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

    Shapes: broadcast.  dtypes: bool condition; the others are promoted.
    Errors: TypeError for another condition.
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


@op(infer=lambda *types: _filled(*types), mindir="MaskedFill", layout=_layout.elementwise, moves=True)
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


@_masked_fill.batch
def _masked_fill(call):
    if not call.batched[2]:
        return tuple(call.shaped(call.run(call.aligned(max(call.rank(0), call.rank(1))))))
    x, mask, value = call.aligned(max(call.rank(0), call.rank(1)))
    return (find("where")(mask, value, x),)


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


@op(
    infer=lambda input, mask: _mask_selected(input, mask),
    dynamic=True,
    mindir="MaskedSelect",
    method=True,
    primitive=True,
)
def masked_select(input, mask):
    """The elements where `mask` is true, in row-major order.

    Shapes: broadcast -> [number of true entries].  dtypes: any, bool mask.
    """
    input, mask = np.broadcast_arrays(input, mask)
    return input[mask]


@masked_select.vjp
def masked_select(ct, mask, input_shape):
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


@op(infer=lambda *types: _mask_scattered(*types), mindir="MaskedScatter", method=True, primitive=True)
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
    cost=0,
)
def _one_hot(indices, on_value, off_value, *, depth: "int", axis: "int" = -1):
    """`on_value` at the position that the index names along a new axis of size
    `depth`, `off_value` elsewhere.

    Shapes: [I..] -> [I.., depth] for axis -1.  dtypes: integer indices -> dtype of the values; an index
    outside [0, depth) gives `off_value` everywhere.
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


@_one_hot.batch
def _one_hot(call):
    if not call.only(0):
        return _batch.one_by_one(call)
    axis = call.attrs["axis"]
    return call.shaped(call.run(call.operands, axis=axis if axis == -1 else axis + 1))


def one_hot(indices, depth, on_value=1, off_value=0, axis=-1):
    """`on_value` at the position that the index names along a new axis of size
    `depth`, `off_value` elsewhere.

    Shapes: [I..] -> [I.., depth] for axis -1.  dtypes: integer indices -> dtype of the values (Python ints:
    int64).
    An index outside [0, depth) gives `off_value` everywhere.
    """
    if not is_tensor(on_value) and not is_tensor(off_value):
        dtype = dtypes.float32 if float in (type(on_value), type(off_value)) else dtypes.int64
        on_value, off_value = constant(on_value, dtype), constant(off_value, dtype)
    on_value, off_value = (
        reshape(v, ()) if is_tensor(v) and v.shape == (1,) else v for v in (on_value, off_value)
    )
    return _one_hot(indices, on_value, off_value, depth=exact(depth), axis=axis)


__all__ = [
    "where", "select", "masked_fill", "masked_select", "masked_scatter", "nonzero", "argwhere", "one_hot",
]  # fmt: skip
