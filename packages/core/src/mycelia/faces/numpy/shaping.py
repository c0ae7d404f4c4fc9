"""Functions that order, join, part and repeat axes and elements; they take Tensors only."""

from __future__ import annotations

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.numpy._arguments import (
    an_int,
    as_shape,
    as_tensor,
    axes_of,
    common_dtype,
    one_axis,
    only_tensor,
    to_dtype,
)


def transpose(a, axes=None):
    """`a` with its axes in another order, reversed by default.

    Errors: TypeError unless a Tensor, ValueError unless `axes` names every axis once.
    """
    x = only_tensor("transpose", a, "a")
    if axes is None:
        return ops.transpose(x, tuple(reversed(range(x.ndim))))
    order = axes_of("transpose", axes, x.ndim)
    if len(order) != x.ndim:
        raise errors.value_error("transpose", f"axes must name each of {x.ndim} axes, but got {axes}")
    return ops.transpose(x, order)


def expand_dims(a, axis):
    """`a` with axes of size 1 at the places `axis` of the result."""
    x = only_tensor("expand_dims", a, "a")
    places = (axis,) if isinstance(axis, int) else tuple(axis)
    places = axes_of("expand_dims", places, x.ndim + len(places))
    rest = iter(x.shape)
    return ops.reshape(x, tuple(1 if i in places else next(rest) for i in range(x.ndim + len(places))))


def squeeze(a, axis=None):
    """`a` without axes of size 1: all, or those of `axis` that are."""
    x = only_tensor("squeeze", a, "a")
    dropped = axes_of("squeeze", axis, x.ndim)
    return ops.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in dropped or n != 1))


def swapaxes(x, axis1, axis2):
    """`x` with two axes exchanged."""
    x = only_tensor("swapaxes", x)
    return ops.swapaxes(x, one_axis("swapaxes", axis1, x.ndim), one_axis("swapaxes", axis2, x.ndim))


def rollaxis(x, axis, start=0):
    """`x` with `axis` exchanged with the one at `start`, or the one before it if it lies behind.

    Errors: ValueError for axes out of range.
    """
    x = only_tensor("rollaxis", x)
    axis = one_axis("rollaxis", axis, x.ndim)
    if an_int("rollaxis", start, "start") < -x.ndim or start > x.ndim:
        raise errors.value_error("rollaxis", f"start must be in [{-x.ndim}, {x.ndim}], but got {start}")
    start = start + x.ndim if start < 0 else start
    order = [i for i in range(x.ndim) if i != axis]
    order.insert(start - 1 if start > axis else start, axis)
    return ops.transpose(x, tuple(order))


