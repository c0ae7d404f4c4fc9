"""`optimizer_level` 2 and 3: gradients and weights are divided among ranks, too; the steps are the same."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.engine.communication.share import Share
from mycelia.nn import cell, gathered
from mycelia.parallel.auto_parallel import AutoParallel
from mycelia.parallel.engines import threads
from mycelia.testing.networks import Block

sys.path.insert(0, str(Path(__file__).parent))
from test_parallel_optimizer import Clipped

one_at_a_time = threading.Lock()  # ranks that are threads share the seed
LEVELS = pytest.mark.parametrize("level", [2, 3])
RNG = np.random.default_rng(3)
ROWS = 12


@pytest.fixture(autouse=True)
def settings():
    yield
    ms.reset_auto_parallel_context()


def settle(level, threshold=0, **more):
    """Level 0: plain data parallelism."""
    config = {"parallel_optimizer_threshold": threshold, "optimizer_level": f"level{level or 1}"}
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=level > 0,
        parallel_optimizer_config=config, **more,
    )  # fmt: skip


class LeNet(nn.Cell):
    data = RNG.normal(size=(ROWS, 1, 12, 12)).astype(np.float32)

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 3), nn.Conv2d(6, 8, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1, self.fc2 = nn.Dense(72, 20), nn.Dense(20, 5)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv2(self.pool(ops.relu(self.conv1(x))))))
        return self.fc2(ops.relu(self.fc1(x.reshape((x.shape[0], -1)))))


class Tied(nn.Cell):
    """A transformer whose last layer is its table: another Cell's weight, read by its path."""

    data = RNG.integers(0, 5, (ROWS, 8)).astype(np.int32)

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 16)
        self.blocks = nn.SequentialCell(Block(16, 2, 8), Block(16, 2, 8))

    def construct(self, ids):
        hidden = self.blocks(self.table(ids)).mean(1)
        return ops.matmul(hidden, self.table.embedding_table.T)


class Recomputed(Tied):
    def __init__(self):
        super().__init__()
        self.blocks[0].recompute()


class Recurrent(nn.Cell):
    """A layer that keeps its weights in lists."""

    data = RNG.normal(size=(ROWS, 4, 6)).astype(np.float32)

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 7, batch_first=True)
        self.head = nn.Dense(7, 5)

    def construct(self, x):
        return self.head(self.lstm(x)[0].mean(1))


class Normalized(nn.Cell):
    """A residual block whose statistics are those of all ranks."""

    data = RNG.normal(size=(ROWS, 3, 6, 6)).astype(np.float32)

    def __init__(self):
        super().__init__()
        self.convs = nn.SequentialCell(
            nn.Conv2d(3, 4, 3), nn.SyncBatchNorm(4), nn.ReLU(), nn.Conv2d(4, 3, 3), nn.SyncBatchNorm(3)
        )
        self.head = nn.Dense(3, 5)

    def construct(self, x):
        return self.head(ops.relu(self.convs(x) + x).mean((2, 3)))


class Scaled(nn.Cell):
    """A Cell with a gradient of its own that takes a weight."""

    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(ops.ones((6, 7)) * 0.5, name="weight")

    def construct(self, x):
        return ops.matmul(x, ops.stop_gradient(self.weight))

    def bprop(self, x, out, dout):
        return ops.matmul(dout, self.weight.T)


class OwnGradient(nn.Cell):
    data = RNG.normal(size=(ROWS, 6)).astype(np.float32)

    def __init__(self):
        super().__init__()
        self.first, self.scaled, self.last = nn.Dense(6, 6), Scaled(), nn.Dense(7, 5)

    def construct(self, x):
        return self.last(self.scaled(self.first(x)))


NETWORKS = [LeNet, Tied, Recomputed, Recurrent, Normalized, OwnGradient]
CLASSES = RNG.integers(0, 5, ROWS).astype(np.int32)


def adam(parameters):
    return nn.Adam(parameters, 0.01, weight_decay=0.01)


