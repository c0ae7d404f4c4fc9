"""Training by several ranks, each on its share of every batch, is training by one on the whole."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia.engine.communication import MessageCommunicator
from mycelia.engine.communication import mode as mode_of_ranks
from mycelia.mint import nn as mint
from mycelia.parallel.engines import threads
from mycelia.train import data_parallel

RNG = np.random.default_rng(3)
IMAGES = RNG.normal(size=(24, 1, 12, 12)).astype(np.float32)
LABELS = RNG.integers(0, 4, 24).astype(np.int32)
LOSS = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3, pad_mode="valid")
        self.norm = nn.LayerNorm([3, 10, 10], 1, 1)
        self.flat = nn.Flatten()
        self.out = nn.Dense(300, 4)

    def construct(self, x):
        return self.out(self.flat(nn.ReLU()(self.norm(self.conv(x)))))


@pytest.fixture
def together():
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    yield
    ms.reset_auto_parallel_context()


def networks(count, seed=1):
    made = []
    for _ in range(count):
        ms.set_seed(seed)
        made.append(Net())
    return made


def rows(rank, ranks, batch):
    data = ms.dataset.NumpySlicesDataset(
        (IMAGES, LABELS), ["image", "label"], shuffle=False, num_shards=ranks, shard_id=rank
    )
    return data.batch(batch // ranks, drop_remainder=True)


class Losses(ms.train.Callback):
    def __init__(self):
        super().__init__()
        self.values = []

    def on_train_step_end(self, run_context):
        self.values.append(run_context.original_args().net_outputs.asnumpy().item())


def by_model(net, rank, ranks):
    losses = Losses()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    ms.Model(net, LOSS, optimizer).train(2, rows(rank, ranks, 12), callbacks=[losses])
    return losses.values


def by_scaled_step(net, rank, ranks):
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, LOSS), nn.Adam(net.trainable_params(), 0.01), ms.Tensor(1024.0)
    )
    return [
        step(*batch)[0].asnumpy().item()
        for _ in range(2)
        for batch in rows(rank, ranks, 12).create_tuple_iterator(num_epochs=1)
    ]


def by_own_loop(net, rank, ranks):
    """As MindSpore's tutorials write it: the reducer between gradient and optimizer."""
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    number = ms.get_auto_parallel_context("device_num") if ranks > 1 else 1
    reducer = nn.DistributedGradReducer(optimizer.parameters, True, number)
    forward = ms.value_and_grad(lambda x, y: LOSS(net(x), y), None, optimizer.parameters)

    def step(x, y):
        loss, gradients = forward(x, y)
        optimizer(reducer(gradients))
        return loss

    return [
        step(*batch).asnumpy().item()
        for _ in range(2)
        for batch in rows(rank, ranks, 12).create_tuple_iterator(num_epochs=1)
    ]


@pytest.mark.parametrize("train", [by_model, by_scaled_step, by_own_loop])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_on_shares_of_a_batch_take_the_steps_of_one_on_the_whole(train, ranks, mode, together):
    (alone,) = networks(1)
    expected = train(alone, 0, 1)
    nets = networks(ranks)
    found = threads.run(ranks, lambda rank: train(nets[rank], rank, ranks))
    np.testing.assert_allclose(np.mean(found, 0), expected, rtol=1e-5, atol=1e-6)
    for weights in zip(alone.get_parameters(), *(net.get_parameters() for net in nets)):
        first, *others = (w.asnumpy() for w in weights[1:])
        assert all(np.array_equal(first, other) for other in others), weights[0].name  # bit for bit
        # Adam divides by the root of squares: where a gradient is near 0 its last digits decide.
        np.testing.assert_allclose(first, weights[0].asnumpy(), rtol=1e-4, atol=2e-5)


def test_one_step_of_a_plain_optimizer_is_equal_to_the_last_digits(together):
    (alone,), nets = networks(1), networks(2)

    def step(net, x, y):
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        return nn.TrainOneStepCell(nn.WithLossCell(net, LOSS), optimizer)(ms.Tensor(x), ms.Tensor(y))

    step(alone, IMAGES, LABELS)
    threads.run(2, lambda rank: step(nets[rank], IMAGES[rank::2], LABELS[rank::2]))
    for one, other in zip(alone.get_parameters(), nets[0].get_parameters()):
        np.testing.assert_allclose(other.asnumpy(), one.asnumpy(), rtol=1e-6, atol=1e-7)


