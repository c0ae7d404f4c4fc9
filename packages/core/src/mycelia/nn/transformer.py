"""The transformer (Vaswani et al. 2017): encoder and decoder layers, their stacks, Transformer."""

from __future__ import annotations

import copy
import math

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float32
from mycelia.engine.tensors.initializer import HeUniform, Uniform, initializer
from mycelia.nn.activation import get_activation
from mycelia.nn.attention import MultiheadAttention
from mycelia.nn.cell import Cell
from mycelia.nn.container import CellList
from mycelia.nn.dense import Dense
from mycelia.nn.dropout import Dropout
from mycelia.nn.norm import LayerNorm


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


class _Layer(Cell):
    """What encoder and decoder layers share: attention to the sequence itself and the feed forward part."""

    _attentions = ("self_attn",)

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
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
            setattr(self, name, attention)
        norms = len(self._attentions) + 1
        self._make_feed(d_model, dim_feedforward, dropout, activation, layer_norm_eps, norms, dtype)
        self.norm_first = norm_first

    def _attend(self, x, mask, padding):
        return self.dropout1(
            self.self_attn(x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask)[0]
        )

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


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed forward network, each with residual and layer norm.

    Shapes: src [T, N, d_model] ([N, T, d_model] with batch_first) -> same.
    """

    def construct(self, src, src_mask=None, src_key_padding_mask=None):
        if self.norm_first:
            src = src + self._attend(self.norm1(src), src_mask, src_key_padding_mask)
            return src + self._feed(self.norm2(src), self.dropout2)
        src = self.norm1(src + self._attend(src, src_mask, src_key_padding_mask))
        return self.norm2(src + self._feed(src, self.dropout2))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the memory and a feed forward network, each with residual and layer norm.

    Shapes: tgt [T, N, d_model], memory [S, N, d_model] (batch first if asked) -> as tgt.
    """

    _attentions = ("self_attn", "multihead_attn")

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
