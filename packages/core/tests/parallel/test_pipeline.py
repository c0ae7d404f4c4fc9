"""A network in stages, each on ranks of its own, takes the steps of one process on the same micro-batches."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.nn.pipeline import schedule
from mycelia.parallel.engines import threads

sys.path.insert(0, str(Path(__file__).parent))
from connected_ranks import over_sockets

RNG = np.random.default_rng(7)
X = RNG.normal(size=(8, 6)).astype(np.float32)
Y = RNG.integers(0, 4, 8).astype(np.int32)
_seeding = threading.Lock()  # random numbers are the process's


class Net(nn.Cell):
    """Four layers; the activations between them have no stage of their own."""

    def __init__(self, wide=5):
        super().__init__()
        self.first = nn.Dense(6, wide)
        self.second = nn.Dense(wide, wide)
        self.third = nn.Dense(wide, wide)
        self.last = nn.Dense(wide, 4)

    def construct(self, x):
        x = ops.relu(self.first(x))
        x = ops.tanh(self.second(x))
        x = ops.relu(self.third(x))
        return self.last(x)


class Skips(Net):
    """What the first layer makes is used by the last one, too."""

    def construct(self, x):
        early = ops.relu(self.first(x))
        x = self.third(ops.tanh(self.second(early)))
        return self.last(x + early)


class Tied(nn.Cell):
    """The table of the first stage is the head of the last one."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 5)
        self.middle = nn.Dense(5, 5)
        self.norm = nn.LayerNorm([5])

    def construct(self, ids):
        x = self.norm(self.middle(self.table(ids)).mean(1))
        return ops.matmul(x, self.table.embedding_table.T)


class Loss(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x, y):
        return self.loss(self.net(x), y)


STAGES = {
    2: {"first": 0, "second": 0, "third": 1, "last": 1},
    3: {"first": 0, "second": 1, "third": 1, "last": 2},
}


def made(make=Net, stages=2, micro_size=4, seed=3, change=None):
    """The network in a `PipelineCell`, with the same weights each time."""
    with _seeding:
        ms.set_seed(seed)
        net = make()
    for name, stage in STAGES[stages].items():
        if name in net._cells:
            getattr(net, name).pipeline_stage = stage
    if change is not None:
        change(net)
    return nn.PipelineCell(Loss(net), micro_size)


def weights(cell):
    return {p.name: p.asnumpy().copy() for p in cell.get_parameters() if not p.elsewhere}


def steps(cell, count=3, rows=slice(None), optimizer=nn.Momentum, x=X, y=Y):
    """Losses of the steps, and the weights that this process has after them."""
    cell.set_train()
    step = nn.TrainOneStepCell(cell, optimizer(cell.trainable_params(), 0.1, 0.9))
    losses = [step(ms.Tensor(x[rows]), ms.Tensor(y[rows])).asnumpy().item() for _ in range(count)]
    return losses, weights(cell)


@pytest.fixture
def settings():
    def put(stages=2, scheduler="1f1b", **more):
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", pipeline_stages=stages, gradients_mean=True,
            pipeline_config={"pipeline_scheduler": scheduler, "pipeline_interleave": False}, **more,
        )  # fmt: skip

    yield put
    ms.reset_auto_parallel_context()


def by_hand(cell, count=3):
    """The steps of one process that adds the gradients of micro-batches, the first one first."""
    parameters = ms.ParameterTuple(cell.trainable_params())
    optimizer = nn.Momentum(parameters, 0.1, 0.9)
    gradients = ms.value_and_grad(cell.network.set_train(), None, parameters)
    losses = []
    for _ in range(count):
        total, added = 0, None
        for i in range(cell.micro_size):
            n = len(X) // cell.micro_size
            rows = slice(i * n, (i + 1) * n)
            loss, found = gradients(ms.Tensor(X[rows]), ms.Tensor(Y[rows]))
            total = total + loss
            added = found if added is None else tuple(a + b for a, b in zip(added, found))
        optimizer(added)
        losses.append(total.asnumpy().item())
    return losses, weights(cell)


