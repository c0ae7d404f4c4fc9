"""Rules of ops for which MindIR has no operator of the same meaning: written as other ops."""

from __future__ import annotations

from collections.abc import Callable

from mycelia.engine import ops
from mycelia.engine.base import dtypes
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.rules.table import rule, traced

_TINY = 1e-12  # where binary_cross_entropy cuts its logarithms


def composition(function: Callable) -> Callable:
    """Decorator: the op of this name is `function(*tensors, **attributes)`."""

    def write(w, node, inputs):
        types = [v and v.type for v in node.inputs]
        return w.inline(traced(node.op.name, lambda *x: function(*x, **node.attrs), types), inputs)

    rule(function.__name__)(write)
    return function


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
