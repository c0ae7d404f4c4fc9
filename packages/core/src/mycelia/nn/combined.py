"""Layers that join a convolution or a fully connected layer with batch normalization and an activation."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored
from mycelia.nn.activation import LeakyReLU, get_activation
from mycelia.nn.cell import Cell
from mycelia.nn.conv import Conv2d
from mycelia.nn.dense import Dense
from mycelia.nn.norm import BatchNorm1d, BatchNorm2d


def _activation(owner: str, activation, alpha: float):
    if activation is None:
        return None
    if activation == "leakyrelu":
        return LeakyReLU(alpha)
    made = get_activation(activation) if isinstance(activation, str) else activation
    if not isinstance(made, Cell):
        raise errors.type_error(
            owner, f"activation must be a name or a Cell, but got {type(activation).__name__}"
        )
    return made


class _Combined(Cell):
    """What follows the linear part: `batchnorm` and `activation`, where they are."""

    def _finish(self, x):
        if self.has_bn:
            x = self.batchnorm(x)
        return self.activation(x) if self.has_act else x


class Conv2dBnAct(_Combined):
    """`Conv2d`, then `BatchNorm2d` with `has_bn`, then `activation`. `alpha`: slope of 'leakyrelu'.

    Shapes: [N, in_channels, H, W] -> [N, out_channels, H', W']. `after_fake` has no effect.
    """

    @ignored.arguments(after_fake="no fake quantization is put in")
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1,
        group=1, has_bias=False, weight_init="normal", bias_init="zeros", has_bn=False, momentum=0.997,
        eps=1e-5, activation=None, alpha=0.2, after_fake=True,
    ):  # fmt: skip
        super().__init__()
        self.conv = Conv2d(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init,
        )  # fmt: skip
        self.has_bn, self.has_act = bool(has_bn), activation is not None
        if self.has_bn:
            self.batchnorm = BatchNorm2d(out_channels, eps, momentum)
        self.activation = _activation("Conv2dBnAct", activation, alpha)

    def construct(self, x):
        return self._finish(self.conv(x))


class DenseBnAct(_Combined):
    """`Dense`, then `BatchNorm1d` with `has_bn`, then `activation`. `alpha`: slope of 'leakyrelu'.

    Shapes: [N, in_channels] -> [N, out_channels]. `after_fake` has no effect.
    """

    @ignored.arguments(after_fake="no fake quantization is put in")
    def __init__(
        self,
        in_channels,
        out_channels,
        weight_init="normal",
        bias_init="zeros",
        has_bias=True,
        has_bn=False,
        momentum=0.9,
        eps=1e-5,
        activation=None,
        alpha=0.2,
        after_fake=True,
    ):
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self.has_bn, self.has_act = bool(has_bn), activation is not None
        if self.has_bn:
            self.batchnorm = BatchNorm1d(out_channels, eps, momentum)
        self.activation = _activation("DenseBnAct", activation, alpha)

    def construct(self, x):
        return self._finish(self.dense(x))
