"""Training steps in files, ours and MindSpore's: the losses of the network at every call.

That MindSpore 2.10 gives them too was checked with MindSpore for every network and optimizer here.
"""

import pathlib

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures/formats/training"
OPTIMIZERS = {
    "sgd": lambda p: nn.SGD(p, 0.1),
    "sgd with momentum": lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
    "nesterov": lambda p: nn.Momentum(p, 0.1, 0.9, use_nesterov=True),
    "adam": lambda p: nn.Adam(p, 0.01),
    "adam with decay": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.01),
    "rmsprop": lambda p: nn.RMSProp(p, 0.01),
    "adagrad": lambda p: nn.Adagrad(p, 0.01),
}


class Normalized(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.batch, self.layer = nn.Dense(3, 4), nn.BatchNorm1d(4), nn.LayerNorm((4,))
        self.b = nn.Dense(4, 2)

    def construct(self, x):
        return self.b(ops.relu(self.layer(self.batch(self.a(x)))))


class Activations(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dense(3, 4), nn.Dense(4, 2)
        self.elu, self.gelu, self.silu = nn.ELU(), nn.GELU(), nn.SiLU()

    def construct(self, x):
        y = ops.tanh(ops.sigmoid(self.elu(self.a(x))))
        return self.b(ops.softmax(self.silu(self.gelu(y)), -1))


class Images(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 2, 3, stride=2, pad_mode="same", has_bias=True)
        self.norm = nn.BatchNorm2d(2)
        self.second = nn.Conv2d(2, 4, 3, group=2, pad_mode="pad", padding=1, stride=2, dilation=2)
        self.pool, self.last = nn.MaxPool2d(3, 2, pad_mode="same"), nn.Dense(4, 2)
        self.mean, self.even = nn.AvgPool2d(2, 1, pad_mode="same"), nn.AdaptiveAvgPool2d((4, 5))

    def construct(self, x):
        y = self.even(self.mean(ops.leaky_relu(self.norm(self.first(x)), 0.1)))
        y = self.pool(ops.relu6(self.second(y)))
        return self.last(y.reshape(y.shape[0], -1))


def step(network, optimizer):
    net, random = network(), np.random.default_rng(3)
    for parameter in net.trainable_params():
        parameter.set_data(Tensor(random.normal(size=parameter.shape).astype(np.float32) * 0.5))
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    return nn.TrainOneStepCell(loss, optimizer(net.trainable_params())).set_train()


def check(tmp_path, network, optimizer, shape):
    random, path = np.random.default_rng(0), str(tmp_path / "step.mindir")
    batches = [
        (
            Tensor(random.normal(size=shape).astype(np.float32)),
            Tensor(random.integers(0, 2, 5).astype(np.int32)),
        )
        for _ in range(4)
    ]
    ms.export(step(network, optimizer), *batches[0], file_name=path, file_format="MINDIR")
    net, graph = step(network, optimizer), nn.GraphCell(ms.load(path))
    for batch in batches:
        np.testing.assert_allclose(graph(*batch).asnumpy(), net(*batch).asnumpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_take_the_same_steps(tmp_path, name):
    check(tmp_path, Normalized, OPTIMIZERS[name], (5, 3))


@pytest.mark.parametrize("network, shape", [(Activations, (5, 3)), (Images, (5, 1, 9, 8))])
def test_gradients_of_layers(tmp_path, network, shape):
    check(tmp_path, network, OPTIMIZERS["momentum"], shape)


def test_a_step_without_operators_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="lamb"):
        check(tmp_path, Activations, lambda p: nn.Lamb(p, 0.01), (5, 3))


@pytest.mark.parametrize("name", sorted(path.stem for path in FIXTURES.glob("*.npz")))
def test_training_steps_of_mindspore_give_its_losses(name):
    step, data = nn.GraphCell(ms.load(str(FIXTURES / f"{name}.mindir"))), np.load(FIXTURES / f"{name}.npz")
    for i, loss in enumerate(data["losses"]):
        found = step(Tensor(data[f"images{i}"]), Tensor(data[f"labels{i}"]))
        np.testing.assert_allclose(found.asnumpy(), loss, rtol=1e-5)
