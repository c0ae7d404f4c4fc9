"""Ops that write by position: scatter along an axis, by rows of positions, by slices;
copying and in-place forms.

Where a position is named twice, adding forms add both; replacing forms keep the last in row-major order.
"""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays.gathering import _gather_d, gather_nd
from mycelia.engine.ops.arrays.index import _grid, check_index_dtype, is_tensor, positions_nd, wrapped
from mycelia.engine.ops.arrays.masks import _where
from mycelia.engine.ops.arrays.shape import broadcast_to, constant, expand_dims, positive_axis
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise.cast import cast

_REDUCTIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}


def _write(target, where, values, reduction):
    """Body of all scatter ops: combine `values` into `target` at the positions `where`, in place."""
    if reduction == "update":
        target[where] = values
    elif reduction == "div" and target.dtype.kind in "iu":
        np.floor_divide.at(target, where, values)
    else:
        _REDUCTIONS[reduction].at(target, where, values)
    return target


def _same_dtype(x, updates, name="updates"):
    if updates.dtype is not x.dtype:
        raise errors.type_error(
            f"{name} must have the input's dtype {x.dtype.name}, but got {updates.dtype.name}"
        )


def _shares(ct, x, updates, out, picked, keep, reduction):
    """Cotangents of the scattered-into tensor and of the updates.

    `picked(t)` reads t at the written positions, `keep(t, u)` writes u there. Exact where no position
    is named twice; for max and min a tie gives the whole cotangent to both, as in MindSpore.
    """
    if reduction == "add":
        return ct, picked(ct)
    if reduction == "sub":
        return ct, -picked(ct)
    if reduction == "mul":
        return keep(ct, updates, "mul"), picked(ct) * picked(x)
    if reduction == "div":
        return keep(ct, updates, "div"), -picked(ct) * picked(x) / (updates * updates)
    zero = constant(0, ct.dtype)
    return _where(x == out, ct, zero), _where(picked(out) == updates, picked(ct), zero)


def _scattered_nd(x, indices, updates):
    check_index_dtype(indices, "indices")
    _same_dtype(x, updates)
    depth = indices.shape[-1] if indices.rank else 0
    if not 0 < depth <= x.rank:
        raise ValueError(
            f"the last axis of indices {indices.shape} must be in [1, {x.rank}] for an input of {x.shape}"
        )
    if updates.shape != indices.shape[:-1] + x.shape[depth:]:
        wanted = indices.shape[:-1] + x.shape[depth:]
        raise ValueError(
            f"updates must have shape {wanted} for indices {indices.shape}, but got {updates.shape}"
        )
    return x


@op(infer=lambda input_x, indices, updates, reduction: _scattered_nd(input_x, indices, updates))
def _tensor_scatter(input_x, indices, updates, *, reduction: "update|add|sub|mul|div|max|min" = "update"):
    """`input_x` with `updates` combined into the slices named by the rows of `indices`.

    Shapes: x [n1, .., nk, R..], indices [I.., k], updates [I.., R..] -> shape of x.
    dtypes: numbers, integer indices.
    Errors: IndexError for an index out of range.
    """
    return _write(input_x.copy(), positions_nd(indices, input_x.shape, "tensor_scatter"), updates, reduction)


@_tensor_scatter.vjp
def _tensor_scatter(ct, input_x, indices, updates, out, *, reduction):
    if reduction == "update":
        return _tensor_scatter(ct, indices, _zeros_like(updates), "update"), None, gather_nd(ct, indices)
    kept, given = _shares(
        ct,
        input_x,
        updates,
        out,
        picked=lambda x: gather_nd(x, indices),
        keep=lambda x, u, how: _tensor_scatter(x, indices, u, how),
        reduction=reduction,
    )
    return kept, None, given


def _zeros_like(x):
    from mycelia.engine.ops.arrays.create import zeros

    return zeros(x.shape, x.dtype)


def _distinct_rows(rand, shape, count):
    """`count` different positions in `shape`, as rows."""
    order = np.argsort(np.asarray(rand(int(np.prod(shape)))).ravel())[:count]
    return np.stack(np.unravel_index(order, shape), -1).astype(np.int32)


