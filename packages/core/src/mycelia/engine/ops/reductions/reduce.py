"""Reductions over axes: sums, products, extremes, truth, Euclidean length.

An axis may be one number, several, or None / () for all; negative axes count from the end. Places of extremes
are in `extremes`, moments and norms in `moments`, running reductions in `scan`.
"""

import builtins

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.define import find, op, registry
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import normalize_axes, reduced, reduced_shape, same
from mycelia.engine.ops.late import ops


def reduced_axes(axis, rank):
    """The axes of a reduction, an int, several or None, as sorted non-negative numbers."""
    return normalize_axes((axis,) if isinstance(axis, int) else axis, rank)


def _np_axes(x, axis):
    return normalize_axes(axis, x.ndim)


def expand_reduced(ct, axis, shape):
    """`ct` of a reduction of `shape` over `axis`, kept or not, repeated along the reduced axes."""
    from mycelia.engine.ops.arrays.shape import broadcast_to

    if ct.ndim:  # of a full reduction it broadcasts as it is
        ct = keep_reduced(ct, axis, shape)
    return broadcast_to(ct, shape)


def keep_reduced(ct, axis, shape):
    """`ct` of a reduction of `shape` over `axis` with the reduced axes present as 1."""
    from mycelia.engine.ops.arrays.shape import reshape

    axes = reduced_axes(axis, len(shape))
    return reshape(ct, tuple(1 if d in axes else n for d, n in enumerate(shape)))


def count_reduced(shape, axis):
    n = 1
    for d in reduced_axes(axis, len(shape)):
        n *= shape[d]
    return n


def _sum_dtype(t, dtype):
    """Sums and products of bool and integers are int64 unless told otherwise."""
    return dtype or (t.dtype if t.dtype.is_floating or t.dtype.is_complex else dtypes.int64)


def _sum_type(input, *, dim, keepdim, dtype):
    return TensorType(_sum_dtype(input, dtype), reduced_shape(input.shape, dim, keepdim))


@op(
    infer=_sum_type,
    mindir="SumExt",
    batch=_batch.along("dim"),
    layout=_layout.reduction("dim", "keepdim"),
    precision="wide",
)
def sum(input, *, dim: "ints?" = None, keepdim: "bool" = False, dtype: "dtype?" = None):
    """Sum over the axes `dim`; 0 where there is nothing to add.

    Shapes: axes in `dim` vanish, or become 1 with `keepdim`.  dtypes: any; bool and integers give int64.
    Errors: ValueError for an axis out of range or given twice.
    """
    kind = dtype.np if dtype else None if input.dtype.kind in "fc" else np.int64
    return np.sum(input, axis=_np_axes(input, dim), keepdims=keepdim, dtype=kind)


@sum.vjp
def sum(ct, input_shape, input_dtype, dim):
    if ct.dtype is not input_dtype:
        ct = cast(ct, input_dtype)
    return expand_reduced(ct, dim, input_shape)


def reduction_samples(axis, keepdims, **shared):
    """Samples of a reduction whose attributes have these names: each kind of axis set, size 1, rank 0."""

    def samples(rand):
        yield rand(3, 4), dict(shared)
        for axes in (0, 1, -1, (0, 2), (1, 2), (0, 1, 2), (-3,)):
            yield rand(2, 3, 4), {axis: axes, **shared}
            yield rand(2, 3, 4), {axis: axes, keepdims: True, **shared}
        yield rand(2, 3, 2, 2), {axis: (1, 3), **shared}
        yield rand(), dict(shared)
        yield rand(1), {axis: 0, **shared}
        yield rand(1, 1), {keepdims: True, **shared}
        quiet = {**shared, "_grad": False}
        yield rand(67, 131), {axis: 0, **quiet}
        yield rand(67, 131), {axis: 1, **quiet}
        yield rand(5, 67, 31), {axis: 1, **quiet}
        yield rand(5, 1, 67, 3), {axis: (0, 2), **quiet}
        yield rand(9, 7, 5, 3), {axis: (1, 3), **quiet}
        yield rand(40000), quiet
        yield rand.ints(-9, 9, (5, 6)), {axis: 1, **quiet}
        yield rand.ints(-9, 9, (5, 6), dtype="int64"), {axis: 0, **quiet}

    return samples


@sum.samples
def sum(rand):
    yield from reduction_samples("dim", "keepdim")(rand)
    yield rand(0, 3), dict(dim=0)
    yield rand(3, 0), dict(dim=0)
    yield rand(0, 3)
    yield rand(3, 4), dict(dim=())
    yield rand.bools(3, 5), dict(dim=1, _grad=False)
    yield rand.ints(100, 127, (40,), dtype="int8"), dict(_grad=False)
    yield rand(3, 4), dict(dtype=dtypes.float64, dim=0)
    yield rand(8, 8).astype("float32") + 1e4, dict(dim=1, _grad=False)


