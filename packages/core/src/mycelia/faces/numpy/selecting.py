"""Functions that pick, compare and place elements, work with sets, and run functions along axes."""

from __future__ import annotations

import math

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.distinct import unique_sorted
from mycelia.engine.ops.arrays.gathering import gather_elements
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.numpy._arguments import (
    as_tensor,
    axes_of,
    common_dtype,
    one_axis,
    only_tensor,
    same_dtype,
    to_dtype,
)


def where(condition, x=None, y=None):
    """Elements of `x` where `condition` is true, of `y` elsewhere.

    Shapes: broadcast.  dtypes: x and y promoted.  Errors: TypeError unless both are given.
    """
    if x is None or y is None:
        raise errors.type_error("where", "x and y must be given")
    condition = _truth(as_tensor("where", condition, "condition"))
    return ops.where(condition, *same_dtype([as_tensor("where", x), as_tensor("where", y, "y")], "where"))


def _truth(x):
    return x if x.dtype.is_bool else ops.not_equal(x, 0)


def argwhere(a):
    """The indices of all elements that are not zero.

    Shapes: any of rank r -> [number, r].  dtypes: any -> int64.  Errors: RuntimeError for rank 0.
    """
    x = as_tensor("argwhere", a, "a")
    if x.ndim == 0:
        raise errors.runtime_error("argwhere", "a must have one axis at least")
    return ops.argwhere(x)


def _in_range(name, indices, size, mode):
    if mode == "clip":
        return ops.clamp(indices, 0, size - 1)
    if mode == "wrap":
        return ops.floor_mod(indices, size)
    if mode == "raise":
        raise errors.error(errors.NotSupportedError, name, "mode 'raise' is not supported")
    raise errors.value_error(name, f"mode must be 'clip' or 'wrap', but got {mode!r}")


def take(a, indices, axis=None, mode="clip"):
    """Elements, or slices along `axis`, at the places `indices`; places out of range are clipped or wrapped.

    Shapes: `indices` in the place of `axis`.  dtypes: indices integer.
    Errors: TypeError unless both are Tensors, NotImplementedError for mode "raise".
    """
    x = only_tensor("take", a, "a")
    places = only_tensor("take", indices, "indices")
    if axis is None:
        x, axis = ops.reshape(x, (-1,)), 0
    axis = one_axis("take", axis, x.ndim)
    return ops.gather(x, _in_range("take", places, x.shape[axis], mode), axis)


def take_along_axis(arr, indices, axis):
    """For each place of `indices` the element of `arr` at that index along `axis`; None flattens first.

    Shapes: as `indices`, broadcast but for `axis`.  dtypes: indices integer.
    Errors: TypeError unless both are Tensors and indices are integers.
    """
    x = only_tensor("take_along_axis", arr, "arr")
    places = only_tensor("take_along_axis", indices, "indices")
    if not places.dtype.is_integer:
        raise errors.type_error("take_along_axis", f"indices must be integers, but are {places.dtype}")
    if axis is None:
        x, places, axis = ops.reshape(x, (-1,)), ops.reshape(places, (-1,)), 0
    axis = one_axis("take_along_axis", axis, x.ndim)
    if places.ndim != x.ndim:
        raise errors.value_error("take_along_axis", f"ranks differ: {x.ndim} and {places.ndim}")
    shape = ops.broadcast_shapes(_without(x.shape, axis), _without(places.shape, axis))
    x = ops.broadcast_to(x, _with(shape, axis, x.shape[axis]))
    places = ops.broadcast_to(places, _with(shape, axis, places.shape[axis]))
    return gather_elements(x, axis, ops.clamp(places, -x.shape[axis], x.shape[axis] - 1))


def _without(shape, axis):
    return _with(shape, axis, 1)


def _with(shape, axis, size):
    return tuple(size if i == axis else n for i, n in enumerate(shape))


def choose(a, choices, mode="clip"):
    """For each element i of `a` the element of ``choices[i]`` at its place.

    Shapes: broadcast.  dtypes: a integer; choices promoted.
    Errors: ValueError for a Tensor of choices of rank 0, NotImplementedError for mode "raise".
    """
    if isinstance(choices, (tuple, list)):
        members = [as_tensor("choose", x, "choices") for x in choices]
    else:
        whole = as_tensor("choose", choices, "choices")
        members = [whole[i] for i in range(whole.shape[0])]
    a = as_tensor("choose", a, "a")
    places = _in_range("choose", a, len(members), mode)
    members = same_dtype(members, "choose")
    shape = ops.broadcast_shapes(a.shape, *(x.shape for x in members))
    if not shape:
        return ops.stack(members, 0)[places]
    members = [ops.broadcast_to(x, shape) for x in members]
    places = ops.expand_dims(ops.broadcast_to(places, shape), 0)
    return ops.squeeze(gather_elements(ops.stack(members, 0), 0, places), 0)