@_tensor_scatter.samples
def _tensor_scatter(rand):
    rows = _distinct_rows(rand, (3, 4), 5)
    more = ("int32", "float64")
    yield rand(3, 4), rows, rand(5), dict(_dtypes=(*more, "bool", "float16"))
    for reduction in ("add", "sub", "mul"):
        yield rand(3, 4), rows, rand(5), dict(reduction=reduction, _dtypes=more)
    yield rand(3, 4), rows, rand.positive(5), dict(reduction="div")
    yield rand.distinct(3, 4), rows, rand.distinct(5), dict(reduction="max", _grad=False)
    yield rand.distinct(3, 4), rows, rand.distinct(5), dict(reduction="min", _grad=False)
    yield rand(3, 4), rand.ints(-3, 3, (6, 1), "int64"), rand(6, 4), dict(reduction="add")
    yield rand(3, 4), rand.ints(0, 3, (6, 1)), rand(6, 4), dict(reduction="update", _grad=False)
    yield rand(3, 4), rand.ints(0, 3, (0, 1)), rand(0, 4), dict(reduction="add")


@_tensor_scatter.batch
def _tensor_scatter(call):
    return call.run([call.whole(0), _batch.with_example_numbers(call, call.whole(1)), call.whole(2)])


@op(infer=lambda indices, updates, shape: _scattered_nd(TensorType(updates.dtype, shape), indices, updates),
    mindir="ScatterNd", primitive=True)  # fmt: skip
def scatter_nd(indices, updates, *, shape: "ints"):
    """Zeros of `shape` to which `updates` are added in the slices named by the rows of `indices`.

    Shapes: indices [I.., k], updates [I.., R..] -> `shape` [n1, .., nk, R..].
    dtypes: numbers, integer indices.
    Errors: IndexError for an index out of range.
    """
    return _write(np.zeros(shape, updates.dtype), positions_nd(indices, shape, "scatter_nd"), updates, "add")


@scatter_nd.vjp
def scatter_nd(ct, indices):
    return None, gather_nd(ct, indices)


@scatter_nd.samples
def scatter_nd(rand):
    yield rand.ints(0, 3, (5, 2)), rand(5), dict(shape=(3, 4), _dtypes=("int32", "float64"))
    yield rand.ints(-3, 3, (2, 2, 1), "int64"), rand(2, 2, 4), dict(shape=(3, 4))
    yield rand.ints(0, 3, (2,)), rand(2), dict(shape=(3, 4, 2))
    yield rand.ints(0, 3, (0, 1)), rand(0, 4), dict(shape=(3, 4))


@scatter_nd.batch
def scatter_nd(call):
    indices = _batch.with_example_numbers(call, call.whole(0))
    return call.run([indices, call.whole(1)], shape=(call.size, *call.attrs["shape"]))


def _as_updates(x, updates):
    """`updates` as a Tensor of the dtype of `x`."""
    if not is_tensor(updates):
        return constant(updates, x.dtype)
    return updates if updates.dtype is x.dtype else cast(updates, x.dtype)


