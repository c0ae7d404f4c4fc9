"""Inputs of the networks of the benches."""

import numpy as np


def training_batch(name):
    rng = np.random.default_rng(1)

    def floats(*shape):
        return rng.normal(size=shape).astype(np.float32)

    def classes(high, *shape):
        return rng.integers(0, high, shape).astype(np.int32)

    return {
        "LeNet b32": lambda: (floats(32, 1, 28, 28), classes(10, 32)),
        "MLP b64": lambda: (floats(64, 784), classes(10, 64)),
        "LSTM b32 t64": lambda: (classes(10000, 32, 64), classes(2, 32)),
        "BERT-mini b8 t128": lambda: (classes(30522, 8, 128), classes(2, 8)),
        "ResNet-18 224 b4": lambda: (floats(4, 3, 224, 224), classes(1000, 4)),
        "ResNet-50 CIFAR b32": lambda: (floats(32, 3, 32, 32), classes(10, 32)),
    }[name]()


def inference_input(name):
    rng = np.random.default_rng(1)
    if name.startswith("BERT"):
        return rng.integers(0, 30522, (1, 128)).astype(np.int32)
    return rng.normal(size=(1, 1, 28, 28) if name == "LeNet" else (1, 3, 224, 224)).astype(np.float32)


# GFLOP of one call: multiplications and additions of convolutions and products; a step is three passes.
INFERENCE_GFLOP = {"LeNet": 0.0008, "MobileNetV2 224": 0.60, "ResNet-50 224": 8.18, "BERT-base t128": 22.3}
EXPORTED = ("SqueezeNet 224", *INFERENCE_GFLOP)  # networks that are written to files
TRAINING_GFLOP = {
    "LeNet b32": 0.080, "MLP b64": 0.206, "LSTM b32 t64": 4.8, "BERT-mini b8 t128": 20.9,
    "ResNet-18 224 b4": 43.5, "ResNet-50 CIFAR b32": 249,
}  # fmt: skip
