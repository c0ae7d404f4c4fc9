"""The example of tensor parallelism: two and four real processes take the steps of one, and their
checkpoints become those of the others and of one.
"""

import os
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia.parallel import launcher

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the launcher needs process groups of POSIX")
EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "tensor_parallel" / "train.py"


def parts(folder, ranks):
    return [ms.load_checkpoint(str(next((folder / f"rank_{r}").glob("*.ckpt")))) for r in range(ranks)]


def test_processes_have_the_losses_and_the_weights_of_one(tmp_path):
    for ranks in (2, 4):
        options = ["--parallel", "--steps", "4", "--output", str(tmp_path / str(ranks))]
        job = launcher.Job(
            [sys.executable, str(EXAMPLE), *options], ranks, log_dir=tmp_path / f"logs_{ranks}"
        )
        assert launcher.run(job) == 0
    mode = ms.get_context("mode")
    try:
        alone = runpy.run_path(str(EXAMPLE))["main"](["--steps", "4", "--output", str(tmp_path / "1")])
    finally:
        ms.set_context(mode=mode)
    (whole,) = parts(tmp_path / "1", 1)
    for ranks in (2, 4):
        folder = tmp_path / str(ranks)
        for rank in range(ranks):
            lines = (folder / f"rank_{rank}" / "losses.txt").read_text().splitlines()
            np.testing.assert_allclose([float(line) for line in lines], alone, rtol=1e-6)
        strategy = str(folder / "strategy.ckpt")
        ms.transform_checkpoints(str(folder), str(folder / "whole"), "net_", strategy)
        (joined,) = parts(folder / "whole", 1)
        assert joined.keys() == whole.keys()
        for name, value in whole.items():
            np.testing.assert_allclose(
                joined[name].asnumpy(), value.asnumpy(), rtol=1e-4, atol=1e-5, err_msg=name
            )
    first, second = (str(tmp_path / n / "strategy.ckpt") for n in "24")
    ms.transform_checkpoints(str(tmp_path / "2"), str(tmp_path / "to4"), "net_", first, second)
    ms.transform_checkpoints(str(tmp_path / "to4"), str(tmp_path / "back"), "net_", second, first)
    for before, after in zip(parts(tmp_path / "2", 2), parts(tmp_path / "back", 2)):
        assert all(np.array_equal(after[name].asnumpy(), p.asnumpy()) for name, p in before.items())
