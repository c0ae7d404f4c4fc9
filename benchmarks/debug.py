"""What watching costs: steps of training, compiled and eager, watched in several ways against the step alone.

usage: benchmarks/debug.py [--repeats N]
       benchmarks/debug.py --faults     the faults planted in tests/planted_faults.py, and what the tools name
       benchmarks/debug.py --compare [--gigabytes N] two dumps compared, so much of both sides together
       benchmarks/debug.py --ring       memory that a dump of the last steps takes, against what it was set to

A bar stands beside each ratio. All is CPU time of this process, ways interleaved: the median of the ratios of
neighbouring rounds, which other work on the machine moves least, and the ratio of the best rounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.debug.dump import DumpObserver, dump, parse
from mycelia.engine import observing
from mycelia.engine.compile import measuring

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples" / "lenet"), str(ROOT / "examples" / "zoo"), str(ROOT / "examples")]


def lenet():
    from lenet import LeNet5

    return LeNet5(), (32, 1, 32, 32), 10


class Block(nn.Cell):
    """A residual block of two convolutions (He et al. 2015)."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3)
        self.bn2 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU()
        same = stride == 1 and inside == outside
        self.shortcut = nn.SequentialCell() if same else nn.SequentialCell(
            nn.Conv2d(inside, outside, 1, stride), nn.BatchNorm2d(outside)
        )  # fmt: skip
        self.same = same

    def construct(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.same else self.shortcut(x)))


def resnet18():
    widths = [(64, 64, 1), (64, 64, 1)]
    for inside, outside in ((64, 128), (128, 256), (256, 512)):
        widths += [(inside, outside, 2), (outside, outside, 1)]
    stem = [nn.Conv2d(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, "same")]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(512, 1000)]
    net = nn.SequentialCell(*stem, *(Block(*w) for w in widths), *head)
    return net, (4, 3, 224, 224), 1000


def step_of(make, mode):
    """A function that trains one step."""
    ms.set_context(mode=mode)
    ms.set_seed(1)
    net, shape, classes = make()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 1e-4, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    step.set_train()
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal(shape).astype(np.float32))
    y = Tensor(rng.integers(0, classes, shape[0]).astype(np.int32))

    def run():
        ms.set_context(mode=mode)
        return step(x, y)

    return run


class Dumping:
    """A full dump of every so many steps, into one folder for all rounds: to delete files between them would
    make new ones slow, since ext4 looks for inodes that were not freed lately.
    """

    def __init__(self, every, below):
        self.folder = tempfile.mkdtemp(dir=below)
        numbers = "|".join(str(n) for n in range(0, 1_000_000, every))
        self.observer = DumpObserver(parse({"path": self.folder, "iteration": numbers, "saved_data": "full"}))

    @contextmanager
    def __call__(self):
        observing.set_iteration(observing.iteration() // 100 * 100 + 100)
        observing.watch(self.observer)
        try:
            yield
        finally:
            observing.unwatch(self.observer)

    def close(self):
        shutil.rmtree(self.folder)


def ways(steps, dumping):
    """Name -> (context, steps in it, bar)."""
    report = lambda measured: measured.is_finite
    return {
        "nothing watched": (nullcontext, steps, 1.00),
        "overflow check": (lambda: measuring.measuring(report, measuring.FINITE), steps, 1.10),
        "statistics of all": (lambda: measuring.measuring(report, measuring.STATISTICS), steps, 1.15),
        "full dump of every 100th step": (dumping, 100, 1.05),
    }


def spent(run, count):
    start = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - start) / count


def find_faults() -> None:
    """A line for each planted fault and each clean training; exit code 1 if a tool names another place."""
    sys.path.insert(0, str(ROOT / "tests"))
    from faulty_networks import in_networks
    from planted_faults import clean, planted, wrong_fusion

    print("| fault | tool | named | |\n| --- | --- | --- | --- |")
    missed = 0
    faults = [*planted(), *in_networks(), wrong_fusion(), *clean()]
    for fault in faults:
        folder = Path(tempfile.mkdtemp())
        found = fault.find(folder)
        shutil.rmtree(folder)
        missed += found != fault.expected
        verdict = "right" if found == fault.expected else f"expected {fault.expected or 'nothing'}"
        print(f"| {fault.name} | {fault.tool} | {found or 'nothing'} | {verdict} |", flush=True)
    wrong = sum(bool(fault.expected) for fault in faults)
    print(f"\n{wrong} faults, {len(faults) - wrong} questions about clean trainings, {missed} missed")
    sys.exit(missed > 0)