def test_gradients_are_added_unless_they_are_to_be_averaged():
    def work(rank):
        own, dtype = ms.Parameter(ms.Tensor([0.0]), name="own", layerwise_parallel=True), ms.float16
        shared = ms.Parameter(ms.Tensor([0.0]), name="shared")
        given = (ms.Tensor([1.0 + rank]), ms.Tensor([[1.0 + rank]]), ms.Tensor([rank], dtype))
        found = []
        for options in ({}, {"mean": True}, {"mean": True, "degree": 4}):
            reducer = nn.DistributedGradReducer([shared, own, shared], **options)
            found.append([g.asnumpy().reshape(-1).tolist()[0] for g in reducer(given)])
        return found

    for rank, found in enumerate(threads.run(2, work)):
        own = 1.0 + rank
        assert found == [[3.0, own, 1.0], [1.5, own / 2, 0.5], [0.75, own / 4, 0.25]]


def parts(settings, own=(), **options):
    """Which of six gradients go together."""
    parameters = [ms.Parameter(ms.ops.zeros((4,)), name=f"p{i}") for i in range(6)]
    for parameter, number in zip(parameters, own):
        parameter.comm_fusion = number
    gradients = [ms.ops.full((1 << 18,), i + 1.0, dtype=ms.float32) for i in range(6)]  # 1 MB
    gradients[3] = gradients[3].astype(ms.float16)

    def work(rank):
        reducer = nn.DistributedGradReducer(parameters, True, **options)
        assert [g[-1].item() for g in reducer(gradients)] == [1, 2, 3, 4, 5, 6]
        return reducer._parts(gradients)

    ms.set_auto_parallel_context(**settings)
    try:
        one, other = threads.run(2, work)
    finally:
        ms.reset_auto_parallel_context()
    assert one == other
    return one


EACH = [[0], [1], [2], [3], [4], [5]]


@pytest.mark.parametrize(
    ("settings", "own", "options", "together"),
    [
        ({}, (), {}, [[0, 1, 2, 4, 5], [3]]),
        ({"all_reduce_fusion_config": [1, 4]}, (), {}, [[0, 1], [2, 4], [3], [5]]),
        ({"all_reduce_fusion_config": [0, 9]}, (), {}, [[0], [1, 2, 4, 5], [3]]),
        ({"all_reduce_fusion_config": [1, 4]}, (), {"fusion_type": 2}, [[0, 1, 2, 4, 5], [3]]),
        ({"all_reduce_fusion_config": [1]}, (1, 2, 1, 2, 0, 0), {}, [[0, 2], [1], [3], [4], [5]]),
        ({"comm_fusion": {"allreduce": {"mode": "size", "config": 2}}}, (), {}, [[0, 1], [2, 4], [3], [5]]),
        ({"comm_fusion": {"allreduce": {"mode": "index", "config": [2]}}}, (), {}, [[0, 1, 2], [3], [4, 5]]),
        ({"comm_fusion": {"openstate": False}}, (), {}, EACH),
        ({}, (), {"fusion_type": 0}, EACH),
    ],
)
def test_settings_say_which_gradients_go_together(settings, own, options, together):
    """As MindSpore reads them: a place is the last of its part, and numbers of Parameters come first."""
    assert parts(settings, own, **options) == together


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"all_reduce_fusion_config": [2, 1]}, ValueError, "in ascending order, each once"),
        ({"all_reduce_fusion_config": [1, 1]}, ValueError, "in ascending order, each once"),
        ({"all_reduce_fusion_config": [True]}, TypeError, "must be a list of int"),
        ({"comm_fusion": {"allreduce": {"mode": "size", "config": 0}}}, ValueError, "positive number of MB"),
        ({"comm_fusion": {"allreduce": {"mode": "some"}}}, ValueError, "a dict of 'mode' and 'config'"),
        ({"comm_fusion": {"allgather": {"mode": "index", "config": [1]}}}, ValueError, "auto"),
        ({"comm_fusion": {"all": 1}}, ValueError, "allreduce"),
        ({"comm_fusion": {"openstate": 1}}, TypeError, "must be bool"),
    ],
)
def test_settings_that_do_not_say_which_gradients_go_together_are_refused(settings, kind, message):
    with pytest.raises(kind, match=message):
        ms.set_auto_parallel_context(**settings)
    with pytest.raises(ValueError, match="fusion_type must be an int >= 0"):
        nn.DistributedGradReducer([], fusion_type=-1)


def accumulated_in_a_step(net, rank):
    loss = nn.GradAccumulationCell(nn.WithLossCell(net, LOSS), 3)
    step = nn.TrainOneStepCell(loss, nn.SGD(net.trainable_params(), 0.1 / 3))
    step(ms.Tensor(IMAGES[rank::2]), ms.Tensor(LABELS[rank::2]))


