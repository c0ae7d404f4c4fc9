"""A network that learned real digits keeps what it can: trained here, in a few seconds."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import dataset as ds
from mycelia import nn, ops
from mycelia_lite.quant import DynamicQuantization, FullQuantization, WeightQuantization
from mycelia_lite.running import answers

EPOCHS = 4


class Residual(nn.Cell):
    """x [N, 1, 8, 8] -> [N, 10]."""

    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(nn.Conv2d(1, 12, 3), nn.BatchNorm2d(12), nn.ReLU())
        self.first = nn.SequentialCell(
            nn.Conv2d(12, 12, 3), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 12, 3)
        )
        self.second = nn.Conv2d(12, 24, 3, 2)
        self.classifier = nn.Dense(24, 10)

    def construct(self, x):
        x = self.stem(x)
        x = ops.relu(self.first(x) + x)
        return self.classifier(ops.mean(ops.relu(self.second(x)), (2, 3)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(path of the MindIR, images of training, images of testing, their labels)"""
    load_digits = pytest.importorskip("sklearn.datasets").load_digits
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images = (images[order].reshape(-1, 1, 8, 8) / 8 - 1).astype(np.float32)
    labels = labels[order].astype(np.int32)
    ms.set_seed(1)
    net = Residual()
    data = ds.NumpySlicesDataset((images[:1400], labels[:1400]), ["image", "label"], shuffle=True).batch(20)
    rates = nn.cosine_decay_lr(0.0, 0.05, EPOCHS * 70, 70, EPOCHS)
    optimizer = nn.Momentum(net.trainable_params(), rates, 0.9)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    ms.Model(net, loss, optimizer).train(EPOCHS, data)
    path = str(tmp_path_factory.mktemp("digits") / "net.mindir")
    shape = ms.Tensor(shape=[None, 1, 8, 8], dtype=ms.float32)
    ms.export(net.set_train(False), shape, file_name=path, file_format="MINDIR")
    return path, images[:1400], images[1400:], labels[1400:]


def right(path: str, images: np.ndarray, labels: np.ndarray) -> float:
    model = mslite.Model()
    model.build_from_file(path)
    return float((answers(model, [images])[0].argmax(1) == labels).mean())


def test_integers_know_the_digits_as_numbers_do(trained, tmp_path):
    source, seen, images, labels = trained
    data = [seen[i : i + 10] for i in range(0, 100, 10)]
    ways = {
        "float": (None, 0),
        "max_min": (FullQuantization(calibration=data), 0.006),
        "one": (FullQuantization(calibration=[seen[:1]]), 0.02),
        "kl": (FullQuantization(calibration=data, method="KL"), 0.01),
        "outliers": (FullQuantization(calibration=data, method="REMOVAL_OUTLIER"), 0.006),
        "dynamic": (DynamicQuantization(), 0.003),
        "4 bits": (
            WeightQuantization(bits=4, min_channels=0, calibration=data, error_feedback=True), 0.008,
        ),
    }  # fmt: skip
    found = {}
    for name, (how, _) in ways.items():
        converter = mslite.Converter()
        converter.quantization = how
        report = converter.convert(mslite.FmkType.MINDIR, source, str(tmp_path / "net"))
        found[name] = right(report.path, images, labels)
        if name == "max_min":
            kinds = [n.primitive.kind for n in mslite.format.read(report.path).nodes]
            assert kinds.count("QuantDTypeCast") == 1
    assert found["float"] > 0.9
    for name, (_, most) in ways.items():
        assert found["float"] - found[name] <= most, found
