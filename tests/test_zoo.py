"""Every network of examples/zoo gives compiled what it gives eagerly, in inference and in training."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "examples" / "zoo"
sys.path.insert(0, str(ROOT))

from check import check  # noqa: E402
from zoo import ZOO  # noqa: E402


@pytest.mark.parametrize("name", ZOO)
def test_compiled_equals_eager(name):
    verdict = check(name)
    # Winograd's transforms may cost one more digit than a direct convolution.
    assert verdict.inference < 1e-4
    assert verdict.loss < 1e-4
    # Inputs changed in the seventh digit move the deepest network's gradient by a hundredth: units near 0.
    assert verdict.gradients < 5e-2


def test_check_prints_a_table_and_refuses_unknown_names():
    def run(*names):
        return subprocess.run(
            [sys.executable, str(ROOT / "check.py"), *names], text=True, capture_output=True
        )

    done = run("lenet", "lstm")
    assert done.returncode == 0, done.stderr
    assert "lenet" in done.stdout and "lstm" in done.stdout and "gru" not in done.stdout
    refused = run("lenets")
    assert refused.returncode == 2 and "there are lenet, alexnet" in refused.stderr
