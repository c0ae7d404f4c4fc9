"""A training of ours compared with a dump that MindSpore wrote of the same one, whose Parameters are as after
the step.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.debug.precision.comparison import Comparison, Row
from mycelia.debug.reading.folders import Dump
from mycelia.engine import observing

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "dumps"


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.relu = nn.Dense(4, 3), nn.ReLU()

    def construct(self, x):
        return ops.log(self.relu(self.fc(x)))


@pytest.fixture(scope="module")
def mindspore(tmp_path_factory) -> Dump:
    folder = tmp_path_factory.mktemp("mindspore")
    with zipfile.ZipFile(FIXTURES / "mindspore_2.10.zip") as archive:
        archive.extractall(folder)
    return Dump(folder)


def array(dump: Dump, iteration: int, kind: str, io: str, slot: int) -> np.ndarray:
    """Of the first operator of a type in a step."""
    records = next(s for s in dump.steps if s.iteration == iteration).records()
    return next(r for r in records if (r.kind, r.io, r.slot) == (kind, io, slot)).array()


def argument(dump: Dump, iteration: int, name: str) -> np.ndarray:
    records = next(s for s in dump.steps if s.iteration == iteration).records()
    return next(r for r in records if r.kind == "Parameter" and r.name == name).array()


def ours(folder: Path, mindspore: Dump, change: float = 1.0, saved: str = "tensor") -> Dump:
    """The same training, dumped; `change`: what one weight is multiplied by."""
    net = Net()
    weight = array(mindspore, 0, "MatMul", "input", 1).copy()
    weight[0, 0] *= change
    net.fc.weight.set_data(Tensor(weight))
    net.fc.bias.set_data(Tensor(array(mindspore, 0, "BiasAdd", "input", 1)))
    loss = nn.WithLossCell(net, nn.MSELoss())
    rate, momentum = (float(argument(mindspore, 0, name)) for name in ("learning_rate", "momentum"))
    step = nn.TrainOneStepCell(loss, nn.Momentum(loss.trainable_params(), rate, momentum))
    step.set_train()
    options = {"path": str(folder), "saved_data": saved}
    with ms.config.context(mode=ms.GRAPH_MODE), debug.dump(options):
        observing.set_iteration(0)
        for iteration in range(2):
            step(*(Tensor(argument(mindspore, iteration, name)) for name in ("inputs0", "inputs1")))
    return Dump(folder)


def compared(left: Dump, right: Dump) -> tuple[Comparison, dict[tuple[int, str], Row]]:
    comparison = Comparison(left, right)
    rows = list(comparison.rows())
    return comparison, {(r.iteration, r.pair.left.name): r for r in rows if r.pair.left.kind == "Parameter"}


@pytest.mark.parametrize("saved", ["tensor", "statistic"])
def test_weights_as_before_a_step_are_not_compared_with_those_after_it(tmp_path, mindspore, saved):
    mine = ours(tmp_path, mindspore, saved=saved)
    for left, right in ((mine, mindspore), (mindspore, mine)):
        comparison, parameters = compared(left, right)
        assert comparison.divergence is None
        for weight in ("fc_weight", "fc_bias"):
            assert "before the step" in parameters[0, weight].reason and not parameters[0, weight].known
        assert comparison.unlike == 0 and (saved == "statistic" or comparison.compared > 40)
        for same in ("inputs0", "inputs1", "learning_rate", "momentum"):  # which no step changes
            assert parameters[0, same].alike and parameters[1, same].alike


def test_another_weight_is_named_where_it_shows(tmp_path, mindspore):
    mine = ours(tmp_path, mindspore, change=-5.0)
    comparison, _ = compared(mine, mindspore)
    found = comparison.divergence
    assert (found.iteration, found.kind, found.io, found.slot) == (0, "ReLU", "input", 0)
    assert found.maker.endswith("Dense-op0")  # MindSpore's are two operators of other types


def test_dumps_of_one_kind_compare_their_weights(tmp_path, mindspore):
    for left, right in (
        (ours(tmp_path / "a", mindspore), ours(tmp_path / "b", mindspore)), (mindspore, mindspore),
    ):  # fmt: skip
        _, parameters = compared(left, right)
        assert len(parameters) >= 2 * 6 and all(row.alike for row in parameters.values())