def made(make_net, make=adam):
    with one_at_a_time:
        ms.set_seed(1)
        net = make_net()
        return net, make(net.trainable_params())


def whole(parameter):
    """The values of a Parameter on all ranks."""
    if not parameter.divided:
        return parameter.asnumpy().copy()
    return gathered.gather([parameter.share], [parameter])[0].asnumpy()


def trained(size, level, kind, steps=3, cell=nn.TrainOneStepCell, make=adam, after=None, **more):
    """Of each rank: the losses, the weights, and what `after(rank, step)` says."""
    settle(level, **more)
    shared = np.array_split(np.arange(ROWS), size)

    def work(rank):
        net, optimizer = made(kind, make)
        step = cell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer).set_train()
        batch = ms.Tensor(kind.data[shared[rank]]), ms.Tensor(CLASSES[shared[rank]])
        losses = []
        for _ in range(steps):
            loss = step(*batch)
            losses.append((loss[0] if isinstance(loss, tuple) else loss).asnumpy().tobytes())
        weights = {p.name: whole(p) for p in net.trainable_params()}
        divided = {p.name for p in net.trainable_params() if p.divided}
        assert divided == ({p.name for p in net.trainable_params() if p.share} if level == 3 else set())
        return losses, weights, after(rank, step) if after else len(divided)

    return threads.run(size, work)


def assert_equal(found, expected):
    for (losses, weights, _), (other_losses, others, _) in zip(found, expected):
        assert losses == other_losses
        assert weights.keys() == others.keys()
        for name, values in weights.items():
            assert values.tobytes() == others[name].tobytes(), name


@LEVELS
@pytest.mark.parametrize("kind", NETWORKS, ids=lambda kind: kind.__name__)
def test_steps_are_those_of_data_parallelism_to_the_bit(kind, level, mode):
    size = {LeNet: 4, Normalized: 3}.get(kind, 2)
    found = trained(size, level, kind)
    assert level == 2 or all(count > 3 for *_, count in found)
    expected = trained(size, 0, kind)
    if (kind, level, mode) != (Recomputed, 3, ms.GRAPH_MODE):
        assert_equal(found, expected)
        return
    for (losses, weights, _), (other_losses, others, _) in zip(found, expected):
        assert losses == other_losses  # what is computed again is compiled otherwise
        for name, values in weights.items():
            np.testing.assert_allclose(values, others[name], rtol=1e-6, atol=1e-7, err_msg=name)


@LEVELS
@pytest.mark.parametrize("size", [3, 4])
def test_any_number_of_ranks(size, level, mode):
    assert_equal(trained(size, level, Tied, 2), trained(size, 0, Tied, 2))


OPTIMIZERS = {
    "Momentum": lambda p: nn.Momentum(p, 0.05, 0.9, weight_decay=0.1, use_nesterov=True),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, nn.ExponentialDecayLR(0.05, 0.9, 2), weight_decay=0.1),
    "ASGD": lambda p: nn.ASGD(p, 0.1),
    "Rprop": lambda p: nn.Rprop(p, 0.01),
    "centralized": lambda p: nn.Adam([{"params": p[4:5], "grad_centralization": True}, {"params": p[5:]}]),
}  # fmt: skip


@LEVELS
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, level):
    make = OPTIMIZERS[name]
    assert_equal(trained(2, level, LeNet, make=make), trained(2, 0, LeNet, make=make))


def scaled(loss, optimizer):
    return nn.TrainOneStepWithLossScaleCell(loss, optimizer, nn.DynamicLossScaleUpdateCell(2.0**126, 2, 2))


class Accumulated(nn.TrainOneStepCell):
    def __init__(self, network, optimizer):
        super().__init__(nn.wrap.GradAccumulationCell(network, 3), optimizer)


@LEVELS
@pytest.mark.parametrize("cell", [scaled, Clipped, Accumulated], ids=lambda cell: cell.__name__)
def test_other_steps(cell, level, mode):
    assert_equal(trained(2, level, LeNet, 5, cell), trained(2, 0, LeNet, 5, cell))


