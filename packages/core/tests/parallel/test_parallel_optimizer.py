"""`enable_parallel_optimizer`: states of optimizers are divided among ranks; weights are the same."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.engine.communication.share import Share
from mycelia.parallel.auto_parallel import AutoParallel
from mycelia.parallel.engines import threads

one_at_a_time = threading.Lock()  # ranks that are threads share the seed

OPTIMIZERS = {
    "Adam": lambda p: nn.Adam(p, 0.01, weight_decay=0.01),
    "Adam, amsgrad": lambda p: nn.Adam(p, 0.01, use_amsgrad=True),
    "LazyAdam": lambda p: nn.LazyAdam(p, 0.01, loss_scale=4.0),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, nn.ExponentialDecayLR(0.05, 0.9, 2), weight_decay=0.1),
    "AdaMax": lambda p: nn.AdaMax(p, 0.01),
    "Momentum": lambda p: nn.Momentum(p, 0.01, 0.9, weight_decay=0.1, use_nesterov=True),
    "SGD": lambda p: nn.SGD(p, 0.1, 0.9),
    "ASGD": lambda p: nn.ASGD(p, 0.1),
    "RMSProp": lambda p: nn.RMSProp(p, 0.1, centered=True),
    "Adagrad": lambda p: nn.Adagrad(p),
    "ProximalAdagrad": lambda p: nn.ProximalAdagrad(p, l1=0.01),
    "Adadelta": lambda p: nn.Adadelta(p),
    "FTRL": lambda p: nn.FTRL(p, l1=0.01),
    "Rprop": lambda p: nn.Rprop(p, 0.01),
    "LARS": lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9, weight_decay=0.1)),
    "groups": lambda p: nn.Adam([{"params": p[:1], "lr": 0.1, "weight_decay": 0.2}, {"params": p[1:]}]),
    "centralized": lambda p: nn.Adam([{"params": p[2:3], "grad_centralization": True}, {"params": p[3:]}]),
}  # fmt: skip


@pytest.fixture(autouse=True)
def settings():
    yield
    ms.reset_auto_parallel_context()


def settle(divided, threshold=0, **more):
    config = {"parallel_optimizer_threshold": threshold}
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=divided,
        parallel_optimizer_config=config, **more,
    )  # fmt: skip


def network():
    """Parameters whose elements neither 2 nor 3 ranks divide, some longer than the widest vectors."""
    return nn.SequentialCell(nn.Dense(5, 19), nn.ReLU(), nn.Dense(19, 16), nn.ReLU(), nn.Dense(16, 3))


def made(make, net=network):
    with one_at_a_time:
        ms.set_seed(1)
        net = net()
        return net, make(net.trainable_params())


def batch(rank, step):
    rand = np.random.RandomState(10 * step + rank)
    return ms.Tensor(rand.randn(4, 5).astype(np.float32)), ms.Tensor(rand.randn(4, 3).astype(np.float32))


def trained(size, divided, make, steps=3, cell=nn.TrainOneStepCell, after=None, net=network):
    """Of each rank: its weights, and the elements of the states."""
    settle(divided)

    def work(rank):
        given, optimizer = made(make, net)
        step = cell(nn.WithLossCell(given, nn.MSELoss()), optimizer)
        for number in range(steps):
            step(*batch(rank, number))
        found = [p.asnumpy().copy() for p in given.trainable_params()]
        states = [p for p in step.get_parameters() if p.share is not None]
        return found, sum(p.size for p in states), after(rank, step) if after else None

    return threads.run(size, work)


def equal(one, other):
    return len(one) == len(other) and all(np.array_equal(x, y) for x, y in zip(one, other))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_are_those_of_whole_states_to_the_bit(name, mode):
    make = OPTIMIZERS[name]
    for size in (2, 3):
        whole, parts = trained(size, False, make), trained(size, True, make)
        assert all(equal(weights, whole[0][0]) for weights, _, _ in parts)
        assert all(count > 0 for _, count, _ in parts)


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
def test_short_weights_too(dtype):
    def short():
        return nn.SequentialCell(nn.Dense(5, 19, dtype=dtype), nn.ReLU(), nn.Dense(19, 3, dtype=dtype))

    def work(rank):
        given, optimizer = made(lambda p: nn.Momentum(p, 0.01, 0.9), short)
        step = nn.TrainOneStepCell(nn.WithLossCell(given, nn.MSELoss()), optimizer)
        for number in range(3):
            step(*[x.astype(dtype) for x in batch(rank, number)])
        return [p.asnumpy() if dtype is ms.float16 else p.float().asnumpy() for p in given.trainable_params()]

    found = []
    for divided in (False, True):
        settle(divided)
        found.append(threads.run(2, work))
    assert equal(found[0][0], found[1][0]) and equal(found[1][0], found[1][1])


def scaled(loss, optimizer):
    return nn.TrainOneStepWithLossScaleCell(loss, optimizer, nn.DynamicLossScaleUpdateCell(2.0**126, 2, 2))


def test_an_overflow_in_a_part_is_one_for_all(mode):
    """The scale begins so large that the first steps overflow, in some gradients only."""
    adam = OPTIMIZERS["Adam"]

    def scale(rank, step):
        return float(step.scale_sense.asnumpy()), int(step.optimizer.global_step.asnumpy()[0])

    whole, parts = (trained(2, divided, adam, 12, scaled, scale) for divided in (False, True))
    assert [told for *_, told in parts] == [told for *_, told in whole]
    assert 0 < parts[0][2][1] < 12  # some steps were left out, and some not
    assert all(equal(weights, whole[0][0]) for weights, _, _ in parts)


class Clipped(nn.TrainOneStepCell):
    """A step of the user's own, which looks at all gradients in between."""

    def construct(self, *inputs):
        loss = self.network(*inputs)
        grads = self.grad_no_sens(self.network, self.weights)(*inputs)
        self.optimizer(ops.clip_by_global_norm(self.grad_reducer(grads), 0.1))
        return loss


