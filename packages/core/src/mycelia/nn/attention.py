"""Multi-head attention (Vaswani et al. 2017)."""

from __future__ import annotations

import math

from mycelia.engine.base import dtypes, errors
from mycelia.engine.base.dtypes import float32
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays.axes import swapaxes, transpose
from mycelia.engine.ops.arrays.create import zeros
from mycelia.engine.ops.arrays.joining import concat, split
from mycelia.engine.ops.arrays.repeating import tile
from mycelia.engine.ops.arrays.shape import expand_dims, reshape, squeeze
from mycelia.engine.ops.linalg import products as _linalg
from mycelia.engine.ops.nn_ops.attention import scaled_dot_product_attention
from mycelia.engine.ops.random.random import dropout as _dropout
from mycelia.engine.ops.reductions.reduce import mean
from mycelia.engine.ops.reductions.softmaxes import softmax
from mycelia.engine.tensors.initializer import HeUniform, Uniform, XavierNormal, XavierUniform, initializer
from mycelia.engine.tensors.tensor import Parameter
from mycelia.nn.cell import Cell
from mycelia.nn.dense import Dense


def _additive(mask, dtype):
    """A mask to add to scores: for a boolean mask -inf where it is True (as MindSpore means it)."""
    if mask is None or mask.dtype.is_floating:
        return mask
    return _masks.where(mask.astype(dtypes.bool_), float("-inf"), 0.0).astype(dtype)


class MultiheadAttention(Cell):
    """Attention of several heads over learned projections.

    Shapes: query [T, N, E], key and value [S, N, ...] ([N, T, E] with batch_first; [T, E] without batch) ->
    output as query, weights [N, T, S] ([N, heads, T, S] without averaging). Boolean masks hide where True;
    key_padding_mask [N, S], attn_mask [T, S] or [N * heads, T, S].
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        has_bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        dtype=float32,
    ):
        super().__init__()
        if embed_dim % num_heads:
            raise errors.value_error(
                "MultiheadAttention", f"embed_dim {embed_dim} must be divisible by num_heads {num_heads}"
            )
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = (
            embed_dim,
            num_heads,
            float(dropout),
            batch_first,
        )
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self._same = self.kdim == embed_dim and self.vdim == embed_dim
        if self._same:
            self.in_proj_weight = Parameter(
                initializer(XavierUniform(), (3 * embed_dim, embed_dim), dtype), "in_proj_weight"
            )
        else:
            self.q_proj_weight = Parameter(
                initializer(XavierUniform(), (embed_dim, embed_dim), dtype), "q_proj_weight"
            )
            self.k_proj_weight = Parameter(
                initializer(XavierUniform(), (embed_dim, self.kdim), dtype), "k_proj_weight"
            )
            self.v_proj_weight = Parameter(
                initializer(XavierUniform(), (embed_dim, self.vdim), dtype), "v_proj_weight"
            )
        self.in_proj_bias = (
            Parameter(initializer("zeros", (3 * embed_dim,), dtype), "in_proj_bias") if has_bias else None
        )
        bound = Uniform(1 / math.sqrt(embed_dim))
        self.out_proj = Dense(embed_dim, embed_dim, HeUniform(math.sqrt(5)), bound, has_bias, dtype=dtype)
        self.bias_k = (
            Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), "bias_k")
            if add_bias_kv
            else None
        )
        self.bias_v = (
            Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), "bias_v")
            if add_bias_kv
            else None
        )

    def _project(self, query, key, value):
        biases = (
            (None, None, None) if self.in_proj_bias is None else split(self.in_proj_bias, self.embed_dim, 0)
        )
        if self._same and query is key and key is value:
            return split(_linalg.dense(query, self.in_proj_weight, self.in_proj_bias), self.embed_dim, -1)
        weights = (
            split(self.in_proj_weight, self.embed_dim, 0)
            if self._same
            else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        )
        return tuple(_linalg.dense(x, w, b) for x, w, b in zip((query, key, value), weights, biases))

    def _heads(self, x):
        """[T, N, E] -> [N, heads, T, E / heads]."""
        return transpose(reshape(x, (*x.shape[:2], self.num_heads, self.head_dim)), (1, 2, 0, 3))

    def construct(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
    ):
        batched = query.ndim == 3
        if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
            raise errors.shape_error(
                "MultiheadAttention",
                f"query, key and value must all have rank 2 or 3, but have {query.ndim}, {key.ndim}, "
                f"{value.ndim}",
            )
        same_kv, same_qk = key is value, query is key
        if not batched:
            query, key, value = (expand_dims(x, 1) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else expand_dims(key_padding_mask, 0)
        elif self.batch_first:
            query, key, value = (swapaxes(x, 0, 1) for x in (query, key, value))
        value = key if same_kv else value
        query = key if same_qk else query
        if query.shape[2] != self.embed_dim:
            raise errors.shape_error(
                "MultiheadAttention",
                f"query must end with embed_dim {self.embed_dim}, but its shape is {list(query.shape)}",
            )
        steps, batch = query.shape[:2]
        q, k, v = self._project(query, key, value)
        mask = _additive(attn_mask, q.dtype)
        if mask is not None and mask.ndim == 3:
            mask = reshape(mask, (batch, self.num_heads, *mask.shape[1:]))
        padding = _additive(key_padding_mask, q.dtype)
        if self.bias_k is not None:
            k = concat([k, tile(self.bias_k, (1, batch, 1))], 0)
            v = concat([v, tile(self.bias_v, (1, batch, 1))], 0)
            mask, padding = _one_more(mask), _one_more(padding)
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        if self.add_zero_attn:
            nothing = zeros((batch, self.num_heads, 1, self.head_dim), q.dtype)
            k, v = concat([k, nothing], 2), concat([v, nothing], 2)
            mask, padding = _one_more(mask), _one_more(padding)
        if padding is not None:
            padding = reshape(padding, (batch, 1, 1, padding.shape[-1]))
            mask = padding if mask is None else mask + padding
        p = self.dropout if self.training else 0.0
        if need_weights:
            scores = _linalg.batch_matmul(q * (1 / math.sqrt(self.head_dim)), k, transpose_b=True)
            weights = softmax(scores if mask is None else scores + mask, -1)
            weights = _dropout(weights, p) if p else weights
            joined = _linalg.batch_matmul(weights, v)
        else:
            joined = scaled_dot_product_attention(q, k, v, mask, p)
        joined = reshape(transpose(joined, (2, 0, 1, 3)), (steps, batch, self.embed_dim))
        output = self.out_proj(joined)
        if not batched:
            output = squeeze(output, 1)
        elif self.batch_first:
            output = swapaxes(output, 0, 1)
        if not need_weights:
            return (output,)
        if average_attn_weights:
            weights = mean(weights, 1)
        return output, (weights if batched else squeeze(weights, 0))


def _one_more(mask):
    """A mask for one more key, which everybody sees."""
    if mask is None:
        return None
    return concat([mask, zeros((*mask.shape[:-1], 1), mask.dtype)], -1)
