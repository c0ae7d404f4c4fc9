"""Training that runs into NaN is stopped, skipped or told, with the operator that made it."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset, nn, ops
from mycelia.train import Model, OverflowMonitor, StopOnNaN


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(2, 2)

    def construct(self, x):
        return ops.log(ops.abs(self.fc(x)) + 1.0) * x.max()


BAD = 3  # the step, from 1, whose data are infinite


def train(*callbacks, mode=ms.GRAPH_MODE, bad=BAD):
    rng = np.random.default_rng(0)
    xs = rng.standard_normal((5, 1, 2)).astype(np.float32)
    if bad:
        xs[bad - 1] = np.inf
    ys = np.zeros((5, 1, 2), np.float32)
    data = dataset.NumpySlicesDataset((xs, ys), shuffle=False)
    ms.set_seed(2)
    net = Net()
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    steps = []

    class Counts(ms.Callback):
        def step_end(self, run_context):
            steps.append(net.fc.weight.asnumpy().copy())

    ms.set_context(mode=mode)
    try:
        model.train(1, data, callbacks=[*callbacks, Counts()], dataset_sink_mode=False)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    return steps


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"])
def mode(request):
    return request.param


def test_it_raises_and_names_operator_and_line(mode):
    with pytest.raises(ArithmeticError, match="epoch 1, step 3") as error:
        train(StopOnNaN(), mode=mode)
    assert "Default/" in str(error.value) and "-op0" in str(error.value)


def test_it_stops_the_training(mode):
    assert len(train(StopOnNaN(action="stop"), mode=mode)) == BAD


def test_a_skipped_step_leaves_parameters_as_they_were(mode):
    callback = StopOnNaN(action="skip")
    weights = train(callback, mode=mode)
    assert callback.skipped == [BAD] and len(weights) == 5
    assert all(np.isfinite(w).all() for w in weights)
    assert weights[BAD - 1].tobytes() == weights[BAD - 2].tobytes() != weights[BAD].tobytes()


def test_what_is_known_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_TOKEN", "hidden-value")
    with pytest.raises(ArithmeticError, match="first_bad.json"):
        train(StopOnNaN(action="dump", path=tmp_path / "bundle"))
    folder = tmp_path / "bundle/step_3"
    first = json.loads((folder / "first_bad.json").read_text())
    assert first["step"] == 3 and first["slot"] == 0 and first["operator"].startswith("Default/")
    assert first["outputs"] and first["reason"]
    assert "hidden-value" not in (folder / "environment.json").read_text()
    with zipfile.ZipFile(tmp_path / "bundle/step_3.zip") as archive:
        assert json.loads(archive.read("first_bad.json")) == first
        assert {"environment.json", "run/first_bad.json"} <= set(archive.namelist())
        assert not [n for n in archive.namelist() if b"hidden-value" in archive.read(n)]


def test_healthy_training_goes_through(mode):
    monitor = OverflowMonitor()
    assert len(train(StopOnNaN(), monitor, mode=mode, bad=0)) == 5
    assert monitor.steps == []


def test_the_monitor_counts_and_warns(mode, caplog):
    monitor = OverflowMonitor(limit=1)
    with caplog.at_level("WARNING", logger="mycelia"):
        assert len(train(monitor, mode=mode)) == 5
    assert [step for step, _, _ in monitor.steps] == [3, 4, 5]  # the weights are NaN from then on
    assert len([r for r in caplog.records if "is not finite" in r.getMessage()]) == 1


def test_nothing_is_watched_after_the_training():
    from mycelia.engine.compile import measuring

    with pytest.raises(ArithmeticError):
        train(StopOnNaN())
    train(OverflowMonitor(), bad=0)
    assert measuring._reports == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"check": "weights"}, "check"),
        ({"check": ()}, "empty"),
        ({"action": "ignore"}, "action"),
    ],
)
def test_bad_arguments_are_named(arguments, told):
    with pytest.raises(ValueError, match=told):
        StopOnNaN(**arguments)
    with pytest.raises(ValueError, match="limit"):
        OverflowMonitor(limit=-1)
