"""Further networks and optimizers, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import ConversionError

from .steps import LeNet, converted, cross_entropy, digits, loaded, step_of, take

OPTIMIZERS = {
    "momentum": lambda p: nn.Momentum(p, 0.05, 0.9, weight_decay=1e-4),
    "sgd": lambda p: nn.SGD(p, 0.05, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "nesterov": lambda p: nn.SGD(p, 0.02, momentum=0.9, nesterov=True),
    "adam": lambda p: nn.Adam(p, 1e-3),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_take_the_steps_of_core(name, tmp_path):
    batches = digits(6)
    model = loaded(converted(step_of(LeNet, OPTIMIZERS[name]), batches[0], tmp_path))
    step = step_of(LeNet, OPTIMIZERS[name])
    for batch in batches:
        assert abs(float(take(model, batch)) - float(step(*map(ms.Tensor, batch)).asnumpy())) <= 1e-5
    states = {t.name: t.get_data_to_numpy() for t in model.get_optimizer_params()}
    for parameter in step.optimizer.get_parameters():
        if parameter.name in states:
            np.testing.assert_allclose(states[parameter.name], parameter.asnumpy(), atol=1e-5)
    assert any(name.endswith(".conv1.weight") for name in states)


class Block(nn.Cell):
    """Batch normalizations, a depthwise and a grouped convolution, and pools around a shortcut."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, 2, "pad", 1), nn.BatchNorm2d(8)
        self.deep, self.deep_norm = nn.Conv2d(8, 8, 3, 1, "pad", 1, group=8), nn.BatchNorm2d(8)
        self.group = nn.Conv2d(8, 8, 3, 1, "pad", 1, group=2)
        self.most, self.mean = nn.MaxPool2d(3, 2, "pad", 1), nn.AvgPool2d(2, 2)
        self.head = nn.Dense(8, 4)

    def construct(self, x):
        x = ops.relu(self.norm(self.first(x)))
        x = x + self.group(ops.silu(self.deep_norm(self.deep(x))))
        x = self.mean(self.most(ops.relu6(x)))
        return self.head(ops.mean(ops.hardswish(x), (2, 3)))


def descent(parameters):
    return nn.SGD(parameters, 0.02)


@pytest.fixture(scope="module")
def block(tmp_path_factory):
    batches = digits(10, size=8, shape=(3, 32, 32), classes=4)
    return batches, converted(step_of(Block, descent), batches[0], tmp_path_factory.mktemp("block"))


def test_normalizations_learn_by_the_batch_and_answer_by_their_statistics(block, tmp_path):
    batches, path = block
    model, step = loaded(path), step_of(Block, descent)
    for batch in batches:
        assert abs(float(take(model, batch)) - float(step(*map(ms.Tensor, batch)).asnumpy())) <= 1e-5
    statistics = {t.name: t.get_data_to_numpy() for t in model.get_feature_maps()}
    net = step.network.backbone_network
    for parameter in net.get_parameters():
        np.testing.assert_allclose(statistics[parameter.name], parameter.asnumpy(), atol=1e-5)
    expected = net.set_train(False)(ms.Tensor(batches[0][0])).asnumpy()
    model.set_train_mode(False)
    np.testing.assert_allclose(take(model, batches[0]), expected, atol=1e-4)
    model.export(tmp_path / "block.ms")
    other = mslite.Model()
    other.build_from_file(tmp_path / "block.ms")
    other.get_inputs()[0].set_data_from_numpy(batches[0][0])
    found = other.predict(other.get_inputs())[0].get_data_to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_gradients_of_a_block_are_those_of_core(block):
    batches, path = block
    model, step = loaded(path), step_of(Block, descent)
    model.get_gradients()
    take(model, batches[0])
    weights = step.network.trainable_params()
    expected = ms.value_and_grad(step.network, None, weights)(*map(ms.Tensor, batches[0]))[1]
    found = {t.name: t.get_data_to_numpy() for t in model.get_gradients()}
    for weight, gradient in zip(weights, expected, strict=True):
        np.testing.assert_allclose(found[weight.name], gradient.asnumpy(), atol=2e-5, rtol=1e-3)


