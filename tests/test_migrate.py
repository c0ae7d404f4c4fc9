"""Scripts for MindSpore, unmodified, run by `mycelia run`, print what they print in MindSpore."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples" / "migrate"

SMALL_RESNET = "--depths 1 1 1 1 --width 4 --images 16 --size 16 --batch_size 8".split()

# Script, its arguments, and lines of what it prints in MindSpore.
PRINTED = {
    "lenet_1x": ([], ["loss falls: True", "right: True"]),
    "functional_2x": (
        [],
        [
            "loss falls: True",
            "accuracy above 0.95: True",
            "first: [ 3.   12.    6.75]",
            "second: [ 6. 12. -9.]",
        ],
    ),
    "print_demo": (
        [],
        [
            "x and y:",
            "Tensor(shape=[2, 3], dtype=Int32, value=",
            "[[1 2 3]",
            " [4 5 6]])",
            "Tensor(shape=[3], dtype=Float32, value=[ 5.00000000e-01  2.50000000e-01 -1.00000000e+00])",
            "total:",
            "Tensor(shape=[2, 3], dtype=Float32, value=",
            "[[ 1.50000000e+00  2.25000000e+00  2.00000000e+00]",
            " [ 4.50000000e+00  5.25000000e+00  5.00000000e+00]])",
            "(2, 3)",
        ],
    ),
    "while_net": (
        [],
        [
            "[1.0, 1.0] -> [14.5     3.8125] after 4",
            "[0.01, 3.0] -> [-7.34  11.125] after 4",
            "[20.0, 1.0] -> [20.  1.] after 0",
            "gradient of the weight: "
            "(Tensor(shape=[2], dtype=Float32, value= [ 3.15000000e+01,  1.30000000e+01]),)",
        ],
    ),
    "resnet50_cifar": (
        SMALL_RESNET,
        ["saved resnet-1_2.ckpt", "parameters not loaded: []", "metrics: ['accuracy', 'loss'] finite: True"],
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_script_prints_what_it_prints_in_mindspore(name, tmp_path):
    arguments, expected = PRINTED[name]
    command = [sys.executable, "-m", "mycelia", "run", str(FOLDER / f"{name}.py"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith(("epoch:", "Train epoch"))]
    assert lines == expected


def test_every_script_is_run():
    assert {file.stem for file in FOLDER.glob("*.py")} == set(PRINTED)


def test_doctor_finds_nothing_in_them():
    done = subprocess.run(
        [sys.executable, "-m", "mycelia", "doctor", str(FOLDER)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
