"""`mycelia doctor --train` on scripts that write the loop over steps themselves."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import mycelia as ms
from mycelia import amp, nn, ops
from mycelia import dataset as ds
from mycelia.train.checks import collecting, examine


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.fc2 = nn.Dense(8, 3)

    def construct(self, x):
        return self.fc2(ops.relu(self.norm(self.fc1(x))))


class Cut(Net):
    """Its second layer gets no gradient."""

    def construct(self, x):
        return self.fc2(ops.stop_gradient(ops.relu(self.norm(self.fc1(x)))))


class Logarithm(Net):
    def construct(self, x):
        return ops.log(super().construct(x))


def arrays(scale=1.0):
    x = np.random.default_rng(0).standard_normal((96, 4)).astype(np.float32)
    return x * np.float32(scale), x[:, :3].argmax(1).astype(np.int32)


def by_value_and_grad(net, loss_fn, optimizer):
    def forward(x, y):
        logits = net(x)
        return loss_fn(logits, y), logits

    gradient = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    def step(x, y):
        (loss, _), gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    return step


def by_compiled_gradient(net, loss_fn, optimizer):
    gradient = ms.jit(ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters))

    def step(x, y):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    return step


def by_grad_operation(net, loss_fn, optimizer):
    with_loss = nn.WithLossCell(net, loss_fn)
    gradient = ops.GradOperation(get_by_list=True)(with_loss, optimizer.parameters)

    def step(x, y):
        loss = with_loss(x, y)
        optimizer(gradient(x, y))
        return loss

    return step


def by_hand(net, loss_fn, optimizer):
    weights = optimizer.parameters
    gradient = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, weights)

    def step(x, y):
        loss, gradients = gradient(x, y)
        for p, g in zip(weights, gradients):
            ops.assign_sub(p, 0.1 * g)
        return loss

    return step


def by_cell(net, loss_fn, optimizer):
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer).set_train()


STEPS = {
    "value_and_grad": by_value_and_grad,
    "compiled step": lambda *parts: ms.jit(by_value_and_grad(*parts)),
    "compiled gradient": by_compiled_gradient,
    "GradOperation": by_grad_operation,
    "TrainOneStepCell": by_cell,
    "by hand": by_hand,
}


def train(make=by_value_and_grad, net=Net, rate=0.02, given=None, scale=1.0, epochs=3, mode=None, order=None):
    """The facts of a training; as it stands, of one in which nothing is wrong."""
    ms.set_seed(1)
    ds.config.set_seed(1)
    x, y = arrays(scale)
    with collecting() as facts:
        net = net().set_train()
        given = given(net) if given else net.trainable_params()
        optimizer = SimpleNamespace(parameters=given) if make is by_hand else nn.Adam(given, rate)
        step = make(net, nn.CrossEntropyLoss(), optimizer)
        data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=order is None).batch(8)
        batches = data.create_tuple_iterator(num_epochs=epochs)
        for _ in range(epochs):
            for batch in batches:
                if mode is not None:
                    net.set_train(mode)
                step(*batch)
            net.set_train(False)
            for batch in data.create_tuple_iterator(num_epochs=1):
                net(batch[0])
            net.set_train()
    return facts


def said(facts, number):
    (result,) = [r for r in examine(facts) if r.check == number]
    return result


@pytest.fixture(params=[*STEPS, "TrainOneStepCell in graph mode"])
def kind(request):
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_clean_training_is_not_blamed(kind):
    if kind.endswith("graph mode"):
        ms.set_context(mode=ms.GRAPH_MODE)
    facts = train(STEPS[kind.removesuffix(" in graph mode")])
    results = examine(facts)
    blamed = [r for r in results if r.verdict == "found"]
    assert not blamed, blamed
    unknown = {r.check for r in results if r.verdict == "needs you"}
    assert unknown - {"hp.01"} == {"ds.02", "ds.04", "ref.01", "ref.02", "ref.03", "ref.04"}
    assert ("hp.01" in unknown) == (kind == "by hand")
    assert len(facts.losses) == 36 and len(facts.train_batches) == 12 and facts.params.epoch_num == 3
    assert set(facts.before) == {p.name for p in facts.params.network.get_parameters()}
    assert len(facts.eval_batches) >= 12 and facts.batch_size == 8


PLANTED = {
    "dp.01": (dict(scale=100), "deviation 100"),
    "hp.01": (dict(rate=1e-6), "1e-06; the loss falls with rates from"),
    "dp.03": (dict(order="as it is"), "the first batches of two epochs are equal"),
    "api.02": (dict(mode=False), "in evaluation mode while it trains: norm"),
    "cg.02": (dict(given=lambda net: net.fc2.trainable_params()), "not given to the optimizer: fc1.weight"),
    "cg.03": (dict(net=Cut), "unchanged by 36 steps: fc1.weight"),
    "mp.01": (dict(net=Logarithm), "of 36 steps are not finite, the first is 1: Default/network-"),
    "cg.04": (dict(net=Logarithm), "the loss of step 1 is"),
}  # fmt: skip


@pytest.mark.parametrize("make", [by_value_and_grad, STEPS["compiled step"]], ids=["eager", "compiled"])
@pytest.mark.parametrize("number", PLANTED)
def test_what_was_planted_is_found(number, make):
    options, evidence = PLANTED[number]
    result = said(train(make, **options), number)
    evidence = evidence.replace("Default/network-", "")
    assert result.verdict == "found" and evidence in result.evidence, result


def test_epochs_of_arrays_are_told_by_the_batches():
    x, y = arrays()
    for orders, verdict in ([[0, 1, 2]] * 3, "found"), ([[0, 1, 2], [1, 0, 2], [2, 0, 1]], "not found"):
        with collecting() as facts:
            net = Net().set_train()
            step = by_value_and_grad(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
            for order in orders:
                for i in order:
                    step(ms.Tensor(x[i::3]), ms.Tensor(y[i::3]))
        assert said(facts, "dp.03").verdict == verdict, facts.second_epoch
        if verdict == "found":
            assert (len(facts.train_batches), facts.rows, facts.params.batch_num) == (3, 96, 3)


def scaled_training(scaler):
    x, y = (ms.Tensor(a[:16]) for a in arrays())
    ms.set_seed(1)
    with collecting() as facts:
        net, loss_fn = Net().set_train(), nn.CrossEntropyLoss()
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        gradient = ms.value_and_grad(
            lambda x, y: scaler.scale(loss_fn(net(x), y)), None, optimizer.parameters
        )  # fmt: skip
        for _ in range(4):
            _, gradients = gradient(x, y)
            gradients = scaler.unscale(gradients)
            scaler.adjust(amp.all_finite(gradients))
            optimizer(gradients)
    return facts, [x, y]


def test_the_loss_scale_of_a_loop_is_seen_and_taken_out_of_the_loss():
    facts, batch = scaled_training(amp.DynamicLossScaler(1024.0, 2, 3))
    assert facts.scales == [1024.0, 1024.0, 1024.0, 2048.0]
    assert abs(facts.step(batch) - facts.losses[-1]) < 0.1  # the range test's step is unscaled, too
    plain, _ = scaled_training(amp.StaticLossScaler(1.0))
    np.testing.assert_allclose(facts.losses[:3], plain.losses[:3], rtol=1e-5)


def test_a_second_network_is_no_part_of_the_first_ones_loop():
    x, y = (ms.Tensor(a[:16]) for a in arrays())
    with collecting() as facts:
        nets = Net().set_train(), Net().set_train()
        steps = [by_value_and_grad(n, nn.CrossEntropyLoss(), nn.SGD(n.trainable_params(), 0.1)) for n in nets]
        for _ in range(3):
            for step in steps:
                step(x, y)
            ms.grad(lambda x: nets[0](x).sum())(x)  # of an input
    assert facts.params.network is nets[0] and len(facts.losses) == 3


def test_nothing_is_left_behind():
    from mycelia.dataset.execution import iterator
    from mycelia.engine import observing
    from mycelia.engine.autodiff import transforms
    from mycelia.nn.wrap.loss_scale import scaling_listeners

    lists = (transforms.listeners, iterator.listeners, scaling_listeners, observing.observers)
    before = [list(found) for found in lists]
    facts = train(epochs=1)
    assert [list(found) for found in lists] == before
    assert not facts.params.network._pre_hooks
