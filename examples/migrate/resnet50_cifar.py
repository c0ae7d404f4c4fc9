"""ResNet-50 on images like those of CIFAR-10, trained by `Model` with callbacks, saved and evaluated."""

import argparse
import os
import tempfile

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import numpy as np
from mindspore import nn
from mindspore.common.initializer import HeNormal
from mindspore.train import Model
from mindspore.train.callback import CheckpointConfig, LossMonitor, ModelCheckpoint, TimeMonitor


def conv(channels, out, size, stride=1):
    return nn.Conv2d(channels, out, size, stride, pad_mode="same", weight_init=HeNormal())


class Bottleneck(nn.Cell):
    """1x1, 3x3, 1x1, around them a shortcut."""

    def __init__(self, channels, middle, stride):
        super().__init__()
        out = 4 * middle
        self.body = nn.SequentialCell(
            conv(channels, middle, 1), nn.BatchNorm2d(middle), nn.ReLU(),
            conv(middle, middle, 3, stride), nn.BatchNorm2d(middle), nn.ReLU(),
            conv(middle, out, 1), nn.BatchNorm2d(out),
        )  # fmt: skip
        self.shortcut = None
        if stride != 1 or channels != out:
            self.shortcut = nn.SequentialCell(conv(channels, out, 1, stride), nn.BatchNorm2d(out))
        self.relu = nn.ReLU()

    def construct(self, x):
        kept = x if self.shortcut is None else self.shortcut(x)
        return self.relu(self.body(x) + kept)


class ResNet(nn.Cell):
    """Four stages of bottlenecks; the defaults are ResNet-50. [N, 3, H, W] -> [N, classes]."""

    def __init__(self, depths=(3, 4, 6, 3), width=64, classes=10):
        super().__init__()
        self.stem = nn.SequentialCell(conv(3, width, 3), nn.BatchNorm2d(width), nn.ReLU())
        stages, channels = [], width
        for i, depth in enumerate(depths):
            blocks = []
            for k in range(depth):
                blocks.append(Bottleneck(channels, width * 2**i, 2 if k == 0 and i > 0 else 1))
                channels = 4 * width * 2**i
            stages.append(nn.SequentialCell(blocks))
        self.stages = nn.SequentialCell(stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = nn.Dense(channels, classes)

    def construct(self, x):
        return self.head(self.flatten(self.pool(self.stages(self.stem(x)))))


def pictures(count, size):
    """Noise in which one color of a class is stronger."""
    random = np.random.RandomState(1)
    label = (np.arange(count) % 10).astype(np.int32)
    image = random.randint(0, 128, (count, size, size, 3))
    image[np.arange(count), :, :, label % 3] += (12 * label)[:, None, None]
    return list(zip(image.astype(np.uint8), label))


def create_dataset(count, size, batch_size, training):
    data = ds.GeneratorDataset(pictures(count, size), ["image", "label"], shuffle=training)
    steps = [
        vision.Rescale(1.0 / 255.0, 0.0),
        vision.Normalize(mean=[0.4914, 0.4822, 0.4465], std=[0.2023, 0.1994, 0.2010]),
        vision.HWC2CHW(),
    ]
    data = data.map(steps, "image").map(transforms.TypeCast(ms.int32), "label")
    return data.batch(batch_size, drop_remainder=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--depths", type=int, nargs=4, default=[3, 4, 6, 3])
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()

    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE)
    train = create_dataset(options.images, options.size, options.batch_size, training=True)
    test = create_dataset(options.images, options.size, options.batch_size, training=False)
    steps = train.get_dataset_size()

    net = ResNet(options.depths, options.width)
    rate = nn.cosine_decay_lr(0.0, 0.05, options.epochs * steps, steps, options.epochs)
    optimizer = nn.Momentum(net.trainable_params(), rate, momentum=0.9, weight_decay=1e-4)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, optimizer, metrics={"accuracy", "loss"}, amp_level="O0")
    with tempfile.TemporaryDirectory() as folder:
        keep = ModelCheckpoint("resnet", folder, CheckpointConfig(save_checkpoint_steps=steps))
        model.train(options.epochs, train, callbacks=[LossMonitor(steps), TimeMonitor(steps), keep])
        (saved,) = sorted(name for name in os.listdir(folder) if name.endswith(".ckpt"))[-1:]
        print("saved", saved)
        unused, _ = ms.load_param_into_net(net, ms.load_checkpoint(os.path.join(folder, saved)))
        print("parameters not loaded:", unused)
    result = model.eval(test)
    print("metrics:", sorted(result), "finite:", bool(np.isfinite(result["loss"])))
