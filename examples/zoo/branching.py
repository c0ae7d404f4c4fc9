"""Networks whose paths part and join: GoogLeNet (Szegedy et al. 2014), DenseNet (Huang et al. 2016),
U-Net (Ronneberger et al. 2015).
"""

from mycelia import nn, ops


def conv_relu(inputs, outputs, kernel=1, stride=1):
    return nn.SequentialCell(
        nn.Conv2d(inputs, outputs, kernel, stride, "same"), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class Inception(nn.Cell):
    """Four paths over the same input, joined along the channels."""

    def __init__(self, inputs, one, three, five, pooled):
        super().__init__()
        self.one = conv_relu(inputs, one)
        self.three = nn.SequentialCell(conv_relu(inputs, three[0]), conv_relu(three[0], three[1], 3))
        self.five = nn.SequentialCell(conv_relu(inputs, five[0]), conv_relu(five[0], five[1], 5))
        self.pooled = nn.SequentialCell(nn.MaxPool2d(3, 1, "same"), conv_relu(inputs, pooled))
        self.outputs = one + three[1] + five[1] + pooled

    def construct(self, x):
        return ops.cat((self.one(x), self.three(x), self.five(x), self.pooled(x)), 1)


class GoogLeNet(nn.Cell):
    """Nine Inception blocks.  Shapes: x [N, 3, H, W] -> [N, classes]."""

    BLOCKS = (
        (64, (96, 128), (16, 32), 32), (128, (128, 192), (32, 96), 64), None,
        (192, (96, 208), (16, 48), 64), (160, (112, 224), (24, 64), 64), (128, (128, 256), (24, 64), 64),
        (112, (144, 288), (32, 64), 64), (256, (160, 320), (32, 128), 128), None,
        (256, (160, 320), (32, 128), 128), (384, (192, 384), (48, 128), 128),
    )  # fmt: skip

    def __init__(self, classes=1000, width=1.0):
        super().__init__()

        def thin(count):
            return tuple(thin(c) for c in count) if isinstance(count, tuple) else max(4, int(count * width))

        channels = thin(192)
        layers = [
            conv_relu(3, thin(64), 7, 2), nn.MaxPool2d(3, 2, "same"), conv_relu(thin(64), thin(64)),
            conv_relu(thin(64), channels, 3), nn.MaxPool2d(3, 2, "same"),
        ]  # fmt: skip
        for sizes in self.BLOCKS:
            if sizes is None:
                layers.append(nn.MaxPool2d(3, 2, "same"))
            else:
                layers.append(Inception(channels, *(thin(s) for s in sizes)))
                channels = layers[-1].outputs
        self.features, self.head = nn.SequentialCell(layers), nn.Dense(channels, classes)

    def construct(self, x):
        return self.head(ops.mean(self.features(x), (2, 3)))


class DenseLayer(nn.Cell):
    """Adds `growth` channels to those it is given."""

    def __init__(self, inputs, growth):
        super().__init__()
        self.body = nn.SequentialCell(
            nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, 4 * growth, 1),
            nn.BatchNorm2d(4 * growth), nn.ReLU(), nn.Conv2d(4 * growth, growth, 3, 1, "same"),
        )  # fmt: skip

    def construct(self, x):
        return ops.cat((x, self.body(x)), 1)


class DenseNet(nn.Cell):
    """Dense blocks with halving transitions between them.  Shapes: x [N, 3, H, W] -> [N, classes]."""

    def __init__(self, depths=(6, 12, 24, 16), growth=32, classes=1000):
        super().__init__()
        channels = 2 * growth
        layers: list[nn.Cell] = [conv_relu(3, channels, 3)]
        for number, depth in enumerate(depths):
            for _ in range(depth):
                layers.append(DenseLayer(channels, growth))
                channels += growth
            layers += [nn.BatchNorm2d(channels), nn.ReLU()]
            if number + 1 < len(depths):
                layers += [nn.Conv2d(channels, channels // 2, 1), nn.AvgPool2d(2, 2)]
                channels //= 2
        self.features, self.head = nn.SequentialCell(layers), nn.Dense(channels, classes)

    def construct(self, x):
        return self.head(ops.mean(self.features(x), (2, 3)))


class UNet(nn.Cell):
    """Down by poolings, up by transposed convolutions, each level joined with its opposite.

    Shapes: x [N, inputs, H, W] with H and W multiples of 2^levels -> [N, classes, H, W].
    """

    def __init__(self, inputs=1, classes=2, width=64, levels=4):
        super().__init__()
        sizes = [width << level for level in range(levels + 1)]

        def double(before, after):
            return nn.SequentialCell(conv_relu(before, after, 3), conv_relu(after, after, 3))

        self.levels = levels
        self.down = nn.CellList([double(b, a) for b, a in zip([inputs, *sizes], sizes)])
        self.up = nn.CellList([nn.Conv2dTranspose(a, b, 2, 2) for b, a in zip(sizes, sizes[1:])])
        self.join = nn.CellList([double(2 * c, c) for c in sizes[:-1]])
        self.pool, self.head = nn.MaxPool2d(2, 2), nn.Conv2d(width, classes, 1, has_bias=True)

    def construct(self, x):
        found = []
        for block in self.down:
            x = block(self.pool(x) if found else x)
            found.append(x)
        for level in range(self.levels - 1, -1, -1):
            x = self.join[level](ops.cat((found[level], self.up[level](x)), 1))
        return self.head(x)
