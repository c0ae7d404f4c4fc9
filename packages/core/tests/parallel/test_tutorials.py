"""Scripts in the manner of MindSpore's tutorials on distributed training, started by `msrun` as they are."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia.parallel import launcher
from mycelia.parallel.launcher import Job

SCRIPTS = Path(__file__).parent / "tutorials"
IMAGES, BATCH = 128, 32


@pytest.fixture(scope="module", autouse=True)
def digits(tmp_path_factory):
    """A folder as MNIST's, of images whose class is where they are bright."""
    folder = tmp_path_factory.mktemp("mnist")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, IMAGES).astype(np.uint8)
    images = rng.integers(0, 90, (IMAGES, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels):
        image[2 * label + 2 : 2 * label + 6] += 150
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">4i", 2051, IMAGES, 28, 28) + images.tobytes()
        )
        numbers = struct.pack(">2i", 2049, IMAGES) + labels.tobytes()
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATA_PATH", str(folder))
        yield


_alone: dict[tuple, list[str]] = {}


def started(folder, script, *words, ranks=2):
    """What each rank has printed."""
    folder.mkdir(exist_ok=True)
    logs = folder / f"logs_{ranks}"
    job = Job([str(SCRIPTS / script), *words], ranks, log_dir=logs, tail=())
    assert launcher.run(job) == 0, (logs / "worker_0.log").read_text()
    return [(logs / f"worker_{rank}.log").read_text() for rank in range(ranks)]


def alone(tmp_path_factory, script, *words):
    """What one process prints."""
    if (script, *words) not in _alone:
        folder = tmp_path_factory.mktemp("alone")
        _alone[script, *words] = started(folder, script, str(folder), *words, ranks=1)
    return _alone[script, *words][0]


def losses(text):
    found = [float(number) for number in re.findall(r"loss is:? ([0-9.e+-]+)", text)]
    assert len(found) == IMAGES // BATCH
    return found


def test_data_parallel_by_a_loop(tmp_path, tmp_path_factory):
    """The mean of what ranks print is what one process prints, whose batches are as those of all together."""
    texts = started(tmp_path, "data_parallel.py")
    expected = losses(alone(tmp_path_factory, "data_parallel.py"))
    np.testing.assert_allclose(np.mean([losses(text) for text in texts], 0), expected, rtol=1e-5)


def test_data_parallel_by_a_model(tmp_path, tmp_path_factory):
    texts = started(tmp_path, "data_parallel_model.py", str(tmp_path))
    expected = alone(tmp_path_factory, "data_parallel_model.py")
    np.testing.assert_allclose(np.mean([losses(t) for t in texts], 0), losses(expected), rtol=1e-5)
    for text in (*texts, expected):
        assert "not loaded [] same True" in text
    accuracies = {re.search(r"accuracy ([0-9.]+)", text)[1] for text in (*texts, expected)}
    assert len(accuracies) == 1


@pytest.mark.parametrize(
    ("ranks", "mode", "cut"),
    [
        (2, "semi_auto", ["fc1_weight", "fc2_weight"]),
        (4, "semi_auto", ["fc1_weight", "fc2_weight"]),
        (2, "sharding_propagation", ["fc1_weight"]),
    ],
)
def test_operators_are_cut(ranks, mode, cut, tmp_path, tmp_path_factory):
    texts = started(tmp_path, "operator_parallel.py", str(tmp_path), mode, ranks=ranks)
    expected = losses(alone(tmp_path_factory, "operator_parallel.py", mode))
    for text in texts:
        np.testing.assert_allclose(losses(text), expected, rtol=1e-5)
        assert f"cut {cut}" in text
    # The parts become one file, and a network of one process loads them.
    shutil.rmtree(tmp_path / f"logs_{ranks}")
    ms.transform_checkpoints(str(tmp_path), str(tmp_path / "one"), "whole", str(tmp_path / "strategy.ckpt"))
    whole = ms.load_checkpoint(str(tmp_path / "one" / "rank_0" / "whole0.ckpt"))
    assert {name: tuple(value.shape) for name, value in whole.items()} == {
        "fc1_weight": (784, 32), "fc2_weight": (32, 32), "fc3_weight": (32, 10),
    }  # fmt: skip


def test_states_of_optimizers_are_cut_too(tmp_path, tmp_path_factory):
    texts = started(tmp_path, "operator_parallel.py", str(tmp_path), "semi_auto", "hsdp", ranks=4)
    expected = losses(alone(tmp_path_factory, "operator_parallel.py", "semi_auto"))
    for text in texts:
        np.testing.assert_allclose(losses(text), expected, rtol=1e-5)
        assert "states [[196, 32], [8, 32], [8, 10]]" in text


@pytest.mark.parametrize("ranks", (2, 4))
def test_stages(ranks, tmp_path, tmp_path_factory):
    texts = started(tmp_path, "pipeline_parallel.py", ranks=ranks)
    expected = np.array(losses(alone(tmp_path_factory, "pipeline_parallel.py")))
    found = np.mean([losses(text) for text in texts], 0)
    np.testing.assert_allclose(found / found[0], expected / expected[0], rtol=1e-5)
