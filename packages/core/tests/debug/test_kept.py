"""The ring buffer of a dump: the last steps within a number of bytes, written when there is trouble."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.debug.dump.groups import Group, Step
from mycelia.debug.dump.kept import Kept
from mycelia.engine import _C
from mycelia.engine.observing.observers import Watched

pytestmark = pytest.mark.usefixtures("from_the_first_step")


def training():
    """A function that trains one step on a batch of [64, `width`], given its scale."""
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(64, 256), nn.ReLU(), nn.Dense(256, 8))
    optimizer = nn.Momentum(net.trainable_params(), 1e-3, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    x, y = np.ones((64, 64), np.float32), Tensor(np.zeros((64, 8), np.float32))
    return lambda scale=1.0: step(Tensor(x * np.float32(scale)), y)


def live():
    gc.collect()
    return _C.memory_statistics()["live_bytes"]


def test_the_memory_is_as_set(tmp_path, mode):
    """Within a tenth: of tensors a little less, since the objects that tell of them are counted as well."""
    step, limit = training(), 6 << 20
    step()
    before = live()
    with debug.dump({"path": str(tmp_path), "last_bytes": limit, "eager": True}):
        for _ in range(20):
            step()
            assert _C.memory_statistics()["live_bytes"] - before < 1.05 * limit
        assert 0.85 * limit < live() - before < 1.02 * limit
    assert list(tmp_path.rglob("*.npy")) == []


def test_a_step_that_is_larger_than_the_memory_is_kept_from_its_end(tmp_path, mode):
    step = training()
    step()
    limit = 200_000  # a step has over 500 kB
    with debug.dump({"path": str(tmp_path), "last_bytes": limit, "eager": True}):
        step()
        step(np.nan)
    written = [p for p in tmp_path.rglob("*.npy") if p.parent.name != "constants"]
    inodes = {p.stat().st_ino: p.stat().st_size for p in written}
    assert 0 < sum(inodes.values()) < 1.1 * limit
    assert {"ApplyMomentum"} <= {p.name.partition(".")[0] for p in written}


def test_trouble_that_is_not_kept_any_more_is_found(tmp_path, caplog):
    """The first operator makes a NaN, and what comes after it takes all of the room."""

    class Net(nn.Cell):
        def construct(self, x):
            bad = ops.log(x)[:1]
            y = ops.select(x > 0, x, ops.ones_like(x))
            for _ in range(8):
                y = ops.sin(y + 1.0)
            return y, bad

    net, x = Net(), Tensor(np.full((64, 64), -1.0, np.float32))
    with caplog.at_level("WARNING", logger="mycelia"):
        with debug.dump({"path": str(tmp_path), "last_bytes": 50_000, "eager": True}):
            net(x)
    told = [r.getMessage() for r in caplog.records]
    assert any("Log" in t and "is not finite" in t for t in told)
    assert any("lacks its first" in t and "last_bytes" in t for t in told)
    kinds = {p.name.partition(".")[0] for p in tmp_path.rglob("*.npy")}
    assert "Sin" in kinds and "Log" not in kinds


def test_the_last_steps_are_whole_where_they_fit(tmp_path):
    net = ms.jit(lambda x: ops.exp(ops.relu(x)))
    with debug.dump({"path": str(tmp_path), "last_bytes": 400_000}):
        for value in (*range(40), 1000.0):
            net(Tensor(np.full(4096, value, np.float32)))
    steps = {p.parent.name: 0 for p in tmp_path.rglob("Exp*.output.*.npy")}
    assert "40" in steps and "39" in steps and "1" not in steps and len(steps) in (7, 8, 9)  # of 48 kB
    values = debug.DumpAnalyzer(tmp_path).select_tensors("Exp", iterations=[39])[-1].value()
    assert values == pytest.approx(np.exp(39.0), rel=1e-5)


def test_steps_and_bytes_may_both_be_bounded(tmp_path):
    net = ms.jit(lambda x: ops.exp(x))
    with debug.dump({"path": str(tmp_path), "last_bytes": 1 << 20, "last_steps": 2}):
        for value in (1.0, 2.0, 3.0, 1000.0):
            net(Tensor(np.full(64, value, np.float32)))
    assert {p.parent.name for p in tmp_path.rglob("Exp*.npy")} == {"2", "3"}


@pytest.mark.parametrize("wrong", [-1, "1 GB", 1.5, True])
def test_what_is_no_number_of_bytes_is_refused_by_name(tmp_path, wrong):
    with pytest.raises(ValueError, match="'last_bytes' must be an integer from 0 on"):
        with debug.dump({"path": str(tmp_path), "last_bytes": wrong}):
            pass


def test_memory_that_steps_share_counts_once():
    weight, kept = Tensor(np.ones(10_000, np.float32)), Kept(None, 1 << 20)
    sizes = []
    for iteration in range(3):
        step = Step(Watched("f"), iteration)
        for name in ("w", "also w"):
            kept.add(step, Group("Parameter", name, 1, (), [weight._detach()]))
        kept.end(step)
        sizes.append(kept.size_bytes)
    assert 40_000 < sizes[0] < 45_000 and sizes[2] < 50_000
    kept.clear()
    assert kept.size_bytes == 0 and not kept.steps


@pytest.mark.fuzz(4)
def test_the_size_is_that_of_what_is_kept_whatever_comes_and_goes(seed):
    rng = np.random.default_rng(seed)
    limit = int(rng.integers(1, 400_000))
    kept = Kept(int(rng.integers(1, 9)) if rng.random() < 0.5 else None, limit)
    pool = [Tensor(np.ones(int(rng.integers(0, 20_000)), np.float32)) for _ in range(8)]
    for iteration in range(30):
        step = Step(Watched("f"), iteration)
        for i in range(int(rng.integers(0, 12))):
            tensor = pool[rng.integers(8)]._detach() if rng.random() < 0.5 else pool[rng.integers(8)] + 1.0
            call = (None, [tensor, None], [tensor]) if rng.random() < 0.3 else None
            kept.add(step, Group("Add", f"a{i}", 1, (), [tensor], call))
            assert kept.size_bytes <= limit
        kept.end(step)
        groups = [g for s in kept.steps for g in s.groups]
        blocks = {t._memory[0]: t.nbytes for g in groups for t in g.tensors}
        assert 0 <= kept.size_bytes - sum(blocks.values()) <= 500 * len(groups)
    kept.clear()
    assert kept.size_bytes == 0
