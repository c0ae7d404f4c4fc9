"""`Model.train` under semi_auto_parallel, and trainings that go on behind a failure there."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.parallel.engines import threads

sys.path.insert(0, str(Path(__file__).parent))
from test_semi_auto import graphs, seeding  # noqa: F401  (a fixture)

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(6, 4, 8)).astype(np.float32)  # six batches
WANTED = RNG.normal(size=(6, 4, 4)).astype(np.float32)


class Net(nn.Cell):
    """The first layer's columns and the second's rows are divided."""

    def __init__(self, ranks):
        super().__init__()
        self.first, self.last = nn.Dense(8, 16), nn.Dense(16, 4)
        if ranks > 1:
            self.first.matmul.shard(((1, 1), (ranks, 1)))
            self.first.bias_add.shard(((1, ranks), (ranks,)))
            self.last.matmul.shard(((1, ranks), (1, ranks)))

    def construct(self, x):
        return self.last(ops.relu(self.first(x)))


class Fails(ms.train.Callback):
    def on_train_step_end(self, run_context):
        if run_context.original_args().cur_step_num == 5:
            raise InterruptedError("the machine ends")


def train(ranks, folder, fails=False):
    """All Parameters after two epochs, joined, and whether some were divided."""

    def work(rank):
        with seeding:
            ms.set_seed(1)
            net = Net(ranks)
        model = ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01))
        data = ms.dataset.GeneratorDataset(list(zip(ROWS, WANTED)), ["x", "y"], shuffle=False)
        callbacks = [ms.train.TrainFaultTolerance(str(folder), save_checkpoint_steps=2)]
        if fails:
            with pytest.raises(InterruptedError):
                model.train(2, data, callbacks=[*callbacks, Fails()], dataset_sink_mode=False)
        else:
            model.train(2, data, callbacks=callbacks, dataset_sink_mode=False)
        return {p.name: (p.asnumpy().copy(), p.share) for p in model.train_network.get_parameters()}

    if ranks == 1:
        found = [work(0)]
    else:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
        found = threads.run(ranks, work)
        ms.reset_auto_parallel_context()
    divided = [name for name, (_, share) in found[0].items() if share is not None]
    joined = {name: value for name, (value, _) in found[0].items()}
    for name in divided:
        joined[name] = found[0][name][1].join([one[name][0] for one in found])
    return joined, len(divided)


def test_trainings_of_divided_graphs_go_on_behind_a_failure(tmp_path):
    """On as many ranks to the bit, on others and alone to rounding; moments lie as their weights do."""
    expected, divided = train(2, tmp_path / "undisturbed")
    assert divided == 3 * 3  # weights of two layers and a bias, each with two moments
    alone, _ = train(1, tmp_path / "alone")
    for name, values in expected.items():
        np.testing.assert_allclose(alone[name], values, atol=1e-6, err_msg=name)
    for ranks in (2, 4, 1):
        folder = tmp_path / f"failed_{ranks}"
        train(2, folder, fails=True)
        found, _ = train(ranks, folder)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, atol=0 if ranks == 2 else 1e-6, err_msg=name)
