"""Gradients are added over processes while others are still made: the same bits, whatever comes first."""

from __future__ import annotations

import functools
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia.engine.base.dtypes import BFLOAT16_BITS, to_bfloat16_bits
from mycelia.engine.communication import board, world
from mycelia.engine.communication.messages import MessageCommunicator
from mycelia.engine.communication.transport import GIVEN
from mycelia.engine.compile.executable import live_programs
from mycelia.engine.ops.communication import collectives as c
from mycelia.nn.wrap.sums import Sums
from mycelia.parallel import launcher
from mycelia.parallel.engines import sockets, threads

sys.path.insert(0, str(Path(__file__).parent))
from connected_ranks import over_sockets

by_bytes = functools.partial(over_sockets, shared_memory=False)
ENGINES = pytest.mark.parametrize(
    "run", [threads.run, over_sockets, by_bytes], ids=["local", "shared memory", "socket"]
)


def group():
    return world.current().communicator


def given(rank, dtype, turn):
    """Arrays of several sizes, short and long ones."""
    rng = np.random.default_rng((rank, turn))
    shapes = [(3,), (40, 50), (2, 3, 5), (), (90_001,)][turn % 2 :]
    drawn = [np.asarray(rng.normal(size=shape) * 8, np.float32) for shape in shapes]
    if dtype == BFLOAT16_BITS:
        return [to_bfloat16_bits(x).view(dtype) for x in drawn]
    return [x.astype(dtype) for x in drawn]


# ------------------------------------------------------------------------------------- started reductions


@ENGINES
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, BFLOAT16_BITS])
def test_started_sums_have_the_bits_of_collectives(run, ranks, dtype):
    """Several at a time, taken in another order, with collectives in between; memory is used again."""

    def work(rank):
        members = group()
        for turn in range(4):
            arrays = [given(rank, dtype, turn + k) for k in range(3)]
            expected = [[members.all_reduce(x) for x in some] for some in arrays]
            numbers = [members.start_reduction(some, name=f"{k}") for k, some in enumerate(arrays)]
            for some in arrays:
                for x in some:
                    x[...] = 0  # they are the caller's again
            members.barrier()
            for k in (1, 0, 2):
                found = members.finish_reduction(numbers[k])
                assert [a.tobytes() for a in found] == [a.tobytes() for a in expected[k]]
                assert [a.shape for a in found] == [a.shape for a in expected[k]]
        return True

    assert all(run(ranks, work))


@ENGINES
def test_sums_are_divided_and_scattered(run):
    def work(rank):
        members = group()
        (x,) = given(rank, np.float32, 0)[-1:]
        x = x[: x.size // 3 * 3]
        whole = members.finish_reduction(members.start_reduction([x], divisor=3))[0]
        part = members.finish_reduction(members.start_reduction([x], divisor=3, scatters=True))[0]
        np.testing.assert_array_equal(whole, members.all_reduce(x) / np.float32(3))
        np.testing.assert_array_equal(part, np.split(whole, 3)[rank])
        return True

    assert all(run(3, work))


@ENGINES
@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (lambda g, x: g.start_reduction([x], name="a"), lambda g, x: g.start_reduction([x], name="b"),
         ["for a", "for b"]),
        (lambda g, x: g.start_reduction([x]), lambda g, x: g.start_reduction([x[:70]]), ["[4096]", "[70]"]),
        (lambda g, x: g.start_reduction([x]), lambda g, x: g.start_reduction([x.astype(np.float64)]),
         ["float32 [4096]", "float64 [4096]"]),
        (lambda g, x: g.start_reduction([x]), lambda g, x: g.start_reduction([x.reshape(64, 64)]),
         ["[4096]", "[64, 64]"]),
        (lambda g, x: g.start_reduction([*x.reshape(64, 8, 8)]),
         lambda g, x: g.start_reduction([*x.reshape(64, 4, 16)]), ["[4096] in 64 arrays"]),
        (lambda g, x: g.start_reduction([x]), lambda g, x: g.start_reduction([x], divisor=2),
         ["divided by 2"]),
        (lambda g, x: g.start_reduction([x]), lambda g, x: g.all_gather(x), ["waits for", "all_gather("]),
    ],
    ids=["name", "size", "dtype", "shape", "shapes", "divisor", "collective"],
)  # fmt: skip
def test_ranks_that_start_something_else_are_named(run, one, other, named):
    met = threading.Barrier(2)

    def work(rank):
        members, x = group(), np.ones(4096, np.float32)
        try:
            with pytest.raises(RuntimeError) as caught:
                number = (one if rank == 0 else other)(members, x)
                members.finish_reduction(number)
            return str(caught.value)
        finally:
            if rank == 0:
                members._transport.close()  # else the other waits for it for ever, if it has called something
            met.wait()

    texts = run(2, work)
    assert "rank 0" in texts[0] and "rank 1 calls" in texts[0] and all(name in texts[0] for name in named)
    assert "rank 0" in texts[1]


