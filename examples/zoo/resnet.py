"""Residual networks: He et al. 2015, "Deep Residual Learning for Image Recognition"."""

from mycelia import nn, ops


def conv_norm(inputs, outputs, kernel, stride=1):
    return nn.SequentialCell(
        nn.Conv2d(inputs, outputs, kernel, stride, "pad", kernel // 2), nn.BatchNorm2d(outputs)
    )


class BasicBlock(nn.Cell):
    """Two 3x3 convolutions around a shortcut."""

    expansion = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.SequentialCell(
            conv_norm(inputs, width, 3, stride), nn.ReLU(), conv_norm(width, width, 3)
        )
        same = stride == 1 and inputs == width
        self.shortcut = nn.Identity() if same else conv_norm(inputs, width, 1, stride)

    def construct(self, x):
        return ops.relu(self.body(x) + self.shortcut(x))


class Bottleneck(nn.Cell):
    """A 3x3 convolution between two 1x1 that narrow and widen the channels."""

    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * self.expansion
        self.body = nn.SequentialCell(
            conv_norm(inputs, width, 1), nn.ReLU(),
            conv_norm(width, width, 3, stride), nn.ReLU(),
            conv_norm(width, outputs, 1),
        )  # fmt: skip
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else conv_norm(inputs, outputs, 1, stride)

    def construct(self, x):
        return ops.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Cell):
    """`small_images`: a 3x3 stem without pooling, for CIFAR's 32x32, instead of 7x7 stride 2 and a pooling.

    Shapes: x [N, 3, H, W] -> [N, classes].
    """

    def __init__(self, block, depths, classes=1000, width=64, small_images=False):
        super().__init__()
        if small_images:
            self.stem = nn.SequentialCell(conv_norm(3, width, 3), nn.ReLU())
        else:
            self.stem = nn.SequentialCell(conv_norm(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, "pad", 1))
        blocks, inputs = [], width
        for stage, depth in enumerate(depths):
            for position in range(depth):
                stride = 2 if stage > 0 and position == 0 else 1
                blocks.append(block(inputs, width << stage, stride))
                inputs = (width << stage) * block.expansion
        self.blocks = nn.SequentialCell(blocks)
        self.head = nn.Dense(inputs, classes)

    def construct(self, x):
        return self.head(ops.mean(self.blocks(self.stem(x)), (2, 3)))


def resnet18(**sizes):
    return ResNet(BasicBlock, (2, 2, 2, 2), **sizes)


def resnet50(**sizes):
    return ResNet(Bottleneck, (3, 4, 6, 3), **sizes)