def accumulated_over_calls(net, rank):
    """As docs/parallel.md writes it: the reducer behind what was accumulated."""
    optimizer = nn.SGD(net.trainable_params(), 0.1 / 3)
    reducer = nn.DistributedGradReducer(optimizer.parameters)
    gradient = ms.grad(lambda x, y: LOSS(net(x), y), None, optimizer.parameters)
    sums = [ms.ops.zeros_like(p) for p in optimizer.parameters]
    for x, y in zip(np.split(IMAGES[rank::2], 3), np.split(LABELS[rank::2], 3)):
        sums = [total + one for total, one in zip(sums, gradient(ms.Tensor(x), ms.Tensor(y)))]
    optimizer(reducer(tuple(sums)))


@pytest.mark.parametrize("train", [accumulated_in_a_step, accumulated_over_calls])
def test_gradients_that_are_accumulated_are_sent_once(train, together, monkeypatch):
    (alone,), nets, sums = networks(1), networks(2), []
    step = nn.TrainOneStepCell(nn.WithLossCell(alone, LOSS), nn.SGD(alone.trainable_params(), 0.1))
    step(ms.Tensor(IMAGES), ms.Tensor(LABELS))
    start = MessageCommunicator.start_sums

    def counted(self, *args):
        sums.append(self.rank)
        return start(self, *args)

    monkeypatch.setattr(MessageCommunicator, "start_sums", counted)
    threads.run(2, lambda rank: train(nets[rank], rank))
    assert sorted(sums) == [0, 1]  # all gradients fit in one part
    for one, other in zip(alone.get_parameters(), nets[0].get_parameters()):
        np.testing.assert_allclose(other.asnumpy(), one.asnumpy(), rtol=1e-5, atol=1e-6)


def test_overflow_on_one_rank_leaves_the_step_out_on_all(together):
    nets = networks(2)
    before = [w.asnumpy().copy() for w in nets[0].get_parameters()]

    def work(rank):
        step = nn.TrainOneStepWithLossScaleCell(
            nn.WithLossCell(nets[rank], LOSS), nn.SGD(nets[rank].trainable_params(), 0.1),
            nn.DynamicLossScaleUpdateCell(2.0**8, 2, 100),
        )  # fmt: skip
        x = IMAGES[:4] * (np.inf if rank else 1)
        _, overflow, scale = step(ms.Tensor(x), ms.Tensor(LABELS[:4]))
        return bool(overflow), scale.asnumpy().item()

    assert threads.run(2, work) == [(True, 2.0**7)] * 2
    for net in nets:
        for one, other in zip(net.get_parameters(), before):
            np.testing.assert_array_equal(one.asnumpy(), other)


def test_weights_of_the_first_rank_go_to_all(together):
    ms.set_auto_parallel_context(parameter_broadcast=True)
    nets = [networks(1, seed)[0] for seed in (1, 2)]
    expected = [w.asnumpy().copy() for w in nets[0].get_parameters()]
    threads.run(2, lambda rank: data_parallel.begin(nets[rank], 1))
    for one, other in zip(nets[1].get_parameters(), expected):
        np.testing.assert_array_equal(one.asnumpy(), other)


def test_weights_that_differ_from_the_beginning_are_told(together, caplog):
    nets = [networks(1, seed)[0] for seed in (1, 1, 2)]
    with caplog.at_level(logging.WARNING):
        threads.run(3, lambda rank: data_parallel.begin(nets[rank], 1))
    (record,) = [r for r in caplog.records if "begin with other weights" in r.getMessage()]
    assert "ranks [2] begin" in record.getMessage()


def test_unequal_shares_are_refused_on_all_ranks(together):
    nets = networks(2)

    def work(rank):
        data = rows(rank, 2, 12).take(2 - rank)
        with pytest.raises(ValueError, match="rank 0 has 2, rank 1 has 1"):
            ms.Model(nets[rank], LOSS, nn.SGD(nets[rank].trainable_params())).train(1, data)

    threads.run(2, work)


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"parallel_mode": "auto_parallel"}, NotImplementedError, "would choose strategies of operators"),
        (
            {"parallel_mode": "data_parallel", "device_num": 4},
            RuntimeError,
            "device_num is 4, but 2 processes",
        ),
        ({"pipeline_stages": 2}, RuntimeError, "parallel_mode is 'stand_alone'"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(settings, kind, message):
    nets = networks(2)

    def work(rank):
        with pytest.raises(kind, match=message):
            nn.SGD(nets[rank].trainable_params())

    ms.set_auto_parallel_context(**settings)
    try:
        threads.run(2, work)
    finally:
        ms.reset_auto_parallel_context()


def test_ranks_are_what_settings_say_that_nobody_has_set():
    def work(rank):
        return ms.get_auto_parallel_context("device_num"), ms.get_auto_parallel_context("global_rank")

    assert threads.run(2, work) == [(2, 0), (2, 1)]
    assert work(0) == (1, 0)


class Normed(nn.Cell):
    """`SyncBatchNorm` on ranks, `BatchNorm2d` alone."""

    def __init__(self, norm):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 3, 3, pad_mode="valid"), norm
        self.flat, self.out = nn.Flatten(), nn.Dense(300, 4)

    def construct(self, x):
        return self.out(self.flat(nn.ReLU()(self.norm(self.conv(x)))))