@LEVELS
def test_loops_of_ones_own(level, mode):
    """The gradient of a function around the network, which has no step of ours."""

    def run(level):
        settle(level)

        def work(rank):
            net, optimizer = made(LeNet)
            reduce = nn.DistributedGradReducer(optimizer.parameters)

            def forward(x, y):
                return ops.cross_entropy(net(x), y)

            gradient = ms.value_and_grad(forward, None, optimizer.parameters)

            def step(x, y):
                loss, grads = gradient(x, y)
                optimizer(reduce(grads))
                return loss

            step = ms.jit(step) if ms.get_context("mode") == ms.GRAPH_MODE else step
            batch = ms.Tensor(LeNet.data[rank::2]), ms.Tensor(CLASSES[rank::2])
            losses = [step(*batch).asnumpy().tobytes() for _ in range(3)]
            return losses, {p.name: whole(p) for p in net.trainable_params()}, None

        return threads.run(2, work)

    assert_equal(run(level), run(0))


def test_a_network_computes_between_its_steps(mode):
    """All ranks call it: its Cells gather what they need."""

    def after(rank, step):
        net = step.network._backbone.set_train(False)
        return net(ms.Tensor(LeNet.data)).asnumpy()

    found, expected = (trained(2, level, LeNet, after=after) for level in (3, 0))
    for (*_, one), (*_, other) in zip(found, expected):
        # A compiled network keeps whole weights laid out for its kernels, which add in another order.
        np.testing.assert_allclose(one, other, rtol=0 if mode == ms.PYNATIVE_MODE else 1e-5)


def test_weights_are_parts_between_steps_and_the_rest_is_whole():
    settle(3, 1)  # KB

    def work(rank):
        net, _ = made(LeNet)
        return {p.name: (tuple(p.shape), p.share) for p in net.trainable_params()}

    for rank, found in enumerate(threads.run(4, work)):
        assert found["fc1.weight"] == ((360,), Share(rank, 4, (20, 72)))
        assert found["conv1.weight"] == ((6, 1, 3, 3), None)


class Outside(LeNet):
    """Takes a weight where no Cell has gathered it."""

    def construct(self, x):
        table = dict(self.parameters_and_names())
        return super().construct(x) + table["fc2.weight"].sum()


def test_weights_that_are_taken_elsewhere_are_named(mode):
    settle(3)

    def work(rank):
        net, optimizer = made(Outside)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
        with pytest.raises(NotImplementedError, match=r"'fc2.weight' is divided among processes"):
            step(ms.Tensor(LeNet.data[rank::2]), ms.Tensor(CLASSES[rank::2]))
        return [tuple(p.shape) for p in net.trainable_params()]

    shapes = threads.run(2, work)
    assert all(len(shape) == 1 for shape in shapes[0])  # they are parts again


# ---- among some of the ranks -------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 2, 3])
def test_parts_may_be_those_of_fewer_ranks(level, mode):
    """Four ranks, each two have all: every number is the same still."""
    found = trained(4, level, LeNet, optimizer_weight_shard_size=2)
    assert_equal(found, trained(4, 0, LeNet))

    def shares(rank, step):
        return {p.share for p in step.optimizer.moment1}

    found = trained(4, level, LeNet, 0, after=shares, optimizer_weight_shard_size=2)
    for rank, (*_, told) in enumerate(found):
        assert {(share.rank, share.size) for share in told} == {(rank % 2, 2)}


def test_a_number_of_parts_that_divides_nothing_is_an_error():
    settle(1, optimizer_weight_shard_size=2)

    def work(rank):
        with pytest.raises(ValueError, match="must divide the 3 processes that train together, but got 2"):
            made(LeNet)
        return True

    assert all(threads.run(3, work))


# ---- files -------------------------------------------------------------------------------------------------


