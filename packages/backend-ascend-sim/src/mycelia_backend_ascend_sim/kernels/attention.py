"""Attention and its gradient as one task: products of the cube with the softmax between them (R9).

What the vector unit hands to the cube is rounded as operands of the tensors' dtype are (R8).
"""

from __future__ import annotations

import numpy as np

from mycelia import dtypes
from mycelia.dtypes import DType
from mycelia_backend_ascend_sim.arithmetic import rounded, tree_sum
from mycelia_backend_ascend_sim.kernels.cube import products
from mycelia_backend_ascend_sim.kernels.vector import precise
from mycelia_backend_ascend_sim.tasks import Operand, Task


def _handed(task: Task, x: np.ndarray, dtype: DType) -> np.ndarray:
    """Values of the vector unit as the cube takes them."""
    if dtype is dtypes.float32:
        return task.cube_values(x, dtype)
    return rounded(x, dtype).astype(np.float32)


def _turned(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(-1, -2)


def _scores(task: Task, q, k, mask: Operand | None, dtype, *, scale, is_causal, masking, hidden):
    """The scores, and where they were replaced (None: nowhere)."""
    scores = products(task, q, _turned(k), dtype) * np.float32(scale)
    masks = [] if mask is None else [mask.values()]
    if is_causal:
        rows, columns = scores.shape[-2:]
        seen = np.arange(columns) <= np.arange(rows)[:, None]
        masks.append(np.where(seen, np.float32(0), np.float32(hidden)))
    replaced = None
    for added in masks:
        if masking == "add":
            scores = scores + added
        else:
            here = np.broadcast_to(added != 0, scores.shape)
            scores = np.where(here, added, scores)
            replaced = here if replaced is None else replaced | here
    return scores, replaced


def _exponentials(scores: np.ndarray, unseen: str = "zero"):
    peak = scores.max(-1, keepdims=True)
    if unseen == "zero":
        peak = np.where(peak == -np.inf, np.float32(0), peak)
    e = precise(np.exp, scores - peak)
    return peak, e, tree_sum(e, (-1,), True)


def _weights(scores: np.ndarray, log_sum: np.ndarray) -> np.ndarray:
    peak = scores.max(-1, keepdims=True)
    e = precise(np.exp, scores - peak)
    return np.where(log_sum[..., None] == -np.inf, np.float32(0), e / tree_sum(e, (-1,), True))


def attention(
    task: Task, query: Operand, key: Operand, value: Operand, mask: Operand | None, rng_key: Operand | None,
    *, scale, is_causal, p, masking, hidden, unseen,
):  # fmt: skip
    q, k, v = (o.cube_values("FRACTAL_NZ") for o in (query, key, value))
    if q.size == 0 or k.size == 0:
        y = np.zeros((*q.shape[:-1], v.shape[-1]), np.float32)
        return y, np.full(q.shape[:-1], -np.inf, np.float32)
    how = dict(scale=scale, is_causal=is_causal, masking=masking, hidden=hidden)
    scores, _ = _scores(task, q, k, mask, query.dtype, **how)
    peak, _, total = _exponentials(scores, unseen)
    log_sum = (precise(np.log, total) + peak)[..., 0]
    weights = _handed(task, _weights(scores, log_sum), query.dtype)
    return products(task, weights, v, query.dtype), log_sum


def attention_grad(
    task: Task, dy: Operand, query: Operand, key: Operand, value: Operand, y: Operand, log_sum: Operand,
    mask: Operand | None, rng_key: Operand | None, *, scale, is_causal, p, masking, hidden,
):  # fmt: skip
    dtype = query.dtype
    d, q, k, v = (o.cube_values("FRACTAL_NZ") for o in (dy, query, key, value))
    if q.size == 0 or k.size == 0:
        return np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    how = dict(scale=scale, is_causal=is_causal, masking=masking, hidden=hidden)
    scores, replaced = _scores(task, q, k, mask, dtype, **how)
    weights = _weights(scores, log_sum.values())
    d_weights = products(task, d, _turned(v), dtype)
    d_scores = weights * (d_weights - tree_sum(d_weights * weights, (-1,), True))
    if replaced is not None:
        d_scores = np.where(replaced, np.float32(0), d_scores)
    d_scores = _handed(task, d_scores * np.float32(scale), dtype)
    weights = _handed(task, weights, dtype)
    return (
        products(task, d_scores, k, dtype),
        products(task, _turned(d_scores), q, dtype),
        products(task, _turned(weights), d, dtype),
    )


WRITTEN = {"attention": attention, "attention_grad": attention_grad}