def select(condlist, choicelist, default=0):
    """Of each place the element of the first choice whose condition is true, else `default`.

    Shapes: broadcast.  dtypes: choices promoted; default is brought to theirs.
    Errors: ValueError if there are not as many choices as conditions.
    """
    conditions, choices = (
        [x[i] for i in range(x.shape[0])] if is_tensor(x) else [as_tensor("select", one) for one in x]
        for x in (condlist, choicelist)
    )
    if len(conditions) != len(choices):
        raise errors.value_error("select", f"{len(conditions)} conditions do not fit {len(choices)} choices")
    if not choices:
        return to_dtype(as_tensor("select", default), dtypes.float32)
    dtype = common_dtype("select", choices)
    result = to_dtype(as_tensor("select", default, "default"), dtype)
    for condition, choice in reversed(list(zip(conditions, choices))):
        result = ops.where(_truth(condition), to_dtype(choice, dtype), result)
    return result


def piecewise(x, condlist, funclist, *args, **kw):
    """Of each place what the function or number of the last condition that is true there gives.

    A function gets the whole of `x`, `args` and `kw`; one more than conditions is for all other places.
    Errors: ValueError for another number of functions.
    """
    x = as_tensor("piecewise", x)
    if is_tensor(condlist) or not isinstance(condlist, (list, tuple)):
        condlist = [condlist]
    conditions = [_truth(as_tensor("piecewise", c, "condlist")) for c in condlist]
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        other = conditions[0]
        for one in conditions[1:]:
            other = ops.logical_or(other, one)
        conditions.insert(0, ops.logical_not(other))
        functions.insert(0, functions.pop())
    if len(functions) != len(conditions):
        raise errors.value_error(
            "piecewise", f"{len(conditions)} conditions need {len(conditions)} or one more functions"
        )
    values = [as_tensor("piecewise", f(x, *args, **kw) if callable(f) else f) for f in functions]
    dtype = common_dtype("piecewise", values)
    result = ops.zeros(x.shape, dtype)
    for condition, value in zip(conditions, values):
        result = ops.where(condition, to_dtype(value, dtype), result)
    return result


# ------------------------------------------------------------------------------------------------------ sets


def unique(x, return_inverse=False):
    """The different elements, in the order of their first appearance; and which of them each one is.

    Shapes: n elements -> [number] (, [n]).  dtypes: number -> same (, int32).
    Errors: TypeError unless a Tensor of numbers.
    """
    x = only_tensor("unique", x)
    if x.dtype.is_bool:
        raise errors.type_error("unique", "bools are not taken")
    values, inverse = ops.unique(ops.reshape(x, (-1,)))
    return (values, to_dtype(inverse, dtypes.int32)) if return_inverse else values


def _sorted_set(name, x):
    """Elements in order, each once."""
    return unique_sorted(ops.reshape(x, (-1,)))[0]


def _two(name, ar1, ar2):
    return same_dtype([ops.reshape(as_tensor(name, x), (-1,)) for x in (ar1, ar2)], name)


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The elements that both have, in order; with `return_indices` also where they come first.

    Shapes: any -> [number] (, [number], [number]).  dtypes: promoted (, int32).
    """
    a, b = _two("intersect1d", ar1, ar2)
    values = a if assume_unique else _sorted_set("intersect1d", a)
    values = ops.sort(ops.masked_select(values, _member(values, b)))[0]
    if not return_indices:
        return values
    return values, *(_first_places(values, x) for x in (a, b))


def _first_places(values, x):
    if x.size == 0:  # so there are no values
        return ops.zeros((0,), dtypes.int32)
    same = ops.equal(ops.expand_dims(values, 1), ops.expand_dims(x, 0))
    return ops.argmax(to_dtype(same, dtypes.int32), 1).astype(dtypes.int32)


def _member(a, b):
    """Whether each element of the vector a is in the vector b."""
    return ops.any(ops.equal(ops.expand_dims(a, -1), ops.reshape(b, (-1,))), -1)


def setdiff1d(ar1, ar2, assume_unique=False):
    """The elements of `ar1` that `ar2` has not, in order and once; as they come with `assume_unique`.

    Shapes: any -> [number].  dtypes: promoted.
    """
    a, b = _two("setdiff1d", ar1, ar2)
    values = a if assume_unique else _sorted_set("setdiff1d", a)
    return ops.masked_select(values, ops.logical_not(_member(values, b)))


def isin(element, test_elements, invert=False):
    """Whether each element is one of `test_elements`; the opposite with `invert`.

    Shapes: as `element`.  dtypes: promoted -> bool.
    """
    a, b = same_dtype([as_tensor("isin", element), as_tensor("isin", test_elements)], "isin")
    found = _member(a, b)
    return ops.logical_not(found) if invert else found


def in1d(ar1, ar2, invert=False):
    """`isin` of a vector.  Shapes: n elements -> [n]."""
    return isin(ops.reshape(as_tensor("in1d", ar1), (-1,)), ar2, invert)


# ------------------------------------------------------------------------------------------------- comparing


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether elements are close: ``|a - b| <= atol + rtol * |b|``.

    Shapes: broadcast.  dtypes: both the same -> bool.  Errors: TypeError if dtypes differ.
    """
    a, b = as_tensor("isclose", a, "a"), as_tensor("isclose", b, "b")
    if a.dtype is not b.dtype:
        raise errors.type_error("isclose", f"dtypes differ: {a.dtype} and {b.dtype}")
    return ops.isclose(a, b, rtol, atol, equal_nan)


