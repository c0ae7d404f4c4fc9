"""MobileNets: Howard et al. 2017 (V1), Sandler et al. 2018 (V2), Howard et al. 2019 (V3), and
EfficientNet-B0 (Tan and Le 2019), which is made of the same inverted residual blocks.
"""

from mycelia import nn, ops

ACTIVATIONS = {"relu": nn.ReLU, "relu6": nn.ReLU6, "hswish": nn.HSwish, "silu": nn.SiLU}


def whole(channels, unit=8):
    """Channels as a multiple of `unit`, never less than nine tenths of what was asked for."""
    rounded = max(unit, int(channels + unit / 2) // unit * unit)
    return rounded + unit if rounded < 0.9 * channels else rounded


def conv_norm(inputs, outputs, kernel=1, stride=1, group=1, activation=None):
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, "pad", kernel // 2, group=group),
        nn.BatchNorm2d(outputs),
    ]
    return nn.SequentialCell(layers + ([ACTIVATIONS[activation]()] if activation else []))


class SqueezeExcite(nn.Cell):
    """Scales each channel by a gate computed from the means of all (Hu et al. 2017)."""

    def __init__(self, channels, hidden, inner, gate):
        super().__init__()
        self.down = nn.Conv2d(channels, hidden, 1, has_bias=True)
        self.up = nn.Conv2d(hidden, channels, 1, has_bias=True)
        self.inner, self.gate = inner, gate

    def construct(self, x):
        means = ops.mean(x, (2, 3), keep_dims=True)
        return x * self.gate(self.up(self.inner(self.down(means))))


class InvertedResidual(nn.Cell):
    """Widen by 1x1, filter each channel, narrow by 1x1; with a shortcut where the shapes agree."""

    def __init__(self, inputs, outputs, kernel, stride, hidden, activation, squeeze=None):
        super().__init__()
        layers = [] if hidden == inputs else [conv_norm(inputs, hidden, activation=activation)]
        layers.append(conv_norm(hidden, hidden, kernel, stride, hidden, activation))
        if squeeze is not None:
            layers.append(squeeze)
        layers.append(conv_norm(hidden, outputs))
        self.body = nn.SequentialCell(layers)
        self.is_residual = stride == 1 and inputs == outputs

    def construct(self, x):
        y = self.body(x)
        return x + y if self.is_residual else y


class Classifier(nn.Cell):
    """Features, mean over the plane, dense head.  Shapes: x [N, 3, H, W] -> [N, classes]."""

    def __init__(self, features, head):
        super().__init__()
        self.features, self.head = nn.SequentialCell(features), nn.SequentialCell(head)

    def construct(self, x):
        return self.head(ops.mean(self.features(x), (2, 3)))


def mobilenet_v1(classes=1000, width=1.0):
    outputs = [whole(c * width) for c in (32, 64, 128, 128, 256, 256, *[512] * 6, 1024, 1024)]
    strides = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
    features = [conv_norm(3, outputs[0], 3, 2, activation="relu")]
    for before, after, stride in zip(outputs, outputs[1:], strides):
        features += [
            conv_norm(before, before, 3, stride, before, "relu"), conv_norm(before, after, activation="relu")
        ]  # fmt: skip
    return Classifier(features, [nn.Dense(outputs[-1], classes)])


def mobilenet_v2(classes=1000, width=1.0, dropout=0.2):
    inputs = whole(32 * width)
    features: list[nn.Cell] = [conv_norm(3, inputs, 3, 2, activation="relu6")]
    for factor, channels, repeats, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):  # fmt: skip
        outputs = whole(channels * width)
        for position in range(repeats):
            first = stride if position == 0 else 1
            features.append(InvertedResidual(inputs, outputs, 3, first, inputs * factor, "relu6"))
            inputs = outputs
    last = whole(1280 * max(1.0, width))
    features.append(conv_norm(inputs, last, activation="relu6"))
    return Classifier(features, [nn.Dropout(p=dropout), nn.Dense(last, classes)])


def mobilenet_v3(classes=1000, width=1.0, dropout=0.2):
    """The small variant."""
    inputs = whole(16 * width)
    features: list[nn.Cell] = [conv_norm(3, inputs, 3, 2, activation="hswish")]
    for kernel, hidden, channels, squeezes, activation, stride in (
        (3, 16, 16, True, "relu", 2), (3, 72, 24, False, "relu", 2), (3, 88, 24, False, "relu", 1),
        (5, 96, 40, True, "hswish", 2), (5, 240, 40, True, "hswish", 1), (5, 240, 40, True, "hswish", 1),
        (5, 120, 48, True, "hswish", 1), (5, 144, 48, True, "hswish", 1), (5, 288, 96, True, "hswish", 2),
        (5, 576, 96, True, "hswish", 1), (5, 576, 96, True, "hswish", 1),
    ):  # fmt: skip
        hidden, outputs = whole(hidden * width), whole(channels * width)
        squeeze = SqueezeExcite(hidden, whole(hidden / 4), nn.ReLU(), nn.HSigmoid()) if squeezes else None
        features.append(InvertedResidual(inputs, outputs, kernel, stride, hidden, activation, squeeze))
        inputs = outputs
    last = whole(576 * width)
    features.append(conv_norm(inputs, last, activation="hswish"))
    hidden = whole(1024 * width)
    head = [nn.Dense(last, hidden), nn.HSwish(), nn.Dropout(p=dropout), nn.Dense(hidden, classes)]
    return Classifier(features, head)


def efficientnet_b0(classes=1000, width=1.0, dropout=0.2):
    inputs = whole(32 * width)
    features: list[nn.Cell] = [conv_norm(3, inputs, 3, 2, activation="silu")]
    for factor, channels, repeats, stride, kernel in (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
    ):  # fmt: skip
        outputs = whole(channels * width)
        for position in range(repeats):
            hidden, first = inputs * factor, stride if position == 0 else 1
            squeeze = SqueezeExcite(hidden, max(1, inputs // 4), nn.SiLU(), nn.Sigmoid())
            features.append(InvertedResidual(inputs, outputs, kernel, first, hidden, "silu", squeeze))
            inputs = outputs
    last = whole(1280 * width)
    features.append(conv_norm(inputs, last, activation="silu"))
    return Classifier(features, [nn.Dropout(p=dropout), nn.Dense(last, classes)])