def _mean_type(x, *, axis, keep_dims):
    return TensorType(x.dtype, reduced_shape(x.shape, axis, keep_dims))


@op(
    infer=_mean_type,
    mindir="ReduceMean",
    batch=_batch.along("axis"),
    layout=_layout.reduction("axis", "keep_dims"),
)
def mean(x, *, axis: "ints?" = None, keep_dims: "bool" = False):
    """Mean over `axis`; NaN where there is nothing to average; the mean of integers is cut to an integer.

    Shapes: reduced axes vanish, or become 1 with `keep_dims`.  dtypes: real but bool.
    Errors: ValueError for an axis out of range or given twice.
    """
    y = np.mean(
        x, axis=_np_axes(x, axis), keepdims=keep_dims, dtype=None if x.dtype.kind in "fc" else np.float64
    )
    return y.astype(x.dtype)


@mean.vjp
def mean(ct, x_shape, axis):
    return expand_reduced(_math.mul(ct, 1.0 / (count_reduced(x_shape, axis) or 1)), axis, x_shape)


@mean.samples
def mean(rand):
    yield from reduction_samples("axis", "keep_dims")(rand)
    yield rand(3, 0), dict(axis=0)


def _prod_type(input, *, axis, keep_dims, dtype):
    return TensorType(_sum_dtype(input, dtype), reduced_shape(input.shape, axis, keep_dims))


@op(
    infer=_prod_type,
    mindir="ReduceProd",
    batch=_batch.along("axis"),
    layout=_layout.reduction("axis", "keep_dims"),
    precision="wide",
)
def prod(input, *, axis: "ints?" = None, keep_dims: "bool" = False, dtype: "dtype?" = None):
    """Product over `axis`; 1 where there is nothing to multiply.

    Shapes: reduced axes vanish, or become 1 with `keep_dims`.  dtypes: any; bool and integers give int64.
    Errors: ValueError for an axis out of range or given twice.
    """
    kind = dtype.np if dtype else None if input.dtype.kind in "fc" else np.int64
    return np.prod(input, axis=_np_axes(input, axis), keepdims=keep_dims, dtype=kind)


@prod.vjp
def prod(ct, input, input_dtype, axis):
    from mycelia.engine.ops.arrays.axes import transpose
    from mycelia.engine.ops.arrays.shape import reshape

    if ct.dtype is not input_dtype:
        ct = cast(ct, input_dtype)
    shape, axes = input.shape, reduced_axes(axis, len(input.shape))
    order = tuple(d for d in range(len(shape)) if d not in axes) + axes
    moved = transpose(input, order) if order != tuple(range(len(shape))) else input
    others = prod_others(
        reshape(moved, (input.size // (count_reduced(shape, axis) or 1), count_reduced(shape, axis)))
    )
    others = reshape(others, tuple(shape[d] for d in order))
    if moved is not input:
        others = transpose(others, tuple(order.index(d) for d in range(len(shape))))
    return _math.mul(expand_reduced(ct, axis, shape), others)


@prod.samples
def prod(rand):
    for x, attrs in reduction_samples("axis", "keep_dims")(rand):
        if x.size < 5000:
            yield (np.copysign(0.5 + np.abs(x), x) if x.dtype.kind == "f" else x).astype(x.dtype), attrs
    yield np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0], [1.0, 2.0, 3.0]], np.float32), dict(axis=1)
    yield rand(0, 3), dict(axis=0)
    yield rand(3, 4), dict(dtype=dtypes.float64, axis=0)


@op(infer=same())
def prod_others(x):
    """For each element of a row the product of the row's other elements; exact where some are zero.

    Shapes: x [m, n] -> same.  dtypes: floating.
    """
    before, after = np.ones_like(x), np.ones_like(x)
    before[:, 1:] = np.cumprod(x[:, :-1], 1)
    after[:, :-1] = np.cumprod(x[:, :0:-1], 1)[:, ::-1]
    return before * after


@prod_others.vjp
def prod_others(ct, x):
    # slope[m, k, i] = product of x[m, j] over j != i, k: n**2 entries a row, only for second derivatives.
    from mycelia.engine.ops.arrays.shape import broadcast_to, reshape

    m, n = x.shape
    same_place = reshape(_comparison.equal(ops.eye(n, n, x.dtype), 1.0), (1, n, n))
    table = ops.where(same_place, 1.0, broadcast_to(reshape(x, (m, 1, n)), (m, n, n)))
    slope = ops.where(same_place, 0.0, reshape(prod_others(reshape(table, (m * n, n))), (m, n, n)))
    return sum(_math.mul(slope, reshape(ct, (m, 1, n))), 2)


