"""Kernels of the vector unit: elementwise ops, casts, sums, normalizations, losses (R4, R5)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mycelia import dtypes
from mycelia.io.device_formats import Formatted
from mycelia_backend_ascend_sim.arithmetic import mean, tree_sum
from mycelia_backend_ascend_sim.tasks import Operand, Task

#: Elementwise ops whose bodies are operations of IEEE 754 in float32, in the order in which they stand there;
#: all others are evaluated in float64 (R4).
IEEE = frozenset(
    """
    nan_to_num add sub mul div neg abs square sqrt reciprocal maximum minimum relu relu6 relu_grad relu6_grad
    leaky_relu leaky_relu_grad equal not_equal less less_equal greater greater_equal select isfinite isnan
    isinf logical_and logical_or logical_not logical_xor sign floor ceil round trunc clamp
    """.split()
)
#: Those of them that make zeros of zeros, so that what pads a layout of the device stays zero.
_KEEPS_PADDING = frozenset(
    "add sub mul neg abs square relu relu6 maximum minimum relu_grad leaky_relu".split()
)


def elementwise(name: str, body: Callable, ieee: bool) -> Callable:
    """The kernel of an elementwise op, by R4; `ieee`: its body is done in float32."""

    def run(task: Task, *operands: Operand, **attrs):
        if name in _KEEPS_PADDING and (found := _in_layout(operands)) is not None:
            format, shape, values = found
            return Formatted(body(*values, **attrs), format, shape)
        values = [o if o is None else o.values() for o in operands]
        if not ieee:
            values = [_float64(v) for v in values]
        return _float32(body(*values, **attrs))

    return run


def _in_layout(operands):
    """(format, shape, values in it), if all operands lie alike in a layout of the device's own."""
    present = [(o, p) for o in operands if o is not None and (p := o.present()) is not None]
    if not operands or len(present) < len(operands):
        return None
    operand, first = present[0]
    alike = ((o.dtype, p.format, p.shape) == (operand.dtype, first.format, first.shape) for o, p in present)
    return (first.format, first.shape, [o.widened(p.data) for o, p in present]) if all(alike) else None


def _float64(x):
    return x.astype(np.float64) if isinstance(x, np.ndarray) and x.dtype == np.float32 else x


def _float32(y):
    """Results as the registers hold them."""
    if isinstance(y, (tuple, list)):
        return tuple(map(_float32, y))
    y = np.asarray(y)
    return y.astype(np.float32) if y.dtype == np.float64 else y


def precise(function: Callable, x: np.ndarray) -> np.ndarray:
    """A function of float32 by R4."""
    return function(x.astype(np.float64)).astype(np.float32)


def exact(body: Callable) -> Callable:
    """The kernel of an op that chooses among its inputs: its body on their values."""

    def run(task: Task, *operands, **attrs):
        return _float32(body(*_values(operands), **attrs))

    return run


def moving(body: Callable) -> Callable:
    """The kernel of an op that moves elements: its body on what lies in memory, bfloat16 as float32."""

    def stored(o: Operand | None):
        return o if o is None else o.values() if o.dtype is dtypes.bfloat16 else o.stored()

    def run(task: Task, *operands, **attrs):
        arrays = [tuple(map(stored, o)) if isinstance(o, tuple) else stored(o) for o in operands]
        return body(*arrays, **attrs)

    return run


def _values(operands) -> list:
    return [
        tuple(m.values() for m in o) if isinstance(o, tuple) else o if o is None else o.values()
        for o in operands
    ]


def cast(body: Callable) -> Callable:
    """The kernel of `cast`: to floating dtypes the values themselves, to others what the op's body says."""

    def run(task: Task, x: Operand, *, dtype):
        values = x.values()
        return values.astype(np.float32) if dtype.is_floating else body(values, dtype=dtype)

    return run


def _axes(axis, rank: int) -> tuple[int, ...]:
    if axis is None or axis == ():
        return tuple(range(rank))
    return tuple(a % rank for a in ((axis,) if isinstance(axis, int) else axis))


