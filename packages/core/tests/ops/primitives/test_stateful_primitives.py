"""Primitives with state or effects: optimizer steps, random numbers, printing, summaries, collectives."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.engine.ops.control_flow import summary_sink


def data(*shape, seed=0, low=0.1, high=1.0):
    return Tensor(np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32))


def variables(*names):
    return [Parameter(data(3, 2, seed=i), name=n) for i, n in enumerate(names)]


def number(value):
    return Tensor(np.array(value, np.float32))


GRADIENT, ROWS, INDICES = (
    data(3, 2, seed=9, low=-1),
    data(2, 2, seed=9, low=-1),
    Tensor(np.array([2, 0], np.int32)),
)
ADAM = tuple(map(number, (0.9, 0.999, 0.1, 0.9, 0.999, 1e-3)))

STEPS = {
    "Adam": (ops.Adam, "vms", (*ADAM, GRADIENT), [0.5791, 0.68314, 0.63883, 0.57861, 0.47502, 0.67587]),
    "ApplyMomentum": (
        ops.ApplyMomentum, "va", (number(0.1), GRADIENT, number(0.9)),
        [0.64908, 0.67595, 0.63432, 0.63014, 0.53198, 0.72111],
    ),
    "ApplyAdadelta": (
        ops.ApplyAdadelta, "vau", (number(0.1), number(0.9), number(1e-3), GRADIENT),
        [0.68889, 0.74351, 0.64465, 0.67277, 0.57827, 0.76124],
    ),
    "ApplyRMSProp": (
        ops.ApplyRMSProp, "vso", (number(0.1), GRADIENT, 0.9, 0.1, 1e-3),
        [0.67988, 0.73088, 0.58582, 0.65856, 0.57353, 0.76824],
    ),
    "FusedSparseAdam": (
        ops.FusedSparseAdam, "vms", (*ADAM, ROWS, INDICES),
            [0.57471, 0.68987, 0.6388, 0.57531, 0.47623, 0.67303]
    ),
    "FusedSparseLazyAdam": (
        ops.FusedSparseLazyAdam, "vms", (*ADAM, ROWS, INDICES),
        [0.57471, 0.68987, 0.64249, 0.59039, 0.47623, 0.67303],
    ),
    "SparseApplyAdagrad": (
        lambda: ops.SparseApplyAdagrad(0.1), "va", (ROWS, INDICES),
        [0.59516, 0.80828, 0.64249, 0.59039, 0.57102, 0.68043],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("compiled", [False, True])
def test_step_changes_its_variables(name, compiled):
    make, names, inputs, want = STEPS[name]
    state, step = variables(*names), make()

    def run(*inputs):
        return step(*state, *inputs)

    result = (ms.jit(run) if compiled else run)(*inputs)
    np.testing.assert_allclose(state[0].asnumpy().reshape(-1), want, rtol=1e-4, atol=1e-5)
    returned = result[0] if isinstance(result, tuple) else result
    np.testing.assert_array_equal(returned.asnumpy(), state[0].asnumpy())


def test_ada_factor_keeps_rows_and_columns():
    full = [Parameter(Tensor(np.full(s, 0.5, np.float32)), name=n) for n, s in
            zip("abcde", [(2, 3, 2), (2, 3, 2), (2, 3), (2, 2), (2, 3, 2)], strict=True)]  # fmt: skip
    ops.FusedAdaFactor()((1e-30, 1e-3), 1.0, 0.9, 0.8, 1e-2, 0.03, data(2, 3, 2, low=-1), *full)
    np.testing.assert_allclose(full[0].asnumpy().reshape(-1)[:3], [0.49544, 0.48023, 0.49023], atol=2e-5)
    np.testing.assert_allclose(full[2].asnumpy().reshape(-1)[:3], [0.41948, 0.40503, 0.41085], atol=2e-5)


def test_each_object_with_a_seed_has_a_stream():
    one, other = ops.UniformReal(seed=2), ops.UniformReal(seed=2)
    drawn = [one((3,)).asnumpy() for _ in range(2)]
    np.testing.assert_array_equal(drawn[0], other((3,)).asnumpy())
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize(
    ("run", "shapes"),
    [
        (lambda: ops.StandardNormal(1, 2)(Tensor(np.array([2, 3], np.int32))), [(2, 3)]),
        (lambda: ops.RandomGamma()(Tensor(np.array([3, 2], np.int32)), data(2, 2)), [(3, 2, 2, 2)]),
        (lambda: ops.Multinomial(dtype=ms.int64)(data(2, 4), 3), [(2, 3)]),
        (lambda: ops.RandomChoiceWithMask(3)(Tensor(np.ones((4, 5), bool))), [(3, 2), (3,)]),
        (lambda: ops.LogUniformCandidateSampler(2, 5, True, 5)(Tensor(np.array([[1, 7], [0, 4]]))),
         [(5,), (2, 2), (5,)]),
        (lambda: ops.Cauchy([2, 3])(), [(2, 3)]),
    ],
)  # fmt: skip
def test_shapes_of_draws(run, shapes):
    drawn = run()
    assert [d.shape for d in (drawn if isinstance(drawn, tuple) else (drawn,))] == shapes


def test_dropout_gives_its_mask():
    y, mask = ops.Dropout(0.5)(Tensor(np.ones((20, 30), np.float32)))
    np.testing.assert_array_equal(y.asnumpy(), mask.asnumpy() * 2)


class Printing(nn.Cell):
    def __init__(self):
        super().__init__()
        self.print = ops.Print()

    def construct(self, x, n):
        self.print("x:", x, n, (1, 2))
        return x


@pytest.mark.parametrize(
    ("mode", "lines"),
    [
        (ms.PYNATIVE_MODE, "x:\nTensor(shape=[2, 1], dtype=Int32, value=\n[[1],\n [1]])\n"
                           "Tensor(shape=[], dtype=Int32, value= 3)\n(1, 2)\n"),
        (ms.GRAPH_MODE, "x:\nTensor(shape=[2, 1], dtype=Int32, value=\n[[1]\n [1]])\n3\n(1, 2)\n"),
    ],
)  # fmt: skip
def test_print(mode, lines, capsys):
    old = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        Printing()(Tensor(np.ones((2, 1), np.int32)), Tensor(3, ms.int32))
    finally:
        ms.set_context(mode=old)
    assert capsys.readouterr().out == lines


@pytest.mark.parametrize(
    "summarize, values, shown",
    [
        (2, [1.5, 2.0, 3.0], "1.5 2"),
        (3, [[1, 123456789], [-4, 5]], "1 123456789 -4"),
        (20, [1e-9, 123456789.0, -0.0, np.nan, np.inf, 0.1], "1e-09 1.23457e+08 -0 nan inf 0.1"),
        (3, [True, False, True, False], "1 0 1"),
        (-1, np.arange(30), " ".join(map(str, range(30)))),
        (3, np.float16([0.1, 2]), "0.0999756 2"),
    ],
)
def test_assert_shows_the_first_numbers_as_mindspore_does(capsys, summarize, values, shown):
    ops.Assert()(Tensor(True), [data(2)])
    with pytest.raises(RuntimeError, match="assert failed"):
        ops.Assert(summarize=summarize)(Tensor(False), [Tensor(np.asarray(values))])
    assert capsys.readouterr().out == f"For 'Assert' condition is false.\ninput data: [{shown}]\n"


@pytest.mark.parametrize("compiled", [False, True])
def test_summaries_reach_the_records(compiled):
    class Sink:
        taken = []

        def take(self, kind, name, tensor):
            self.taken.append((kind, name, tensor.shape))

    def net(x):
        ops.ScalarSummary()("loss", x.sum())
        ops.HistogramSummary()("x", x)
        return x

    sink = Sink()
    sink.taken = []
    summary_sink.active.append(sink)
    try:
        (ms.jit(net) if compiled else net)(data(2, 2))
    finally:
        summary_sink.active.remove(sink)
    assert sink.taken == [("scalar", "loss", ()), ("histogram", "x", (2, 2))]


def test_collectives_ask_for_init():
    from mycelia.communication.management import GlobalComm
    from mycelia.parallel.engines import threads

    x = data(2)
    assert not GlobalComm.INITED
    with pytest.raises(RuntimeError, match="init"):
        ops.AllReduce()(x)

    def alone(rank):
        np.testing.assert_array_equal(ops.AllReduce(ops.ReduceOp.MAX)(x).asnumpy(), x.asnumpy())
        with pytest.raises(ValueError, match="0 is this one"):
            ops.Send(0, 0)(x)
        with pytest.raises(RuntimeError, match="no other process"):
            ops.Send(0, 1)(x)

    threads.run(1, alone)
