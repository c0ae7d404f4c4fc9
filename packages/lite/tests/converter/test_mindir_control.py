"""MindIR files whose control flow depends on data, and those that change their parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import ConversionError, convert
from mycelia_lite.format import read

FIXTURES = Path(__file__).parents[1] / "fixtures" / "control"


def loaded(source, folder, **options):
    """``(*arrays)`` -> the outputs of the converted model, which keeps its variables."""
    model = mslite.Model()
    model.build_from_file(convert(mslite.FmkType.MINDIR, str(source), str(folder / "m"), **options).path)

    def run(*arrays):
        inputs = model.get_inputs()
        if any(-1 in t.shape for t in inputs):
            model.resize(inputs, [a.shape for a in arrays])
        for tensor, array in zip(inputs, arrays, strict=True):
            tensor.set_data_from_numpy(array)
        return [t.get_data_to_numpy().copy() for t in model.predict(inputs)]

    return run


def near(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert np.abs(a - b).max() <= 1e-5 * max(np.abs(b).max(), 1)


@pytest.mark.parametrize("name", ["if", "while", "nested", "layer", "break", "early"])
def test_files_of_mindspore_answer_as_there(name, tmp_path):
    answers = np.load(FIXTURES / "answers.npz")
    run = loaded(FIXTURES / f"{name}.mindir", tmp_path)
    calls = {int(key.split(".")[1]) for key in answers if key.startswith(f"{name}.")}
    for i in sorted(calls):
        arrays, expected = (
            [answers[key] for key in sorted(answers) if key.startswith(f"{name}.{i}.{side}")]
            for side in ("in", "out")
        )
        near(run(*arrays), expected)


def test_an_index_of_no_layer_is_an_error(tmp_path):
    run = loaded(FIXTURES / "layer.mindir", tmp_path)
    for index in (3, -4):
        with pytest.raises(RuntimeError, match="does not hold for these inputs"):
            run(np.zeros((2, 4), np.float32), np.array(index, np.int32))


def test_a_loop_is_one_node_that_shares_its_plans(tmp_path):
    path = convert(mslite.FmkType.MINDIR, str(FIXTURES / "while.mindir"), str(tmp_path / "m")).path
    kinds = [n.primitive.type for n in read(path).nodes if n.primitive.kind == "Custom"]
    assert kinds == ["Loop"]


class Mixed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 4)

    def construct(self, x, n):
        i = ops.zeros((), ms.int32)
        while i < n:
            if x.sum() > 2:
                x = self.dense(x)
            else:
                j = ops.zeros((), ms.int32)
                while j < 2:
                    x = x + 1
                    j = j + 1
            i = i + 1
        return x * 2, i


class Counter(nn.Cell):
    """Its Parameter changes in a branch and in a loop."""

    def __init__(self):
        super().__init__()
        self.total = ms.Parameter(ms.Tensor(np.zeros((2, 4), np.float32)), name="total")

    def construct(self, x, n):
        if x.sum() > 0:
            self.total += x
        i = ops.zeros((), ms.int32)
        while i < n:
            self.total *= 1.5
            i = i + 1
        return self.total * 2


def exported(net, path, batch=2):
    inputs = ms.Tensor(shape=[batch, 4], dtype=ms.float32), ms.Tensor(shape=[], dtype=ms.int32)
    ms.export(net, *inputs, file_name=str(path / "source"), file_format="MINDIR")
    return path / "source.mindir"


@pytest.mark.parametrize("batch", [2, None])
def test_what_core_exports_answers_as_its_net(batch, tmp_path):
    net = Mixed()
    run = loaded(exported(net, tmp_path, batch), tmp_path)
    drawn = np.random.default_rng(1).normal(size=(2 if batch else 5, 4)).astype(np.float32)
    for x in (drawn, drawn - 5):
        for n in (0, 1, 7):
            n = np.array(n, np.int32)
            near(run(x, n), [t.asnumpy() for t in net(ms.Tensor(x), ms.Tensor(n))])


def test_a_check_runs_branches_and_loops_of_the_source(tmp_path):
    source = exported(Mixed(), tmp_path)
    report = convert(mslite.FmkType.MINDIR, str(source), str(tmp_path / "m"), check=True)
    assert len(report.departures) == 2


def test_parameters_that_change_are_kept_from_run_to_run(tmp_path):
    net = Counter()
    run = loaded(exported(net, tmp_path), tmp_path)
    x = np.ones((2, 4), np.float32)
    for sign, n in ((1, 0), (1, 2), (-1, 1), (1, 3)):
        n = np.array(n, np.int32)
        near(run(sign * x, n), [net(ms.Tensor(sign * x), ms.Tensor(n)).asnumpy()])


def test_a_training_step_trains(tmp_path):
    net = nn.SequentialCell(nn.Dense(4, 3), nn.Tanh(), nn.Dense(3, 1))
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)
    )
    x, y = (np.random.default_rng(2).normal(size=(8, n)).astype(np.float32) for n in (4, 1))
    ms.export(step, ms.Tensor(x), ms.Tensor(y), file_name=str(tmp_path / "step"), file_format="MINDIR")
    run = loaded(tmp_path / "step.mindir", tmp_path)
    losses = [run(x, y)[0] for _ in range(5)]
    near(losses, [step(ms.Tensor(x), ms.Tensor(y)).asnumpy() for _ in range(5)])
    assert losses[4] < losses[0]


def test_recursion_that_is_no_loop_is_refused_by_name(tmp_path):
    with pytest.raises(ConversionError, match="graph .*doubled.* calls itself"):
        convert(mslite.FmkType.MINDIR, str(FIXTURES / "recursive.mindir"), str(tmp_path / "m"))
