"""SummaryLandscape against landscapes that MindSpore computed from the same checkpoints."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_summary import decoded, records

from mycelia import dataset, nn
from mycelia.train import Model, SummaryCollector, SummaryLandscape
from mycelia.train.summary import summary_pb2
from mycelia.train.summary.loss_surface import Plane, grid_of_path, principal_plane, random_plane

THEIRS = Path(__file__).parents[1] / "fixtures" / "formats" / "landscape"
INTERVALS = [[1, 2, 3, 4, 5], [5, 6, 7, 8]]


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.act, self.out = nn.Dense(4, 3), nn.Tanh(), nn.Dense(3, 2)

    def construct(self, x):
        return self.out(self.act(self.fc(x)))


def samples() -> dict[str, np.ndarray]:
    """Those of fixtures/formats/landscape/make_landscape.py."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 4)).astype(np.float32)
    return {"x": x, "y": x @ rng.standard_normal((4, 2)).astype(np.float32)}


def parts():
    net = Net()
    data = dataset.NumpySlicesDataset(samples(), shuffle=False).batch(16)
    return Model(net, nn.MSELoss()), net, data, {"Loss": nn.Loss()}


def landscapes(folder: Path) -> dict[str, summary_pb2.LossLandscape]:
    """Tag -> landscape, of all event files of a folder."""
    found = {}
    for path in sorted(folder.glob("*summary.*_MS")):
        for record in records(path):
            for value in map(decoded, decoded(record[5][0])[1]) if 5 in record else ():
                if 10 in value:
                    found[value[1][0].decode()] = summary_pb2.LossLandscape.FromString(value[10][0])
    return found


def prepared(folder: Path, intervals=INTERVALS, **options) -> SummaryLandscape:
    """As a training of MindSpore leaves a folder."""
    (folder / "ckpt_dir").mkdir()
    files = {re.search(r"\d+", path.name)[0]: str(path) for path in THEIRS.glob("*.ckpt")}
    facts = {
        "epoch_group": {str(i): steps for i, steps in enumerate(intervals)}, "model_params_file_map": files,
        "step_per_epoch": 4, "unit": "step", "num_samples": 64, "landscape_size": 5,
        "create_landscape": {"train": True, "result": True}, **options,
    }  # fmt: skip
    (folder / "ckpt_dir" / "train_metadata.json").write_text(json.dumps(facts))
    return SummaryLandscape(str(folder))


def array(tensor) -> np.ndarray:
    return np.array(tensor.float_data, np.float32).reshape(tuple(tensor.dims))