def test_what_comes_between_reducer_and_optimizer_sees_whole_gradients(mode):
    adam = OPTIMIZERS["Momentum"]
    whole, parts = trained(2, False, adam, cell=Clipped), trained(2, True, adam, cell=Clipped)
    assert equal(parts[0][0], whole[0][0]) and equal(parts[1][0], whole[0][0])


def test_each_rank_keeps_its_part_of_what_is_large_enough():
    settle(True, 1)  # KB: but 19 x 16 elements are less

    def work(rank):
        net, optimizer = made(OPTIMIZERS["Adam"])
        return [(p.name, p.shape, p.share) for p in optimizer.moment1]

    for rank, states in enumerate(threads.run(4, work)):
        shapes = {name: shape for name, shape, _ in states}
        assert shapes["moment1.2.weight"] == (76,) and shapes["moment1.0.weight"] == (19, 5)
        assert [share for *_, share in states if share] == [Share(rank, 4, (16, 19))]
    _, optimizer = made(OPTIMIZERS["Adam"])  # alone
    assert all(p.share is None for p in optimizer.moment1)


def test_a_parameter_may_ask_to_stay_whole():
    settle(True)

    def work(rank):
        with one_at_a_time:
            net = network()
            net[0].weight.parallel_optimizer = False
            net[2].weight.layerwise_parallel = True
            optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        return [p.name for p in optimizer.moments if p.share is None]

    assert threads.run(2, work)[0] == ["moments.0.weight", "moments.2.weight"]


def test_memory_is_that_of_the_paper():
    """Rajbhandari et al. 2020, stage 1 of Adam: weights, and an N-th of both moments."""
    settle(True, 64)

    def work(rank):
        with one_at_a_time:
            net = nn.SequentialCell(nn.Dense(256, 500), nn.ReLU(), nn.Dense(500, 301))
            optimizer = nn.Adam(net.trainable_params())
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
        count = sum(p.size for p in net.trainable_params())
        return sum(p.size * p.dtype.itemsize for p in step.get_parameters()) / (4 * count + 8 * count / 4)

    assert all(abs(ratio - 1) < 0.05 for ratio in threads.run(4, work))


# ---- checkpoints -------------------------------------------------------------------------------------------


def cell_of(size, rank, make=OPTIMIZERS["Adam"]):
    given, optimizer = made(make)
    return nn.TrainOneStepCell(nn.WithLossCell(given, nn.MSELoss()), optimizer)


def states(step):
    return {p.name: p.asnumpy().copy() for p in step.get_parameters()}


def whole_states(parts):
    """Of all ranks, each its own `(values, shares)`."""
    found = dict(parts[0][0])
    for name, share in parts[0][1].items():
        if share is not None:
            found[name] = share.join([values[name] for values, _ in parts])
    return found


def both(step):
    return states(step), {p.name: p.share for p in step.get_parameters()}


def test_whole_checkpoints_are_read_on_another_number_of_ranks(tmp_path):
    def save(rank, step):
        ms.save_checkpoint(step, str(tmp_path / f"rank_{rank}.ckpt"))
        return both(step)

    written = whole_states([told for *_, told in trained(3, True, OPTIMIZERS["Adam"], after=save)])
    assert (tmp_path / "rank_0.ckpt").read_bytes() == (tmp_path / "rank_2.ckpt").read_bytes()

    def load(rank):
        step = cell_of(2, rank)
        values = ms.load_checkpoint(str(tmp_path / "rank_1.ckpt"))
        assert ms.load_param_into_net(step, values, True) == ([], [])
        return both(step)

    again = whole_states(threads.run(2, load))
    alone = cell_of(1, 0)
    ms.load_checkpoint(str(tmp_path / "rank_0.ckpt"), net=alone)
    for found in (again, states(alone)):
        assert found.keys() == written.keys()
        assert all(np.array_equal(found[name], written[name]) for name in written)


