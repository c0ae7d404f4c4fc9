"""Questions about tensors, and small functions that MindSpore has under a second name or a name of their "
"own."""

import functools
import operator

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.create import full_like
from mycelia.engine.ops.arrays.gathering import gather
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.masks import where
from mycelia.engine.ops.arrays.order import unique
from mycelia.engine.ops.arrays.shape import constant, reshape
from mycelia.engine.ops.arrays.slicing import narrow
from mycelia.engine.ops.control_flow import debug
from mycelia.engine.ops.control_flow.device import on_device
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.rectifiers import relu, softshrink
from mycelia.engine.ops.identity import identity
from mycelia.engine.ops.linalg import products as _linalg
from mycelia.engine.ops.reductions.reduce import sum as _sum
from mycelia.engine.ops.reductions.unsorted_segments import unsorted_segment_sum


def _need_tensor(name, value, argument="input"):
    if not is_tensor(value):
        raise errors.type_error(
            f"For '{name}', '{argument}' must be a Tensor, but got {type(value).__name__}."
        )


def is_complex(input):
    """Whether the dtype of a Tensor is complex. Errors: TypeError for anything else."""
    _need_tensor("is_complex", input)
    return input.dtype.is_complex


def is_floating_point(input):
    """Whether the dtype of a Tensor is floating. Errors: TypeError for anything else."""
    _need_tensor("is_floating_point", input)
    return input.dtype.is_floating


def is_nonzero(input):
    """Whether the only element of a Tensor is not zero.

    Errors: TypeError for anything but a Tensor, ValueError unless it has one element.
    """
    _need_tensor("is_nonzero", input)
    if input.size != 1:
        raise errors.value_error(f"For 'is_nonzero', 'input' must have one element, but has {input.size}.")
    return bool(reshape(input, ()) != 0)


def dtype(x):
    """The dtype of a Tensor. Errors: TypeError for anything else."""
    if not hasattr(x, "values"):  # sparse tensors have the dtype of their values
        _need_tensor("dtype", x, "x")
    return x.dtype


def eps(x):
    """The distance from 1 to the next number of the dtype of `x`, in its shape.

    dtypes: float16, float32, float64.  Errors: TypeError for others.
    """
    _need_tensor("eps", x, "x")
    if x.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        raise errors.type_error(f"For 'eps', 'x' must be float16, float32 or float64, but is {x.dtype}.")
    return full_like(x, float(np.finfo(x.dtype.np).eps))


def deepcopy(input_x):
    """A Tensor with the same values in memory of its own; gradients flow through it."""
    _need_tensor("deepcopy", input_x, "input_x")
    return identity(input_x)


def move_to(input, to="CPU", blocking=True):
    """A copy of `input` on another kind of device: "CPU", or that of a backend with memory of its own.

    Errors: ValueError for another name, RuntimeError for a device that no backend here serves.
    """
    del blocking  # what reads the result waits for it
    return on_device("move_to", input, to)


def approximate_equal(x, y, tolerance=1e-5):
    """Where ``|x - y| < tolerance``. Shapes: broadcast.  dtypes: real, promoted -> bool."""
    return _comparison.less(_math.abs(_math.sub(x, y)), tolerance)


def mixed_precision_cast(dst_dtype, x):
    """Floating Tensors, also those in nests of tuples, lists and dicts, in another floating dtype."""
    if is_tensor(x):
        return cast(x, dst_dtype) if x.dtype.is_floating else x
    if isinstance(x, (tuple, list)):
        return type(x)(mixed_precision_cast(dst_dtype, v) for v in x)
    if isinstance(x, dict):
        return {k: mixed_precision_cast(dst_dtype, v) for k, v in x.items()}
    return x


def bidense(input1, input2, weight, bias=None):
    """``input1 @ weight[k] @ input2`` for each output k, plus `bias`.

    Shapes: [.., n], [.., m], weight [k, n, m], bias [k] -> [.., k].  dtypes: floating.
    Errors: ValueError for other shapes.
    """
    if len(weight.shape) != 3 or weight.shape[1:] != (input1.shape[-1], input2.shape[-1]):
        raise errors.value_error(
            f"For 'bidense', 'weight' must have shape (k, {input1.shape[-1]}, {input2.shape[-1]}), but "
            "has shape "
            f"{weight.shape}."
        )
    lead = input1.shape[:-1]
    k, n, m = weight.shape
    a, b = reshape(input1, (-1, n)), reshape(input2, (-1, m))
    rows = _linalg.matmul(a, reshape(weight.transpose(1, 0, 2), (n, k * m)))
    found = _sum(_math.mul(reshape(rows, (-1, k, m)), reshape(b, (-1, 1, m))), -1)
    return reshape(found if bias is None else _math.add(found, bias), (*lead, k))


