"""Dumps of trusted runs outside of Mycelia are compared with ours, by order, by name, by a map of scopes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, nn, ops, precision
from mycelia.debug.precision.matching import read_map
from mycelia.debug.reading.folders import Dump

X = np.random.default_rng(5).standard_normal((4, 6)).astype(np.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.relu, self.fc2 = nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 3)

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))


@pytest.fixture
def sides(tmp_path):
    """A network, and the folder of its dump."""
    net = Net()
    with debug.dump({"path": str(tmp_path / "left")}), ms.config.context(mode=ms.GRAPH_MODE):
        net(ms.Tensor(X))
    return net, tmp_path / "left"


def by_numpy(net, folder, wrong=1.0):
    """The same network in NumPy; the second layer times `wrong`."""
    dump = precision.ReferenceDump(folder)
    weights = [p.asnumpy().astype(np.float64) for p in net.trainable_params()]
    hidden = X @ weights[0].T + weights[1]
    dump.add("fc1", hidden, "Dense")
    dump.add("relu", np.maximum(hidden, 0), "ReLU")
    dump.add("fc2", wrong * (np.maximum(hidden, 0) @ weights[2].T + weights[3]), "Dense")
    return folder


def compared(left, right, **options):
    found = precision.Comparison(Dump(left), Dump(right), **options)
    return found, [row for row in found.rows() if row.values]


def test_a_reference_of_numpy_by_order(sides, tmp_path):
    net, left = sides
    found, rows = compared(left, by_numpy(net, tmp_path / "right"), by="order")
    assert [row.pair.right.name for row in rows] == ["fc1", "relu", "fc2"] and found.divergence is None
    found, _ = compared(left, by_numpy(net, tmp_path / "wrong", 1.5), by="order")
    assert found.divergence.operator.endswith("fc2-Dense/Dense-op0")


def test_a_reference_by_a_map_of_scopes(sides, tmp_path):
    net, left = sides
    names = [r.name for s in Dump(left).steps for r in s.records() if r.io == "output" and r.kind == "Dense"]
    path = tmp_path / "map.json"
    path.write_text(
        json.dumps({name.removesuffix("_Dense-op0"): f"fc{i + 1}" for i, name in enumerate(names)})
    )
    right = by_numpy(net, tmp_path / "right", 1.5)
    found, rows = compared(left, right, names=read_map(path))
    assert {row.pair.right.name for row in rows} == {"fc1", "fc2"}, rows
    assert found.divergence.operator.endswith("fc2-Dense/Dense-op0")


def test_steps_are_told_apart_and_names_may_have_dots(tmp_path):
    dump = precision.ReferenceDump(tmp_path)
    dump.add("block.0/fc", X)
    dump.next_step()
    dump.add("block.0/fc", 2 * X)
    first, second = (step.records() for step in Dump(tmp_path).steps)
    assert first[0].name == second[0].name == "block_0_fc"
    np.testing.assert_array_equal(second[0].array(), 2 * X)
    for name, array in (("", X), ("fc", ["a"]), ("fc", object())):
        with pytest.raises(ValueError, match="ReferenceDump.add"):
            dump.add(name, array)


def test_layers_of_pytorch(sides, tmp_path):
    torch = pytest.importorskip("torch")
    net, left = sides
    layers = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
    with torch.no_grad():
        for target, source in zip(layers.parameters(), net.trainable_params()):
            target.copy_(torch.from_numpy(source.asnumpy().copy()))
    dump = precision.ReferenceDump(tmp_path / "right")
    with dump.torch(layers):
        layers(torch.from_numpy(X))
    layers(torch.from_numpy(2 * X))  # behind the block nothing is added
    found, rows = compared(left, tmp_path / "right", by="order")
    assert [row.pair.right.name for row in rows] == ["0", "1", "2"] and found.unlike == 0


def test_values_of_onnx_runtime(sides, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    net, _ = sides
    ms.export(net, ms.Tensor(X), file_name=str(tmp_path / "net"), file_format="ONNX")
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"))
    dump = precision.ReferenceDump(tmp_path / "right")
    (made,) = dump.onnxruntime(session, {session.get_inputs()[0].name: X})
    (step,) = Dump(tmp_path / "right").steps
    np.testing.assert_array_equal(step.records()[0].array(), made)
    np.testing.assert_allclose(made, net(ms.Tensor(X)).asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_session_is_asked_for_the_outputs_by_their_names(tmp_path):
    class Output:
        name = "probabilities"

    class Session:
        def get_outputs(self):
            return [Output]

        def run(self, names, feeds):
            return [ops.softmax(ms.Tensor(feeds["x"])).asnumpy() for _ in names]

    precision.ReferenceDump(tmp_path).onnxruntime(Session(), {"x": X})
    (record,) = Dump(tmp_path).steps[0].records()
    assert record.name == "probabilities" and record.array().shape == (4, 6)