def assert_alike(ours, theirs, names=("x", "y", "z")) -> None:
    for name in names:
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.data_type == other.data_type, name
        np.testing.assert_allclose(array(one), array(other), rtol=2e-6, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("devices", [[0], [0, 1, 2]])
def test_landscapes_are_those_of_mindspore(tmp_path, devices):
    prepared(tmp_path).gen_landscapes_with_multi_process(parts, device_ids=devices)
    ours, theirs = landscapes(tmp_path), landscapes(THEIRS)
    assert list(ours) == list(theirs) == ["landscape_[1, 5]", "landscape_[5, 8]", "landscape_[8]"]
    for tag, one in ours.items():
        other = theirs[tag]
        assert one.metadata == other.metadata and one.loss_path.intervals == other.loss_path.intervals
        if one.metadata.decomposition == "PCA":
            assert_alike(one.landscape, other.landscape)
            assert_alike(one.loss_path.points, other.loss_path.points)
            assert_alike(one.convergence_point, other.convergence_point)
        else:  # directions at random: the same grid, and the same loss in its middle
            assert_alike(one.landscape, other.landscape, "xy")
            assert array(one.landscape.z).shape == (5, 5) and not one.HasField("loss_path")
            assert_alike(one.convergence_point, other.convergence_point)
            assert array(one.landscape.z)[2, 2] == array(one.convergence_point.z)[0]


def test_points_of_a_grid_are_losses_of_those_weights(tmp_path):
    """Against NumPy alone: the grid's axes are x for columns, y for rows."""
    prepared(tmp_path, [[1, 2, 3, 4]]).gen_landscapes_with_multi_process(parts)
    found = landscapes(tmp_path)["landscape_[1, 4]"]
    points = [weights_of(step) for step in (1, 2, 3, 4)]
    plane = principal_plane(points)
    data = samples()
    for row, column in ((0, 0), (0, 4), (4, 1), (2, 3)):
        x, y = array(found.landscape.x)[column], array(found.landscape.y)[row]
        w = plane.at(float(x), float(y))
        hidden = np.tanh(data["x"] @ w["fc.weight"].T + w["fc.bias"])
        loss = np.square(hidden @ w["out.weight"].T + w["out.bias"] - data["y"]).mean()
        np.testing.assert_allclose(array(found.landscape.z)[row, column], loss, rtol=1e-5)


def weights_of(step: int) -> dict[str, np.ndarray]:
    from mycelia import load_checkpoint

    found = load_checkpoint(str(THEIRS / f"Net_{step}_step.ckpt"))
    return {name: parameter.asnumpy() for name, parameter in found.items()}


def test_a_path_within_a_plane_is_found_again():
    rng = np.random.default_rng(1)
    center = {"a.weight": rng.standard_normal((5, 4)), "a.bias": rng.standard_normal(4), "mean": np.ones(3)}
    directions = [
        {name: rng.standard_normal(center[name].shape) for name in ("a.weight", "a.bias")} for _ in "xy"
    ]
    plane = Plane(center, *directions)
    path = np.array([[2.0, -1.0], [1.0, 0.5], [0.25, 1.0], [0.0, 0.0]])
    points = [plane.at(*point) for point in path.tolist()]
    np.testing.assert_allclose([plane.project(point) for point in points], path, atol=1e-9)
    found = principal_plane(points)
    for point in points:  # each lies in the plane that is found
        again = found.at(*found.project(point).tolist())
        np.testing.assert_allclose(again["mean"], 1)
    x, y = grid_of_path(path, 7)
    assert (x[0], x[-1], y[0], y[-1]) == pytest.approx((-0.4, 2.4, -1.4, 1.4)) and len(x) == len(y) == 7


def test_random_directions_are_as_long_as_the_parameters():
    center = {
        "w.weight": np.full((3, 4), 2, np.float32),
        "w.bias": np.zeros(4, np.float32),
        "step": np.array(7),
    }
    plane = random_plane(center, np.random.default_rng(0))
    assert np.linalg.norm(plane.first["w.weight"]) == pytest.approx(np.sqrt(48), rel=1e-6)
    assert not plane.second["w.bias"].any()  # a parameter of zeros stays
    assert plane.at(1.0, 1.0)["step"] == 7
    assert abs((plane.first["w.weight"] * plane.second["w.weight"]).sum()) < 48


def test_parameters_of_any_name_move_if_none_is_called_weight():
    plane = random_plane({"table": np.ones(8, np.float32), "count": np.array(3)}, np.random.default_rng(0))
    assert list(plane.first) == ["table"]


def test_the_network_keeps_its_weights_and_intervals_take_what_was_saved(tmp_path):
    made = parts()
    before = made[1].fc.weight.asnumpy().copy()
    landscape = prepared(tmp_path, [[1, 2, 30], [4, 5, 6, 99]])
    landscape.gen_landscapes_with_multi_process(lambda: made)
    assert list(landscapes(tmp_path)) == ["landscape_[4, 6]", "landscape_[6]"]
    assert np.array_equal(made[1].fc.weight.asnumpy(), before)


def test_what_is_not_asked_for_is_not_computed(tmp_path):
    landscape = prepared(tmp_path, create_landscape={"train": False, "result": True})
    landscape.gen_landscapes_with_multi_process(parts, collect_landscape={"landscape_size": 3})
    found = landscapes(tmp_path)
    assert list(found) == ["landscape_[8]"] and list(found["landscape_[8]"].landscape.z.dims) == [3, 3]


@pytest.mark.parametrize("devices", [[0], [0, 1]])
def test_a_callback_that_is_wrong_is_told(tmp_path, devices):
    def no_loss():
        model, net, data, _ = parts()
        return model, net, data, {"accuracy"}

    with pytest.raises(ValueError, match="must have a Loss, but got"):
        prepared(tmp_path).gen_landscapes_with_multi_process(no_loss, device_ids=devices)
    with pytest.raises(ValueError, match="num_samples is 15, less than one batch of 16"):
        SummaryLandscape(str(tmp_path)).gen_landscapes_with_multi_process(
            parts, collect_landscape={"num_samples": 15}, device_ids=devices
        )


@pytest.mark.parametrize(
    ("devices", "error"),
    [([8], ValueError), ([-1], ValueError), ([], TypeError), (0, TypeError), ([0.5], TypeError)],
)
def test_devices_are_checked(tmp_path, devices, error):
    with pytest.raises(error, match="device_ids"):
        prepared(tmp_path).gen_landscapes_with_multi_process(parts, device_ids=devices)


def test_from_a_training_to_its_landscape(tmp_path):
    options = {"landscape_size": 3, "num_samples": 64, "intervals": [[1, 2, 3]]}
    net = Net()
    model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    collector = SummaryCollector(
        str(tmp_path), 1, collect_specified_data={"collect_landscape": options}, keep_default_action=False
    )
    model.train(1, parts()[2], callbacks=collector, dataset_sink_mode=False)
    landscape = SummaryLandscape(str(tmp_path))
    landscape.gen_landscapes_with_multi_process(parts)
    assert list(landscapes(tmp_path)) == ["landscape_[1, 3]", "landscape_[3]"]
    landscape.clean_ckpt()
    with pytest.raises(ValueError, match=r"(?s)no checkpoints.*collect_landscape"):
        landscape.gen_landscapes_with_multi_process(parts)