def cell_of(kind=LeNet):
    net, optimizer = made(kind)
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)


def test_files_are_read_on_any_number_of_ranks(tmp_path):
    def save(rank, step):
        ms.save_checkpoint(step, str(tmp_path / f"rank_{rank}.ckpt"))
        ms.save_checkpoint(step, str(tmp_path / f"part_{rank}.ckpt"), integrated_save=False)
        return {p.name: p.asnumpy().copy() for p in step.get_parameters()}

    found = trained(3, 3, LeNet, after=save)
    weights = found[0][1]
    settle(3)

    def load(rank, file, parts):
        step = cell_of()
        values = ms.load_checkpoint(str(tmp_path / file.format(rank)))
        assert ms.load_param_into_net(step, values, True) == ([], [])
        if parts:
            return {p.name: p.asnumpy().copy() for p in step.get_parameters()}
        return {p.name: whole(p) for p in step.network.trainable_params()}

    for others in threads.run(2, lambda rank: load(rank, "rank_0.ckpt", False)):
        assert all(np.array_equal(others[name], weights[name]) for name in weights)
    for (*_, before), again in zip(found, threads.run(3, lambda rank: load(rank, "part_{}.ckpt", True))):
        assert all(np.array_equal(again[name], before[name]) for name in before)
    alone = load(0, "rank_2.ckpt", False)
    assert all(np.array_equal(alone[name], weights[name]) for name in weights)


@pytest.mark.parametrize("size", [2, 4])
def test_trainings_go_on_behind_a_failure(size, tmp_path):
    """On as many ranks, and on others; what fails is a callback in the middle of the second epoch."""

    class Fails(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 5:
                raise InterruptedError("the machine ends")

    def train(ranks, folder, fails):
        settle(3, **({"optimizer_weight_shard_size": 2} if ranks == 4 else {}))

        def work(rank):
            net, optimizer = made(LeNet)
            model = ms.Model(net, nn.CrossEntropyLoss(), optimizer)
            rows = np.arange(ROWS).reshape(3, ranks, -1)[:, rank]  # of each batch
            data = ms.dataset.GeneratorDataset(
                [(LeNet.data[r], CLASSES[r]) for r in rows], ["x", "y"], shuffle=False
            )
            keeps = ms.train.TrainFaultTolerance(str(tmp_path / folder), save_checkpoint_steps=2)
            callbacks = [keeps, *([Fails()] if fails else [])]
            if fails:
                with pytest.raises(InterruptedError):
                    model.train(3, data, callbacks=callbacks, dataset_sink_mode=False)
            else:
                model.train(3, data, callbacks=callbacks, dataset_sink_mode=False)
            return {p.name: whole(p) for p in net.trainable_params()}

        return threads.run(ranks, work)

    expected = train(4, "undisturbed", False)[0]
    train(4, "failed", True)
    for found in train(size, "failed", False):
        for name, values in expected.items():
            if size == 4:
                assert np.array_equal(found[name], values), name
            np.testing.assert_allclose(found[name], values, atol=1e-5)


# ---- settings ----------------------------------------------------------------------------------------------


def test_hsdp_divides_weights_of_a_network_that_is_there():
    """Also where steps were compiled before."""

    def work(rank):
        step = cell_of()
        batch = ms.Tensor(LeNet.data[rank::2]), ms.Tensor(CLASSES[rank::2])
        for _ in range(2):
            step(*batch)
        AutoParallel(step).hsdp(threshold=0, optimizer_level="level3")
        assert all(p.divided for p in step.network.trainable_params())
        for _ in range(2):
            step(*batch)
        return {p.name: whole(p) for p in step.network.trainable_params()}

    def plain(rank):
        step = cell_of()
        batch = ms.Tensor(LeNet.data[rank::2]), ms.Tensor(CLASSES[rank::2])
        for _ in range(4):
            step(*batch)
        return {p.name: p.asnumpy().copy() for p in step.network.trainable_params()}

    settle(0)
    expected = threads.run(2, plain)
    found = threads.run(2, work)
    assert all(np.array_equal(found[0][name], expected[0][name]) for name in expected[0])


def test_weights_of_rank_0_go_to_all():
    settle(3, parameter_broadcast=True)

    def work(rank):
        with one_at_a_time:
            ms.set_seed(rank)
            net = LeNet()
        own = net.fc1.weight.asnumpy().copy()
        nn.Momentum(net.trainable_params(), 0.1, 0.9)
        return own, whole(net.fc1.weight)

    (first, found), (second, other) = threads.run(2, work)
    assert not np.array_equal(first, second)
    assert np.array_equal(found, first) and np.array_equal(other, first)


@pytest.mark.parametrize("level", [2, 3])
def test_lars_needs_whole_gradients(level):
    settle(level)

    def work(rank):
        with pytest.raises(NotImplementedError, match=f"'level{level}' divides gradients, which it needs"):
            made(LeNet, lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9)))
        return True

    assert all(threads.run(2, work))


