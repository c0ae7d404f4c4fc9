"""``x[key]`` and ``x[key] = value`` with NumPy's rules, as a plan over differentiable ops.

A key is read once into a `_Selection`: a basic part (one strided slice that also drops and inserts axes) and
an
advanced part (index tensors on axes of what the slice gives). The advanced part becomes one `gather` along
one axis:
neighbouring indexed axes are merged by a reshape, others are first brought to the front by a transpose.
An assignment runs the same plan backwards, on the value as it was before: overlapping assignments give what
they say.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.sizes import exact, is_open
from mycelia.engine.ir.symint import SymInt, applied
from mycelia.engine.ops.arrays.axes import transpose
from mycelia.engine.ops.arrays.gathering import gather
from mycelia.engine.ops.arrays.index import _linear_index
from mycelia.engine.ops.arrays.joining import unstack
from mycelia.engine.ops.arrays.masks import _flat_nonzero, _masked_fill
from mycelia.engine.ops.arrays.row_updates import _index_copy
from mycelia.engine.ops.arrays.shape import broadcast_to, constant, reshape
from mycelia.engine.ops.arrays.slicing import _strided_assign, _strided_slice, _strided_write
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.methods.properties import SharedTensor
from mycelia.engine.tensors.attach import attach

_Tensor = _C.Tensor


@dataclass(slots=True)
class _Selection:
    """A key read against a shape. The slice is given per axis of the source, `arrays` per axis of its
    result."""

    begin: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    shape: list[int] = field(
        default_factory=list
    )  # of the sliced tensor: without dropped axes, with new ones
    origin: list[int | None] = field(
        default_factory=list
    )  # source axis of each of its axes; None = a new one
    arrays: list[_Array] = field(default_factory=list)
    in_front: bool = False  # the indexed axes are not neighbours in the key: they come first in the result


@dataclass(slots=True)
class _Array:
    """One index tensor: `index` picks along `count` axes (merged into one if a mask names several) from
    `axis` on."""

    axis: int
    count: int
    index: _Tensor
    mask: _Tensor | None = None


def getitem(x: _Tensor, key):
    """``x[key]``: a new Tensor. Errors: IndexError for positions out of range, too many indices, unusable
    keys."""
    shape = x.shape
    place = _first_axis(shape, key)  # the most frequent keys, decided without reading them in full
    if place is not None:
        begin, size, stride = place
        return _strided_slice(x, begin, size, stride, size if type(key) is slice else shape[1:])
    if type(key) is tuple:
        place = _remembered(shape, key)
        if place is not None:
            return _strided_slice(x, *place)
    elif isinstance(key, _Tensor) and shape and key.dtype.is_integer:
        return gather(x, key, 0)
    selection = _read(shape, key)
    part = _slice(x, selection)
    return _pick(part, selection) if selection.arrays else part


def setitem(x: _Tensor, key, value) -> None:
    """``x[key] = value``: `value` is cast to the dtype of x and broadcast. Gradients flow to both.

    Errors: IndexError as for reading, ValueError if the value's shape does not broadcast to the selection.
    """
    if type(x) is SharedTensor:
        setitem(x._owner, key, value)
        _Tensor._assign(x, x._owner._detach())
        return
    value = _value_for(x, value)
    is_number = not isinstance(value, _Tensor)
    place = _first_axis(x.shape, key)
    if place is not None:
        if not is_number:
            value = _fitted(value, place[1] if type(key) is slice else x.shape[1:])
    else:
        selection = _read(x.shape, key)
        if selection.arrays:
            x._assign(_put(x, selection, constant(value, x.dtype) if is_number else value))
            return
        place = (tuple(selection.begin), tuple(selection.size), tuple(selection.stride))
        if not is_number:
            value = _fitted(value, tuple(selection.shape))
            value = reshape(value, _shape_in_source(value.shape, selection, x.ndim))
    if _is_plain(x) and (is_number or (value is not x and _is_plain(value))):
        _strided_write(
            x, value, *place
        )  # touches only the selection, unless another tensor shares the memory
    else:
        x._assign(_strided_assign(x, value, *place))


def _is_plain(x):
    """Whether neither a gradient nor a graph follows this tensor."""
    return x._node is None and x.traced is None


def iterate(x: _Tensor):
    """``iter(x)``: the slices along the first axis."""
    if not x.ndim:
        raise TypeError("Cannot iterate over a scalar tensor.")
    return iter(unstack(x, 0))


# ----------------------------------------------------------------------------------------- reading a key


def _first_axis(shape, key):
    """(begin, size, stride) for a key that is one int or one slice; None for all others."""
    kind = type(key)
    if (kind is int or kind is SymInt) and shape:
        n = shape[0]
        if not is_open(n) and not -n <= key < n:
            raise _out_of_bounds(key, 0, shape)
        rest = shape[1:]
        return (key + n if key < 0 else key, *(0,) * len(rest)), (1, *rest), (1,) * len(shape)
    if kind is slice and shape:
        begin, size, stride = _range(key, 0, shape)
        rest = shape[1:]
        return (begin, *(0,) * len(rest)), (size, *rest), (stride, *(1,) * len(rest))
    return None


_plans: dict[tuple, tuple] = {}  # basic tuple keys by shape: reading one takes longer than running it
_MAX_PLANS = 4096


def _remembered(shape, key):
    """(begin, size, stride, shape of the result) of a tuple of ints, slices, None and Ellipsis; None for all
    others."""
    if SymInt in map(type, shape):
        return None
    parts = []
    for k in key:
        kind = type(k)
        if kind is slice:
            limits = (k.start, k.stop, k.step)
            for limit in limits:
                if limit is not None and type(limit) is not int:
                    return None
            parts.append(limits)
        elif kind is int or k is None or k is Ellipsis:
            parts.append(k)
        else:
            return None
    parts = (shape, tuple(parts))
    found = _plans.get(parts)
    if found is None:
        s = _read(shape, key)
        found = tuple(s.begin), tuple(s.size), tuple(s.stride), tuple(s.shape)
        if len(_plans) >= _MAX_PLANS:
            _plans.clear()
        _plans[parts] = found
    return found


def _read(shape: tuple[int, ...], key) -> _Selection:
    if type(key) is list and len({v.shape if isinstance(v, _Tensor) else () for v in key}) > 1:
        key = tuple(key)  # Tensors of several shapes, or with numbers, are no one array
    items = [_classify(k) for k in (key if type(key) is tuple else (key,))]
    used = sum(consumed for _, _, consumed in items)
    if used > len(shape):
        raise IndexError(
            f"too many indices: the tensor has {len(shape)} axes of shape {shape}, but {used} were indexed"
        )
    dots = [i for i, (what, _, _) in enumerate(items) if what == "ellipsis"]
    if len(dots) > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    if not dots:
        items.append(("ellipsis", None, 0))
    result = _Selection()
    has_arrays = any(what in ("array", "mask", "flag") for what, _, _ in items)
    indexed = []  # for each item in order: does it take part in advanced indexing?
    axis = 0
    for what, k, consumed in items:
        if what == "ellipsis":
            # One that the key does not name stands behind everything and separates nothing.
            for _ in range(len(shape) - used):
                _keep(result, axis, 0, shape[axis], 1)
                axis += 1
            if dots:
                indexed.append(False)
            continue
        if what == "new":
            result.shape.append(1)
            result.origin.append(None)
        elif what == "int":
            n = shape[axis]
            if not is_open(n) and not -n <= k < n:
                raise _out_of_bounds(k, axis, shape)
            result.begin.append(k + n if k < 0 else k)
            result.size.append(1)
            result.stride.append(1)
        elif what == "slice":
            _keep(result, axis, *_range(k, axis, shape))
        elif what == "flag":  # True or False: a new axis, of which the flag picks its only element or nothing
            result.arrays.append(_Array(len(result.shape), 1, constant(np.zeros(int(k), np.int64))))
            result.shape.append(1)
            result.origin.append(None)
        else:
            if what == "mask" and tuple(k.shape) != shape[axis : axis + consumed]:
                raise IndexError(
                    f"a mask of shape {k.shape} does not match the axes {axis} to {axis + consumed - 1} "
                    f"of a tensor of shape {shape}"
                )
            mask = k if what == "mask" else None
            result.arrays.append(_Array(len(result.shape), consumed, k, mask))
            for i in range(axis, axis + consumed):
                _keep(result, i, 0, shape[i], 1)
        indexed.append(what in ("array", "mask", "flag", "int") if has_arrays else False)
        axis += consumed
    if has_arrays:
        first, last = indexed.index(True), len(indexed) - indexed[::-1].index(True)
        result.in_front = not all(indexed[first:last])
    return result


def _keep(result, axis, begin, size, stride):
    result.begin.append(begin)
    result.size.append(size)
    result.stride.append(stride)
    result.shape.append(size)
    result.origin.append(axis)


class SliceLimit(errors.MyceliaIndexError, TypeError):
    """A limit of a slice is no integer: a TypeError in Python and in graphs, a RuntimeError in MindSpore."""


def _classify(k):
    """(what it is, the value to use, number of axes that it consumes)."""
    kind = type(k)
    if kind is int or kind is SymInt:
        return "int", k, 1
    if kind is slice:
        return "slice", k, 1
    if k is None:
        return "new", None, 0
    if k is Ellipsis:
        return "ellipsis", None, 0
    if isinstance(k, (bool, np.bool_)):
        return "flag", bool(k), 0
    if isinstance(k, _Tensor):
        if k.dtype.is_bool:
            return ("flag", bool(k), 0) if k.ndim == 0 else ("mask", k, k.ndim)
        if k.dtype.is_integer:
            return "array", k, 1
        raise IndexError(f"a tensor index must be of integer or bool type, but got {k.dtype}")
    if isinstance(k, (list, range, np.ndarray)):
        return _classify_array(k)
    if hasattr(k, "__index__"):
        return "int", k if is_open(k) else k.__index__(), 1
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None, bool, tensors, lists and arrays of integers "
        f"or bools can be an index, but got {k!r} of type {kind.__name__}"
    )


def _classify_array(k):
    if isinstance(k, list):
        k = [v.asnumpy() if isinstance(v, _Tensor) else v for v in k]
    try:
        array = np.asarray(k)
    except ValueError:
        raise IndexError(f"a list index must be regular, but got {k!r}") from None
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)  # NumPy makes [] floating
    if array.dtype.kind == "b":
        return ("flag", bool(array), 0) if array.ndim == 0 else ("mask", constant(array), array.ndim)
    if array.dtype.kind not in "iu":
        raise IndexError(f"an index array must hold integers or bools, but got {array.dtype} from {k!r}")
    if array.ndim == 0:
        return "int", int(array), 1
    return "array", constant(array, dtypes.int64), 1


def _range(k: slice, axis: int, shape: tuple[int, ...]):
    n = shape[axis]
    if n < 0:
        if k == slice(None):
            return 0, n, 1
        raise IndexError(f"axis {axis} has a size that is known only at run time: it cannot be sliced by {k}")
    if is_open(n) and k.step in (None, 1):
        start, stop = _open_limit(k.start, n, 0), _open_limit(k.stop, n, n)
        return start, applied(max, stop - start, 0), 1
    if SymInt in map(type, (n, k.start, k.stop)) and _is_step(k.step):
        return _open_range(k, n)
    try:
        start, stop, step = k.indices(n)
    except ValueError:
        raise ValueError(f"the step of slice {k} on axis {axis} cannot be 0") from None
    except TypeError:
        text = f"the limits of a slice must be integers or None, but got {k} on axis {axis}"
        raise errors.error(SliceLimit, "Tensor index", text) from None
    size = len(range(start, stop, step))
    return (start if size else 0), size, step


def _is_step(step):
    return step is None or (type(step) is int and step != 0)


def _open_range(k: slice, n):
    """(begin, size, step) where a limit of the slice or the size `n` differs from call to call."""
    step = 1 if k.step is None else k.step
    if step > 0:
        start, stop = _limit(k.start, n, 0, 0, n), _limit(k.stop, n, n, 0, n)
        return (start, (stop - start + step - 1) // step, step) if start < stop else (0, 0, step)
    start, stop = _limit(k.start, n, n - 1, -1, n - 1), _limit(k.stop, n, -1, -1, n - 1)
    return (start, (start - stop - step - 1) // -step, step) if stop < start else (0, 0, step)


def _limit(limit, n, default, low, high):
    """One end of a slice of an axis of size `n`, as `slice.indices` gives it: between `low` and `high`."""
    if limit is None:
        return default
    limit = exact(limit)
    if limit < 0:
        limit = limit + n
        return limit if limit > low else low
    return limit if limit < high else high


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


def _out_of_bounds(index: int, axis: int, shape: tuple[int, ...]) -> IndexError:
    return IndexError(
        f"index {index} is out of bounds for axis {axis} with size {shape[axis]} of a tensor of shape {shape}"
    )


# ------------------------------------------------------------------------------------------- reading


def _slice(x, selection):
    shape = tuple(selection.shape)
    if tuple(selection.size) == x.shape and all(s == 1 for s in selection.stride):
        return x if shape == x.shape and selection.arrays else reshape(x, shape)
    return _strided_slice(x, tuple(selection.begin), tuple(selection.size), tuple(selection.stride), shape)


@dataclass(slots=True)
class _Layout:
    """How the indexed axes of a sliced tensor become one axis: transpose by `order`, reshape to `merged`."""

    order: tuple[int, ...] | None  # None: they are neighbours already
    sizes: tuple[int, ...]  # after the transpose
    axis: int
    merged: tuple[int, ...]
    index: _Tensor


def _layout(part, selection) -> _Layout:
    axes = [a for array in selection.arrays for a in range(array.axis, array.axis + array.count)]
    shape = part.shape
    order = None
    if axes != list(range(axes[0], axes[0] + len(axes))):
        order = (*axes, *(a for a in range(len(shape)) if a not in axes))
        shape = tuple(shape[a] for a in order)
    first = axes[0] if order is None else 0
    after = first + len(axes)
    extents = [math.prod(part.shape[a.axis : a.axis + a.count]) for a in selection.arrays]
    picks = [a.index if a.mask is None else _flat_nonzero(a.mask) for a in selection.arrays]
    try:
        index = picks[0] if len(picks) == 1 else _linear_index(picks, extents)
    except IndexError:
        raise
    except ValueError:
        shapes = ", ".join(str(p.shape) for p in picks)
        raise IndexError(f"index tensors of shapes {shapes} cannot be broadcast together") from None
    return _Layout(order, shape, first, (*shape[:first], math.prod(extents), *shape[after:]), index)


def _pick(part, selection):
    layout = _layout(part, selection)
    if layout.order is not None:
        part = transpose(part, layout.order)
    if part.shape != layout.merged:
        part = reshape(part, layout.merged)
    picked = gather(part, layout.index, layout.axis)
    rank = layout.index.ndim
    if not selection.in_front or layout.axis == 0 or rank == 0:
        return picked
    moved = range(layout.axis, layout.axis + rank)
    return transpose(picked, (*moved, *(a for a in range(picked.ndim) if a not in moved)))


# ------------------------------------------------------------------------------------------- writing


def _value_for(x, value):
    """`value` as a Tensor of the dtype of x, or as a Python number that x's dtype takes."""
    kind = type(value)
    if kind is float and not (x.dtype.is_floating or x.dtype.is_complex):
        return bool(value) if x.dtype.is_bool else int(value)  # cut off; an error of its own for inf and nan
    if kind is float or kind is int or kind is bool:
        return value
    if isinstance(value, _Tensor):
        return value if value.dtype is x.dtype else cast(value, x.dtype)
    if isinstance(value, (np.ndarray, np.generic)):
        return constant(value, x.dtype)
    if isinstance(value, (list, tuple)):
        return constant(np.asarray([v.asnumpy() if isinstance(v, _Tensor) else v for v in value]), x.dtype)
    raise TypeError(
        f"the value to assign must be a tensor, a number, a list or an array, but got {kind.__name__}"
    )