def _tensor_scatter_function(reduction, name, what):
    def function(input_x, indices, updates):
        if indices.dtype not in (dtypes.int32, dtypes.int64):
            raise errors.type_error(f"{name}: indices must be int32 or int64, but they are {indices.dtype}")
        return _tensor_scatter(input_x, indices, _as_updates(input_x, updates), reduction)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""`input_x` with the slices named by the rows of `indices` {what} `updates`.

    Shapes: x [n1, .., nk, R..], indices [I.., k], updates [I.., R..] -> shape of x.
    """
    return function


tensor_scatter_update = _tensor_scatter_function("update", "tensor_scatter_update", "replaced by")
tensor_scatter_add = _tensor_scatter_function("add", "tensor_scatter_add", "increased by")
tensor_scatter_sub = _tensor_scatter_function("sub", "tensor_scatter_sub", "decreased by")
tensor_scatter_mul = _tensor_scatter_function("mul", "tensor_scatter_mul", "multiplied by")
tensor_scatter_div = _tensor_scatter_function("div", "tensor_scatter_div", "divided by")
tensor_scatter_max = _tensor_scatter_function(
    "max", "tensor_scatter_max", "replaced by the maximum of themselves and"
)
tensor_scatter_min = _tensor_scatter_function(
    "min", "tensor_scatter_min", "replaced by the minimum of themselves and"
)


def _store(variable, value):
    """Give a Parameter or Tensor a new value of its shape; returns the value."""
    variable.assign_value(value)
    return value


def _scatter_nd_function(reduction, name, what):
    def function(input_x, indices, updates, use_locking=False):
        del use_locking  # an update is one op
        return _store(input_x, _tensor_scatter(input_x, indices, _as_updates(input_x, updates), reduction))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""In the Parameter `input_x`, {what} the slices named by the rows of `indices`;
    returns the new value.

    Shapes: x [n1, .., nk, R..], indices [I.., k], updates [I.., R..]. An update is one op, so
    `use_locking` is fulfilled.
    """
    return function


scatter_nd_update = _scatter_nd_function("update", "scatter_nd_update", "replace")
scatter_nd_add = _scatter_nd_function("add", "scatter_nd_add", "increase")
scatter_nd_sub = _scatter_nd_function("sub", "scatter_nd_sub", "decrease")
scatter_nd_mul = _scatter_nd_function("mul", "scatter_nd_mul", "multiply")
scatter_nd_div = _scatter_nd_function("div", "scatter_nd_div", "divide")
scatter_nd_max = _scatter_nd_function("max", "scatter_nd_max", "raise to the maximum")
scatter_nd_min = _scatter_nd_function("min", "scatter_nd_min", "lower to the minimum")


