"""The example of pipeline stages: two real processes take the steps of one."""

import sys
from pathlib import Path

import numpy as np

from mycelia.parallel import launcher

sys.path.insert(0, str(Path(__file__).parent))
from example_mains import result_of

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "pipeline" / "train.py"


def test_two_stages_have_the_losses_of_one_process(tmp_path):
    options = ["--epochs", "1"]
    command = [sys.executable, str(EXAMPLE), *options, "--stages", "2", "--output", str(tmp_path / "losses")]
    assert launcher.run(launcher.Job(command, 2, log_dir=tmp_path / "logs")) == 0
    together = [float(line) for line in (tmp_path / "losses").read_text().splitlines()]
    alone = result_of(EXAMPLE, options)
    assert len(alone) > 5 and alone[-1] < alone[0]
    np.testing.assert_allclose(together, alone, rtol=1e-5)
