"""Layers of the second-order optimizer thor. Without it they compute as the layers they are named after."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored
from mycelia.engine.base.dtypes import float32
from mycelia.nn.conv import Conv2d
from mycelia.nn.dense import Dense
from mycelia.nn.embedding import Embedding, EmbeddingLookup
from mycelia.nn.optim.descent import Momentum


class DenseThor(Dense):
    """`Dense` for thor."""

    def __init__(
        self,
        in_channels,
        out_channels,
        weight_init="normal",
        bias_init="zeros",
        has_bias=True,
        activation=None,
    ):
        super().__init__(in_channels, out_channels, weight_init, bias_init, has_bias, activation)

    def save_gradient(self, dout):
        """The gradient itself: its covariance is gathered on Ascend and GPU only."""
        return dout

    def extend_repr(self) -> str:
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += f", has_bias={self.has_bias}"
        return text if self.activation is None else f"{text}, activation={self.activation}"


class Conv2dThor(Conv2d):
    """`Conv2d` for thor."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1,
        group=1, has_bias=False, weight_init="normal", bias_init="zeros",
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init,
        )  # fmt: skip

    def save_gradient(self, dout):
        """The gradient itself: its covariance is gathered on Ascend and GPU only."""
        return dout


class EmbeddingThor(Embedding):
    """`Embedding` for thor."""

    def __init__(
        self,
        vocab_size,
        embedding_size,
        use_one_hot=False,
        embedding_table="normal",
        dtype=float32,
        padding_idx=None,
    ):
        super().__init__(vocab_size, embedding_size, use_one_hot, embedding_table, dtype, padding_idx)

    def save_gradient(self, dout):
        """The gradient itself: its covariance is gathered on Ascend and GPU only."""
        return dout


class EmbeddingLookupThor(EmbeddingLookup):
    """`EmbeddingLookup` for thor."""

    def save_gradient(self, dout):
        """The gradient itself: its covariance is gathered on Ascend and GPU only."""
        return dout


@ignored.arguments(
    batch_size="thor makes no step here",
    decay_filter="thor makes no step here",
    split_indices="thor makes no step here",
    enable_clip_grad="thor makes no step here",
    frequency="thor makes no step here",
)
def thor(
    net,
    learning_rate,
    damping,
    momentum,
    weight_decay=0.0,
    loss_scale=1.0,
    batch_size=32,
    use_nesterov=False,
    decay_filter=lambda x: x.name not in [],
    split_indices=None,
    enable_clip_grad=False,
    frequency=100,
):
    """The second-order optimizer, made and checked as `Momentum`; a step raises NotSupportedError, since it
    needs the matrix kernels of an Ascend or GPU backend.
    """
    del damping  # a step raises
    return _Thor(net.trainable_params(), learning_rate, momentum, weight_decay, loss_scale, use_nesterov)


class _Thor(Momentum):
    def construct(self, gradients):
        raise errors.error(
            errors.NotSupportedError,
            "thor",
            "second-order steps need the matrix kernels of an Ascend or GPU backend",
            hint="nn.Momentum or nn.Lamb are the closest optimizers here",
        )
