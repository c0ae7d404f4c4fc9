"""AlexNet (Krizhevsky et al. 2012) and VGG-16 (Simonyan and Zisserman 2014)."""

from mycelia import nn


class AlexNet(nn.Cell):
    """Five convolutions and three dense layers.

    Shapes: x [N, 3, 224, 224] (any size from 63 x 63) -> [N, classes].
    """

    def __init__(self, classes=1000, width=1.0, dropout=0.5):
        super().__init__()
        c1, c2, c3, c4, hidden = (max(8, int(c * width)) for c in (64, 192, 384, 256, 4096))
        self.features = nn.SequentialCell(
            nn.Conv2d(3, c1, 11, 4, "pad", 2, has_bias=True), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(c1, c2, 5, 1, "pad", 2, has_bias=True), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(c2, c3, 3, 1, "pad", 1, has_bias=True), nn.ReLU(),
            nn.Conv2d(c3, c4, 3, 1, "pad", 1, has_bias=True), nn.ReLU(),
            nn.Conv2d(c4, c4, 3, 1, "pad", 1, has_bias=True), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.AdaptiveAvgPool2d(6),
        )  # fmt: skip
        self.classifier = nn.SequentialCell(
            nn.Flatten(),
            nn.Dropout(p=dropout), nn.Dense(c4 * 36, hidden), nn.ReLU(),
            nn.Dropout(p=dropout), nn.Dense(hidden, hidden), nn.ReLU(),
            nn.Dense(hidden, classes),
        )  # fmt: skip

    def construct(self, x):
        return self.classifier(self.features(x))


class Vgg16(nn.Cell):
    """Thirteen 3x3 convolutions in five stages, with batch normalization, and a dense head.

    Shapes: x [N, 3, H, W], H and W at least 32 -> [N, classes].
    """

    STAGES = (64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)

    def __init__(self, classes=10, width=1.0):
        super().__init__()
        layers, inputs = [], 3
        for stage in self.STAGES:
            for outputs in stage:
                outputs = max(8, int(outputs * width))
                layers += [nn.Conv2d(inputs, outputs, 3, 1, "same"), nn.BatchNorm2d(outputs), nn.ReLU()]
                inputs = outputs
            layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.SequentialCell(layers)
        self.head = nn.SequentialCell(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(inputs, classes))

    def construct(self, x):
        return self.head(self.features(x))