@ENGINES
def test_a_rank_that_ends_between_start_and_finish_is_named(run):
    told = threading.Barrier(2)  # a rank that was told ends, too, and would be the one that another names

    def work(rank):
        members = group()
        number = members.start_reduction([np.ones(3, np.float32)])
        members.finish_reduction(number)
        if rank == 1:
            return
        number = members.start_reduction([np.ones(100_000, np.float32)])
        with pytest.raises(RuntimeError, match=r"rank 1 takes no part in all_reduce\(sum, float32"):
            members.finish_reduction(number)
        told.wait(60)

    run(3, work)


def test_a_thread_goes_on_where_there_are_cores(monkeypatch):
    """Sums are there without anybody's waiting for them."""
    monkeypatch.setattr(sockets, "has_cores", lambda local_size: True)
    done = threading.Barrier(3)

    def work(rank):
        members, found = group(), []
        for turn in range(20):
            arrays = given(rank, np.float32, turn)
            numbers = [members.start_reduction(arrays) for _ in range(3)]
            done.wait()
            while any(one.total is None for one in members._reducing._open.values()):
                pass  # the threads' business
            found += [a.tobytes() for number in numbers for a in members.finish_reduction(number)]
            found.append(members.all_reduce(arrays[0]).tobytes())
        return found

    def plainly(rank):
        members, found = group(), []
        for turn in range(20):
            arrays = given(rank, np.float32, turn)
            found += 3 * [members.all_reduce(a).tobytes() for a in arrays]
            found.append(members.all_reduce(arrays[0]).tobytes())
        return found

    assert over_sockets(3, work) == threads.run(3, plainly)


@pytest.mark.parametrize("run", [over_sockets, by_bytes], ids=["shared memory", "socket"])
def test_groups_of_one_name_and_other_members_are_told_apart(run):
    groups = ([0, 1, 2], [0, 2], [0, 1, 2], [1, 2], [0, 1, 2])

    def work(rank):
        found = []
        for ranks in groups:
            ms.communication.create_group("some", ranks)
            if rank in ranks:
                members = world.group("test", "some")
                for turn in range(3):
                    number = members.start_reduction([np.full(2, rank + turn, np.float32)])
                    found.append(members.finish_reduction(number)[0].tolist())
            ms.communication.destroy_group("some")
        return found

    for rank, found in enumerate(run(3, work)):
        of_rank = [ranks for ranks in groups if rank in ranks]
        assert found == [[float(sum(r) + len(r) * t)] * 2 for r in of_rank for t in range(3)]


@pytest.mark.parametrize("run", [over_sockets, by_bytes], ids=["shared memory", "socket"])
def test_more_sums_than_a_board_has_room_for(run):
    """Entries that nobody has read yet are not written over; names that are too long go by messages."""

    def work(rank):
        members = group()
        rounds = []
        for _ in range(2):
            numbers = [
                members.start_reduction([np.full(3 + k, rank + k, np.float32)], name="long" * (k % 3) * 200)
                for k in range(150)
            ]
            rounds.append([members.finish_reduction(number)[0].tolist() for number in numbers])
            members.barrier()
        return rounds

    expected = [[3.0 + 3 * k] * (3 + k) for k in range(150)]
    assert run(3, work) == [[expected] * 2] * 3


@pytest.mark.skipif(not board.is_possible(), reason="boards need the order of memory of x86")
def test_processes_that_look_at_boards_send_no_elements(monkeypatch):
    sent, post = [], sockets.SocketTransport.post

    def told(self, peer, message):
        sent.append(message.phase)
        post(self, peer, message)

    def work(rank):
        members = group()
        for turn in range(8):
            x = np.full(100_000, rank + turn, np.float32)
            assert members.finish_reduction(members.start_reduction([x]))[0][-1] == 2 * turn + 1
            members.barrier()
            if turn == 5:
                before.append(sent.count(GIVEN))

    before: list[int] = []
    monkeypatch.setattr(sockets.SocketTransport, "post", told)
    over_sockets(2, work)
    assert before == 2 * [sent.count(GIVEN)] and 0 < before[0] < 12


