"""Attention and the transformer (Vaswani et al. 2017): MultiheadAttention,
encoder and decoder layers, Transformer.
"""

from __future__ import annotations

import copy
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
from mycelia.nn.activation import get_activation
from mycelia.nn.cell import Cell
from mycelia.nn.container import CellList
from mycelia.nn.dense import Dense, Dropout
from mycelia.nn.norm import LayerNorm


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


def _activation(activation):
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            raise errors.one_of(activation, ["relu", "gelu"], subject="Transformer", what="activation")
        made = get_activation(activation)
        if activation == "gelu":
            made.approximate = False
        return made
    if not callable(activation):
        raise errors.type_error(
            "Transformer", f"activation must be a name, a Cell or a function, but got {activation!r}"
        )
    return activation


class _Feed(Cell):
    """What encoder and decoder layers share: the feed forward part."""

    def _make_feed(self, d_model, dim_feedforward, dropout, activation, epsilon, norms, dtype):
        wide = Uniform(1 / math.sqrt(d_model))
        narrow = Uniform(1 / math.sqrt(dim_feedforward))
        self.dense1 = Dense(d_model, dim_feedforward, HeUniform(math.sqrt(5)), wide, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, HeUniform(math.sqrt(5)), narrow, dtype=dtype)
        for i in range(1, norms + 1):
            setattr(self, f"norm{i}", LayerNorm((d_model,), epsilon=epsilon, dtype=dtype))
        for i in range(1, norms + 1):
            setattr(self, f"dropout{i}", Dropout(p=dropout))
        # A named activation is a function and no part of the printed form.
        keep = self.__dict__.__setitem__ if isinstance(activation, str) else self.__setattr__
        keep("activation", _activation(activation))

    def _feed(self, x, drop):
        return drop(self.dense2(self.dropout(self.activation(self.dense1(x)))))


class TransformerEncoderLayer(_Feed):
    """Self-attention and a feed forward network, each with residual and layer norm.

    Shapes: src [T, N, d_model] ([N, T, d_model] with batch_first) -> same.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation="relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype=float32,
    ):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self._make_feed(d_model, dim_feedforward, dropout, activation, layer_norm_eps, 2, dtype)
        self.norm_first = norm_first

    def _attend(self, x, mask, padding):
        return self.dropout1(
            self.self_attn(x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask)[0]
        )

    def construct(self, src, src_mask=None, src_key_padding_mask=None):
        if self.norm_first:
            src = src + self._attend(self.norm1(src), src_mask, src_key_padding_mask)
            return src + self._feed(self.norm2(src), self.dropout2)
        src = self.norm1(src + self._attend(src, src_mask, src_key_padding_mask))
        return self.norm2(src + self._feed(src, self.dropout2))


class TransformerDecoderLayer(_Feed):
    """Self-attention, attention to the memory and a feed forward network, each with residual and layer norm.

    Shapes: tgt [T, N, d_model], memory [S, N, d_model] (batch first if asked) -> as tgt.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation="relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype=float32,
    ):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, batch_first=batch_first, dtype=dtype
        )
        self._make_feed(d_model, dim_feedforward, dropout, activation, layer_norm_eps, 3, dtype)
        self.norm_first = norm_first

    def _attend(self, x, mask, padding):
        return self.dropout1(
            self.self_attn(x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask)[0]
        )

    def _look(self, x, memory, mask, padding):
        return self.dropout2(
            self.multihead_attn(
                x, memory, memory, key_padding_mask=padding, need_weights=False, attn_mask=mask
            )[0]
        )

    def construct(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        x = tgt
        if self.norm_first:
            x = x + self._attend(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self._look(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self._feed(self.norm3(x), self.dropout3)
        x = self.norm1(x + self._attend(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self._look(x, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(x + self._feed(x, self.dropout3))


def _copies(layer: Cell, count: int) -> CellList:
    """`count` layers of their own, starting from equal weights as MindSpore's do."""
    return CellList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Cell):
    """A stack of encoder layers, then `norm` if given."""

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def construct(self, src, src_mask=None, src_key_padding_mask=None):
        for layer in self.layers:
            src = layer(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    """A stack of decoder layers, then `norm` if given."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def construct(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """Encoder and decoder. Shapes:
    src [S, N, d_model], tgt [T, N, d_model] (batch first if asked) -> as tgt.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation="relu",
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype=float32,
    ):
        super().__init__()
        settings = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            dtype,
        )
        if custom_encoder is None:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers, norm)
        if custom_decoder is None:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers, norm)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for p in self.get_parameters():
            if p.ndim > 1:
                p.set_data(initializer("xavier_uniform", p.shape, p.dtype))

    def construct(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        if (
            src.ndim == 3
            and src.shape[0 if self.batch_first else 1] != tgt.shape[0 if self.batch_first else 1]
        ):
            raise errors.shape_error(
                "Transformer",
                f"src and tgt must have one batch size, but have {list(src.shape)} and {list(tgt.shape)}",
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise errors.shape_error(
                "Transformer",
                f"src and tgt must end with d_model {self.d_model}, but have {list(src.shape)} and "
                f"{list(tgt.shape)}",
            )
        memory = self.encoder(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
        )
