"""``x[key]`` and ``x[key] = value`` with NumPy's rules, as a plan over differentiable ops.

A key is read once (`index_keys`) into a basic part, one strided slice that also drops and inserts axes, and
an advanced part, index tensors on axes of what the slice gives. The advanced part becomes one `gather` along
one axis: neighbouring indexed axes are merged by a reshape, others are first brought to the front by a
transpose. An assignment runs the same plan backwards, on the value as it was before: overlapping assignments
give what they say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mycelia.engine import _C
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
from mycelia.engine.tensors.index_keys import _first_axis, _is_plain, _read, _remembered, _Tensor


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


def iterate(x: _Tensor):
    """``iter(x)``: the slices along the first axis."""
    if not x.ndim:
        raise TypeError("Cannot iterate over a scalar tensor.")
    return iter(unstack(x, 0))


def _slice(x, selection):
    shape = tuple(selection.shape)
    # An open size beside a number: no part of the whole axis, whatever the size is in the end.
    whole = all(type(n) is type(m) and n == m for n, m in zip(selection.size, x.shape))
    if whole and all(s == 1 for s in selection.stride):
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