def make_dump(folder, size_bytes, noise):
    """A dump of tensors of 8 MB, float32, as large as said."""
    step = Path(folder) / "rank_0" / "Net" / "0" / "0"
    step.mkdir(parents=True)
    rng = np.random.default_rng(0)
    base = rng.standard_normal(1 << 21).astype(np.float32)
    for number in range(size_bytes // base.nbytes):
        x = np.roll(base, number) + np.float32(noise)
        np.save(step / f"MatMul.Default_MatMul-op{number}.0.0.{10**15 + number}.output.0.ND.Float32.npy", x)


def compared(size_bytes):
    """(CPU seconds, peak bytes of memory) of `mycelia-precision vc` on two dumps, `size_bytes` of both."""
    folder = tempfile.mkdtemp()
    try:
        for side, noise in (("left", 1e-4), ("right", 0.0)):
            make_dump(Path(folder) / side, size_bytes // 2, noise)
        command = [sys.executable, "-m", "mycelia.debug.precision", "vc", "-lt", f"{folder}/left"]
        command += ["-rt", f"{folder}/right", "-o", f"{folder}/out"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"the comparison ended with status {status}")
        return usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss
    finally:
        shutil.rmtree(folder)


def compare(size_bytes) -> None:
    """The rate of a core, the start of the process left out, and the memory."""
    start, _ = compared(1 << 24)
    seconds, memory = compared(size_bytes)
    rate = size_bytes / (seconds - start) / 1e6
    print("| dumps | CPU s | MB/s a core | bar | peak MiB | bar |\n| --- | --- | --- | --- | --- | --- |")
    print(f"| {size_bytes / 1e9:.1f} GB | {seconds:.1f} | {rate:.0f} | 100 | {memory / 2**20:.0f} | 1024 |")


def resident() -> int:
    """Bytes of memory that the process has."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


RINGS = {
    "LeNet, compiled": (lenet, ms.GRAPH_MODE),
    "LeNet, eager": (lenet, ms.PYNATIVE_MODE),
    "ResNet-18, compiled": (resnet18, ms.GRAPH_MODE),
}


def ring_of(name, size) -> str:
    """A row: what this process grows by while the last steps are kept in `size` MB, when these are full."""
    run = step_of(*RINGS[name])
    options = {"path": tempfile.gettempdir(), "eager": True}
    with dump({**options, "last_bytes": 1}):
        spent(run, 3)  # what a watched step takes anyway
    before = resident()
    with dump({**options, "last_bytes": size * 10**6}) as observer:
        while not any(step.lost for step in observer.kept.steps):
            run()
        spent(run, 3)
        grown, steps = resident() - before, len(observer.kept.steps)
    return f"| {name} | {size} | {steps} | {grown / 1e6:.1f} | {grown / 1e6 / size:.3f} | 0.90 to 1.10 |"


def ring() -> None:
    """A process for each row: memory that one has given back serves the next."""
    print("| step | set MB | steps kept | grown MB | ratio | bar |\n| --- | --- | --- | --- | --- | --- |")
    for name, sizes in zip(RINGS, ((64, 512), (64, 512), (1024, 2048))):
        for size in sizes:
            command = [sys.executable, __file__, "--ring-of", name, str(size)]
            print(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="", flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=25, help="rounds of a few steps each")
    parser.add_argument("--only", default="", help="a part of the name of the networks and ways to run")
    parser.add_argument(
        "--folder", default=None, help="dumps go below it; default: the system's for temporary files"
    )
    parser.add_argument(
        "--faults", action="store_true", help="which planted faults are found, instead of times"
    )
    parser.add_argument("--compare", action="store_true", help="measure the comparison of dumps instead")
    parser.add_argument("--ring", action="store_true", help="measure the memory of the last steps instead")
    parser.add_argument("--ring-of", nargs=2, metavar=("STEP", "MB"), help="one row of it, in this process")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="with --compare: the size of both dumps")
    options = parser.parse_args()
    if options.faults:
        find_faults()
    if options.compare:
        if not 0 < options.gigabytes < 1000:
            parser.error(f"--gigabytes must be between 0 and 1000, but is {options.gigabytes}")
        compare(round(options.gigabytes * 1e9))
        return
    if options.ring_of:
        print(ring_of(options.ring_of[0], int(options.ring_of[1])))
        return
    if options.ring:
        ring()
        return
    dumping = Dumping(100, options.folder)
    print("| step | way | bare ms | ratio | of the best | bar |\n| --- | --- | --- | --- | --- | --- |")
    for name, make, mode, count in (
        ("LeNet, compiled", lenet, ms.GRAPH_MODE, 10),
        ("ResNet-18, compiled", resnet18, ms.GRAPH_MODE, 1),
        ("LeNet, eager", lenet, ms.PYNATIVE_MODE, 10),
        ("ResNet-18, eager", resnet18, ms.PYNATIVE_MODE, 1),
    ):
        run = step_of(make, mode)
        spent(run, 3)
        for way, (context, steps, bar) in ways(count, dumping).items():
            if mode == ms.PYNATIVE_MODE and way != "nothing watched":
                continue
            if options.only not in f"{name} {way}":
                continue
            with context():
                run()
            bare, watched = [], []
            repeats = options.repeats if steps < 100 else max(2, options.repeats // 5)
            for _ in range(repeats):
                bare.append(spent(run, steps))
                with context():
                    watched.append(spent(run, steps))
            ratio, best = np.median(np.divide(watched, bare)), min(watched) / min(bare)
            row = f"| {name} | {way} | {1e3 * min(bare):.2f} | {ratio:.3f} | {best:.3f} | {bar:.2f} |"
            print(row, flush=True)
    dumping.close()


if __name__ == "__main__":
    main()
