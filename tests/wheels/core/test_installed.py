"""What a user gets from the wheels of core and backend-cpu alone: run by `hatch run wheels:check`.

Nothing of the source tree is importable here, so these tests see files that a wheel forgot.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "lenet"))
from lenet import LeNet5


def bars(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of ten kinds: a bright bar at one of ten places, in noise."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 10, count)
    images = rng.normal(0, 0.3, (count, 1, 32, 32)).astype(np.float32)
    for image, label in zip(images, labels):
        image[0, 3 * label : 3 * label + 3] += 1
    return images, labels.astype(np.int32)


def test_only_wheels_are_installed():
    ours = {d.name: d for d in distributions() if d.name.startswith("mycelia")}
    assert set(ours) == {"mycelia-core", "mycelia-backend-cpu"}
    for name in ("mycelia", "mycelia_backend_cpu"):
        assert "site-packages" in Path(__import__(name).__file__).parts


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
def test_lenet_trains_without_falling_back(mode):
    ms.set_seed(1)
    images, labels = bars(640)
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        with ms.config.context(fallback="error"):
            data = ms.dataset.NumpySlicesDataset(
                (images[:512], labels[:512]), ["image", "label"], shuffle=True
            )
            data = data.batch(32, drop_remainder=True)
            net = LeNet5()
            loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
            optimizer = nn.Adam(net.trainable_params(), learning_rate=2e-3)
            model = ms.Model(net, loss, optimizer, metrics={"accuracy"})
            model.train(4, data, dataset_sink_mode=False)
            held_out = ms.dataset.NumpySlicesDataset(
                (images[512:], labels[512:]), ["image", "label"], shuffle=False
            )
            accuracy = model.eval(held_out.batch(64), dataset_sink_mode=False)["accuracy"]
    finally:
        ms.set_context(mode=before)
    assert accuracy > 0.95


def test_native_kernels_are_used():
    from mycelia.backends import registry

    assert registry.target().backend.name == "cpu"


def test_kernel_sources_and_abi_headers_are_in_the_wheel():
    from mycelia.plugins import manager

    library = manager().hook.mycelia_kernel_library(target="micro")
    source = Path(library.source_dir)
    assert (source / "CMakeLists.txt").is_file() and (source / "kernels.def").is_file()
    assert (source / "_abi" / "mycelia" / "abi.h").is_file() and (
        source / "_abi" / "mycelia" / "op_attrs.h"
    ).is_file()


def test_installed_size_is_small():
    # megabytes of core and backend-cpu, sources and caches included
    total = 0
    for name in ("mycelia", "mycelia_backend_cpu"):
        for path in Path(__import__(name).__file__).parent.rglob("*"):
            total += path.stat().st_size if path.is_file() else 0
    assert total / 1e6 < 40


@pytest.mark.parametrize("command", ["info", "plugins", "env", "--help"])
def test_command_line_works(command):
    mycelia = Path(sys.executable).with_name("mycelia")
    result = subprocess.run(
        [mycelia, command], capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
    )
    assert result.returncode == 0, result.stderr