def test_each_rank_may_write_its_own_parts(tmp_path):
    def save(rank, step):
        ms.save_checkpoint(step, str(tmp_path / f"rank_{rank}.ckpt"), integrated_save=False)
        return states(step)

    written = [told for *_, told in trained(2, True, OPTIMIZERS["Momentum"], after=save)]

    def load(rank):
        step = cell_of(2, rank, OPTIMIZERS["Momentum"])
        ms.load_checkpoint(str(tmp_path / f"rank_{rank}.ckpt"), net=step)
        return states(step)

    for found, before in zip(threads.run(2, load), written):
        assert all(np.array_equal(found[name], before[name]) for name in before)
    message = r"moments.0.weight: the net has shape \(19, 5\), the checkpoint \(48,\)"
    with pytest.raises(RuntimeError, match=message):
        ms.load_checkpoint(str(tmp_path / "rank_0.ckpt"), net=cell_of(1, 0, OPTIMIZERS["Momentum"]))


# ---- what is not there -------------------------------------------------------------------------------------


class Own(nn.Optimizer):
    """Does not say what its steps need."""

    def __init__(self, params):
        super().__init__(0.1, params)

    def update(self, index, parameter, gradient, learning_rate):
        ops.assign_sub(parameter, gradient / ops.norm(gradient) * learning_rate)


class Descent(Own):
    elementwise = True

    def update(self, index, parameter, gradient, learning_rate):
        ops.assign_sub(parameter, gradient * learning_rate)


class Lazy(Descent):
    def update(self, index, parameter, gradient, learning_rate):
        ops.assign_sub(parameter, ops.norm(parameter) * gradient * learning_rate)


class Joined(ms.mint.optim.SGD):
    """Does not say what its steps need."""

    def construct(self, gradients):
        return super().construct(ops.clip_by_global_norm(gradients, 1.0))


@pytest.mark.parametrize("make", [Own, Lazy, lambda p: Joined(p, 0.1)])
def test_optimizers_of_the_user_that_say_nothing_are_refused(make):
    settle(True)

    def work(rank):
        with pytest.raises(NotImplementedError, match="enable_parallel_optimizer divides states of"):
            made(make)
        return True

    assert all(threads.run(2, work))
    made(make)  # alone


def test_optimizers_of_the_user_may_say_that_they_can(mode):
    whole, parts = trained(2, False, Descent), trained(2, True, Descent)
    assert equal(parts[0][0], whole[0][0])


def test_micro_batches_in_parts_are_not_there():
    config = {"gradient_accumulation_shard": True}
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", enable_parallel_optimizer=True, parallel_optimizer_config=config
    )

    def work(rank):
        with pytest.raises(NotImplementedError, match="gradient_accumulation_shard would add gradients of"):
            made(OPTIMIZERS["Adam"])
        return True

    assert all(threads.run(2, work))


@pytest.mark.parametrize(
    ("config", "kind", "message"),
    [
        ({"level": 1}, ValueError, "level"),
        ({"optimizer_level": "level4"}, ValueError, "level4"),
        ({"parallel_optimizer_threshold": -1}, ValueError, "must be a number of KB from 0 on, but got -1"),
        ({"parallel_optimizer_threshold": 1.5}, TypeError, "must be int, but got 1.5"),
        ({"gradient_accumulation_shard": 1}, TypeError, "must be bool, but got 1"),
    ],
)
def test_bad_settings_are_named(config, kind, message):
    with pytest.raises(kind, match=message):
        ms.set_auto_parallel_context(parallel_optimizer_config=config)
    assert ms.get_auto_parallel_context("parallel_optimizer_config") == {}


def test_hsdp_divides_the_states_of_a_network():
    """Also of an optimizer that was made before, and has taken steps."""
    whole = trained(2, False, OPTIMIZERS["Adam"], steps=4)

    def work(rank):
        step = cell_of(2, rank)
        for number in range(2):
            step(*batch(rank, number))
        AutoParallel(step).hsdp(threshold=0)
        assert step.optimizer.moment1[0].shape == (48,)
        for number in range(2, 4):
            step(*batch(rank, number))
        return [p.asnumpy().copy() for p in step.network.trainable_params()]

    settle(False)
    found = threads.run(2, work)
    assert equal(found[0], whole[0][0]) and equal(found[1], whole[0][0])


@pytest.mark.parametrize(
    ("given", "message"),
    [({"shard_size": 0}, "shard_size must be -1 or a positive int, but got 0"),
     ({"threshold": -1}, "threshold must be an int of KB from 0 on, but got -1"),
     ({"optimizer_level": "level0"}, "level0")],
)  # fmt: skip
def test_bad_arguments_of_hsdp_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        AutoParallel(network()).hsdp(**given)


@pytest.mark.parametrize("count", [1, 5, 6, 7])
def test_parts_join_to_what_they_are_parts_of(count):
    whole = np.arange(count, dtype=np.float32).reshape(1, count)
    shares = [Share(rank, 3, (1, count)) for rank in range(3)]
    parts = [share.of(whole) for share in shares]
    assert {part.shape for part in parts} == {(shares[0].length,)}
    assert np.array_equal(shares[0].join(parts), whole)