def array_equal(a1, a2, equal_nan=False):
    """Whether both have one shape and equal elements, as a Tensor of one bool."""
    a, b = same_dtype([as_tensor("array_equal", a1), as_tensor("array_equal", a2)], "array_equal")
    if a.shape != b.shape:
        return constant(False)
    same = ops.equal(a, b)
    if equal_nan and a.dtype.is_floating:
        same = ops.logical_or(same, ops.logical_and(ops.isnan(a), ops.isnan(b)))
    return ops.all(same)


def array_equiv(a1, a2):
    """Whether elements are equal after broadcasting, as a Tensor of one bool; False if shapes do not fit."""
    a, b = same_dtype([as_tensor("array_equiv", a1), as_tensor("array_equiv", a2)], "array_equiv")
    try:
        ops.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return constant(False)
    return ops.all(ops.equal(a, b))


def isscalar(element):
    """Whether `element` is a number of Python or a text."""
    return isinstance(element, (bool, int, float, str))


def array_str(a):
    """The elements as text.  Errors: TypeError unless a Tensor."""
    return str(only_tensor("array_str", a, "a").asnumpy())


# ------------------------------------------------------------------------------------------ places as numbers


def unravel_index(indices, shape, order="C"):
    """The index along each axis of elements that are counted through; counts out of range are clipped.

    Shapes: as `indices`, a Tensor for each axis.  dtypes: as indices.  Errors: ValueError for another order.
    """
    places = as_tensor("unravel_index", indices, "indices")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if order not in ("C", "F"):
        raise errors.value_error("unravel_index", f"order must be 'C' or 'F', but got {order!r}")
    places = ops.clamp(places, -math.prod(sizes), math.prod(sizes) - 1)
    places = ops.where(ops.less(places, 0), places + math.prod(sizes), places)
    found = []
    for n in sizes if order == "F" else reversed(sizes):
        found.append(ops.floor_mod(places, n))
        places = ops.floor_div(places, n)
    return tuple(found if order == "F" else reversed(found))


def ravel_multi_index(multi_index, dims, mode="clip", order="C"):
    """The number of each element, counted through, from its indices along the axes.

    Shapes: [rank, ..] or a Tensor for each axis -> [..].  dtypes: float32.
    Errors: NotImplementedError for mode "raise", ValueError for other modes and orders.
    """
    places = as_tensor("ravel_multi_index", multi_index, "multi_index")
    if order not in ("C", "F"):
        raise errors.value_error("ravel_multi_index", f"order must be 'C' or 'F', but got {order!r}")
    weights = np.cumprod([1, *(dims if order == "F" else dims[::-1])])[:-1]
    weights = weights if order == "F" else weights[::-1]
    total = 0
    for i, (n, weight) in enumerate(zip(dims, weights.tolist())):
        total = total + _in_range("ravel_multi_index", places[i], n, mode) * weight
    return to_dtype(total, dtypes.float32)


# --------------------------------------------------------------------------------------- functions along axes


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """What `func1d` makes of each vector along `axis`, in its place.

    Shapes: `axis` becomes the axes of a result.  Errors: ValueError for an axis out of range.
    """
    x = as_tensor("apply_along_axis", arr, "arr")
    axis = one_axis("apply_along_axis", axis, x.ndim)
    rest = tuple(n for i, n in enumerate(x.shape) if i != axis)
    rows = ops.reshape(ops.moveaxis(x, axis, -1), (-1, x.shape[axis]))
    made = [as_tensor("apply_along_axis", func1d(rows[i], *args, **kwargs)) for i in range(rows.shape[0])]
    whole = ops.reshape(ops.stack(made, 0), rest + tuple(made[0].shape))
    for i in range(made[0].ndim):
        whole = ops.moveaxis(whole, len(rest) + i, axis + i)
    return whole


def apply_over_axes(func, a, axes):
    """`func(a, axis)` for one axis after another; axes that it drops stay with size 1.

    Errors: ValueError if `func` changes the rank in another way.
    """
    x = as_tensor("apply_over_axes", a, "a")
    for axis in axes_of("apply_over_axes", axes, x.ndim):
        result = func(x, axis)
        if result.ndim == x.ndim - 1:
            result = ops.expand_dims(result, axis)
        if result.ndim != x.ndim:
            raise errors.value_error("apply_over_axes", f"func gives shape {result.shape} for {x.shape}")
        x = result
    return x
