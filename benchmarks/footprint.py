"""What Mycelia costs before it computes: import time, memory, installed size.

There is no peer: the bars are absolute.
"""

import os
import statistics
import subprocess
import sys
import sysconfig
from pathlib import Path

import peers

CHILD = """
import resource
{code}
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""
EVERYTHING = "import mycelia as ms; ms.Tensor; ms.nn.Cell; ms.Model; ms.dataset.MnistDataset; ms.ops.relu"
TRAINING = """
import sys
sys.path.insert(0, {lenet!r})
import numpy as np, mycelia as ms
from lenet import LeNet5
from mycelia import nn, dataset as ds
images = np.random.default_rng(0).normal(size=(512, 1, 32, 32)).astype(np.float32)
labels = np.arange(512, dtype=np.int32) % 10
data = ds.NumpySlicesDataset((images, labels)).batch(32)
net = LeNet5()
model = ms.Model(net, nn.SoftmaxCrossEntropyWithLogits(True, "mean"),
                 nn.Momentum(net.trainable_params(), 0.01, 0.9))
model.train(5, data)
"""


def measure(code: str, rounds: int = 5) -> tuple[float, float]:
    """Median CPU seconds and peak resident MB of a fresh interpreter that runs `code`."""
    found = []
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", CHILD.format(code=code)], text=True, capture_output=True, check=True
        )
        found.append(tuple(map(float, done.stdout.split()[-2:])))
    return statistics.median(f[0] for f in found), statistics.median(f[1] for f in found)


def installed_mb() -> float:
    """Size of core and backend-cpu as they would be installed: Python sources and built libraries."""
    total = 0
    root = Path(__file__).parent.parent / "packages"
    for package in ("core", "backend-cpu"):
        total += sum(p.stat().st_size for p in (root / package / "src").rglob("*.py"))
    for name in ("mycelia", "mycelia_backend_cpu"):
        total += sum(p.stat().st_size for p in (Path(sysconfig.get_path("platlib")) / name).glob("*.so"))
    return total / 2**20


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    bare = measure("")
    numpy = measure("import numpy")
    light = measure("import mycelia")
    full = measure(EVERYTHING)
    training = measure(TRAINING.format(lenet=str(Path(__file__).parent.parent / "examples" / "lenet")), 3)
    rows = [
        ["bare interpreter", f"{bare[0]:.3f} s, {bare[1]:.0f} MB", "-"],
        ["import numpy", f"{numpy[0]:.3f} s, {numpy[1]:.0f} MB", "-"],
        ["import mycelia", f"{light[0]:.3f} s, {light[1]:.0f} MB", "<= 0.25 s, 45 MB"],
        ["import mycelia and everything used in training", f"{full[0]:.3f} s, {full[1]:.0f} MB", "-"],
        ["LeNet training, peak", f"{training[1]:.0f} MB", "< 120 MB"],
        ["core + backend-cpu installed, without numpy", f"{installed_mb():.1f} MB", "< 40 MB"],
    ]
    peers.report("Footprint", rows,
                 "CPU seconds of a fresh interpreter and its peak resident memory, median of 5.",
                 ["case", "Mycelia", "bar"], write="--no-write" not in sys.argv)  # fmt: skip


if __name__ == "__main__":
    main()