@prod_others.samples
def prod_others(rand):
    yield rand(3, 4)
    yield rand(2, 1)
    yield np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]], np.float32)
    yield rand(0, 3)


def _sum_to_type(x, *, shape):
    lead = x.rank - len(shape)
    if lead < 0 or builtins.any(n not in (1, m, -1) and m != -1 for m, n in zip(x.shape[lead:], shape)):
        raise ValueError(f"{list(shape)} does not broadcast to {list(x.shape)}")
    return TensorType(x.dtype, shape)


def _summed_images(node):
    if not _layout.is_image(node.inputs[0]):
        return None
    shape = node.outputs[0].type.shape
    if len(shape) == 4:
        return (0,), (0,)
    return ((0,), ()) if _layout.keeps_order(shape) else None


@op(infer=_sum_to_type, layout=_layout.LayoutRule(_summed_images))
def sum_to(x, *, shape: "ints"):
    """Sum over the axes along which `shape` had been broadcast to that of `x`: the inverse of broadcasting.

    Shapes: x -> `shape`.  dtypes: any.  Errors: ValueError if `shape` does not broadcast to that of `x`.
    """
    lead = x.ndim - len(shape)
    axes = tuple(d for d in range(x.ndim) if d < lead or shape[d - lead] == 1 != x.shape[d])
    return np.sum(x, axis=axes, dtype=x.dtype).reshape(shape)


@sum_to.vjp
def sum_to(ct, x_shape):
    from mycelia.engine.ops.arrays.shape import broadcast_to

    return broadcast_to(ct, x_shape)


@sum_to.samples
def sum_to(rand):
    yield rand(3, 4), dict(shape=(4,))
    yield rand(2, 3, 4), dict(shape=(3, 1))
    yield rand(2, 3, 4), dict(shape=(1, 1, 4))
    yield rand(2, 3, 4), dict(shape=())
    yield rand(2, 3), dict(shape=(2, 3))
    yield rand(0, 3), dict(shape=(3,))
    yield rand(64, 7, 33), dict(shape=(7, 1), _grad=False)
    yield rand(257, 33), dict(shape=(33,), _grad=False)
    yield rand.ints(-5, 5, (4, 3)), dict(shape=(1, 3), _grad=False)


@sum_to.batch
def sum_to(call):
    """The sum over what broadcasting had repeated."""
    shape = call.attrs["shape"]
    lead = call.rank() - len(shape)
    padded = _batch.reshaped(call.operands[0], (call.size, *call.in_types[0].shape))
    target = (call.size, *(1,) * lead, *shape)
    return (_batch.reshaped(find("sum_to")(padded, target), (call.size, *shape)),)


@sum_to.layout
def sum_to(rewriter, node):
    shape = node.outputs[0].type.shape
    whole = _layout.nhwc_shape((1,) * (4 - len(shape)) + tuple(shape))
    found = rewriter.emit(node.op, [rewriter.last(node.inputs[0])], dict(shape=whole))
    return found if len(shape) == 4 else rewriter.emit("reshape", found, dict(shape=shape))


@op(
    infer=reduced(),
    float_result=True,
    batch=_batch.along("axis"),
    layout=_layout.reduction("axis", "keepdims"),
    precision="wide",
)
def l2_norm(input, *, axis: "ints?" = None, keepdims: "bool" = False):
    """Euclidean length over `axis`: ``sqrt(sum(input**2))``; its gradient at zero is zero.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: floating; integers give float32.
    Errors: ValueError for an axis out of range or given twice.
    """
    return np.sqrt(np.sum(input * np.conj(input), axis=_np_axes(input, axis), keepdims=keepdims))


@l2_norm.vjp
def l2_norm(ct, input, out, axis):
    length, flow = keep_reduced(out, axis, input.shape), keep_reduced(ct, axis, input.shape)
    if input.dtype.is_complex:
        flow, input = cast(registry["real"](flow), flow.dtype), registry["conj"](input)
    return _math.mul(flow, _logarithms.xdivy(input, length))


@l2_norm.samples
def l2_norm(rand):
    yield from reduction_samples("axis", "keepdims")(rand)
    yield np.zeros((2, 3), np.float32), dict(axis=1, _grad=False)


def reduce_sum(x, axis=()):
    """Sum over `axis`, all axes by default, in the dtype of `x`.

    Shapes: reduced axes vanish.  dtypes: any.
    """
    return sum(x, axis, False, x.dtype)


def reduce_mean(x, axis=()):
    """Mean over `axis`, all axes by default.

    Shapes: reduced axes vanish.  dtypes: real.
    """
    return mean(x, axis)


__all__ = ["mean", "prod", "reduce_mean", "reduce_sum", "sum"]
