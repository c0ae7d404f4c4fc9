"""`examples/precision`: a fusion planted wrong on the simulator is found by halving and proven by dumps.

Ten trainings in processes of their own, as a user would have them, are what takes the time here.
"""

from __future__ import annotations

import csv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "precision"


def test_the_example_finds_the_fusion_and_proves_it(python, tmp_path):
    folder = tmp_path / "dumps"
    done = python(FOLDER / "find_the_fusion.py", "--output", folder, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "guilty: ub_matmul_bias_activation" in done.stdout
    assert "hidden = self.relu(self.fc1(x))" in done.stdout
    (table,) = (folder / "precision_data" / "temp" / "vector_compare").glob("*/result_*.csv")
    rows = [r for r in csv.DictReader(table.open()) if not r["CompareFailReason"]]
    assert rows[0]["LeftOp"].endswith("relu-ReLU_ReLU-op0") and float(rows[0]["CosineSimilarity"]) < 0.98
