"""A training step on the Lite runtime against core's compiled step: time and memory, on one thread.

    python benchmarks/lite_training.py [STEPS]

Each side runs in a process of its own, one after the other, several times by turns; times are medians of
steps, the best of the turns. Memory is what a process holds at its peak beyond what it held before the model
was loaded: for core after the net was made and modules were imported, for the runtime after the library
was loaded.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ZOO = Path(__file__).resolve().parent.parent / "examples" / "zoo"
NETS = {"LeNet": (32, (1, 28, 28), 10), "MobileNetV2": (8, (3, 96, 96), 10)}
TURNS = 3


def batch_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    size, shape, classes = NETS[name]
    chance = np.random.default_rng(0)
    images = chance.normal(size=(size, *shape)).astype(np.float32)
    return images, chance.integers(0, classes, size).astype(np.int32)


def step_of(name: str):
    """The training step of core."""
    from mycelia import nn

    sys.path.insert(0, str(ZOO))
    if name == "LeNet":
        net = nn.SequentialCell(
            nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
            nn.Dense(256, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
        )  # fmt: skip
    else:
        import mobilenet

        net = mobilenet.mobilenet_v2(10, dropout=0.0)
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    return nn.TrainOneStepCell(loss, nn.SGD(net.trainable_params(), 0.01)).set_train()


def peak() -> int:
    """Bytes that the process held at most."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) << 10


def held() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) << 10


def timed(step, steps: int) -> float:
    """Milliseconds of a step."""
    for _ in range(5):
        step()
    taken = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        taken.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(taken)


def run_core(name: str, steps: int) -> tuple[float, int]:
    import mycelia as ms

    ms.set_context(mode=ms.GRAPH_MODE)
    cell, batch = step_of(name), [ms.Tensor(a) for a in batch_of(name)]
    before = held()
    taken = timed(lambda: cell(*batch).asnumpy(), steps)
    return taken, peak() - before


def run_lite(name: str, steps: int, path: str) -> tuple[float, int]:
    import mycelia_lite as mslite

    batch = batch_of(name)
    mslite.Model()
    before = held()
    model = mslite.Model()
    model.build_from_file(path)
    model.set_train_mode(True)
    for tensor, array in zip(model.get_inputs(), batch, strict=True):
        tensor.set_data_from_numpy(array)
    taken = timed(lambda: model.run_step()[0].get_data_to_numpy(), steps)
    return taken, peak() - before


def converted(name: str, folder: str) -> str:
    import mycelia as ms
    import mycelia_lite as mslite
    from mycelia_lite.converter import convert

    path = os.path.join(folder, f"{name}.mindir")
    ms.export(step_of(name), *map(ms.Tensor, batch_of(name)), file_name=path, file_format="MINDIR")
    return convert(mslite.FmkType.MINDIR, path, os.path.join(folder, name), train=True).path


def child(*arguments: str) -> list:
    environment = os.environ | {"MYCELIA_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "child", *arguments], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        side, name, steps, *path = sys.argv[2:]
        run = run_core if side == "core" else run_lite
        print(json.dumps(run(name, int(steps), *path)))
        return
    steps = sys.argv[1] if len(sys.argv) > 1 else "50"
    print("| net | step, runtime | step, core compiled | ratio | memory, runtime | memory, core | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in NETS:
            path = converted(name, folder)
            turns = [(child("lite", name, steps, path), child("core", name, steps)) for _ in range(TURNS)]
            lite, core = (min(t[i][0] for t in turns) for i in (0, 1))
            small, large = (min(t[i][1] for t in turns) / 1e6 for i in (0, 1))
            print(
                f"| {name} | {lite:.3f} ms | {core:.3f} ms | {lite / core:.2f} | {small:.1f} MB | "
                f"{large:.1f} MB | {small / large:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
