"""Random programs with values that are not finite: measured, they give the same bits, and what was measured
is what NumPy finds in a copy of each result.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine.backends import registry
from mycelia.engine.compile import executable, measuring
from mycelia.engine.ops import define
from mycelia.testing.samples import samples_of

pytestmark = pytest.mark.skipif(
    registry.target().kernel("nonfinite_counts", []) is None and registry.target().backend.name != "CPU",
    reason="kernels of mycelia-backend-cpu measure",
)

FLOATS = (ms.float32, ms.float32, ms.float16, ms.bfloat16, ms.float64)
SIZES = (0, 1, 5, 64, 2047, 5000, 40_000, 150_001)


def _round(x):
    """One operator on [N, 4] of a floating dtype, chosen by name; results of the same shape."""
    return {
        "relu": lambda: ops.relu(x),
        "neg": lambda: -x,
        "abs": lambda: ops.abs(x),
        "exp": lambda: ops.exp(x),
        "log": lambda: ops.log(x),
        "square": lambda: x * x,
        "inverse": lambda: 1.0 / x,
        "reverse": lambda: ops.flip(x, (0,)),
        "turn": lambda: ops.transpose(ops.transpose(x, (1, 0)) + 1.0, (1, 0)),
        "halves": lambda: ops.cat((x[: x.shape[0] // 2], x[x.shape[0] // 2 :]), 0),
        "reshape": lambda: ops.relu(x.reshape(-1)).reshape(x.shape),
        "whole": lambda: x.astype(ms.int32).astype(x.dtype),
        "larger": lambda: ops.maximum(x, ops.sin(x)),
        "chosen": lambda: ops.select(x > 0, x, ops.tanh(x)),
        "narrow": lambda: (x * 3.0).astype(ms.float16).astype(x.dtype),
        "wide": lambda: ops.relu(x.astype(ms.float32) * 2.0).astype(x.dtype),
        "pad": lambda: ops.pad(x, (0, 1, 0, 0), value=float("inf"))[:, :4],
        "sum": lambda: x - x.sum(0, keepdims=True),
    }


def _program(names):
    def run(x):
        made = []
        for name in names:
            x = _round(x)[name]()
            made.append(x)
        return x, made[len(made) // 2], ops.relu(made[0])

    return ms.jit(run)


def _input(rng, dtype):
    x = rng.standard_normal((int(rng.choice(SIZES)), 4)).astype(np.float32) * rng.choice([1e-30, 1.0, 50.0])
    for bad in (np.nan, np.inf, -np.inf, 0.0, -0.0):
        if x.size and rng.random() < 0.25:
            x.flat[rng.integers(0, x.size, rng.integers(1, 4))] = bad
    return Tensor(x).astype(dtype)


def _seen(function, x, gauge):
    """(results, what was measured of each program, copies of what its instructions made)."""
    found, copies = [], {}
    with measuring.measuring(found.append, gauge):
        function(x)
        found.clear()
        programs = list(executable.live_programs())
        for program in programs:
            program.observe(lambda i, outputs, p=program: copies.setdefault((id(p), i), outputs))
        try:
            results = function(x)
        finally:
            for program in programs:
                program.observe(None)
    return results, found, copies


def _bytes(results):
    return [r.astype(ms.float64).asnumpy().tobytes() for r in results]


@pytest.mark.fuzz(12)
def test_what_is_measured_is_what_numpy_finds_in_every_result(seed):
    rng = np.random.default_rng(seed)
    dtype = FLOATS[rng.integers(len(FLOATS))]
    names = [str(n) for n in rng.choice(sorted(_round(Tensor(np.ones((2, 4), np.float32)))), 6)]
    function, x = _program(names), _input(rng, dtype)
    plain = _bytes(function(x))
    for gauge in (measuring.FINITE, measuring.STATISTICS):
        results, found, copies = _seen(function, x, gauge)
        assert _bytes(results) == plain, names
        _check_all(found, copies, gauge, names)


@pytest.mark.parametrize("gauge", [measuring.FINITE, measuring.STATISTICS])
def test_what_is_updated_in_place_is_measured_as_it_has_become(gauge):
    def train(step_of):
        ms.set_seed(1)
        net = nn.SequentialCell(
            nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(64, 5)
        )
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
        x = Tensor(np.random.default_rng(0).standard_normal((4, 1, 8, 8)).astype(np.float32))
        y = Tensor(np.zeros((4, 5), np.float32))
        losses = [step_of(step, x, y) for _ in range(3)]
        return _bytes([*losses, *net.trainable_params()])

    def watched(step, x, y):
        loss, found, copies = _seen(lambda _: step(x, y), None, gauge)
        _check_all(found, copies, gauge, "step")
        return loss

    def twice(step, x, y):  # as `_seen` does
        step(x, y)
        return step(x, y)

    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        assert train(watched) == train(twice)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def _check_all(found, copies, gauge, where):
    assert found
    for measured in found:
        table, rows = measured.table, iter(range(len(measured.table)))
        assert len(measured.rows) == len(table)
        for i, node in enumerate(measured.program.nodes):
            for output, row in zip(copies[id(measured.program), i], rows):
                if table[row].any() or not node.op.definition.view:  # a view shows what has a row
                    _check(output, table[row], gauge, (where, node.op.name))
        assert measured.is_finite == (not measured.nonfinite.any())


def _check(output, row, gauge, where):
    if output is None or not output.dtype.is_floating:
        assert not row.any()
    elif gauge == measuring.FINITE:
        x = output.astype(ms.float64).asnumpy()
        expected = [np.isnan(x).sum(), np.isneginf(x).sum(), np.isposinf(x).sum()]
        assert row.tolist() == expected, where
    else:
        expected = np.array(
            define.find("tensor_statistics").definition.body(output.astype(ms.float64).asnumpy())
        )
        scale = max(1e-300, np.nanmax(np.abs(expected[1:3]), initial=0.0))
        assert row[5:].tolist() == expected[5:].tolist() and row[0] == expected[0], where
        assert row[1:3] == pytest.approx(expected[1:3], nan_ok=True, rel=0), where
        assert row[3] == pytest.approx(expected[3], nan_ok=True, abs=2e-6 * scale), where
        assert row[4] == pytest.approx(expected[4], nan_ok=True, rel=2e-6, abs=1e-300), where


def test_a_copy_of_what_is_finite_is_not_looked_at_and_one_of_what_is_not_is():
    """The table is the same either way; a run without bad values must not read copies again."""
    function = ms.jit(lambda x: ops.flip(ops.relu(ops.exp(x)), (0,)))
    rows = {}
    for value in (1.0, 1000.0):
        found = []
        with measuring.measuring(found.append):
            function(Tensor(np.full((8, 8), value, np.float32)))
        rows[value] = [row.tolist() for row in found[0].nonfinite]
    assert not np.any(rows[1.0]) and rows[1000.0] and all(row[2] == 64 for row in rows[1000.0])


def test_bad_arguments_are_found_where_they_are_read_first():
    function = ms.jit(lambda x: ops.relu(ops.flip(x, (0,))) + 1.0)
    found = []
    with measuring.measuring(found.append):
        function(Tensor(np.array([1.0, np.inf], np.float32)))
    assert found[0].rows[int(np.flatnonzero(found[0].nonfinite.any(axis=1))[0])][0].type in (
        "ReverseV2",
        "Flip",
    )


def test_operators_that_only_choose_among_elements_make_no_infinities():
    """What `measuring` relies on, for the samples of all such operators."""
    looked_at = 0
    for op in sorted(define.registry.values(), key=lambda op: op.name):
        if not measuring.keeps_finite(op.definition):
            continue
        for sample in samples_of(op.definition):
            given = sample.tensors()
            if all(map(_is_finite, given)):
                assert all(map(_is_finite, sample.call())), sample.name
                looked_at += 1
    assert looked_at > 100


def _is_finite(value):
    if isinstance(value, (list, tuple)):
        return all(map(_is_finite, value))
    if not isinstance(value, Tensor) or not value.dtype.is_floating:
        return True
    return bool(np.isfinite(value.astype(ms.float64).asnumpy()).all())