# --------------------------------------------------------------------------------------- steps of trainings

RNG = np.random.default_rng(3)
IMAGES = RNG.normal(size=(12, 1, 8, 8)).astype(np.float32)
LABELS = RNG.integers(0, 4, 12).astype(np.int32)
LOSS = nn.CrossEntropyLoss()
_seeding = threading.Lock()  # random numbers are the process's


class Net(nn.Cell):
    """Convolutions, a norm with collectives of its own, one of the user's, a weight that is used twice."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 4, 3), nn.SyncBatchNorm(4)
        self.twice = nn.Dense(4 * 64, 4 * 64, has_bias=False)
        self.last = nn.Dense(4 * 64, 4)

    def construct(self, x):
        x = ms.ops.relu(self.norm(self.first(x))).reshape((x.shape[0], -1))
        x = ms.ops.tanh(self.twice(ms.ops.tanh(self.twice(x))))
        return self.last(x * c.all_reduce(ms.ops.mean(x, 0), "avg"))


def plain(net, optimizer):
    return nn.TrainOneStepCell(nn.WithLossCell(net, LOSS), optimizer)


def scaled(net, optimizer):
    scale = nn.DynamicLossScaleUpdateCell(2.0**8, 2, 1)
    return nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, LOSS), optimizer, scale)


def accumulated(net, optimizer):
    return nn.TrainOneStepCell(nn.GradAccumulationCell(nn.WithLossCell(net, LOSS), 2), optimizer)


def recomputed(net, optimizer):
    net.twice.recompute()
    return plain(net, optimizer)


def trained(make, rank, ranks):
    """The weights after three steps."""
    with _seeding:
        ms.set_seed(4)
        net = Net()
    step = make(net, nn.Adam(net.trainable_params(), 0.01)).set_train()
    x, y = ms.Tensor(IMAGES[rank::ranks]), ms.Tensor(LABELS[rank::ranks])
    for _ in range(3):
        step(x, y)
    return {p.name: p.asnumpy().tobytes() for p in net.get_parameters()}


@pytest.fixture
def settings():
    def put(**more):
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, **more)

    yield put
    ms.reset_auto_parallel_context()


DIVIDED = {
    "enable_parallel_optimizer": True,
    "parallel_optimizer_config": {"parallel_optimizer_threshold": 0},
}


PARTS = {"all_reduce_fusion_config": [0, 2]}
CASES = [(plain, {}, 2), (plain, PARTS, 3), (plain, DIVIDED, 3), (scaled, PARTS, 2), (scaled, DIVIDED, 2)]
CASES += [(accumulated, PARTS, 2)]


@pytest.mark.parametrize(("make", "more", "ranks"), CASES)
def test_steps_have_the_bits_of_sums_that_are_made_at_once(make, more, ranks, mode, settings, monkeypatch):
    settings(**more)
    found = over_sockets(ranks, lambda rank: trained(make, rank, ranks))
    assert all(own == found[0] for own in found)
    monkeypatch.setattr(Sums, "ready", lambda self, place, gradient: None)
    monkeypatch.setattr(Sums, "finish", Sums._at_once)
    assert over_sockets(ranks, lambda rank: trained(make, rank, ranks)) == found


@pytest.mark.parametrize("make", [plain, scaled])
def test_compiled_steps_start_sums_before_the_backward_pass_is_over(make, settings):
    settings(all_reduce_fusion_config=[2, 3])
    before, mode, steps = set(live_programs()), ms.get_context("mode"), []

    def work(rank):
        with _seeding:
            net = Net()
        step = make(net, nn.Adam(net.trainable_params(), 0.01)).set_train()
        steps.append(step)
        step(ms.Tensor(IMAGES[rank::2]), ms.Tensor(LABELS[rank::2]))

    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        threads.run(2, work)
    finally:
        ms.set_context(mode=mode)
    found = [[node.op.name for node in program.nodes] for program in set(live_programs()) - before]
    found = [names for names in found if "start_sums" in names]
    assert len(found) == 2
    for names in found:
        starts = [i for i, name in enumerate(names) if name == "start_sums"]
        assert len(starts) == names.count("finish_sums") == 3
        last = names.index("conv_weight_grad")  # of the backward pass, by which the third part is whole
        assert starts[1] < last < starts[2] < names.index("finish_sums")
        assert names[starts[0] : starts[1]].count("mat_mul") == 4  # of the layer that is used twice


@pytest.mark.parametrize("make", [plain, scaled])
def test_eager_steps_start_sums_before_the_backward_pass_is_over(make, settings, monkeypatch):
    settings(all_reduce_fusion_config=[2, 3])
    events, mode = [[], []], ms.get_context("mode")
    start = MessageCommunicator.start_sums

    def told(self, tensors, divisor, name, scatters):
        events[self.rank].append(name)
        return start(self, tensors, divisor, name, scatters)

    def work(rank):
        with _seeding:
            net = Net()
        net.first.weight.register_hook(lambda gradient: events[rank].append("the first is made"))
        step = make(net, nn.Adam(net.trainable_params(), 0.01)).set_train()
        step(ms.Tensor(IMAGES[rank::2]), ms.Tensor(LABELS[rank::2]))

    monkeypatch.setattr(MessageCommunicator, "start_sums", told)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    try:
        threads.run(2, work)
    finally:
        ms.set_context(mode=mode)
    assert events[0] == events[1]
    assert events[0] == ["gradients 5-4", "gradients 3", "the first is made", "gradients 2-0"]


RECOMPUTED = """
import sys
sys.path.insert(0, sys.argv[1])
import mycelia as ms
from mycelia.nn.wrap.sums import Sums
from test_overlap import recomputed, trained

