"""Training steps of small networks: made by core, exported, converted, and taken by the runtime."""

from __future__ import annotations

import numpy as np

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import convert


class LeNet(nn.Cell):
    """The quickstart's, for images [N, 1, 28, 28]."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = (
            nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True),
            nn.Conv2d(6, 16, 5, pad_mode="valid"),
        )
        self.pool, self.flat = nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc1, self.fc2, self.fc3 = nn.Dense(256, 120), nn.Dense(120, 84), nn.Dense(84, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.flat(self.pool(ops.relu(self.conv2(x))))
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


def cross_entropy():
    return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


def step_of(network, optimizer, loss=cross_entropy, seed=3):
    """A TrainOneStepCell with weights that follow from the seed."""
    net, chance = network(), np.random.default_rng(seed)
    for parameter in net.trainable_params():
        fan = max(parameter.size // parameter.shape[0], 1)
        value = chance.normal(size=parameter.shape).astype(np.float32) / np.sqrt(fan)
        parameter.set_data(ms.Tensor(value))
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss()), optimizer(net.trainable_params())).set_train()


def converted(step, batch, folder, name="step"):
    """The path of the file that the device trains."""
    path = str(folder / f"{name}.mindir")
    ms.export(step, *map(ms.Tensor, batch), file_name=path, file_format="MINDIR")
    return convert(mslite.FmkType.MINDIR, path, str(folder / name), train=True).path


def loaded(path, train=True):
    model = mslite.Model()
    model.build_from_file(path)
    model.set_train_mode(train)
    return model


def take(model, batch):
    """The first loss of a step on a batch, or the answers."""
    for tensor, array in zip(model.get_inputs(), batch, strict=True):
        tensor.set_data_from_numpy(array)
    return model.run_step()[0].get_data_to_numpy()


def digits(count, size=16, shape=(1, 28, 28), classes=10, seed=0):
    """Batches of images of which the class is a bright square."""
    chance = np.random.default_rng(seed)
    batches = []
    for _ in range(count):
        labels = chance.integers(0, classes, size).astype(np.int32)
        images = chance.normal(size=(size, *shape)).astype(np.float32) * 0.3
        for image, label in zip(images, labels):
            at = 2 * label
            image[..., at : at + 5, at : at + 5] += 1.5
        batches.append((images, labels))
    return batches
