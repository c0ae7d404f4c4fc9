"""Compositions of activations, pooling, comparisons, losses and assignments."""

from __future__ import annotations

import numpy as np

from mycelia.engine import ops
from mycelia.engine.base import dtypes
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.compositions.table import composition

_TINY = 1e-12  # where binary_cross_entropy cuts its logarithms


# ---- activations


@composition
def fast_gelu(x):
    return x * ops.sigmoid(x * 1.702)


@composition
def logsigmoid(x):
    return ops.minimum(x, Tensor(0, x.dtype)) - ops.log1p(ops.exp(-ops.abs(x)))


@composition
def mish(x):
    return x * ops.tanh(softplus(x, beta=1.0, threshold=20.0))


@composition
def softplus(x, *, beta, threshold):
    scaled = x * beta
    soft = ops.log1p(ops.exp(ops.minimum(scaled, Tensor(threshold, x.dtype)))) / beta
    return ops.where(scaled > threshold, x, soft)


@composition
def softsign(x):
    return x / (ops.abs(x) + Tensor(1, x.dtype))


@composition
def celu(x, *, alpha):
    zero = Tensor(0, x.dtype)
    return ops.maximum(x, zero) + ops.expm1(ops.minimum(x, zero) / alpha) * alpha


@composition
def diagonal(x, *, offset, dim1, dim2):
    """Elements of two axes, which are gathered from one."""
    rank = len(x.shape)
    dims = dim1 % rank, dim2 % rank
    *batch, rows, columns = (x.shape[d] for d in (*(d for d in range(rank) if d not in dims), *dims))
    x = ops.transpose(x, (*(d for d in range(rank) if d not in dims), *dims))
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    places = (np.arange(count) - min(offset, 0)) * columns + np.arange(count) + max(offset, 0)
    return ops.gather(ops.reshape(x, (*batch, rows * columns)), Tensor(places), len(batch))


@composition
def masked_fill(x, mask, value):
    return ops.where(mask, value, x)


@composition
def stop_gradient(x):
    return x


@composition
def adaptive_avg_pool(x, *, size):
    """Means of windows that overlap where the sizes do not divide: products with matrices of weights."""
    first = len(x.shape) - len(size)
    for axis, out in reversed(list(enumerate(size, first))):
        n = x.shape[axis]
        places = np.arange(out)
        begin, end = places * n // out, -(-(places + 1) * n // out)
        at = np.arange(n)
        inside = (at >= begin[:, None]) & (at < end[:, None])
        weights = Tensor(inside / inside.sum(1, keepdims=True), x.dtype)
        if axis == len(x.shape) - 2:
            x = ops.matmul(weights, x)
        else:
            x = ops.swapaxes(ops.matmul(ops.swapaxes(x, axis, -1), weights.T), axis, -1)
    return x


# ---- losses


@composition
def sigmoid_cross_entropy_with_logits(logits, label):
    return ops.relu(logits) - logits * label + ops.log1p(ops.exp(-ops.abs(logits)))


@composition
def smooth_l1(d, *, beta):
    size = ops.abs(d)
    return ops.where(size < beta, d * d * (0.5 / beta), size - 0.5 * beta)


@composition
def binary_cross_entropy(logits, labels):
    yes, no = (ops.log(ops.maximum(p, _TINY)) for p in (logits, 1.0 - logits))
    return -(labels * yes + (1.0 - labels) * no)


@composition
def kl_div(logits, labels):
    positive = labels > 0
    safe = ops.where(positive, labels, ops.ones_like(labels))
    return ops.where(positive, labels * (ops.log(safe) - logits), ops.zeros_like(logits))


# ---- comparisons, classes, updates


@composition
def isclose(x, y, *, rtol, atol, equal_nan):
    finite = ops.logical_and(ops.isfinite(x), ops.isfinite(y))
    near = ops.logical_and(finite, ops.abs(x - y) <= atol + rtol * ops.abs(y))
    near = ops.logical_or(near, x == y)  # infinities
    return ops.logical_or(near, ops.logical_and(ops.isnan(x), ops.isnan(y))) if equal_nan else near


@composition
def pick_class(x, labels, *, ignore_index):
    one, zero = Tensor(1, dtypes.float32), Tensor(0, dtypes.float32)
    chosen = ops.one_hot(labels, x.shape[1], one, zero, -1)  # of an ignored label: all zero
    return ops.sum(ops.where(chosen > 0, x, ops.zeros_like(x)), 1)


@composition
def isreal(x):
    return ops.equal(ops.zeros_like(x), 0)


def _spread(value, variable):
    value = value.astype(variable.dtype)
    if value.shape == variable.shape:
        return value
    return ops.broadcast_to(ops.reshape(value, ()), variable.shape)


# What is assigned is the new value from here on; the weight itself takes it when the graph ends.


@composition
def assign(variable, value):
    return _spread(value, variable)


@composition
def assign_add(variable, value):
    return variable + _spread(value, variable)


@composition
def assign_sub(variable, value):
    return variable - _spread(value, variable)


@composition
def squared_error(x, y, *, reduction):
    square = (x - y) * (x - y)
    return square if reduction == "none" else {"mean": ops.mean, "sum": ops.sum}[reduction](square)
