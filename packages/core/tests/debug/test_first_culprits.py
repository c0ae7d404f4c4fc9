"""The first operator that is named, where several programs run by turns and where code has infinities."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
from mycelia import debug, nn, ops
from mycelia.debug.cli import app

MASK = np.triu(np.full((3, 3), -np.inf, np.float32), 1)
SCORES = ms.Tensor(np.arange(9, dtype=np.float32).reshape(3, 3))


def added(x, mask):
    return ops.softmax(x + mask)


def filled(x, mask):
    return ops.softmax(ops.masked_fill(x, mask < 0, float("-inf")))


def selected(x, mask):
    return ops.softmax(ops.where(mask < 0, ms.Tensor(float("-inf"), ms.float32), x))


class Net(nn.Cell):
    def __init__(self, masked, mask):
        super().__init__()
        self.masked, self.mask = masked, ms.Tensor(mask)
        self.scale = ms.Parameter(ms.Tensor(np.ones(1, np.float32)), name="scale")

    def construct(self, x):
        return ops.log(self.masked(x, self.mask) * self.scale + 1.0)


def dump(folder, net, scales, mode):
    with ms.config.context(mode=mode), debug.dump({"path": str(folder)}) as _:
        for scale in scales:
            net.scale.set_data(ms.Tensor(np.float32([scale])))
            net(SCORES)
    return debug.DumpAnalyzer(folder).trace_nonfinite()


both_modes = pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
all_masks = pytest.mark.parametrize("masked", [added, filled, selected])


@both_modes
@all_masks
def test_infinities_of_a_mask_are_given_and_nobodys_fault(tmp_path, masked, mode):
    rows = dump(tmp_path, Net(masked, MASK), [1.0], mode)
    assert rows and all(row["given"] and not row["born"] for row in rows)
    done = CliRunner().invoke(app, [str(tmp_path), "--fail"])
    assert done.exit_code == 0 and "All values are finite but for infinities" in done.output


@both_modes
@all_masks
def test_what_makes_nan_of_a_mask_is_named(tmp_path, masked, mode):
    mask = MASK.copy()
    mask[1] = -np.inf
    rows = dump(tmp_path, Net(masked, mask), [1.0], mode)
    assert rows[0]["op_type"] == "Softmax" and rows[0]["born"] and rows[0]["kind"] == "nan"
    assert CliRunner().invoke(app, [str(tmp_path), "--fail"]).exit_code == 3


@both_modes
@all_masks
def test_a_mask_comes_behind_what_is_wrong(tmp_path, masked, mode):
    rows = dump(tmp_path, Net(masked, MASK), [1.0, -3.0], mode)
    assert rows[0]["op_type"] == "Log" and rows[0]["born"]


@both_modes
def test_infinite_data_is_no_mask(tmp_path, mode):
    data = np.float32([1.0, -np.inf])
    with ms.config.context(mode=mode), debug.dump({"path": str(tmp_path)}):
        ms.jit(lambda x: ops.exp(x * 2.0) - x)(ms.Tensor(data)) if mode == ms.GRAPH_MODE else ops.exp(
            ms.Tensor(data)
        ) - ms.Tensor(data)
    assert not any(row["given"] for row in debug.DumpAnalyzer(tmp_path).trace_nonfinite())


def test_eager_steps_of_two_programs_are_two_graphs(tmp_path):
    one, other = nn.Dense(3, 2), nn.Dense(3, 2)
    first = nn.SGD(one.trainable_params(), 0.1)
    second = nn.SGD(other.trainable_params(), 0.1)

    def negative(x):
        return ops.log(one(x).abs() * -1.0).sum()

    def positive(x):
        return (other(x) + ops.log(one(x).abs() + 1.0)).sum()

    steps = [
        (ms.value_and_grad(f, None, o.parameters), o) for f, o in ((negative, first), (positive, second))
    ]
    x = ms.Tensor(np.ones((2, 3), np.float32))
    with debug.dump({"path": str(tmp_path), "eager": True}):
        for grad, optimizer in (steps[0], steps[1], steps[0], steps[1]):
            optimizer(grad(x)[1])
            one.weight.set_data(ms.Tensor(np.ones((2, 3), np.float32)))
    dumped = debug.DumpAnalyzer(tmp_path)
    graphs = {int(path.name): sorted(int(p.name) for p in path.iterdir() if p.name.isdigit())
              for path in (tmp_path / "rank_0" / "Net").iterdir()}  # fmt: skip
    start = dumped.get_iterations()[0]
    assert sorted(graphs.values()) == [[start, start + 2], [start + 1, start + 3]]
    found = dumped.trace_nonfinite()[0]
    assert found["op_type"] == "Log" and "* -1.0" in found["source"][0]
    texts = [p.read_text() for p in sorted((tmp_path / "rank_0/graphs").glob("*.ir"))]
    assert "* -1.0" in texts[0] and "* -1.0" not in texts[1] and "+ 1.0" in texts[1]


def test_a_step_that_broke_off_belongs_to_its_program(tmp_path):
    def step(x, is_broken):
        y = ops.exp(x)
        y = y.reshape((7,) if is_broken else (4,))
        return ops.log(y)

    with ms.config.context(mode=ms.PYNATIVE_MODE), debug.dump({"path": str(tmp_path), "eager": True}):
        x = ms.Tensor(np.ones((2, 2), np.float32))
        for is_broken in (True, False):
            try:
                step(x, is_broken)
            except ValueError:
                assert is_broken
    assert len(list((tmp_path / "rank_0/graphs").glob("*.ir"))) == 1
    told = json.loads(next((tmp_path / "rank_0/graphs").glob("mycelia_operators_*.json")).read_text())
    assert [name.rpartition("/")[2] for name in told["operators"]][-1].startswith("Log")


def test_eager_graphs_say_what_feeds_a_call(tmp_path):
    with debug.dump({"path": str(tmp_path), "eager": True}):
        Net(added, MASK)(SCORES)
    dumped = debug.DumpAnalyzer(tmp_path)
    (mul,) = dumped.select_nodes("Mul-op0")
    assert {node.name.rpartition("/")[2] for node in dumped.get_input_nodes(mul)} == {"Softmax-op0", "scale"}
