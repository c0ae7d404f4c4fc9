"""Pools of the vector unit.

The terms of a mean are summed by R5 and multiplied by 1 over their number. Gradients of largest elements are
added tap after tap, by kernel row and column.
"""

from __future__ import annotations

import numpy as np

from mycelia_backend_ascend_sim.arithmetic import halved
from mycelia_backend_ascend_sim.kernels.cube import Geometry
from mycelia_backend_ascend_sim.tasks import Operand, Task


def _factors(geometry: Geometry, count_include_pad: bool, divisor: int) -> np.ndarray:
    """float32 of 1 over what each position's window counts: [*positions]."""
    rank = len(geometry.kernel)
    count = np.ones(geometry.positions)
    for d, n in enumerate(geometry.size):
        begin = np.arange(geometry.positions[d]) * geometry.stride[d] - geometry.pad[d]
        end = np.minimum(begin + geometry.kernel[d], n + geometry.pad[rank + d])
        inside = end - begin if count_include_pad else np.minimum(end, n) - np.maximum(begin, 0)
        shape = [1] * rank
        shape[d] = -1
        count = count * np.maximum(inside, 1).reshape(shape)
    return (1 / (np.full_like(count, divisor) if divisor else count)).astype(np.float32)


def avg_pool(task: Task, x: Operand, *, kernel, stride, pad, ceil, count_include_pad, divisor, data_format):
    geometry = Geometry(x.shape[2:], kernel, task.outputs[0].shape[2:], stride, pad, (1,))
    total = halved(geometry.columns(x.values()))
    return total * _factors(geometry, count_include_pad, divisor)


def avg_pool_grad(
    task: Task, dy: Operand, *, size, kernel, stride, pad, ceil, count_include_pad, divisor, data_format
):
    geometry = Geometry(size, kernel, dy.shape[2:], stride, pad, (1,))
    parts = dy.values() * _factors(geometry, count_include_pad, divisor)
    return halved(geometry.columns(parts, backward=True))


def max_pool(task: Task, x: Operand, *, kernel, stride, pad, dilation, ceil, data_format):
    geometry = Geometry(x.shape[2:], kernel, task.outputs[0].shape[2:], stride, pad, dilation)
    return np.maximum.reduce(geometry.columns(x.values(), missing=-np.inf), 0)


def max_pool_grad(task: Task, x: Operand, dy: Operand, *, kernel, stride, pad, dilation, ceil, data_format):
    geometry = Geometry(x.shape[2:], kernel, dy.shape[2:], stride, pad, dilation)
    first = geometry.columns(x.values(), missing=-np.inf).argmax(0)
    result, dys = np.zeros(x.shape, np.float32), dy.values()
    for i, tap in enumerate(geometry.taps):
        if found := geometry.meetings(tap):
            at, read = found
            chosen = first[(..., *at)] == i
            result[(..., *read)] += np.where(chosen, dys[(..., *at)], np.float32(0))
    return result


WRITTEN = {
    "max_pool": max_pool,
    "max_pool_grad": max_pool_grad,
    "avg_pool": avg_pool,
    "avg_pool_grad": avg_pool_grad,
}