ms.communication.init()
rank = ms.communication.get_rank()
ms.set_auto_parallel_context(
    parallel_mode="data_parallel", gradients_mean=True, all_reduce_fusion_config=[0, 2]
)
for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
    ms.set_context(mode=mode)
    found = trained(recomputed, rank, 2)
    ready, finish = Sums.ready, Sums.finish
    Sums.ready, Sums.finish = lambda self, place, gradient: None, Sums._at_once
    assert trained(recomputed, rank, 2) == found
    Sums.ready, Sums.finish = ready, finish
"""


def test_steps_that_compute_cells_again_have_these_bits_too(tmp_path):
    """In processes: captures of such cells on several threads disturb one another."""
    (tmp_path / "train.py").write_text(RECOMPUTED)
    job = launcher.Job([str(tmp_path / "train.py"), str(Path(__file__).parent)], 2, log_dir=tmp_path)
    assert launcher.run(job) == 0


KILLED = """
import os, signal, sys
import numpy as np
import mycelia as ms
from mycelia import nn

ms.communication.init()
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(0)
net = nn.SequentialCell(nn.Dense(64, 512), nn.ReLU(), nn.Dense(512, 512), nn.Dense(512, 4))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
x, y = ms.Tensor(np.ones((8, 64), np.float32)), ms.Tensor(np.ones((8, 4), np.float32))
from mycelia.engine.communication.messages import MessageCommunicator
start, count = MessageCommunicator.start_sums, 0

def dies(self, *args):
    global count
    count += 1
    number = start(self, *args)
    if count == 5 and ms.communication.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number

MessageCommunicator.start_sums = dies
for _ in range(50):
    step(x, y).asnumpy()
"""


@pytest.mark.parametrize("how", ["graph", "eager"])
def test_a_process_that_dies_in_its_backward_pass_is_named(how, tmp_path, capfd):
    (tmp_path / "train.py").write_text(KILLED)
    job = launcher.Job([str(tmp_path / "train.py"), how], 3, log_dir=tmp_path)
    assert launcher.run(job) == 137
    assert "rank 1 has failed with exit code 137" in capfd.readouterr().out


def test_where_sums_start_changes_no_bit(settings):
    """A step that is compiled without the pass that moves them starts all behind its backward pass."""
    settings(**PARTS)
    mode = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        found = over_sockets(2, lambda rank: trained(plain, rank, 2))
        with ms.config.context(passes="-early"):
            assert over_sockets(2, lambda rank: trained(plain, rank, 2)) == found
    finally:
        ms.set_context(mode=mode)