def sum_(task: Task, input: Operand, *, dim, keepdim, dtype):
    x = input.values()
    if x.dtype != np.float32:
        kind = task.outputs[0].dtype.np
        return np.sum(x, axis=_axes(dim, x.ndim), keepdims=keepdim, dtype=kind)
    return tree_sum(x, _axes(dim, x.ndim), keepdim)


def mean_(task: Task, x: Operand, *, axis, keep_dims):
    values = x.values()
    return mean(values, _axes(axis, values.ndim), keep_dims)


def sum_to(task: Task, x: Operand, *, shape):
    values = x.values()
    lead = values.ndim - len(shape)
    axes = (*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1 and values.shape[lead + i] != 1))
    return tree_sum(values, axes).reshape(shape)


# ---- softmax and losses ------------------------------------------------------------------------------------


def _exponentials(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x less its largest, the exponentials of that, and their sum."""
    shifted = x - x.max(axis, keepdims=True)
    e = precise(np.exp, shifted)
    return shifted, e, tree_sum(e, (axis,), True)


def softmax_values(x: np.ndarray, axis: int) -> np.ndarray:
    if x.size == 0:
        return x
    _, e, total = _exponentials(x, axis)
    return e / total


def softmax(task: Task, input: Operand, *, axis):
    return softmax_values(input.values(), axis) if input.shape else np.ones((), np.float32)


def softmax_grad(task: Task, dy: Operand, y: Operand, *, axis):
    d, y_ = dy.values(), y.values()
    return (d - tree_sum(d * y_, (axis,), True)) * y_


def log_softmax(task: Task, input: Operand, *, axis):
    x = input.values()
    if x.size == 0:
        return x
    shifted, _, total = _exponentials(x, axis)
    return shifted - precise(np.log, total)


def log_softmax_grad(task: Task, dy: Operand, y: Operand, *, axis):
    d = dy.values()
    return d - precise(np.exp, y.values()) * tree_sum(d, (axis,), True)


def softmax_cross_entropy(task: Task, logits: Operand, labels: Operand):
    x, wanted = logits.values(), labels.values()
    if x.size == 0:
        return np.zeros(len(x), np.float32), x
    shifted, _, total = _exponentials(x, 1)
    log_p = shifted - precise(np.log, total)
    p = precise(np.exp, log_p)
    return -tree_sum(wanted * log_p, (1,)), p * tree_sum(wanted, (1,), True) - wanted


def sparse_softmax_cross_entropy(task: Task, logits: Operand, labels: Operand, *, reduction, ignore_index):
    x, classes = logits.values(), labels.stored().astype(np.int64)
    rows = np.flatnonzero(classes != ignore_index)
    picked = classes[rows]
    wrong = picked[(picked < 0) | (picked >= x.shape[1])]
    if wrong.size:
        raise ValueError(f"label {wrong[0]} is not in [0, {x.shape[1]})")
    loss, gradient = np.zeros(len(x), np.float32), np.zeros_like(x)
    if x.size:
        shifted, _, total = _exponentials(x, 1)
        log_p = shifted - precise(np.log, total)
        loss[rows] = -log_p[rows, picked]
        gradient[rows] = precise(np.exp, log_p[rows])
        gradient[rows, picked] -= np.float32(1)
    if reduction == "none":
        return loss, gradient
    scale = np.float32(1 / max(1, len(rows)) if reduction == "mean" else 1)
    return tree_sum(loss, (0,)) * scale, gradient * scale


# ---- normalizations ----------------------------------------------------------------------------------------


def _per_channel(rank: int, data_format: str) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The shape that spreads a vector over channels, the other axes, the channels' axis."""
    channel = rank - 1 if data_format == "NHWC" else 1
    shape = tuple(-1 if d == channel else 1 for d in range(rank))
    return shape, tuple(d for d in range(rank) if d != channel), channel


def inverse_root(variance: np.ndarray, epsilon: float) -> np.ndarray:
    return np.float32(1) / np.sqrt(variance + np.float32(epsilon))


def batch_norm_infer_values(x, scale, bias, mean, variance, *, epsilon, data_format):
    shape, _, _ = _per_channel(x.ndim, data_format)
    factor = scale / np.sqrt(variance + np.float32(epsilon))
    return (x - mean.reshape(shape)) * factor.reshape(shape) + bias.reshape(shape)


def batch_norm_infer(task: Task, *operands, **attrs):
    return batch_norm_infer_values(*_values(operands), **attrs)


def batch_norm_train(task: Task, *operands, epsilon, momentum, data_format):
    running_mean, running_variance, x, scale, bias = _values(operands)
    shape, others, channel = _per_channel(x.ndim, data_format)
    n = x.size // max(1, x.shape[channel])
    if n == 0:
        zeros = np.zeros_like(running_mean)
        return running_mean, running_variance, x, zeros, zeros
    batch_mean = mean(x, others)
    shifted = x - batch_mean.reshape(shape)
    batch_variance = mean(shifted * shifted, others)
    inv_std = inverse_root(batch_variance, epsilon)
    y = shifted * (inv_std * scale).reshape(shape) + bias.reshape(shape)
    unbiased = batch_variance * np.float32(n / max(1, n - 1))
    step = np.float32(momentum)
    return (
        running_mean + step * (batch_mean - running_mean),
        running_variance + step * (unbiased - running_variance),
        y, batch_mean, inv_std,
    )  # fmt: skip


def batch_norm_grad(task: Task, *operands, epsilon, data_format):
    dy, x, scale, batch_mean, inv_std = _values(operands)
    shape, others, channel = _per_channel(x.ndim, data_format)
    over_n = np.float32(1 / max(1, x.size // max(1, x.shape[channel])))
    x_hat = (x - batch_mean.reshape(shape)) * inv_std.reshape(shape)
    d_bias, d_scale = tree_sum(dy, others), tree_sum(dy * x_hat, others)
    inner = dy - (d_bias * over_n).reshape(shape) - x_hat * (d_scale * over_n).reshape(shape)
    return (scale * inv_std).reshape(shape) * inner, d_scale, d_bias


def layer_norm(task: Task, *operands, begin_norm_axis, begin_params_axis, epsilon):
    x, gamma, beta = _values(operands)
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    if x.size == 0:
        rows = np.zeros(x.shape[: axes[0]] + (1,) * len(axes), np.float32)
        return x, rows, rows
    row_mean = mean(x, axes, True)
    shifted = x - row_mean
    inv_std = inverse_root(mean(shifted * shifted, axes, True), epsilon)
    y = shifted * inv_std
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta, row_mean, inv_std


def layer_norm_grad(task: Task, *operands, begin_norm_axis, params_rank, epsilon):
    dy, x, row_mean, inv_std, gamma = _values(operands)
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    others = tuple(range(x.ndim - params_rank))
    x_hat = (x - row_mean) * inv_std
    d_hat = dy if gamma is None else dy * gamma
    over_n = np.float32(1 / max(1, math.prod(x.shape[a] for a in axes)))
    inner = tree_sum(d_hat * x_hat, axes, True) * over_n
    d_x = inv_std * (d_hat - tree_sum(d_hat, axes, True) * over_n - x_hat * inner)
    return d_x, tree_sum(dy * x_hat, others), tree_sum(dy, others)


def bias_add(task: Task, input_x: Operand, bias: Operand, *, data_format):
    x, b = input_x.values(), bias.values()
    shape = _per_channel(x.ndim, data_format)[0]
    return x + b.reshape(shape)


#: Kernels that are written out, by op.
WRITTEN = {
    "sum": sum_,
    "mean": mean_,
    "sum_to": sum_to,
    "softmax": softmax,
    "softmax_grad": softmax_grad,
    "log_softmax": log_softmax,
    "log_softmax_grad": log_softmax_grad,
    "softmax_cross_entropy_with_logits": softmax_cross_entropy,
    "sparse_softmax_cross_entropy_with_logits": sparse_softmax_cross_entropy,
    "batch_norm_infer": batch_norm_infer,
    "batch_norm_train": batch_norm_train,
    "batch_norm_grad": batch_norm_grad,
    "layer_norm": layer_norm,
    "layer_norm_grad": layer_norm_grad,
    "bias_add": bias_add,
}
