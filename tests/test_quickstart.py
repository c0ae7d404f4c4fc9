"""The quickstart as a newcomer runs it, with fewer epochs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import mycelia as ms

ROOT = Path(__file__).resolve().parent.parent


def run(directory: Path, **environment) -> str:
    command = [sys.executable, str(ROOT / "examples" / "quickstart.py")]
    command += ["--epochs", "2", "--output", str(directory)]
    environment = {**os.environ, "COLUMNS": "100", **environment}
    done = subprocess.run(command, text=True, capture_output=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_quickstart_learns_exports_and_agrees(tmp_path):
    text = run(tmp_path)
    assert "4000 digits to learn from, 1000 held out" in text
    accuracy = float(text.split("accuracy ")[1].split(",")[0])
    assert accuracy > 0.7, "two epochs are enough to see that it learns"
    assert "1000 predictions, bit for bit the same" in text
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
    assert "mycelia-serving start" in text and "lenet:classify -d @" in text
    assert f"mycelia-lite convert --fmk=MINDIR --modelFile={tmp_path}/lenet.mindir" in text
    assert (tmp_path / "servables" / "lenet" / "1" / "lenet.mindir").exists()
    saved = ms.load_checkpoint(str(next((tmp_path / "checkpoints").glob("lenet-2_*.ckpt"))))
    assert saved["conv1.weight"].shape == (6, 1, 5, 5)
    net = ms.nn.GraphCell(ms.load(str(tmp_path / "lenet.mindir")))
    assert net(ms.Tensor(np.zeros((1, 1, 32, 32), np.float32))).shape == (1, 10)


def test_quickstart_in_graph_mode_gives_the_same_predictions(tmp_path):
    run(tmp_path / "eager")
    run(tmp_path / "graph", MYCELIA_MODE="0", MYCELIA_PASSES="-fuse")
    # Fused sums add in another order, and training makes more of the last digit: the verdicts stay.
    run(tmp_path / "fused", MYCELIA_MODE="0")
    eager, graph, fused = (np.load(tmp_path / m / "predictions.npy") for m in ("eager", "graph", "fused"))
    np.testing.assert_allclose(graph, eager, rtol=1e-3, atol=1e-3)
    assert (fused.argmax(1) == eager.argmax(1)).mean() > 0.95
