"""`semi_auto_parallel`: graphs divided among ranks compute what one process computes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.parallel.engines import threads

RNG = np.random.default_rng(11)
ROWS, WIDTH, HIDDEN, CLASSES, STEPS = 8, 8, 16, 4, 3
X = RNG.normal(size=(ROWS, WIDTH)).astype(np.float32)
Y = RNG.integers(0, CLASSES, ROWS).astype(np.int32)
TOKENS = RNG.integers(0, 16, (ROWS, 6)).astype(np.int32)
seeding = threading.Lock()


@pytest.fixture(autouse=True)
def graphs():
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=before)
    ms.reset_auto_parallel_context()


def weight(*shape):
    return Parameter(Tensor(np.random.default_rng(sum(shape)).normal(0, 0.3, shape).astype(np.float32)))


class Mlp(nn.Cell):
    """A product cut by columns, one cut by rows."""

    def __init__(self, first, second, bias):
        super().__init__()
        self.w1, self.b1, self.w2 = weight(WIDTH, HIDDEN), weight(HIDDEN), weight(HIDDEN, CLASSES)
        self.first, self.add, self.second = ops.MatMul(), ops.Add(), ops.MatMul(transpose_b=False)
        if first:
            self.first.shard(first)
            self.add.shard(bias)
            self.second.shard(second)
        self.relu = ops.ReLU()

    def construct(self, x):
        return self.second(self.relu(self.add(self.first(x, self.w1), self.b1)), self.w2)


class Embedded(nn.Cell):
    """A table cut by its rows."""

    def __init__(self, table=None):
        super().__init__()
        self.table, self.w = weight(16, WIDTH), weight(WIDTH, CLASSES)
        self.gather = ops.Gather()
        if table:
            self.gather.shard(table)

    def construct(self, ids):
        return ops.matmul(self.gather(self.table, ids, 0).mean(1), self.w)


class Attention(nn.Cell):
    """Heads written out: products, a softmax, transposes and reshapes."""

    def __init__(self, dp, mp, heads=4):
        super().__init__()
        self.heads, self.size = heads, WIDTH // heads
        self.table = weight(16, WIDTH)
        self.gather = ops.Gather()
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.RMSNorm((WIDTH,))
        self.q, self.k, self.v = (nn.Dense(WIDTH, WIDTH) for _ in range(3))
        self.out, self.up, self.down = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, 16), nn.Dense(16, WIDTH)
        self.head = nn.Dense(WIDTH, CLASSES)
        self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()
        self.softmax = ops.Softmax(-1)
        if dp * mp > 1:
            self.gather.shard(((1, 1), (dp, 1)))
            for one in (self.q, self.k, self.v, self.up):
                one.matmul.shard(((dp, 1), (mp, 1)))
                one.bias_add.shard(((dp, mp), (mp,)))
            for one in (self.out, self.down):
                one.matmul.shard(((dp, mp), (1, mp)))
                one.bias_add.shard(((dp, 1), (1,)))
            self.scores.shard(((dp, mp, 1, 1), (dp, mp, 1, 1)))
            self.mix.shard(((dp, mp, 1, 1), (dp, mp, 1, 1)))
            self.softmax.shard(((dp, mp, 1, 1),))

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.heads, self.size).transpose(0, 2, 1, 3)

    def construct(self, ids):
        x = self.gather(self.table, ids, 0)
        h = self.norm1(x)
        q, k, v = self.split(self.q(h)), self.split(self.k(h)), self.split(self.v(h))
        weights = self.softmax(self.scores(q, k) * (1 / self.size**0.5))
        mixed = self.mix(weights, v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + self.out(mixed)
        x = x + self.down(ops.gelu(self.up(self.norm2(x))))
        return self.head(x.mean(1))


def layouts(grid, names, *tensors):
    made = ms.Layout(grid, names)
    return tuple(made(*axes) for axes in tensors)


def by_layouts(dp, mp):
    """The multilayer perceptron by layouts with names."""

    def make():
        net = Mlp(None, None, None)
        net.first.shard(layouts((dp, mp), ("dp", "mp"), ("dp", "None"), ("None", "mp")))
        net.add.shard(layouts((dp, mp), ("dp", "mp"), ("dp", "mp"), ("mp",)))
        net.second.shard(
            layouts((dp, mp), ("dp", "mp"), ("dp", "mp"), ("mp", "None")),
            layouts((dp, mp), ("dp", "mp"), (("dp", "mp"), "None")),
        )
        return net

    return make


CASES = {
    "columns, rows": (2, lambda: Mlp(((1, 1), (1, 2)), ((1, 2), (2, 1)), ((1, 2), (2,))), X),
    "rows first": (2, lambda: Mlp(((1, 2), (2, 1)), ((1, 1), (1, 2)), ((1, 1), (1,))), X),
    "data and columns": (4, lambda: Mlp(((2, 1), (1, 2)), ((2, 2), (2, 1)), ((2, 2), (2,))), X),
    "all in one product": (4, lambda: Mlp(((1, 2), (2, 2)), ((4, 1), (1, 1)), ((2, 2), (2,))), X),
    "layouts": (4, by_layouts(2, 2), X),
    "layouts of one axis": (4, by_layouts(1, 4), X),
    "vocabulary": (2, lambda: Embedded(((2, 1), (1, 1))), TOKENS),
    "vocabulary and rows": (4, lambda: Embedded(((2, 1), (2, 1))), TOKENS),
    "embedding by columns": (4, lambda: Embedded(((1, 4), (1, 1))), TOKENS),
    "attention": (2, lambda: Attention(1, 2), TOKENS),
    "attention, data": (4, lambda: Attention(2, 2), TOKENS),
    "attention, four heads": (4, lambda: Attention(1, 4), TOKENS),
}


def train(make, data, rank=0, ranks=1, share=False, optimizer=None):
    """Losses, weights and states of some steps."""
    with seeding:
        ms.set_seed(1)
        net = make()
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        optimizer = (optimizer or (lambda p: nn.Adam(p, 0.05, weight_decay=0.01)))(net.trainable_params())
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
        step.set_train()
    rows = slice(rank * ROWS // ranks, (rank + 1) * ROWS // ranks) if share else slice(None)
    losses = [step(Tensor(data[rows]), Tensor(Y[rows])).asnumpy().item() for _ in range(STEPS)]
    return (
        losses,
        {p.name: whole(p) for p in step.get_parameters()},
        [p.name for p in step.get_parameters() if p.sliced],
    )


def whole(parameter):
    """What one process has."""
    if parameter.share is None:
        return parameter.asnumpy()
    from mycelia.engine.communication import world

    return parameter.share.join(world.group("test", world.WORLDS[0]).all_gather(parameter.asnumpy()))


@pytest.mark.parametrize("share", (False, True), ids=("whole batch", "shares"))
@pytest.mark.parametrize("name", CASES)
def test_training_is_that_of_one_process(name, share):
    ranks, make, data = CASES[name]
    ms.reset_auto_parallel_context()
    plain = {"columns, rows": Mlp, "rows first": Mlp, "data and columns": Mlp, "all in one product": Mlp}
    alone = (
        (lambda: Mlp(None, None, None))
        if data is X
        else (Embedded if "attention" not in name else (lambda: Attention(1, 1)))
    )
    del plain
    expected, weights, _ = train(alone, data)
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel", device_num=ranks,
        dataset_strategy="data_parallel" if share else "full_batch",
    )  # fmt: skip
    found = threads.run(ranks, lambda rank: train(make, data, rank, ranks, share))
    for losses, own, sliced in found:
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        assert sliced
        for key, value in weights.items():
            np.testing.assert_allclose(own[key], value, rtol=1e-4, atol=2e-6, err_msg=key)
    assert all(f[0] == found[0][0] for f in found)
