"""Tokens of experts and their places, rotary positions."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes, errors, ignored


def rotary_position_embedding(x, cos, sin, mode=0):
    """``x * cos + turned(x) * sin``; turned: halves (`mode` 0) or neighbours (1) exchanged, the first
    negated.

    Shapes: [.., D], cos and sin broadcast to it -> same.  dtypes: floating.
    Errors: ValueError for another mode or an odd last axis.  Source: Su et al. 2021, RoFormer.
    """
    if mode not in (0, 1) or x.shape[-1] % 2:
        raise errors.value_error(
            "rotary_position_embedding",
            f"mode must be 0 or 1 and the last axis even, but got {mode!r} and {tuple(x.shape)}",
        )
    if mode == 0:
        first, second = ops.chunk(x, 2, -1)
        turned = ops.concat((-second, first), -1)
    else:
        pairs = ops.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        turned = ops.reshape(ops.stack((-pairs[..., 1], pairs[..., 0]), -1), x.shape)
    return x * cos + turned * sin


def moe_token_permute(tokens, indices, num_out_tokens=None, padded_mode=False):
    """Tokens in the order of their experts, and for each (expert's turn, token) its new place.

    Shapes: tokens [n, d], indices [n, k] or [n] -> [n * k, d], [n * k]; only the first `num_out_tokens` rows.
    dtypes: any, integers -> any, int32.  Errors: ValueError for `padded_mode`.
    """
    if padded_mode:
        raise errors.value_error("moe_token_permute", "padded_mode must be False")
    turns = 1 if indices.ndim == 1 else indices.shape[1]
    flat = ops.cast(ops.reshape(indices, (-1,)), dtypes.float64)
    order = ops.argsort(flat * flat.size + ops.arange(flat.size))  # equal ones stay in order
    places = ops.cast(ops.argsort(ops.cast(order, dtypes.float64)), dtypes.int32)
    rows = ops.gather(tokens, ops.cast(ops.floor_div(order, turns), dtypes.int32), 0)
    limit = rows.shape[0] if not num_out_tokens else min(num_out_tokens, rows.shape[0])
    return rows[:limit], places


@ignored.arguments(restore_shape="it is that of padded_mode")
def moe_token_unpermute(permuted_tokens, sorted_indices, probs=None, padded_mode=False, restore_shape=None):
    """The tokens in their first order; those of several experts are summed, weighted by `probs` [n, k].

    Shapes: [n * k, d], [n * k] -> [n, d].  Errors: ValueError for `padded_mode`.
    """
    if padded_mode:
        raise errors.value_error("moe_token_unpermute", "padded_mode must be False")
    rows = ops.gather(permuted_tokens, sorted_indices, 0)
    if probs is None:
        return rows
    turns = probs.shape[1]
    rows = ops.reshape(rows, (-1, turns, rows.shape[-1])) * ops.expand_dims(ops.cast(probs, rows.dtype), -1)
    return ops.sum(rows, 1)


__all__ = ["moe_token_permute", "moe_token_unpermute", "rotary_position_embedding"]
