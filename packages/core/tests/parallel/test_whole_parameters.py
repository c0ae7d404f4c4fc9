"""`enable_parallel_optimizer` with steps that need whole Parameters: each belongs to one rank."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.engine.communication.share import Share
from mycelia.experimental import optim as experimental
from mycelia.mint import optim
from mycelia.parallel.auto_parallel import AutoParallel
from mycelia.parallel.engines import threads

sys.path.insert(0, str(Path(__file__).parent))
from test_parallel_optimizer import (  # noqa: F401  (a fixture)
    Clipped,
    Own,
    batch,
    both,
    cell_of,
    equal,
    made,
    scaled,
    settings,
    settle,
    states,
    trained,
    whole_states,
)


class Trust(Own):
    """A step of the user's own, which looks at all of a Parameter and keeps something for each."""

    by_parameter = True

    def __init__(self, params):
        super().__init__(params)
        self.seen = self.state_of("seen")

    def update(self, index, parameter, gradient, learning_rate):
        ops.assign_add(self.seen[index], ops.abs(gradient))
        step = gradient / (ops.sqrt(self.seen[index]) + 1e-3)
        ops.assign_sub(parameter, step * (ops.norm(parameter) + 0.1) * learning_rate)


OPTIMIZERS = {
    "Lamb": lambda p: nn.Lamb(p, 0.02, weight_decay=0.1),
    "AdaFactor": lambda p: nn.AdaFactor(p),
    "AdaFactor, rate": lambda p: nn.AdaFactor(p, 0.01, relative_step=False, weight_decay=0.01),
    "the user's": Trust,
    "groups": lambda p: nn.Lamb([{"params": p[:1], "lr": 0.1, "weight_decay": 0.2}, {"params": p[1:]}], 0.01),
    "mint Adam": lambda p: optim.Adam(p, 0.01, amsgrad=True),
    "mint AdamW": lambda p: optim.AdamW([{"params": p[:3], "lr": 0.1}, {"params": p[3:]}], 0.01),
    "mint SGD": lambda p: optim.SGD(p, 0.1, 0.9, weight_decay=0.1),
    "Adam": lambda p: experimental.Adam(p, 0.01, weight_decay=0.1),
    "AdamW": lambda p: experimental.AdamW(p, 0.01, amsgrad=True),
    "Adamax": lambda p: experimental.Adamax(p),
    "NAdam": lambda p: experimental.NAdam(p),
    "RAdam": lambda p: experimental.RAdam(p),
    "Adadelta": lambda p: experimental.Adadelta(p),
    "Adagrad": lambda p: experimental.Adagrad(p),
    "RMSprop": lambda p: experimental.RMSprop(p, centered=True, momentum=0.9),
    "SGD": lambda p: experimental.SGD(p, 0.1, 0.9),
    "ASGD": lambda p: experimental.ASGD(p, 0.1, t0=1.0),
    "Rprop": lambda p: experimental.Rprop(p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_are_those_of_whole_states_to_the_bit(name, mode):
    make = OPTIMIZERS[name]
    whole, parts = trained(2, False, make), trained(2, True, make)
    assert all(equal(weights, whole[0][0]) for weights, *_ in parts)
    assert all(count > 0 for _, count, _ in parts)


def test_more_ranks_than_parameters_and_pairs_of_ranks(mode):
    make = OPTIMIZERS["Lamb"]
    whole, parts = trained(8, False, make, steps=2), trained(8, True, make, steps=2)
    assert all(equal(weights, whole[0][0]) for weights, *_ in parts)
    assert sum(count > 0 for _, count, _ in parts) == 6  # there are no more Parameters
    ms.set_auto_parallel_context(optimizer_weight_shard_size=2)
    whole, parts = trained(4, False, make, steps=2), trained(4, True, make, steps=2)
    assert all(equal(weights, whole[0][0]) for weights, *_ in parts)
    assert parts[0][1] == parts[2][1] and parts[1][1] == parts[3][1]


@pytest.mark.parametrize("cell", (Clipped, scaled))
def test_other_steps(cell, mode):
    make = OPTIMIZERS["Lamb"]
    whole, parts = trained(2, False, make, 12, cell), trained(2, True, make, 12, cell)
    assert all(equal(weights, whole[0][0]) for weights, *_ in parts)


def test_each_rank_has_about_as_many_states():
    """And none of Parameters that are small, or shall stay whole."""
    settle(True, 64)

    def work(rank):
        net = nn.SequentialCell(*[nn.Dense(160, 160) for _ in range(6)])
        net[0].weight.parallel_optimizer = False
        optimizer = nn.Lamb(net.trainable_params(), 0.1)
        return [(p.size, p.share) for p in optimizer.moment1]

    counts = []
    for rank, found in enumerate(threads.run(2, work)):
        assert found[0] == (160 * 160, None) and found[1] == (160, None)
        assert [share for _, share in found[2::2]] == [Share(rank, 2, (160, 160), k % 2) for k in range(5)]
        counts.append(sum(n for n, _ in found[2::2]))
    assert counts == [3 * 160 * 160, 2 * 160 * 160]


@pytest.mark.parametrize("name", ("Lamb", "NAdam", "AdaFactor"))
def test_files_are_read_on_any_number_of_ranks(name, tmp_path):
    make = OPTIMIZERS[name]

    def save(rank, step):
        ms.save_checkpoint(step, str(tmp_path / f"whole_{rank}.ckpt"))
        ms.save_checkpoint(step, str(tmp_path / f"parts_{rank}.ckpt"), integrated_save=False)
        return both(step)

    written = whole_states([told for *_, told in trained(3, True, make, after=save)])
    assert (tmp_path / "whole_0.ckpt").read_bytes() == (tmp_path / "whole_2.ckpt").read_bytes()

    def load(size, file):
        def work(rank):
            step = cell_of(size, rank, make)
            values = ms.load_checkpoint(str(tmp_path / file.format(rank)))
            assert ms.load_param_into_net(step, values, True) == ([], [])
            return both(step)

        return whole_states(threads.run(size, work))

    alone = cell_of(1, 0, make)
    ms.load_checkpoint(str(tmp_path / "whole_0.ckpt"), net=alone)
    for found in (load(2, "whole_1.ckpt"), load(3, "parts_{}.ckpt"), states(alone)):
        assert found.keys() == written.keys()
        assert all(np.array_equal(found[name], written[name]) for name in written)


@pytest.mark.parametrize("size", (2, 3))
def test_trainings_go_on_behind_a_failure(size, tmp_path):
    """On as many ranks, and on others."""
    from mycelia.train import Model, TrainFaultTolerance

    settle(True)
    rows = np.random.default_rng(0).normal(size=(24, 5)).astype(np.float32)

    class Fail(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 3:
                raise RuntimeError("enough")

    def work(rank, count, *callbacks):
        net, optimizer = made(OPTIMIZERS["Lamb"])
        data = ms.dataset.NumpySlicesDataset(
            (rows, rows[:, :3]), shuffle=False, num_shards=count, shard_id=rank
        ).batch(12 // count)
        Model(net, nn.MSELoss(), optimizer).train(2, data, callbacks=list(callbacks))
        return [p.asnumpy().copy() for p in net.trainable_params()]

    expected = threads.run(2, lambda rank: work(rank, 2))[0]
    keeps = lambda: TrainFaultTolerance(str(tmp_path), save_checkpoint_steps=1)
    with pytest.raises(RuntimeError, match="enough"):
        threads.run(2, lambda rank: work(rank, 2, keeps(), Fail()))
    for found in threads.run(size, lambda rank: work(rank, size, keeps())):
        for one, other in zip(found, expected):
            near = dict(rtol=0, atol=0) if size == 2 else dict(rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(one, other, **near)


def test_hsdp_divides_the_states_of_a_network():
    """Also of an optimizer that was made before, and has taken steps."""
    whole = trained(2, False, OPTIMIZERS["Lamb"], steps=4)

    def work(rank):
        step = cell_of(2, rank, OPTIMIZERS["Lamb"])
        for number in range(2):
            step(*batch(rank, number))
        AutoParallel(step).hsdp(threshold=0)
        assert {p.size for p in step.optimizer.moment1} >= {0}
        for number in range(2, 4):
            step(*batch(rank, number))
        return [p.asnumpy().copy() for p in step.network.trainable_params()]

    settle(False)
    for found in threads.run(2, work):
        assert equal(found, whole[0][0])


@pytest.mark.parametrize("level", ("level2", "level3"))
@pytest.mark.parametrize("name", ("Lamb", "mint AdamW"))
def test_more_than_states_is_not_divided(name, level):
    settle(True)
    ms.set_auto_parallel_context(parallel_optimizer_config={"optimizer_level": level})

    def work(rank):
        with pytest.raises(NotImplementedError, match=f"'{level}', but its steps need whole gradients"):
            made(OPTIMIZERS[name])

    threads.run(2, work)


def test_groups_are_not_added_afterwards():
    settle(True)

    def work(rank):
        _, optimizer = made(OPTIMIZERS["mint SGD"])
        with pytest.raises(NotImplementedError, match="no group can be added"):
            optimizer.add_param_group({"params": nn.Dense(2, 2).trainable_params()})

    threads.run(2, work)
