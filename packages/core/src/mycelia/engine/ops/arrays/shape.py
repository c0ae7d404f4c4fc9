"""Ops that rearrange the elements of a tensor without looking at them: reshape, transpose, flip, broadcast.

The reshape family shares memory; everything else copies, since tensors are always contiguous. What joins
tensors or takes one apart is in `joining.py`, what repeats and pads in `repeating.py` and `padding.py`.
"""

import math

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.sizes import exact
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import broadcast_shapes, is_one, unbroadcast
from mycelia.engine.ops.late import ops

MAX_RANK = 8


def positive_axis(axis, rank, name="axis"):
    """`axis` counted from the front; ValueError if it is not in [-rank, rank), so always for rank 0."""
    if not -rank <= axis < rank:
        raise errors.value_error(f"{name} must be in [{-rank}, {rank}), but got {axis}")
    return axis + rank if axis < 0 else axis


def positive_axes(axes, rank, name="axis"):
    """All `axes` counted from the front; ValueError if one is out of range or named twice."""
    result = tuple(positive_axis(axis, rank, name) for axis in axes)
    if len(set(result)) != len(result):
        raise errors.value_error(f"{name} names an axis twice: {tuple(axes)}")
    return result


def as_ints(value, name="shape"):
    """A tuple of Python ints from an int, a sequence of ints, or an integer Tensor."""
    if hasattr(value, "asnumpy"):
        value = value.asnumpy().tolist()
    if hasattr(value, "__index__"):
        return (exact(value),)
    try:
        if isinstance(value, (set, frozenset)):
            raise TypeError  # no order
        return tuple(int(v.item()) if hasattr(v, "item") else exact(v) for v in value)
    except (AttributeError, TypeError):
        raise errors.type_error(f"{name} must be an int or a tuple of ints, but got {value!r}") from None


def tensors_of(tensors, name="tensors"):
    """`tensors` if it is a tuple or list with at least one member, else TypeError or ValueError."""
    if not isinstance(tensors, (tuple, list)):
        raise errors.type_error(
            f"{name} must be a tuple or list of tensors, but got {type(tensors).__name__}"
        )
    if not tensors:
        raise errors.value_error(f"{name} must hold at least one tensor")
    return tensors


def constant(values, dtype=None):
    """A Tensor with the values of a NumPy array, list or Python number; `dtype` None: as NumPy has it.

    Numbers that follow from open sizes, alone or in a list, stay open.
    """
    kind = type(values)
    if kind is SymInt:
        kept = dtype or (dtypes.int64 if isinstance(values, int) else dtypes.float64)
        return ops.cast(values, dtype=kept)
    if kind in (list, tuple) and SymInt in map(type, values):
        whole = dtypes.int64 if all(isinstance(v, int) for v in values) else dtypes.float64
        return ops.stack([constant(v, dtype or whole) for v in values])
    array = np.asarray(values)
    dtype = dtypes.from_numpy(array.dtype) if dtype is None else dtype
    if dtype is dtypes.bfloat16:
        return _C.from_array(dtypes.to_bfloat16_bits(array), dtype, True)
    return _C.from_array(np.ascontiguousarray(array, dtype.np).reshape(array.shape), dtype, True)


def shaped_by(rule):
    """Shape rule of an op with one input: same dtype, shape ``rule(x.shape, **attrs)``."""

    def infer(x, **attrs):
        shape = tuple(rule(x.shape, **attrs))
        if len(shape) > MAX_RANK:
            raise ValueError(f"the result has rank {len(shape)}, at most {MAX_RANK} is possible: {shape}")
        return TensorType(x.dtype, shape)

    return infer


def _one_taken_over(old, shape):
    """`shape` with one -1: of the two, one is a size of `old` in its place that is not known yet.

    ``reshape(x, (x.shape[0], -1))`` arrives like this when the batch is left open; the other size follows.
    """
    places = [axis for axis, n in enumerate(shape) if n == -1]
    taken = next((a for a in places if a < len(old) and old[a] == -1), None)
    known = math.prod(n for n in shape if n != -1)
    if taken is None or old.count(-1) > 1 or not known or math.prod(n for n in old if n != -1) % known:
        return shape
    rest = math.prod(n for n in old if n != -1) // known
    return tuple(rest if n == -1 and axis != taken else n for axis, n in enumerate(shape))