def coalesce(x_indices, x_values, x_shape):
    """A sparse tensor with its entries in order, and those at one place added.

    Shapes: x_indices [rank, n], x_values [n], x_shape [rank] -> [rank, k], [k], [rank].  dtypes: int64
    indices.
    """
    shape = tuple(int(v) for v in x_shape.asnumpy())
    flat = np.ravel_multi_index(tuple(x_indices.asnumpy()), shape)
    places, segment = np.unique(flat, return_inverse=True)
    values = unsorted_segment_sum(x_values, constant(segment.reshape(-1), dtypes.int64), len(places))
    return constant(np.stack(np.unravel_index(places, shape)), dtypes.int64), values, x_shape


def unique_with_pad(x, pad_num):
    """The different elements in the order they first occur, filled up with `pad_num`, and for each its place
    there.

    Shapes: [n] -> [n], [n].  dtypes: int32, int64.
    """
    values, places = unique(x)
    count = values.shape[0]
    fill = pad_num if is_tensor(pad_num) else constant(pad_num, x.dtype)
    spread = gather(values, constant(np.minimum(np.arange(x.shape[0]), count - 1)), 0)
    return where(constant(np.arange(x.shape[0]) < count), spread, cast(fill, x.dtype)), places


def multilabel_margin_loss(input, target, reduction="mean"):
    """Mean over the classes of ``max(0, 1 - (input[label] - input[other]))``, over all pairs of a sample.

    `target` lists the labels of a sample, up to the first -1.
    Shapes: [c] or [n, c], both -> [] or, without reduction, [n].  dtypes: floating, int32 target.
    """
    if reduction not in ("none", "mean", "sum"):
        raise errors.value_error(
            "For 'multilabel_margin_loss', 'reduction' must be 'none', 'mean' or 'sum', but got "
            f"{reduction!r}."
        )
    x = input if len(input.shape) == 2 else reshape(input, (1, -1))
    labels = target.asnumpy().reshape(x.shape)
    listed = np.cumprod(labels >= 0, -1).astype(bool)
    is_label = np.zeros(x.shape, bool)
    for row, (names, use) in enumerate(zip(labels, listed)):
        is_label[row, names[use]] = True
    counts = np.zeros(x.shape)
    for row, (names, use) in enumerate(zip(labels, listed)):
        np.add.at(counts[row], names[use], 1)
    gaps = _math.sub(reshape(x, (*x.shape, 1)), reshape(x, (x.shape[0], 1, x.shape[1])))
    shortfall = relu(_math.sub(1.0, gaps))
    weights = constant(counts[:, :, None] * ~is_label[:, None, :] / x.shape[1], x.dtype)
    rows = _sum(_math.mul(shortfall, weights), (1, 2))
    if reduction == "none":
        return rows if len(input.shape) == 2 else reshape(rows, ())
    return _sum(rows) if reduction == "sum" else rows.mean()


def tensor_slice(input, begin, size):
    """`size` elements from `begin` on along each axis. Shapes: any -> size."""
    for axis, (start, count) in enumerate(zip(begin, size)):
        input = narrow(input, axis, start, input.shape[axis] - start if count == -1 else count)
    return input


def shape_mul(input_data):
    """The product of the ints of a shape."""
    return functools.reduce(operator.mul, input_data, 1)


def shape_(x):
    """The shape of a Tensor as a tuple."""
    return x.shape


def print_(*input_x):
    """Prints texts, numbers and Tensors, each on a line of its own, Tensors as their `repr`.

    Inside a compiled function the lines appear when the graph runs.
    """
    debug.print_values(*input_x)


def soft_shrink(input, lambd=0.5):
    """`softshrink` under another name."""
    return softshrink(input, lambd)


#: What the augmented assignments of graphs do.
augassign_add, augassign_sub, augassign_mul = operator.add, operator.sub, operator.mul
augassign_div, augassign_floordiv, augassign_mod = operator.truediv, operator.floordiv, operator.mod


def _in_place(name):
    def function(input, *args, **kwargs):
        _need_tensor(name, input)
        return getattr(input, name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``input.{name}(...)``: replaces the value of `input`, and returns it."
    return function


clamp_, erfinv_, tanh_ = _in_place("clamp_"), _in_place("erfinv_"), _in_place("tanh_")

__all__ = [
    "approximate_equal", "augassign_add", "augassign_div", "augassign_floordiv", "augassign_mod",
    "augassign_mul", "augassign_sub", "bidense", "clamp_", "coalesce", "deepcopy", "dtype", "eps", "erfinv_",
    "is_complex", "is_floating_point", "is_nonzero", "mixed_precision_cast", "move_to",
    "multilabel_margin_loss", "print_",
    "shape_", "shape_mul", "soft_shrink", "tanh_", "tensor_slice", "unique_with_pad",
]  # fmt: skip
