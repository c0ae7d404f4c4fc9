"""Programs that are measured give the numbers of NumPy about all they compute, and the same results as
ever.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.debug.statistics import statistics
from mycelia.engine.backends import registry
from mycelia.engine.compile import measuring, overflow

pytestmark = pytest.mark.skipif(
    registry.target().kernel("nonfinite_counts", []) is None and registry.target().backend.name != "CPU",
    reason="kernels of mycelia-backend-cpu measure",
)


@pytest.fixture
def found():
    return []


def test_statistics_are_those_of_the_results(found):
    f = ms.jit(lambda x: ops.softmax(ops.matmul(x, x), -1))
    x = Tensor(np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32))
    expected = f(x).asnumpy()
    with measuring.measuring(found.append, measuring.STATISTICS):
        got = f(x).asnumpy()
    f(x)
    (measured,) = found
    assert got.tobytes() == expected.tobytes()
    kinds = [operator.type for operator, _ in measured.rows]
    assert kinds == ["MatMul", "Softmax"]
    assert measured.table[1] == pytest.approx(np.array(statistics(expected)), rel=1e-6)


def test_what_is_fused_is_measured_as_it_is(found):
    f = ms.jit(lambda x: ops.log(x * 2.0 - 1.0))
    x = Tensor(np.array([0.0, 0.5, 1.0], np.float32))
    with measuring.measuring(found.append):
        f(x)
    assert [row.tolist() for row in found[0].nonfinite] == [[1, 1, 0]]


def test_a_fused_operator_names_its_parts_with_their_lines(found):
    @ms.jit
    def f(x):
        y = x * 2.0
        return ops.log(y - 1.0)

    with measuring.measuring(found.append):
        f(Tensor(np.array([0.0, 0.5, 1.0], np.float32)))
    (one,) = overflow.overflows(found[0])
    assert [part.type for part in one.operator.parts] == ["Mul", "Sub", "Log"]
    lines = [part.stack[0][1] for part in one.operator.parts]
    assert lines[0] + 1 == lines[1] == lines[2]
    assert "it is made of Default/Mul-op0 at" in str(one)


def test_programs_that_are_built_meanwhile_and_those_of_loops_are_measured(found):
    @ms.jit
    def f(x):
        while x.sum() < 100.0:
            x = ops.exp(x)
        return x

    with measuring.measuring(found.append):
        f(Tensor([1.0, 1.0]))
    assert any(operator.type == "Exp" for m in found for operator, _ in m.rows)


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64])
def test_all_floats_are_measured(found, dtype):
    f = ms.jit(lambda x: ops.relu(x))
    x = Tensor(np.array([1.0, np.nan, np.inf, 2.0] * 33, np.float32)).astype(dtype)
    with measuring.measuring(found.append):
        f(x)
    assert found[-1].nonfinite.sum(axis=0).tolist() == [33, 0, 33]


def test_integers_have_rows_of_zeros(found):
    f = ms.jit(lambda x: ops.matmul(x.astype(ms.float32), x.astype(ms.float32)).astype(ms.int32) + 1)
    with measuring.measuring(found.append):
        f(Tensor(np.ones((2, 2), np.int32)))
    assert not found[0].nonfinite.any()


def test_two_who_measure_get_what_they_asked_for():
    few, many = [], []
    f = ms.jit(lambda x: ops.exp(x))
    with measuring.measuring(few.append, measuring.FINITE):
        with measuring.measuring(many.append, measuring.STATISTICS):
            f(Tensor([1.0]))
        f(Tensor([1000.0]))
    f(Tensor([1.0]))
    assert len(few) == 2 and len(many) == 1
    assert few[1].nonfinite.tolist() == [[0, 0, 1]] and many[0].table.shape == (1, 11)


def test_what_a_report_raises_leaves_the_call():
    f = ms.jit(lambda x: ops.exp(x))

    def report(measured):
        raise RuntimeError("no more")

    with measuring.measuring(report), pytest.raises(RuntimeError, match="no more"):
        f(Tensor([1.0]))
    assert float(f(Tensor([0.0]))[0]) == 1.0


def test_training_is_the_same_to_the_bit_while_it_is_measured(found):
    def train():
        ms.set_seed(1)
        net = nn.WithLossCell(nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2)), nn.MSELoss())
        step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 0.01))
        x, y = Tensor(np.ones((3, 4), np.float32)), Tensor(np.zeros((3, 2), np.float32))
        return [float(step(x, y)) for _ in range(4)]

    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        plain = train()
        with measuring.measuring(found.append, measuring.STATISTICS):
            measured = train()
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert measured == plain and len(found) >= 4


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_the_setting_tells_the_first_operator_and_its_line(mode, caplog):
    class Net(nn.Cell):
        def construct(self, x):
            y = ops.log(x - 100.0)
            return ops.matmul(y, y)

    net = Net()
    x = Tensor(np.ones((2, 2), np.float32))
    ms.set_context(mode=mode, check_overflow=True)
    try:
        with caplog.at_level("WARNING", logger="mycelia"):
            net(x)
            net(x)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE, check_overflow=False)
    told = [r.getMessage() for r in caplog.records if "not finite" in r.getMessage()]
    assert "4 NaN" in told[0] and f"{__file__}" in told[0] and "ops.log(x - 100.0)" in told[0]
    assert len(told) == 1  # of a run the first operator, and of an operator the first run
    caplog.clear()
    net(x)
    assert "not finite" not in caplog.text


def test_overflows_name_operator_slot_and_counts(found):
    def told(some):
        found.extend(some)

    check = overflow.Check(told)
    f = ms.jit(lambda x: ops.exp(x))
    check.start()
    try:
        f(Tensor([1000.0, 1.0, np.nan]))
    finally:
        check.stop()
    (one,) = found
    assert (one.operator.type, one.slot, one.nan, one.positive_inf, one.count) == ("Exp", 0, 1, 1, 2)
    assert "ops.exp(x)" in one.source[0]
