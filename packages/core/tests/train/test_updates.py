"""Scalars `weight_norm/...` and `update_ratio/...` of SummaryCollector."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import config, nn
from mycelia.train import Callback, Model, SummaryCollector

sys.path.insert(0, str(Path(__file__).parent))
from test_summary import as_float, decoded, records


class Keeping(Callback):
    """Copies of the weights before each step and after."""

    def __init__(self, net):
        super().__init__()
        self.net, self.before, self.after = net, {}, {}

    def _copy(self):
        return {p.name: p.asnumpy().astype(np.float64) for p in self.net.trainable_params()}

    def step_begin(self, run_context):
        self.before[run_context.original_args().cur_step_num] = self._copy()

    def step_end(self, run_context):
        self.after[run_context.original_args().cur_step_num] = self._copy()


def scalars(folder) -> dict[tuple[str, int], float]:
    """By tag and step."""
    found = {}
    (path,) = folder.glob("*_MS")
    for event in records(path):
        for summary in event.get(5, []):
            for value in decoded(summary).get(1, []):
                one = decoded(value)
                if 3 in one:
                    found[one[1][0].decode(), event.get(2, [0])[0]] = as_float(one[3][0])
    return found


def train(folder, mode, sink=False, epochs=1, freq=3, **wanted):
    ms.set_seed(1)
    rng = np.random.default_rng(0)
    rows = [(rng.random(6, dtype=np.float32), np.int32(i % 3)) for i in range(14)]
    with config.context(mode=mode):
        net = nn.SequentialCell(nn.Dense(6, 4), nn.ReLU(), nn.Dense(4, 3))
        data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(2)
        model = Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
        keeping = Keeping(net)
        wanted = {"collect_update_ratio": True, **wanted}
        collector = SummaryCollector(str(folder), freq, 32, wanted, keep_default_action=False)
        model.train(epochs, data, callbacks=[keeping, collector], dataset_sink_mode=sink)
    return keeping


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_each_recorded_step_tells_how_much_it_changed(mode, tmp_path):
    keeping = train(tmp_path, mode)
    found = scalars(tmp_path)
    assert {step for tag, step in found if tag.startswith("weight_norm/")} == {1, 3, 6}
    checked = 0
    for (tag, step), value in found.items():
        kind, _, name = tag.partition("/")
        before, after = keeping.before[step][name], keeping.after[step][name]
        norm = np.linalg.norm(before)
        expected = {
            "weight_norm": norm,
            "update_ratio": np.linalg.norm(after - before) / norm if norm else None,
        }
        assert value == pytest.approx(expected[kind], rel=1e-6)
        checked += kind == "update_ratio" and value > 0
    # Biases begin with 0, which nothing is a share of.
    zero = [name for name, w in keeping.before[1].items() if not w.any()]
    assert checked == 3 * 4 - len(zero) and len(zero) == sum(
        ("update_ratio/" + name, 1) not in found for name in keeping.before[1]
    )


def test_epochs_of_sink_mode_tell_of_their_last_step(tmp_path):
    keeping = train(tmp_path, ms.GRAPH_MODE, sink=True, epochs=4, freq=2, histogram_regular=r".*weight")
    found = scalars(tmp_path)
    assert {step for _, step in found} == {7, 14, 28} and {tag.split("/")[1] for tag, _ in found} == {
        "0.weight", "2.weight",
    }  # fmt: skip
    before, after = (kept[14]["0.weight"] for kept in (keeping.before, keeping.after))
    expected = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert found["update_ratio/0.weight", 14] == pytest.approx(expected, rel=1e-6)


def test_it_is_off_unless_it_is_asked_for(tmp_path):
    train(tmp_path, ms.GRAPH_MODE, collect_update_ratio=False, collect_metric=True)
    assert {tag for tag, _ in scalars(tmp_path)} == {"loss/auto"}
