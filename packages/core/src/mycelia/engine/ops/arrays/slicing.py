"""Parts of a tensor: slices with steps, and their places in a new tensor or in place."""

import builtins
import math
import operator

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.sizes import exact, is_open
from mycelia.engine.ir.symint import SymInt, applied
from mycelia.engine.ir.types import UNKNOWN
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops import part_rules as _parts
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.shape import as_ints, constant, positive_axis, reshape, shaped_by
from mycelia.engine.ops.define import find, op
from mycelia.engine.ops.infer import broadcast_shapes, unbroadcast


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
        if any(v.__class__ is not int for v in (n, b, count, step)) or UNKNOWN in shape:
            continue
        if (step == 1 and 0 <= b and 0 <= count and b + count <= n) or count == 0:
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


@_strided_slice.parts
def _strided_slice(node):
    """Axes that are taken whole are divided as they were."""
    given, size, stride = node.inputs[0].type.shape, node.attrs["size"], node.attrs["stride"]
    cut = {i for i, n in enumerate(given) if size[i] != n or stride[i] != 1}
    before, after, sizes = _parts.regrouped(size, node.outputs[0].type.shape)
    labels = {label for i in cut for label in before[i]}
    before = tuple(() if i in cut else axis for i, axis in enumerate(before))
    after = tuple(tuple(label for label in axis if label not in labels) for axis in after)

    def attrs(division):
        part = division.mesh.shape(size, division.placed(before))
        return dict(size=part, shape=division.shape())

    return _parts.PartRule([before], [after], sizes=sizes, attrs=attrs)


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


@_strided_place.parts
def _strided_place(node):
    given, shape = node.inputs[0].type.shape, node.outputs[0].type.shape
    cut = {i for i, n in enumerate(shape) if given[i] != n or node.attrs["stride"][i] != 1}
    axes = _parts.numbered(len(shape), cut)
    return _parts.PartRule([axes], [axes], attrs=lambda division: dict(shape=division.shape()))


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
    if is_open(n) and step in (None, 1):
        start, stop = _open_limit(start, n, 0), _open_limit(stop, n, n)
        return start, applied(max, stop - start, 0), 1
    if SymInt in map(type, (n, start, stop)) and (step is None or (type(step) is int and step != 0)):
        return _open_range(start, stop, 1 if step is None else step, n)
    places = range(*builtins.slice(start, stop, step).indices(n))
    size = len(places)
    return (places.start if size else 0), size, places.step


def _open_range(start, stop, step, n):
    """`slice_axis` where a limit of the slice or the size `n` differs from call to call."""
    if step > 0:
        start, stop = _limit(start, n, 0, 0, n), _limit(stop, n, n, 0, n)
        return (start, (stop - start + step - 1) // step, step) if start < stop else (0, 0, step)
    start, stop = _limit(start, n, n - 1, -1, n - 1), _limit(stop, n, -1, -1, n - 1)
    return (start, (start - stop - step - 1) // -step, step) if stop < start else (0, 0, step)


def _limit(limit, n, default, low, high):
    """One end of a slice of an axis of size `n`, as `slice.indices` gives it: between `low` and `high`."""
    if limit is None:
        return default
    limit = exact(limit)
    if limit < 0:
        limit = limit + n
        return limit if limit >= low else low
    return limit if limit <= high else high


def _open_limit(limit, n, default):
    """`_limit` of an axis whose size only the finished graph knows, as a formula."""
    if limit is None:
        return default
    limit = exact(limit)
    if limit < 0:
        return applied(max, limit + n, 0)
    # One row is taken to be there: a slice of an empty axis is empty in any case.
    within = n.table.decided(operator.le, n._partner(limit), n, least=1)
    return limit if within else applied(min, limit, n)


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
    begin, size, stride = [0] * input.ndim, list(input.shape), [1] * input.ndim
    begin[axis], size[axis] = index + n if index < 0 else index, 1
    return _strided_assign(input, reshape(src, size), begin, size, stride)


def slice_scatter(input, src, axis=0, start=None, end=None, step=1):
    """`input` with `src` in place of its part ``start:end:step`` along `axis`.

    Errors: TypeError unless both are Tensors, ValueError if `src` does not have the shape of the part.
    """
    _check_tensors("slice_scatter", input, src)
    begin, part, stride = _axis_slice(input, positive_axis(axis, input.ndim), start, end, step)
    if tuple(src.shape) != part:
        raise errors.value_error(f"slice_scatter: src must have shape {part}, but it is {tuple(src.shape)}")
    return _strided_assign(input, src, begin, part, stride)


__all__ = ["strided_slice", "narrow", "slice", "select_scatter", "slice_scatter"]
