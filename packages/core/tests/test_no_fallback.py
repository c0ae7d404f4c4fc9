"""Whole networks train on native kernels alone, and give the same numbers eager and compiled."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, config, nn, ops

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mycelia_backend_cpu") is None, reason="mycelia-backend-cpu is not installed"
)

STEPS = 4


@pytest.fixture(autouse=True)
def no_fallback():
    with config.context(fallback="error"):
        yield


def images(channels: int, size: int) -> Tensor:
    return Tensor(np.random.default_rng(1).normal(size=(4, channels, size, size)).astype(np.float32))


def tokens() -> Tensor:
    return Tensor(np.random.default_rng(2).integers(0, 20, (4, 9)).astype(np.int32))


class LeNet5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 5)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.flatten(x)
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


class ResidualBlock(nn.Cell):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, "pad", 1)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, "same")
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.down = nn.SequentialCell([nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)])

    def construct(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.down(x))


class ResNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 7, 2, "pad", 3)
        self.bn = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2, "same")
        self.layers = nn.SequentialCell([ResidualBlock(8, 8, 1), ResidualBlock(8, 16, 2)])
        self.fc = nn.Dense(16, 5)

    def construct(self, x):
        x = self.layers(self.pool(ops.relu(self.bn(self.conv(x)))))
        return self.fc(ops.mean(x, (2, 3)))


class Recurrent(nn.Cell):
    def __init__(self, layer):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.layer = layer(8, 12, 2, batch_first=True, bidirectional=True)
        self.fc = nn.Dense(24, 5)

    def construct(self, x):
        y = self.layer(self.embedding(x))[0]
        return self.fc(y[:, -1])


class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.fc = nn.Dense(16, 5)

    def construct(self, x):
        return self.fc(self.encoder(self.embedding(x)).mean(1))


class GptBlock(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.position = ms.Parameter(Tensor(np.zeros((9, 16), np.float32)), name="position")
        self.norm1, self.norm2 = nn.LayerNorm((16,)), nn.LayerNorm((16,))
        self.qkv, self.out = nn.Dense(16, 48), nn.Dense(16, 16)
        self.up, self.down = nn.Dense(16, 64), nn.Dense(64, 16)
        self.fc = nn.Dense(16, 5)
        self.mask = Tensor(np.triu(np.full((9, 9), -1e4, np.float32), 1))

    def construct(self, x):
        x = self.embedding(x) + self.position
        q, k, v = ops.split(self.qkv(self.norm1(x)), 16, -1)
        weights = ops.softmax(ops.matmul(q, k.swapaxes(1, 2)) / 4 + self.mask, -1)
        x = x + self.out(ops.matmul(weights, v))
        x = x + self.down(ops.gelu(self.up(self.norm2(x))))
        return self.fc(x[:, 0])


class MobileNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            [
                nn.Conv2d(3, 8, 3, 2, "same"), nn.BatchNorm2d(8), nn.ReLU6(),
                nn.Conv2d(8, 8, 3, 1, "same", group=8), nn.GroupNorm(2, 8), nn.HSwish(),
                nn.AvgPool2d(2, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(8, 5),
            ]
        )  # fmt: skip

    def construct(self, x):
        return self.layers(x)


NETS = {
    "lenet": (LeNet5, lambda: images(1, 32)),
    "resnet": (ResNet, lambda: images(3, 32)),
    "lstm": (lambda: Recurrent(nn.LSTM), tokens),
    "gru": (lambda: Recurrent(nn.GRU), tokens),
    "rnn": (lambda: Recurrent(nn.RNN), tokens),
    "encoder": (Encoder, tokens),
    "gpt": (GptBlock, tokens),
    "mobilenet": (MobileNet, lambda: images(3, 32)),
}
OPTIMIZERS = {
    "momentum": lambda p: nn.Momentum(p, 0.01, 0.9, 1e-4),
    "adam": lambda p: nn.Adam(p, 0.001, weight_decay=0.01),
    "adam_weight_decay": lambda p: nn.AdamWeightDecay(p, 0.001, weight_decay=0.1),
    "sgd": lambda p: nn.SGD(p, 0.01, 0.9),
    "rmsprop": lambda p: nn.RMSProp(p, 0.001),
}


def losses(net_name: str, optimizer_name: str, how: str) -> np.ndarray:
    """The losses of a few steps, then the evaluation-mode output after them."""
    make, batch = NETS[net_name]
    ms.set_seed(7)
    net, x = make(), batch()
    label = Tensor(np.array([1, 2, 3, 0], np.int32))
    loss_of = nn.CrossEntropyLoss()
    optimizer = OPTIMIZERS[optimizer_name](net.trainable_params())
    net.set_train()

    def forward(x, label):
        return loss_of(net(x), label)

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x, label):
        loss, gradients = differentiate(x, label)
        optimizer(gradients)
        return loss

    run = ms.jit(step) if how == "jit" else step
    found = [float(run(x, label)) for _ in range(STEPS)]
    net.set_train(False)
    return np.concatenate([np.array(found), net(x).asnumpy().ravel()])


#: The two ReLU families and Adam's square roots of tiny second moments magnify the last bit of a sum whose
#: order differs: a few steps stay within these bounds.
RTOL, ATOL = 1e-5, 2e-5


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("net", NETS)
def test_network_trains_without_fallback_and_equal_when_compiled(net, optimizer):
    eager = losses(net, optimizer, "eager")
    assert np.isfinite(eager).all()
    assert len(set(eager[:STEPS])) == STEPS  # it moves
    np.testing.assert_allclose(losses(net, optimizer, "jit"), eager, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("net", NETS)
def test_graph_mode_gives_the_eager_numbers(net):
    eager = losses(net, "momentum", "eager")
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        graph = losses(net, "momentum", "graph")
    finally:
        ms.set_context(mode=before)
    np.testing.assert_allclose(graph, eager, rtol=RTOL, atol=ATOL)


def test_setting_refuses_an_op_without_kernel():
    from mycelia import errors

    x = Tensor(np.eye(3, dtype=np.float32))
    with pytest.raises(
        errors.FallbackError, match=r"MYC-FALLBACK \w+: backend cpu has no kernel for \(f32.*\)"
    ) as e:
        ops.inverse(x)
    assert __file__.rsplit("/", 1)[-1] in str(e.value)