@pytest.mark.parametrize(
    "make",
    [
        (nn.BatchNorm2d, nn.SyncBatchNorm),
        (mint.BatchNorm2d, mint.SyncBatchNorm),
        (lambda n: mint.BatchNorm2d(n, momentum=None), lambda n: mint.SyncBatchNorm(n, momentum=None)),
    ],
    ids=["nn", "mint", "mint-average"],
)
def test_synchronized_batch_norm_normalizes_by_the_whole_batch(mode, make, together):
    def train(net, x, y):
        step = nn.TrainOneStepCell(nn.WithLossCell(net, LOSS), nn.SGD(net.trainable_params(), 0.1))
        step.set_train()
        return [step(ms.Tensor(x), ms.Tensor(y)).asnumpy().item() for _ in range(3)]

    def work(rank):
        with lock:  # random numbers are the process's
            ms.set_seed(1)
            net = Normed(make[1](3))
        return net, train(net, IMAGES[rank::2], LABELS[rank::2])

    lock = threading.Lock()
    ms.set_seed(1)
    alone = Normed(make[0](3))
    expected = train(alone, IMAGES, LABELS)
    found = threads.run(2, work)
    np.testing.assert_allclose(np.mean([losses for _, losses in found], 0), expected, rtol=1e-5)
    for one, other in zip(found[1][0].get_parameters(), alone.get_parameters(), strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-4, atol=1e-5)


def test_parameter_servers_are_refused_by_ranks_too():
    def work(rank):
        with pytest.raises(RuntimeError, match="asks for parameter servers, which are not there"):
            mode_of_ranks.degree("Model.train")

    ms.set_ps_context(enable_ps=True)
    try:
        threads.run(2, work)
        with pytest.raises(RuntimeError, match="asks for parameter servers, which are not there"):
            mode_of_ranks.degree("Model.train")
    finally:
        ms.reset_ps_context()


def test_batch_norms_of_groups_and_of_unequal_shares():
    shares = [IMAGES[:2], IMAGES[2:8], IMAGES[8:9], IMAGES[9:]]

    def work(rank):
        norm = nn.SyncBatchNorm(1, process_groups=[[0, 1], [2], [3]])
        norm.set_train()
        with pytest.raises(ValueError, match=f"rank {rank} is in none"):
            nn.SyncBatchNorm(1, process_groups=[[7]])
        return norm(ms.Tensor(shares[rank])).asnumpy()

    found = threads.run(4, work)
    for parts in ((0, 1), (2,), (3,)):
        x = np.concatenate([shares[i] for i in parts])
        y = np.concatenate([found[i] for i in parts])
        np.testing.assert_allclose(y, (x - x.mean()) / np.sqrt(x.var() + 1e-5), rtol=1e-4, atol=1e-5)


def test_mints_batch_norms_of_groups():
    def work(rank):
        mint.SyncBatchNorm(1)  # of all
        ms.communication.create_group("pair", [0, 2])
        with pytest.raises(ValueError, match="pair"):
            mint.SyncBatchNorm(1, process_group="pairs")
        if rank == 1:
            with pytest.raises(RuntimeError, match="rank 1 is not in the group 'pair'"):
                mint.SyncBatchNorm(1, process_group="pair")
            return IMAGES[4:8]
        norm = mint.SyncBatchNorm(1, process_group="pair", track_running_stats=False)
        norm.set_train()
        x = ms.Tensor(IMAGES[4 * rank : 4 * rank + 4])
        y = norm(x).asnumpy()
        norm.set_train(False)
        own = norm(x).asnumpy()  # as torch: outside of training by the own batch
        np.testing.assert_allclose(own.mean(), 0, atol=1e-5)
        return y

    first, _, last = threads.run(3, work)
    x = np.concatenate([IMAGES[:4], IMAGES[8:12]])
    expected = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    np.testing.assert_allclose(np.concatenate([first, last]), expected, rtol=1e-4, atol=1e-5)