def test_a_deep_network_of_smooth_activations_keeps_to_the_losses_of_core(tmp_path, monkeypatch):
    """EfficientNet-B0: without corners, at which a rounding decides whether there is a gradient."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[4] / "examples" / "zoo"))
    from zoo import ZOO as networks

    def step():
        ms.set_seed(5)
        net = networks["efficientnet_b0"].make()
        optimizer = nn.SGD(net.trainable_params(), 1e-3)
        return nn.TrainOneStepCell(nn.WithLossCell(net, cross_entropy()), optimizer).set_train()

    batches = digits(4, size=8, shape=(3, 64, 64))
    model, core = loaded(converted(step(), batches[0], tmp_path)), step()
    for batch in batches:
        assert abs(float(take(model, batch)) - float(core(*map(ms.Tensor, batch)).asnumpy())) <= 1e-5


def test_a_frozen_backbone_keeps_its_weights(tmp_path):
    """Its weights are no parameters of the optimizer."""

    def heads(parameters):
        return nn.SGD([p for p in parameters if p.name.startswith("fc")], 0.05)

    batches = digits(5)
    model = loaded(converted(step_of(LeNet, heads), batches[0], tmp_path))
    assert {t.name for t in model.get_trainable_params()} == {
        f"fc{i}.{kind}" for i in (1, 2, 3) for kind in ("weight", "bias")
    }
    before = {t.name: t.get_data_to_numpy() for t in model.get_feature_maps()}
    for batch in batches:
        take(model, batch)
    after = {t.name: t.get_data_to_numpy() for t in model.get_feature_maps()}
    assert {n for n in before if not np.array_equal(before[n], after[n])} == {
        n for n in before if n.startswith("fc")
    }


def test_errors_squared_and_rates_that_follow_a_schedule(tmp_path):
    class Line(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(3, 2)

        def construct(self, x):
            return self.dense(x)

    def scheduled(parameters):
        return nn.SGD(parameters, [0.1, 0.05, 0.01])

    chance = np.random.default_rng(0)
    batches = [
        (chance.normal(size=(4, 3)).astype("f"), chance.normal(size=(4, 2)).astype("f")) for _ in range(3)
    ]
    model = loaded(converted(step_of(Line, scheduled, nn.MSELoss), batches[0], tmp_path))
    step = step_of(Line, scheduled, nn.MSELoss)
    for batch in batches:
        assert abs(float(take(model, batch)) - float(step(*map(ms.Tensor, batch)).asnumpy())) <= 1e-6
    with pytest.raises(RuntimeError, match="schedule"):
        model.set_learning_rate(0.1)
    with pytest.raises(RuntimeError, match="schedule"):
        model.get_learning_rate()


def test_what_cannot_be_trained_is_refused_by_name(tmp_path):
    batch = digits(1)[0]
    for optimizer in (lambda p: nn.AdamWeightDecay(p, 1e-3), lambda p: nn.RMSProp(p, 1e-3)):
        with pytest.raises(ConversionError, match="no step of an optimizer"):
            converted(step_of(LeNet, optimizer), batch, tmp_path)

    class Cubes(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm, self.dense = nn.BatchNorm3d(2), nn.Dense(2, 2)

        def construct(self, x):
            return self.dense(ops.mean(self.norm(x), (2, 3, 4)))

    cubes = (np.ones((2, 2, 3, 3, 3), np.float32), np.zeros(2, np.int32))
    with pytest.raises(ConversionError, match="moving_mean.*no statistic"):
        converted(step_of(Cubes, descent), cubes, tmp_path)
    with pytest.raises(RuntimeError, match="inference alone"):
        model = mslite.Model()
        path = tmp_path / "plain.mindir"
        ms.export(LeNet(), ms.Tensor(batch[0]), file_name=str(path), file_format="MINDIR")
        mslite.Converter().convert(mslite.FmkType.MINDIR, str(path), str(tmp_path / "plain"))
        model.build_from_file(tmp_path / "plain.ms")
        model.set_train_mode(True)