def test_weights_that_are_gone_are_not_gathered_any_more():
    """Without any, calls of Cells are as quick as before."""
    before = set(cell._Mode.gathered)

    def work(rank):
        step = cell_of()
        step(ms.Tensor(LeNet.data[rank::2]), ms.Tensor(CLASSES[rank::2]))
        return {id(p) for p in step.network.trainable_params()}

    settle(3)
    made = set.union(*threads.run(2, work)) - before
    assert len(made) == 12 and cell._Mode.gathers
    gc.collect()
    assert not made & cell._Mode.gathered
    assert cell._Mode.gathers == bool(cell._Mode.gathered)


def test_files_for_others_have_no_parts(tmp_path):
    settle(3)

    def work(rank):
        net, _ = made(LeNet)
        with pytest.raises(NotImplementedError, match=r"weight 'conv1.weight' is divided among processes"):
            ms.export(net, ms.Tensor(LeNet.data), file_name=str(tmp_path / f"{rank}"), file_format="MINDIR")
        return True

    assert all(threads.run(2, work))


# ---- memory ------------------------------------------------------------------------------------------------

MEASURING = """
import sys
import numpy as np
import mycelia as ms
from mycelia import nn

level, width = int(sys.argv[1]), 512
ms.communication.init()
ms.set_auto_parallel_context(
    parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=True,
    parallel_optimizer_config={"optimizer_level": f"level{level}"},
)
held = []

class Measured(nn.Adam):
    def begin_step(self):  # all gradients are there
        held.append(ms.runtime.memory_allocated())
        super().begin_step()

ms.set_seed(1)
net = nn.SequentialCell(*[nn.Dense(width, width) for _ in range(6)])
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), Measured(net.trainable_params()))
rows = ms.Tensor(np.ones((2, width), np.float32))
for _ in range(2):
    step(rows, rows)
weights = 6 * (width * width + width)
ranks = ms.communication.get_group_size()
states = {1: 8 + 8 / ranks, 2: 4 + 12 / ranks, 3: 16 / ranks}[level] * weights
print(f"ratio {held[-1] / states:.4f}")
"""


@pytest.mark.parametrize("level", [2, 3])
def test_memory_is_that_of_the_paper(level, tmp_path):
    """Rajbhandari et al. 2020: of Adam with float32 an N-th of two moments and gradients, then of weights."""
    script = tmp_path / "measure.py"
    script.write_text(MEASURING)
    command = [sys.executable, "-m", "mycelia", "msrun", "--worker_num", "4", "--log_dir", str(tmp_path)]
    done = subprocess.run([*command, str(script), str(level)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    ratios = [float(line.split()[-1]) for path in sorted(Path(tmp_path).glob("worker_*.log"))
              for line in path.read_text().splitlines() if line.startswith("ratio")]  # fmt: skip
    assert len(ratios) == 4 and all(abs(ratio - 1) < 0.05 for ratio in ratios), ratios