def _reshaped(old, shape):
    if any(n < -1 for n in shape):
        raise ValueError(f"shape holds a negative size: {shape}")
    if shape.count(-1) == 2 and -1 in old:
        shape = _one_taken_over(old, shape)
    if shape.count(-1) > 1:
        raise ValueError(f"only one size of shape can be -1, but got {shape}")
    if -1 in old:
        return shape
    size, known = math.prod(old), math.prod(n for n in shape if n != -1)
    if -1 in shape and known and size % known == 0:
        return tuple(size // known if n == -1 else n for n in shape)
    if -1 in shape or size != known:
        raise ValueError(f"shape {shape} is not possible for an input of shape {old} with {size} elements")
    return shape


@op(infer=shaped_by(_reshaped), view=True, mindir="Reshape", batch=_batch.reshape, moves=True)
def reshape(input, *, shape: "ints"):
    """The same elements in row-major order under another shape; one size may be -1 and is then computed.

    Shapes: any -> `shape`, shares memory.  dtypes: any.  Errors: ValueError if the element counts differ.
    """
    return input.reshape(shape)


@reshape.vjp
def reshape(ct, input_shape):
    return reshape(ct, input_shape)


@reshape.samples
def reshape(rand):
    yield rand(3, 4), dict(shape=(2, 6))
    yield rand(3, 4), dict(shape=(-1,))
    yield rand(1), dict(shape=())
    yield rand(2, 0), dict(shape=(0, 5, 2))
    yield rand(), dict(shape=(1, 1, -1))


def view(input, *shape):
    """`reshape` with the sizes as arguments: ``view(x, 2, -1)`` or ``view(x, (2, -1))``."""
    return reshape(input, as_ints(shape[0] if len(shape) == 1 else shape))


def view_as(input, other):
    """`input` under the shape of `other`."""
    return reshape(input, other.shape)


def _squeezed(shape, axis):
    if axis is None or axis == ():
        return (n for n in shape if n != 1)
    drop = positive_axes(axis, max(len(shape), 1))
    return (n for i, n in enumerate(shape) if i not in drop or n != 1)


@op(infer=shaped_by(_squeezed), view=True, mindir="Squeeze", batch=_batch.reshape, moves=True)
def squeeze(input, *, axis: "ints?" = None):
    """Drop axes of size 1: all of them, or those in `axis` (an axis of another size stays as it is).

    Shapes: any, shares memory.  dtypes: any.  Errors: ValueError if an axis is out of range.
    """
    return input.reshape(tuple(_squeezed(input.shape, axis)))


@squeeze.vjp
def squeeze(ct, input_shape):
    return reshape(ct, input_shape)


@squeeze.samples
def squeeze(rand):
    yield rand(1, 3, 1, 2)
    yield rand(1, 3, 1), dict(axis=-1)
    yield rand(1, 1), dict(axis=(0, 1))
    yield rand(2, 1), dict(axis=0)
    yield rand()


def _expanded(shape, axis):
    at = positive_axis(axis, len(shape) + 1)
    return (*shape[:at], 1, *shape[at:])


@op(
    infer=shaped_by(_expanded),
    view=True,
    mindir="ExpandDims",
    batch=_batch.reshape,
    primitive=True,
    moves=True,
)
def expand_dims(input_x, *, axis: "int"):
    """Insert an axis of size 1 at `axis`, counted in the result.

    Shapes: rank r -> r + 1, shares memory.  dtypes: any.  Errors: ValueError if `axis` is not in [-r - 1, r].
    """
    return np.expand_dims(input_x, axis)


@expand_dims.vjp
def expand_dims(ct, input_x_shape):
    return reshape(ct, input_x_shape)


@expand_dims.samples
def expand_dims(rand):
    yield rand(2, 3), dict(axis=0)
    yield rand(2, 3), dict(axis=-1)
    yield rand(2, 3), dict(axis=-3)
    yield rand(), dict(axis=0)
    yield rand(0, 2), dict(axis=1)


def unsqueeze(input, dim):
    """Insert an axis of size 1 at `dim`, counted in the result."""
    return expand_dims(input, dim)


def _each(function, inputs):
    """`function` of a tensor, or of each tensor of a tuple or list."""
    return tuple(map(function, inputs)) if isinstance(inputs, (tuple, list)) else function(inputs)


def atleast_1d(inputs):
    """A tensor (or each of a list) with rank 0 raised to rank 1."""
    return _each(lambda x: x if x.ndim >= 1 else reshape(x, (1,)), inputs)


def atleast_2d(inputs):
    """A tensor (or each of a list) with leading axes of size 1 up to rank 2."""
    return _each(lambda x: x if x.ndim >= 2 else reshape(x, (1,) * (2 - x.ndim) + x.shape), inputs)


def _atleast_3d(x):
    if x.ndim >= 3:
        return x
    shapes = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}
    return reshape(x, shapes[x.ndim])