def joined(found, expected):
    """The weights of all ranks together; each has those of its stage only."""
    together = {}
    for _, own in found:
        for name, value in own.items():
            assert name not in together or np.array_equal(together[name], value), name
            together[name] = value
    assert together.keys() == expected.keys()
    return together


@pytest.mark.parametrize("scheduler", ["gpipe", "1f1b"])
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("make", [Net, Skips])
def test_stages_take_the_steps_of_one_process_to_the_last_bit(make, stages, scheduler, settings):
    """Eagerly sums are made in the order of the schedule: as one process makes them that has one gradient of
    all micro-batches, the last first, or that adds theirs."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    losses, expected = steps(made(make)) if scheduler == "gpipe" else by_hand(made(make))
    settings(stages, scheduler)
    cells = [made(make, stages) for _ in range(stages)]
    found = threads.run(stages, lambda rank: steps(cells[rank]))
    assert all(own == losses for own, _ in found)
    for name, value in joined(found, expected).items():
        np.testing.assert_array_equal(value, expected[name], name)
    for rank, (_, own) in enumerate(found):
        mine = {name for name, stage in STAGES[stages].items() if stage == rank}
        assert {name.split(".")[-2] for name in own} == mine


@pytest.mark.parametrize("scheduler", ["gpipe", "1f1b"])
def test_stages_take_the_steps_of_one_process_in_both_modes(scheduler, mode, settings):
    losses, expected = steps(made())
    settings(2, scheduler)
    cells = [made() for _ in range(2)]
    found = threads.run(2, lambda rank: steps(cells[rank]))
    for own, _ in found:
        np.testing.assert_allclose(own, losses, rtol=1e-6)
    for name, value in joined(found, expected).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_two_stages_of_two_ranks_each(mode, settings):
    """Ranks of a stage have shares of the batch, as `num_shards` and `shard_id` give them."""
    losses, expected = steps(made(micro_size=2))
    settings(2)
    cells = [made(micro_size=2) for _ in range(4)]
    found = over_sockets(4, lambda rank: steps(cells[rank], rows=slice(rank % 2, None, 2)))
    np.testing.assert_allclose(np.mean([own for own, _ in found], 0), losses, rtol=1e-6)
    for name, value in joined(found, expected).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("scheduler", "most"), [("gpipe", [6, 6, 6]), ("1f1b", [3, 2, 1])], ids=["gpipe", "1f1b"]
)
def test_how_many_micro_batches_are_held(scheduler, most, settings):
    settings(3, scheduler)
    cells = [made(stages=3, micro_size=6) for _ in range(3)]
    x, y = np.repeat(X, 3, 0)[:12], np.repeat(Y, 3)[:12]
    threads.run(3, lambda rank: steps(cells[rank], 1, x=x, y=y))
    assert [cell.most_held for cell in cells] == most


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_schedules_take_each_micro_batch_forwards_and_then_back(count, parts):
    for number in range(count):
        for name in ("gpipe", "1f1b"):
            order = schedule.order(name, number, count, parts)
            assert sorted(order) == sorted(schedule.Step(i, b) for i in range(parts) for b in (False, True))
            held, most = set(), 0
            for step in order:
                if step.backward:
                    held.remove(step.part)
                else:
                    held.add(step.part)
                most = max(most, len(held))
            assert most == (parts if name == "gpipe" else min(parts, count - number))


def test_a_stage_keeps_its_parameters_and_states_only(mode, settings):
    settings(2)
    cells = [made() for _ in range(2)]

    def work(rank):
        optimizer = nn.Adam(cells[rank].trainable_params(), 0.1)
        step = nn.TrainOneStepCell(cells[rank].set_train(), optimizer)
        step(ms.Tensor(X), ms.Tensor(Y))
        own = {p.name for p in cells[rank].get_parameters() if p._has_value}
        states = [p for states in (optimizer.moment1, optimizer.moment2) for p in states]
        return own, {p.name.partition(".")[2] for p in states if p._has_value}

    found = threads.run(2, work)
    for rank, (own, states) in enumerate(found):
        assert {name.split(".")[-2] for name in own} == {n for n, s in STAGES[2].items() if s == rank}
        assert states == own


def test_a_parameter_of_two_stages_gets_the_gradients_of_both(mode, settings):
    ids = RNG.integers(0, 9, (8, 3)).astype(np.int32)

    def cell():
        found = made(Tied)
        found.network.net.table.pipeline_stage, found.network.net.middle.pipeline_stage = 0, 1
        return found

    losses, expected = steps(cell(), x=ids)
    settings(2)
    cells = [cell() for _ in range(2)]
    found = threads.run(2, lambda rank: steps(cells[rank], x=ids))
    np.testing.assert_allclose(found[0][0], losses, rtol=1e-6)
    assert all("net.table.embedding_table" in "".join(own) for _, own in found)
    for name, value in joined(found, expected).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_shared_parameters_that_differ_are_refused(settings):
    settings(2)

    def cell(seed):
        found = made(Tied, seed=seed)
        found.network.net.table.pipeline_stage, found.network.net.middle.pipeline_stage = 0, 1
        return found

    cells = [cell(1), cell(2)]
    ids = ms.Tensor(np.zeros((8, 3), np.int32))

    def work(rank):
        with pytest.raises(
            ValueError, match=r"share the Parameter '.*embedding_table', but begin with other"
        ):
            cells[rank](ids, ms.Tensor(Y))

    threads.run(2, work)


class Random(Net):
    """Dropout and statistics in both stages."""

    def __init__(self):
        super().__init__()
        self.drop, self.norm = nn.Dropout(p=0.3), nn.BatchNorm1d(5)
        self.drop_late, self.norm_late = nn.Dropout(p=0.5), nn.BatchNorm1d(5)
        self.drop.pipeline_stage = self.norm.pipeline_stage = 0
        self.drop_late.pipeline_stage = self.norm_late.pipeline_stage = 1

    def construct(self, x):
        x = self.drop(self.norm(self.first(x)))
        x = ops.relu(self.second(x))
        return self.last(self.drop_late(self.norm_late(self.third(x))))


def test_random_numbers_and_statistics_are_those_of_one_process(mode, settings, monkeypatch):
    """Each rank has a stream of its own here, as processes have."""
    from mycelia.engine.ops.random import generator

    class Streams(threading.local):
        def __init__(self):
            self.own = generator._Streams()

        def __getattr__(self, name):
            return getattr(self.own, name)

        def __setattr__(self, name, value):
            if name == "own":
                self.__dict__["own"] = value
            else:
                setattr(self.own, name, value)

    streams = Streams()
    for module in list(sys.modules.values()):
        if module is not None and getattr(module, "_streams", None) is generator._streams:
            monkeypatch.setattr(module, "_streams", streams)

    def work(cell):
        streams.default.manual_seed(11)
        streams.is_seeded = True
        return steps(cell)

    losses, expected = work(made(Random))
    settings(2)
    cells = [made(Random) for _ in range(2)]
    found = threads.run(2, lambda rank: work(cells[rank]))
    np.testing.assert_allclose(found[0][0], losses, rtol=1e-6)
    for name, value in joined(found, expected).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_what_is_computed_again_gives_the_same(mode, settings):
    losses, expected = steps(made())
    settings(2)

    def change(net):
        net.second.recompute()
        net.third.recompute()

    cells = [made(change=change) for _ in range(2)]
    found = threads.run(2, lambda rank: steps(cells[rank]))
    np.testing.assert_allclose(found[0][0], losses, rtol=1e-6)
    for name, value in joined(found, expected).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_loss_scale_that_overflows_on_one_stage_leaves_out_the_step_on_all(mode, settings):
    settings(2)
    # Gradients of the first layer are made of rows of 10^4, those of other layers are of the order of 1.
    cells = [made(change=lambda net: net.first.weight.set_data(net.first.weight * 1e-4)) for _ in range(2)]

    def work(rank):
        manager = nn.DynamicLossScaleUpdateCell(2.0**127, 2, 1000)
        step = nn.TrainOneStepWithLossScaleCell(
            cells[rank].set_train(), nn.SGD(cells[rank].trainable_params(), 0.1), manager
        )
        x = ms.Tensor(X * 1e4)
        before = weights(cells[rank])
        _, overflow, scale = step(x, ms.Tensor(Y))
        scale = float(scale)  # the Parameter itself in eager mode, which goes on changing
        same = {name: np.array_equal(value, before[name]) for name, value in weights(cells[rank]).items()}
        after = [bool(step(x, ms.Tensor(Y))[1]) for _ in range(30)]
        return bool(overflow), scale, all(same.values()), after

    first, second = threads.run(2, work)
    assert first == second
    assert first[:3] == (True, 2.0**126, True) and not first[3][-1]


def test_gradients_begin_with_the_scale_of_the_loss(settings):
    """Half-precision gradients of one stage would vanish on the way to the other without it."""
    settings(2)

    class Half(Net):
        def construct(self, x):
            x = ops.relu(self.first(x)).astype(ms.float16)
            x = (self.second(x.astype(ms.float32)) * 1e-3).astype(ms.float16)
            return self.last(self.third(x.astype(ms.float32)) * 1e-3)

    cells = [made(Half) for _ in range(2)]

    def gradient(rank, scale):
        step = nn.TrainOneStepCell(
            cells[rank].set_train(), nn.SGD(cells[rank].trainable_params(), 0.0), sens=scale, return_grad=True
        )
        return step(ms.Tensor(X), ms.Tensor(Y))[1]

    plain = threads.run(2, lambda rank: gradient(rank, None))[0]
    scaled = threads.run(2, lambda rank: gradient(rank, 2.0**20))[0]
    name = next(n for n in scaled if n.endswith("first.weight"))
    exact = scaled[name].asnumpy() / 2.0**20
    assert np.abs(exact).max() > 0
    assert np.abs(plain[name].asnumpy() - exact).max() > 0.01 * np.abs(exact).max()


def test_a_function_of_the_user_may_be_compiled(settings):
    losses, expected = steps(made(), optimizer=nn.SGD)
    settings(2)
    cells = [made() for _ in range(2)]

    def work(rank):
        cell = cells[rank].set_train()
        optimizer = nn.SGD(cell.trainable_params(), 0.1, 0.9)
        reducer = nn.PipelineGradReducer(optimizer.parameters)
        forward = ms.value_and_grad(lambda x, y: cell(x, y), None, optimizer.parameters)

        @ms.jit
        def step(x, y):
            loss, gradients = forward(x, y)
            optimizer(reducer(gradients))
            return loss

        found = [step(ms.Tensor(X), ms.Tensor(Y)).asnumpy().item() for _ in range(3)]
        assert step.cache_info().captures == 1
        return found, weights(cell)

    found = threads.run(2, work)
    np.testing.assert_allclose(found[0][0], losses, rtol=1e-6)
    for name, value in joined(found, expected).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_network_without_a_gradient_gives_its_result_on_all_ranks(mode, settings):
    """The sum over micro-batches of what it returns, which need be no number."""
    alone = nn.PipelineCell(made().network.net, 2)
    expected = alone(ms.Tensor(X)).asnumpy()
    settings(2)
    cells = [nn.PipelineCell(made().network.net, 2) for _ in range(2)]
    for found in threads.run(2, lambda rank: cells[rank](ms.Tensor(X)).asnumpy()):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


REFUSED = {
    "stage out of range": (
        dict(last=2),
        4,
        r"'net.last' \(Dense\) has pipeline_stage 2, but there are 2 stages",
    ),
    "no cell of a stage": (
        dict(third=0, last=0),
        4,
        r"no cell has pipeline_stage 1, but pipeline_stages is 2",
    ),
    "back to an earlier stage": (dict(first=1, second=0), 4, "Dense of stage 0 needs what stage 1 computes"),
    "micro_size": ({}, 3, r"micro_size 3 does not divide the batch: argument 0 has shape \[8, 6\]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_cut_is_refused(case, settings):
    places, micro_size, message = REFUSED[case]

    def change(net):
        for name, stage in places.items():
            getattr(net, name).pipeline_stage = stage

    settings(2)
    cells = [made(micro_size=micro_size, change=change) for _ in range(2)]

    def work(rank):
        with pytest.raises(ValueError, match=message):
            cells[rank](ms.Tensor(X), ms.Tensor(Y))

    threads.run(2, work)


def test_stages_that_are_given_other_batches_are_refused(settings):
    settings(2)
    cells = [made() for _ in range(2)]

    def work(rank):
        with pytest.raises(
            ValueError, match=r"the same batch, but rank 1 \(stage 1\) has another than rank 0"
        ):
            cells[rank](ms.Tensor(X + rank), ms.Tensor(Y))

    threads.run(2, work)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (dict(pipeline_stages=3), RuntimeError, "pipeline_stages 3 does not divide the 2 processes"),
        (
            dict(pipeline_stages=2, parallel_mode="stand_alone"),
            RuntimeError,
            "parallel_mode is 'stand_alone'",
        ),
        (dict(pipeline_stages=2, pipeline_segments=2), NotImplementedError, "several parts"),
        (
            dict(
                pipeline_stages=2,
                pipeline_config={"pipeline_scheduler": "seqpipe", "pipeline_interleave": True},
            ),
            NotImplementedError,
            "'seqpipe' is not there",
        ),
    ],
)
def test_settings_of_stages_that_cannot_be_followed_are_refused(given, kind, message, settings):
    ms.set_auto_parallel_context(**{"parallel_mode": "semi_auto_parallel", **given})

    def work(rank):
        with pytest.raises(kind, match=message):
            nn.PipelineCell(nn.Dense(2, 2), 2)(ms.Tensor(np.ones((2, 2), np.float32)))

    threads.run(2, work)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ({"scheduler": "1f1b"}, ValueError, "pipeline_config.*'scheduler'"),
        ({"pipeline_scheduler": "2f2b"}, ValueError, "pipeline_scheduler must be one of"),
        ({"pipeline_interleave": 1}, TypeError, "pipeline_interleave must be bool"),
        ("1f1b", TypeError, "pipeline_config must be dict"),
    ],
)
def test_a_pipeline_config_that_says_nothing_is_refused(value, kind, message, settings):
    with pytest.raises(kind, match=message):
        ms.set_auto_parallel_context(pipeline_config=value)


def test_optimizers_of_other_faces_are_refused(settings):
    settings(2)
    cells = [made() for _ in range(2)]

    def work(rank):
        with pytest.raises(NotImplementedError, match="by the optimizers of nn only"):
            ms.mint.optim.AdamW(cells[rank].trainable_params(), 0.1)

    threads.run(2, work)


def test_gradients_that_stages_do_not_give_are_refused(settings):
    settings(2)
    cells = [made() for _ in range(2)]

    def work(rank):
        cell, x, y = cells[rank], ms.Tensor(X), ms.Tensor(Y)
        with pytest.raises(NotImplementedError, match="gradients of its inputs"):
            ms.grad(cell)(x, y)
        with pytest.raises(NotImplementedError, match="gradients begin at one number"):
            ms.grad(nn.PipelineCell(cell.network.net, 2), None, cell.trainable_params())(x)
        with pytest.raises(NotImplementedError, match="inside of the compiled function"):
            ms.grad(ms.jit(lambda x, y: cell(x, y)), None, cell.trainable_params())(x, y)

    threads.run(2, work)


def test_a_rank_that_ends_is_named_by_those_that_wait_for_it(settings):
    settings(3)
    cells = [made(stages=3) for _ in range(3)]
    messages = {}

    def work(rank):
        cell = cells[rank]
        step = nn.TrainOneStepCell(cell.set_train(), nn.SGD(cell.trainable_params(), 0.1))
        step(ms.Tensor(X), ms.Tensor(Y))
        if rank == 1:
            return
        try:
            step(ms.Tensor(X), ms.Tensor(Y))
        except RuntimeError as error:
            messages[rank] = str(error)

    over_sockets(3, work)
    assert "rank 1" in messages[0] and "rank 1" in messages[2]


def test_a_checkpoint_has_what_the_stage_has(tmp_path, settings):
    settings(2)
    cells = [made() for _ in range(2)]

    def work(rank):
        losses, own = steps(cells[rank])
        ms.save_checkpoint(cells[rank], str(tmp_path / f"{rank}.ckpt"))
        return losses, own

    found = threads.run(2, work)
    files = [ms.load_checkpoint(str(tmp_path / f"{rank}.ckpt")) for rank in range(2)]
    assert [set(file) for file in files] == [set(own) for _, own in found]
    ms.reset_auto_parallel_context()
    whole = made(seed=9)
    assert ms.load_param_into_net(whole, {**files[0], **files[1]}) == ([], [])
    for _, own in found:
        for name, value in own.items():
            np.testing.assert_array_equal(weights(whole)[name], value)
    settings(2)  # and a whole file goes into a network in stages
    ms.save_checkpoint(whole, str(tmp_path / "whole.ckpt"))
    values = ms.load_checkpoint(str(tmp_path / "whole.ckpt"))
    assert ms.load_param_into_net(cells[1], values) == ([], [])
    assert any(not p._has_value for p in cells[1].get_parameters())


def test_states_of_optimizers_are_divided_within_a_stage(mode, settings):
    losses, expected = steps(made(micro_size=2))
    settings(2, enable_parallel_optimizer=True, parallel_optimizer_config={"parallel_optimizer_threshold": 0})
    cells = [made(micro_size=2) for _ in range(4)]
    found = over_sockets(4, lambda rank: steps(cells[rank], rows=slice(rank % 2, None, 2)))
    np.testing.assert_allclose(np.mean([own for own, _ in found], 0), losses, rtol=1e-6)
    for name, value in joined(found, expected).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_model_trains_stages(mode, settings):
    def train(cell):
        data = ms.dataset.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(4)
        ms.Model(cell, optimizer=nn.Adam(cell.trainable_params(), 0.01)).train(2, data)
        return [], weights(cell)

    _, expected = train(made(micro_size=2))
    settings(2)
    cells = [made(micro_size=2) for _ in range(2)]
    found = threads.run(2, lambda rank: train(cells[rank]))
    for name, value in joined(found, expected).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_auto_parallel_may_say_how_many_stages(settings):
    from mycelia.parallel.auto_parallel import AutoParallel

    losses, _ = steps(made(), optimizer=nn.SGD)
    cells = [made() for _ in range(2)]

    def work(rank):
        cell = cells[rank].set_train()
        optimizer = nn.SGD(cell.trainable_params(), 0.1, 0.9)
        reducer = ms.parallel.nn.PipelineGradReducer(optimizer.parameters)
        forward = ms.value_and_grad(lambda x, y: cell(x, y), None, cell.trainable_params())

        def step(x, y):
            loss, gradients = forward(x, y)
            optimizer(reducer(gradients))
            return loss

        whole = AutoParallel(step, parallel_mode="semi_auto")
        whole.pipeline(stages=2, scheduler="1f1b")
        return [whole(ms.Tensor(X), ms.Tensor(Y)).asnumpy().item() for _ in range(3)]

    for found in threads.run(2, work):
        np.testing.assert_allclose(found, losses, rtol=1e-6)
