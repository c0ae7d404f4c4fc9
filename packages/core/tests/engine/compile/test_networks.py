"""Networks train to the same numbers op by op, compiled step by step, and in graph mode."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops


class LeNet5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1, self.fc2, self.fc3 = nn.Dense(256, 120), nn.Dense(120, 84), nn.Dense(84, 10)
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.flatten(self.pool(self.relu(self.conv2(x))))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


class Block(nn.Cell):
    def __init__(self, channels):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 3, has_bias=False), nn.BatchNorm2d(channels)

    def construct(self, x):
        return ops.relu(self.norm(self.conv(x)) + x)


class SmallResNet(nn.Cell):
    """Batch statistics, dropout, and a branch on data."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, stride=2)
        self.blocks = nn.CellList([Block(4) for _ in range(2)])
        self.drop, self.head = nn.Dropout(p=0.2), nn.Dense(4, 10)

    def construct(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        x = self.drop(x.mean((2, 3)))
        if x.max() > 3:
            x = x * (3 / x.max())
        return self.head(x)


class Recurrent(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(28, 16, batch_first=True), nn.Dense(16, 10)

    def construct(self, x):
        x = x.reshape((x.shape[0], 28, 28))
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(28, 4, 32, dropout=0.0, batch_first=True)
        self.head = nn.Dense(28, 10)

    def construct(self, x):
        return self.head(self.encoder(x.reshape((x.shape[0], 28, 28))).mean(1))


NETS = [LeNet5, SmallResNet, Recurrent, Attention]
OPTIMIZERS = {
    "momentum": lambda p: nn.Momentum(p, 0.01, 0.9, weight_decay=1e-3),
    "adam": lambda p: nn.Adam(p, 1e-3),
    "schedule": lambda p: nn.SGD(p, nn.CosineDecayLR(0.001, 0.05, 4)),
}


def train(make_net, make_optimizer, how, steps=4):
    ms.set_seed(5)
    net = make_net()
    rng = np.random.default_rng(0)
    for p in net.trainable_params():
        p.set_data(Tensor((rng.normal(size=p.shape) * 0.1).astype(np.float32)))
    net.set_train()
    optimizer = make_optimizer(net.trainable_params())
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def forward(x, y):
        return loss_fn(net(x), y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x, y):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    run = ms.jit(step) if how == "jit" else step
    losses = []
    ms.set_context(mode=ms.GRAPH_MODE if how == "graph mode" else ms.PYNATIVE_MODE)
    try:
        for _ in range(steps):
            x = Tensor(rng.random((6, 1, 28, 28)).astype(np.float32))
            losses.append(run(x, Tensor(rng.integers(0, 10, 6).astype(np.int32))).item())
        net.set_train(False)
        losses.append(net(x).asnumpy().sum())
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    return losses, {p.name: p.asnumpy().copy() for p in (*net.get_parameters(), *optimizer.get_parameters())}


def assert_same(a, b):
    np.testing.assert_allclose(a[0], b[0], rtol=2e-5, atol=1e-6)
    for name, value in a[1].items():
        np.testing.assert_allclose(b[1][name], value, rtol=1e-3, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("how", ["jit", "graph mode"])
@pytest.mark.parametrize("make_net", NETS, ids=lambda n: n.__name__)
def test_training_is_the_same(make_net, how):
    assert_same(
        train(make_net, OPTIMIZERS["momentum"], "eager"), train(make_net, OPTIMIZERS["momentum"], how)
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_the_same(name):
    assert_same(train(LeNet5, OPTIMIZERS[name], "eager"), train(LeNet5, OPTIMIZERS[name], "jit"))