def atleast_3d(inputs):
    """A tensor (or each of a list) at least of rank 3: [] -> [1, 1, 1],
    [n] -> [1, n, 1], [m, n] -> [m, n, 1].
    """
    return _each(_atleast_3d, inputs)


def _broadcasted(old, shape):
    lead = len(shape) - len(old)
    result = tuple(old[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(shape))
    pairs = zip(old, result[max(lead, 0) :])
    fits = lead >= 0 and all(is_one(n) or n == m or n == 1 or -1 in (m, n) for n, m in pairs)
    if not fits or any(n < 0 for n in result[: max(lead, 0)]):
        raise ValueError(
            f"shape {old} cannot be broadcast to {shape}: sizes must be equal or 1, from the last axis on"
        )
    return result


def _stretched_images(node):
    if not _layout.is_image(node.outputs[0]) or not node.inputs[0].type.is_static:
        return None
    return [0] if _layout.is_image(node.inputs[0]) else (), (0,)


@op(
    infer=shaped_by(_broadcasted),
    mindir="BroadcastTo",
    layout=_layout.LayoutRule(_stretched_images),
    moves=True,
)
def broadcast_to(input, *, shape: "ints"):
    """Repeat along axes of size 1 (and new leading axes) up to `shape`; -1 keeps the input's size.

    Shapes: [1, n] -> [m, n].  dtypes: any.  Errors: ValueError if a size is neither 1 nor the wanted one.
    """
    return np.broadcast_to(input, _broadcasted(input.shape, shape))


@broadcast_to.vjp
def broadcast_to(ct, input_shape):
    return unbroadcast(ct, input_shape)


@broadcast_to.samples
def broadcast_to(rand):
    yield rand(1, 3), dict(shape=(2, 3), _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(3, 1), dict(shape=(2, -1, 4))
    yield rand(2, 1, 3, 1), dict(shape=(2, 4, 3, 5))
    yield rand(), dict(shape=(2, 2))
    yield rand(1, 2), dict(shape=(0, 2))
    yield rand(2, 3), dict(shape=(2, 3))


@broadcast_to.batch
def broadcast_to(call):
    (x,) = call.aligned(len(call.out_types[0].shape))
    return (_batch.broadcast_to(x, (call.size, *call.out_types[0].shape)),)


@broadcast_to.layout
def broadcast_to(rewriter, node):
    shape = _layout.nhwc_shape(node.outputs[0].type.shape)
    return rewriter.emit(node.op, [rewriter.aligned(node.inputs[0])], dict(shape=shape), rewriter.types)


def expand(input_x, size):
    """`broadcast_to` under its other name."""
    return broadcast_to(input_x, as_ints(size, "size"))


def expand_as(input, other):
    """`input` broadcast to the shape of `other`."""
    return broadcast_to(input, other.shape)


def shape(input_x):
    """The shape of a tensor, a tuple of ints. Errors: TypeError for anything else."""
    if isinstance(input_x, (list, tuple)):
        raise errors.type_error("shape", f"input_x must be a Tensor, but got {type(input_x).__name__}")
    return input_x.shape


@op(infer=lambda x: TensorType(dtypes.int64, (x.rank,)), nondiff=True, cost=0)
def shape_of(input):
    """The sizes of the axes as a tensor: for shapes that are known only at run time.

    Shapes: rank r -> [r].  dtypes: any -> int64.
    """
    return np.array(input.shape, np.int64)


@shape_of.samples
def shape_of(rand):
    yield rand(2, 3, 4)
    yield rand(0, 5), dict(_dtypes=("bool",))
    yield rand()


@shape_of.batch
def shape_of(call):
    shape = _C.Tensor(list(call.in_types[0].shape), call.out_types[0].dtype)
    return [_batch.broadcast_to(shape, (call.size, *shape.shape))]


def dyn_shape(input_x):
    """The shape of a tensor as an int64 tensor."""
    return shape_of(input_x)


def rank(input_x):
    """The number of axes of a tensor. Errors: TypeError for anything else."""
    if not hasattr(input_x, "asnumpy"):
        raise errors.type_error(f"rank: input_x must be a Tensor, but got {type(input_x).__name__}")
    return input_x.ndim


def size(input_x):
    """The number of elements of a tensor."""
    return input_x.size


def numel(input):
    """The number of elements of a tensor."""
    return input.size


__all__ = [
    "reshape", "view", "view_as", "squeeze", "expand_dims", "unsqueeze", "atleast_1d", "atleast_2d",
    "atleast_3d", "broadcast_to", "expand", "expand_as", "broadcast_shapes", "shape", "rank", "size",
    "numel", "dyn_shape",
]  # fmt: skip
