"""All networks of the zoo, each with small sizes, an input and a loss, as the checks use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import branching
import classic
import generative
import mobilenet
import numpy as np
import resnet
import sequence

from mycelia import nn, ops


@dataclass(frozen=True)
class Entry:
    """`make` builds the network, `inputs` its arguments from a NumPy generator, `loss` a scalar."""

    make: Callable[[], nn.Cell]
    inputs: Callable[[np.random.Generator], tuple[np.ndarray, ...]]
    loss: Callable[..., object]


def classified(output, *_):
    """Cross entropy against classes that stand fixed."""
    targets = ops.arange(output.shape[0]) % output.shape[-1]
    return ops.cross_entropy(output, targets.astype("int32"))


def squared(output, *_):
    return ops.mean(output * output)


def pictures(*shape):
    return lambda rng: (rng.normal(size=shape).astype(np.float32),)


def tokens(high, *shapes):
    return lambda rng: tuple(rng.integers(0, high, s).astype(np.int32) for s in shapes)


def lenet():
    return nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
    )  # fmt: skip


IMAGES = pictures(8, 3, 64, 64)  # enough for statistics that small differences do not move
SMALL: dict[str, Any] = dict(classes=10, width=0.25)
KEPT: dict[str, Any] = dict(SMALL, dropout=0.0)  # without dropout: eager and compiled runs must agree

ZOO = {
    "lenet": Entry(lenet, pictures(8, 1, 28, 28), classified),
    "alexnet": Entry(lambda: classic.AlexNet(10, 0.125, dropout=0.0), pictures(2, 3, 95, 95), classified),
    "vgg16": Entry(lambda: classic.Vgg16(10, 0.25), pictures(2, 3, 32, 32), classified),
    "resnet18": Entry(lambda: resnet.resnet18(classes=10, width=16), IMAGES, classified),
    "resnet50": Entry(
        lambda: resnet.resnet50(classes=10, width=16, small_images=True), pictures(8, 3, 32, 32), classified
    ),
    "mobilenet_v1": Entry(lambda: mobilenet.mobilenet_v1(**SMALL), IMAGES, classified),
    "mobilenet_v2": Entry(lambda: mobilenet.mobilenet_v2(**KEPT), IMAGES, classified),
    "mobilenet_v3": Entry(lambda: mobilenet.mobilenet_v3(**KEPT), IMAGES, classified),
    "efficientnet_b0": Entry(lambda: mobilenet.efficientnet_b0(**KEPT), IMAGES, classified),
    "googlenet": Entry(lambda: branching.GoogLeNet(**SMALL), IMAGES, classified),
    "densenet": Entry(lambda: branching.DenseNet((2, 3), 8, 10), pictures(2, 3, 32, 32), classified),
    "unet": Entry(lambda: branching.UNet(1, 2, 8, 2), pictures(1, 1, 48, 32), squared),
    "lstm": Entry(lambda: sequence.RecurrentClassifier("lstm", 24, 40), pictures(3, 11, 24), classified),
    "gru": Entry(
        lambda: sequence.RecurrentClassifier("gru", 24, 40, 2, bidirectional=True),
        pictures(3, 11, 24), classified,
    ),
    "translator": Entry(
        lambda: sequence.Translator(50, 32, 4, 2), tokens(50, (2, 9), (2, 7)), squared
    ),
    "bert": Entry(lambda: sequence.Encoder(100, 64, 4, 2), tokens(100, (2, 17)), classified),
    "vit": Entry(
        lambda: sequence.VisionTransformer(64, 16, 48, 3, 3, 10), pictures(2, 3, 64, 64), classified
    ),
    "gan": Entry(
        lambda: generative.GanLoss(16, 8),
        lambda rng: (
            rng.normal(size=(4, 16)).astype(np.float32), rng.normal(size=(4, 1, 28, 28)).astype(np.float32)
        ),
        lambda output, *_: output,
    ),
    "autoencoder": Entry(
        lambda: generative.Autoencoder(8, 16),
        pictures(4, 1, 28, 28),
        lambda output, picture: ops.mean((output - picture) ** 2),
    ),
}  # fmt: skip
