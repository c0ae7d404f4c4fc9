"""Writing and reading large MindIR files: time, CPU time and memory, in Mycelia and MindSpore by turns.

Both read the file that they wrote, which is still in the page cache. MindSpore leaves it to the system when
the bytes reach the disk, Mycelia waits for that: a second figure of its export is without. `--on` says what
file system MYCELIA_BENCH_FILES lies on: a busy disk hides all else.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys

import peers
from sizes import processor

FOLDER = peers.FILES / "mindir"
WEIGHTS, SIDE = 20, 4096  # 20 matrices of 64 MiB
GIB = WEIGHTS * SIDE * SIDE * 4 / 2**30
CHILD = """
import json, os, resource, sys, time
import numpy as np, {module} as ms
from {module} import Parameter, Tensor, nn, ops
what, path = sys.argv[1:]
ms.set_context(mode=0)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        values = [Tensor(rng.random(({side}, {side}), np.float32)) for _ in range({weights})]
        self.weights = ms.ParameterTuple([Parameter(v, name=f"w{{i}}") for i, v in enumerate(values)])
    def construct(self, x):
        for w in self.weights:
            x = ops.matmul(x, w)
        return x
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
if what == "no sync":
    os.fsync = lambda handle: None
if what == "load":
    nn.GraphCell(ms.load({small!r}))  # what the first use imports
else:
    net, x = Net(), Tensor(np.ones((1, {side}), np.float32))
    ms.export(nn.ReLU(), x, file_name={small!r}, file_format="MINDIR")
before, begin, cpu = resident(), time.perf_counter(), time.process_time()
if what == "load":
    cell = nn.GraphCell(ms.load(path + "_graph.mindir"))
else:
    ms.export(net, x, file_name=path, file_format="MINDIR")
wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
print(json.dumps([wall, cpu, peak / 2**30]))
"""


def run(python: str, module: str, what: str) -> list[float]:
    """Wall and CPU seconds of one child, and the memory in GiB that it took at most beyond what it had."""
    small = str(FOLDER / f"small-{module}.mindir")
    script = FOLDER / f"child-{module}.py"  # MindSpore reads the source of what it compiles
    script.write_text(CHILD.format(module=module, side=SIDE, weights=WEIGHTS, small=small))
    path = str(FOLDER / module)
    done = subprocess.run(
        [python, str(script), what, path],
        text=True,
        capture_output=True,
        check=True,
        env=os.environ | {"GLOG_v": "3"},
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    rounds = int(peers.option("--rounds", "3"))
    peer = peers.python_of("MindSpore")
    sides = [("Mycelia", sys.executable, "mycelia", ("export", "no sync", "load"))]
    sides += [("MindSpore", peer, "mindspore", ("export", "load"))] if peer else []
    found: dict[tuple[str, str], list[list[float]]] = {}
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        for _ in range(rounds):
            for side, python, module, steps in sides:
                for what in steps:
                    found.setdefault((side, what), []).append(run(python, module, what))
    finally:
        shutil.rmtree(FOLDER)
    rows = []
    for case, ours, theirs in (
        ("export", "export", "export"), ("export, without waiting for the disk", "no sync", "export"),
        ("load", "load", "load"),
    ):  # fmt: skip
        row = [case]
        for side, what in (("Mycelia", ours), ("MindSpore", theirs)):
            wall, cpu, peak = map(statistics.median, zip(*found.get((side, what), [[float("nan")] * 3])))
            row.append(
                f"{wall:.2f} s, {cpu:.2f} s CPU" + (f", +{peak / GIB:.2f} x" if case == "load" else "")
            )
        rows.append(row)
    note = (
        f"A model with {GIB:.2f} GiB of weights on {peers.option('--on', 'a disk')}; median, rounds: "
        f"{rounds}; memory as a multiple of the weights. {processor()}."
    )
    peers.report(
        "Large MindIR files", rows, note, ["case", "Mycelia", "MindSpore"], write="--no-write" not in sys.argv
    )


if __name__ == "__main__":
    main()
