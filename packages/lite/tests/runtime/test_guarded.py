"""Kernels touch no element before or behind the tensors that a caller gave, in none of their variants."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[1] / "fuzz" / "run_guarded.py"
AT_ONCE = 60  # graphs for one seed


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are protected as on Linux")
@pytest.mark.fuzz(1)
@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512"])
def test_nothing_beside_inputs_and_outputs_is_touched(isa, seed):
    command = [sys.executable, RUNNER, str(seed * AT_ONCE), str(AT_ONCE)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MYCELIA_ISA": isa})
    if "runs none of the library's kernels" in done.stderr:
        pytest.skip(f"this processor has no {isa}")
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    assert done.stdout.split()[-1] == str(AT_ONCE)