def moveaxis(a, source, destination):
    """`a` with the axes `source` at the places `destination`; the others keep their order."""
    x = only_tensor("moveaxis", a, "a")
    source, destination = (axes_of("moveaxis", v, x.ndim) for v in (source, destination))
    if len(source) != len(destination):
        raise errors.value_error(
            "moveaxis", f"source {source} and destination {destination} differ in length"
        )
    order = [i for i in range(x.ndim) if i not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return ops.transpose(x, tuple(order))


def reshape(x, new_shape):
    """The elements of `x` under another shape; one size may be -1."""
    return ops.reshape(only_tensor("reshape", x), new_shape)


def ravel(x):
    """All elements of `x` as a vector."""
    return ops.reshape(only_tensor("ravel", x), (-1,))


# ------------------------------------------------------------------------------------------------- joining


def _members(name: str, tensors, parameter: str):
    """A list of Tensors of one dtype; the rows of a Tensor are members."""
    if is_tensor(tensors):
        return [tensors[i] for i in range(tensors.shape[0])]
    if not isinstance(tensors, (tuple, list)):
        raise errors.type_error(
            name, f"{parameter} must be a tuple or list of Tensors, but got {tensors!r:.60}"
        )
    if not tensors:
        raise errors.value_error(name, f"{parameter} must hold a Tensor at least")
    members = [only_tensor(name, x, f"each of {parameter}") for x in tensors]
    dtype = common_dtype(name, members)
    return [to_dtype(x, dtype) for x in members]


def concatenate(arrays, axis=0):
    """Tensors one after another along `axis`; None flattens them first.

    Shapes: equal but for `axis`.  dtypes: promoted.  Errors: ValueError for shapes that do not match.
    """
    if is_tensor(arrays) and axis is not None and arrays.ndim < 2:
        return arrays
    members = _members("concatenate", arrays, "arrays")
    if axis is None:
        return ops.cat([ops.reshape(x, (-1,)) for x in members], 0)
    return ops.cat(members, one_axis("concatenate", axis, members[0].ndim))


def append(arr, values, axis=None):
    """`values` after `arr`, both flattened without `axis`.  Errors: ValueError if shapes do not match."""
    only_tensor("append", arr, "arr"), only_tensor("append", values, "values")
    if axis is not None and arr.ndim != values.ndim:
        raise errors.value_error("append", f"ranks differ: {arr.ndim} and {values.ndim}")
    return concatenate((arr, values), axis)


def stack(arrays, axis=0):
    """Tensors of one shape along a new axis.

    dtypes: promoted.  Errors: ValueError if shapes differ.
    """
    if is_tensor(arrays):
        return ops.moveaxis(arrays, 0, one_axis("stack", axis, arrays.ndim))
    members = _members("stack", arrays, "arrays")
    rank = members[0].ndim + 1
    return ops.stack(members, axis % rank if isinstance(axis, int) else one_axis("stack", axis, rank))


def vstack(tup):
    """Tensors below one another; vectors are rows."""
    members = _members("vstack", tup, "tup")
    return ops.cat([ops.reshape(x, (1, -1)) if x.ndim < 2 else x for x in members], 0)


def hstack(tup):
    """Tensors side by side: along the second axis, vectors along their only one."""
    members = [ops.reshape(x, (1,)) if x.ndim == 0 else x for x in _members("hstack", tup, "tup")]
    return ops.cat(members, 0 if members[0].ndim == 1 else 1)


def dstack(tup):
    """Tensors behind one another: along the third axis."""
    return ops.cat([_third(x) for x in _members("dstack", tup, "tup")], 2)


def column_stack(tup):
    """Vectors and matrices as columns of one matrix."""
    members = _members("column_stack", tup, "tup")
    return ops.cat([ops.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in members], 1)


def _third(x):
    if x.ndim < 2:
        return ops.reshape(x, (1, -1, 1))
    return ops.expand_dims(x, -1) if x.ndim == 2 else x


def _first(x):
    return ops.reshape(x, (1,)) if x.ndim == 0 else x


def _second(x):
    return ops.reshape(x, (1, -1)) if x.ndim < 2 else x


def _at_least(rank: int, function):
    name = f"atleast_{rank}d"

    def atleast(*arys):
        made = [function(only_tensor(name, x, "arys")) for x in arys]
        return made[0] if len(made) == 1 else made

    atleast.__name__ = atleast.__qualname__ = name
    atleast.__doc__ = f"""Tensors of rank {rank} at least; a list if there are several.

    Errors: TypeError unless all are Tensors.
    """
    return atleast


atleast_1d, atleast_2d, atleast_3d = _at_least(1, _first), _at_least(2, _second), _at_least(3, _third)


# ------------------------------------------------------------------------------------------------- parting


def _cuts(name, x, sections, axis):
    """The parts of `x` between the indices `sections`; each index lies in the axis, and they grow."""
    n, before = x.shape[axis], 0
    parts = []
    for cut in (*sections, n):
        cut = cut + n if cut < 0 else cut
        if not before <= cut <= n:
            raise errors.value_error(name, f"indices {sections} do not part an axis of size {n}")
        parts.append(ops.narrow(x, axis, before, cut - before))
        before = cut
    return parts


def _parted(name, x, indices_or_sections, axis, exact):
    x = only_tensor(name, x)
    axis = one_axis(name, axis, x.ndim)
    if isinstance(indices_or_sections, (tuple, list)):
        return _cuts(name, x, indices_or_sections, axis)
    n, count = x.shape[axis], an_int(name, indices_or_sections, "indices_or_sections")
    if count < 1 or count > n or exact and n % count:
        raise errors.value_error(name, f"an axis of size {n} cannot be split in {count} parts")
    ends, end = [], 0
    for i in range(1, count):
        end = end + (n + count - i) // count
        ends.append(end)
    return tuple(_cuts(name, x, ends, axis))


def split(x, indices_or_sections, axis=0):
    """Equal parts of `x` along `axis`, or what lies between indices.

    Shapes: a tuple of parts; for indices a list.  Errors: ValueError if there are no equal parts.
    """
    return _parted("split", x, indices_or_sections, axis, True)


def array_split(x, indices_or_sections, axis=0):
    """As `split`; the first parts are longer by one if there are no equal parts."""
    return _parted("array_split", x, indices_or_sections, axis, False)


def hsplit(x, indices_or_sections):
    """`split` along the second axis."""
    return _parted("hsplit", x, indices_or_sections, 1, True)


def vsplit(x, indices_or_sections):
    """`split` along the first axis."""
    return _parted("vsplit", x, indices_or_sections, 0, True)


def dsplit(x, indices_or_sections):
    """`split` along the third axis."""
    return _parted("dsplit", x, indices_or_sections, 2, True)


# -------------------------------------------------------------------------------------- turning and repeating


def flip(m, axis=None):
    """`m` backwards along `axis`, or along all."""
    x = only_tensor("flip", m, "m")
    return ops.flip(x, axes_of("flip", axis, x.ndim))


def flipud(m):
    """`m` backwards along its first axis."""
    return flip(m, 0)


def fliplr(m):
    """`m` backwards along its second axis."""
    return flip(m, 1)


def rot90(a, k=1, axes=(0, 1)):
    """`a` turned `k` times by a quarter in the plane of `axes`, from the first towards the second."""
    x = only_tensor("rot90", a, "a")
    axes = axes_of("rot90", axes, x.ndim)
    if len(axes) != 2:
        raise errors.value_error("rot90", f"axes must name two axes, but got {axes}")
    return ops.rot90(x, an_int("rot90", k, "k"), axes)


def roll(a, shift, axis=None):
    """`a` moved by `shift` along `axis`; what leaves one end enters at the other; None: as a vector."""
    x = only_tensor("roll", a, "a")
    if axis is None:
        flat = ops.reshape(x, (-1,))
        total = sum(shift) if isinstance(shift, (tuple, list)) else shift
        return ops.reshape(ops.roll(flat, total, 0), x.shape)
    shifts, axes = (v.reshape(-1).tolist() for v in np.broadcast_arrays(shift, axis))
    for step, one in zip(shifts, axes):
        x = ops.roll(x, step, one_axis("roll", one, x.ndim))
    return x


def tile(a, reps):
    """`a` repeated `reps` times along each axis.  Errors: TypeError unless a Tensor."""
    x = only_tensor("tile", a, "a")
    reps = as_shape("tile", reps)
    return ops.tile(x, reps) if reps else x


def repeat(a, repeats, axis=None):
    """Each element of `a` `repeats` times, or its own number of times; None flattens first.

    Errors: ValueError for negative numbers and another count than elements, TypeError for 0.
    """
    x = as_tensor("repeat", a, "a")
    if is_tensor(repeats):
        repeats = repeats.asnumpy().tolist()
    counts = tuple(repeats) if isinstance(repeats, (tuple, list)) else (repeats,)
    if any(n < 0 for n in counts):
        raise errors.value_error("repeat", f"repeats cannot be negative, but got {repeats}")
    if counts == (0,):
        raise errors.type_error("repeat", "repeats must be positive")
    if axis is None:
        x, axis = ops.reshape(x, (-1,)), 0
    axis = one_axis("repeat", axis, x.ndim)
    n = x.shape[axis]
    if len(counts) not in (1, n):
        raise errors.value_error("repeat", f"repeats {repeats} must have a number for each of {n} elements")
    if len(counts) == 1:
        return ops.gather(x, ops.arange(n * counts[0]) // counts[0], axis)
    return ops.gather(x, constant(np.repeat(np.arange(n), counts), dtypes.int64), axis)


def broadcast_to(array, shape):
    """`array` under a shape in which axes of size 1 repeat.  Errors: ValueError if it cannot."""
    return ops.broadcast_to(only_tensor("broadcast_to", array, "array"), as_shape("broadcast_to", shape))


def broadcast_arrays(*args):
    """All Tensors under their common shape, as a list.  Errors: ValueError if there is none."""
    shapes = [only_tensor("broadcast_arrays", x, "args").shape for x in args]
    shape = ops.broadcast_shapes(*shapes)
    return [ops.broadcast_to(x, shape) for x in args]


def size(a, axis=None):
    """The number of elements, of all or along `axis`, as an int."""
    x = as_tensor("size", a, "a")
    return int(x.size) if axis is None else x.shape[one_axis("size", axis, x.ndim)]