def _scatter_function(reduction, name, what):
    def function(input_x, indices, updates):
        rows = expand_dims(indices, -1)
        return _store(input_x, _tensor_scatter(input_x, rows, _as_updates(input_x, updates), reduction))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""In the Parameter `input_x`, {what} the slices `indices` of the first axis; returns
    the new value.

    Shapes: x [n, R..], indices [I..], updates [I.., R..].
    """
    return function


scatter_update = _scatter_function("update", "scatter_update", "replace")
scatter_add = _scatter_function("add", "scatter_add", "increase")
scatter_sub = _scatter_function("sub", "scatter_sub", "decrease")
scatter_mul = _scatter_function("mul", "scatter_mul", "multiply")
scatter_div = _scatter_function("div", "scatter_div", "divide")
scatter_max = _scatter_function("max", "scatter_max", "raise to the maximum")
scatter_min = _scatter_function("min", "scatter_min", "lower to the minimum")


def _scattered(x, index, src, axis):
    check_index_dtype(index)
    _same_dtype(x, src, "src")
    at = positive_axis(axis, x.rank)
    if index.shape != src.shape:
        raise ValueError(f"index and src must have one shape, but got {index.shape} and {src.shape}")
    if index.rank != x.rank or any(m > n for i, (m, n) in enumerate(zip(index.shape, x.shape)) if i != at):
        raise ValueError(
            f"index of shape {index.shape} must not exceed the input's {x.shape} except on axis {axis}"
        )
    return x


@op(infer=lambda x, index, src, axis, reduction: _scattered(x, index, src, axis), batch=_batch.along("axis"))
def _scatter_elements(
    x, index, src, *, axis: "int" = 0, reduction: "update|add|sub|mul|div|max|min" = "update"
):
    """`x` with elements of `src` combined along one axis: ``y[i, index[i, j]] = src[i, j]`` for axis 1.

    Shapes: index and src have the rank of x and are nowhere larger except along `axis`; -> shape of x.
    dtypes: numbers, integer index.  Errors: IndexError for an index out of range.
    """
    return _write(x.copy(), _grid(wrapped(index, x.shape[axis], axis, "scatter"), axis), src, reduction)


@_scatter_elements.vjp
def _scatter_elements(ct, x, index, src, out, *, axis, reduction):
    if reduction == "update":
        return _scatter_elements(ct, index, _zeros_like(src), axis), None, _gather_d(ct, index, axis)
    kept, given = _shares(
        ct,
        x,
        src,
        out,
        picked=lambda t: _gather_d(t, index, axis),
        keep=lambda t, u, how: _scatter_elements(t, index, u, axis, how),
        reduction=reduction,
    )
    return kept, None, given


@_scatter_elements.samples
def _scatter_elements(rand):
    distinct = np.argsort(rand(3, 4), 1)[:, :2].astype(np.int32)
    yield rand(3, 4), distinct, rand(3, 2), dict(axis=1, _dtypes=("int32", "bool", "float64", "float16"))
    for reduction in ("add", "mul", "sub"):
        yield (
            rand(3, 4),
            distinct,
            rand(3, 2),
            dict(axis=1, reduction=reduction, _dtypes=("int32", "float64")),
        )
    yield rand(3, 4), rand.ints(-3, 3, (5, 4), "int64"), rand(5, 4), dict(axis=0, reduction="add")
    yield rand(3, 4), rand.ints(0, 3, (5, 4)), rand(5, 4), dict(axis=0, _grad=False)
    yield rand(3, 4, 2), rand.ints(0, 4, (2, 3, 1)), rand(2, 3, 1), dict(axis=-2, reduction="add")
    yield rand.distinct(3, 4), distinct, rand.distinct(3, 2), dict(axis=1, reduction="max", _grad=False)
    yield rand(3, 4), rand.ints(0, 3, (0, 4)), rand(0, 4), dict(axis=0)


_ELEMENT_REDUCTIONS = {
    "none": "update",
    "add": "add",
    "mul": "mul",
    "sub": "sub",
    "max": "max",
    "min": "min",
    "div": "div",
}


def tensor_scatter_elements(input_x, indices, updates, axis=0, reduction="none"):
    """`input_x` with elements of `updates` written (or added) along one axis: ``y[i, indices[i, j]] =
    updates[i, j]``.

    Shapes: indices and updates have the rank of x.
    Errors: ValueError for another reduction than none and add.
    """
    if reduction not in _ELEMENT_REDUCTIONS:
        raise errors.value_error(
            f"For 'tensor_scatter_elements', reduction must be 'none' or 'add', but got {reduction!r}"
        )
    return _scatter_elements(
        input_x, indices, _as_updates(input_x, updates), axis, _ELEMENT_REDUCTIONS[reduction]
    )


def scatter(input, axis, index, src):
    """`input` with elements of `src` (a tensor or one number) written along `axis`:
    ``y[i, index[i, j]] = src[i, j]``.

    Shapes: index has the rank of the input; src is at least as large and the surplus is not used.
    """
    return _scatter_elements(input, index, _source_for(input, index, src), axis)


def _source_for(x, index, src):
    """The part of `src` that `index` covers; a number stands for all of it."""
    src = _as_updates(x, src)
    if src.ndim == 0:
        return broadcast_to(src, index.shape)
    if src.shape != index.shape and src.ndim == index.ndim:
        return src[tuple(slice(0, n) for n in index.shape)]
    return src


def scatter_add_along(input, dim, index, src):
    """`input` with elements of `src` added along axis `dim`: ``y[i, index[i, j]] += src[i, j]``."""
    return _scatter_elements(input, index, _source_for(input, index, src), dim, "add")


__all__ = [
    "tensor_scatter_update", "tensor_scatter_add", "tensor_scatter_sub", "tensor_scatter_mul",
    "tensor_scatter_div", "tensor_scatter_max", "tensor_scatter_min", "tensor_scatter_elements",
    "scatter_nd", "scatter_nd_update", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_mul",
    "scatter_nd_div", "scatter_nd_max", "scatter_nd_min", "scatter_update", "scatter_add", "scatter_sub",
    "scatter_mul", "scatter_div", "scatter_max", "scatter_min", "scatter",
]  # fmt: skip