def _fitted(value, shape):
    """`value` without surplus leading axes of size 1; ValueError if it does not broadcast to `shape`."""
    surplus = value.ndim - len(shape)
    if surplus > 0 and all(n == 1 for n in value.shape[:surplus]):
        value = reshape(value, value.shape[surplus:])
    lead = len(shape) - value.ndim
    if lead < 0 or any(m not in (1, n) for m, n in zip(value.shape, shape[lead:])):
        raise ValueError(
            f"a value of shape {value.shape} cannot be broadcast to the selection of shape {shape}"
        )
    return value


def _shape_in_source(shape, selection, rank):
    """`shape`, which broadcasts to the selection, with an entry for each axis of the source."""
    sizes = [1] * rank
    for n, axis in zip(reversed(shape), reversed(selection.origin)):
        if axis is not None:
            sizes[axis] = n
    return tuple(sizes)


def _put(x, selection, value):
    """`x` with `value` at the places of an advanced selection."""
    if (
        value.size == 1
        and len(selection.arrays) == 1
        and selection.arrays[0].mask is not None
        and _is_whole(x, selection)
    ):
        array = selection.arrays[0]
        below = x.ndim - array.axis - array.count
        return _masked_fill(x, reshape(array.mask, (*array.mask.shape, *(1,) * below)), reshape(value, ()))
    part = _slice(x, selection)
    layout = _layout(part, selection)
    picked = (*layout.merged[: layout.axis], *layout.index.shape, *layout.merged[layout.axis + 1 :])
    value = _spread(value, picked, selection, layout)
    count = math.prod(layout.index.shape)
    value = reshape(value, (*layout.merged[: layout.axis], count, *layout.merged[layout.axis + 1 :]))
    flat = part if layout.order is None else transpose(part, layout.order)
    flat = _index_copy(reshape(flat, layout.merged), reshape(layout.index, (count,)), value, layout.axis)
    new = reshape(flat, layout.sizes)
    if layout.order is not None:
        new = transpose(new, tuple(np.argsort(layout.order)))
    if part is x:
        return new
    begin, size, stride = tuple(selection.begin), tuple(selection.size), tuple(selection.stride)
    return _strided_assign(x, reshape(new, size), begin, size, stride)


def _is_whole(x, selection):
    return (
        tuple(selection.shape) == x.shape
        and tuple(selection.size) == x.shape
        and all(s == 1 for s in selection.stride)
    )


def _spread(value, picked, selection, layout):
    """`value` broadcast to the result of reading, with the indexed axes back where the merged axis is."""
    rank, axis = layout.index.ndim, layout.axis
    if not selection.in_front or axis == 0 or rank == 0:
        return broadcast_to(_fitted(value, picked), picked)
    result = (*layout.index.shape, *picked[:axis], *picked[axis + rank :])
    value = broadcast_to(_fitted(value, result), result)
    return transpose(value, (*range(rank, rank + axis), *range(rank), *range(rank + axis, len(result))))


attach("__iter__", iterate)
_C.set_hook("getitem", getitem)
_C.set_hook("setitem", setitem)
