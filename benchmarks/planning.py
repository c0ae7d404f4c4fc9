"""What `mycelia plan` says of a data-parallel step, beside what the step takes, on 1, 2 and 4 processes here.

Each process has one thread. The network is measured once for each number of them. Behind a case's name this
script is a rank: it trains, and rank 0 prints the median of its steps in seconds.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers

CASES = ("LeNet b32", "BERT-mini b8 t128", "ResNet-18 224 b4")
RANKS = (1, 2, 4)
STEPS = {"LeNet b32": 200, "BERT-mini b8 t128": 12, "ResNet-18 224 b4": 8}
NOTE = (
    "Median wall time of a step with one thread a process; predicted: time in operators of one process, "
    "longer where processes share cores ({} here), and gradients by the all_reduce measured between as many, "
    "one after the other. Python and waiting for the slowest rank are not in it. Load before: {:.1f}."
)


def train(case: str) -> None:
    """A rank."""
    import models
    from models_data import training_batch

    ms, nn = models.ms, models.nn
    if "RANK_ID" in os.environ:
        ms.communication.init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    ms.set_seed(0)
    make, _ = models.TRAINING[case]
    network = nn.WithLossCell(make(), nn.CrossEntropyLoss())
    optimizer = nn.Momentum(network.trainable_params(), 0.01, 0.9)
    step = nn.TrainOneStepCell(network, optimizer).set_train()
    ms.set_context(mode=ms.GRAPH_MODE)
    batch = [ms.Tensor(column) for column in training_batch(case)]
    times = []
    for _ in range(STEPS[case] + 3):
        start = time.perf_counter()
        step(*batch).asnumpy()
        times.append(time.perf_counter() - start)
    if os.environ.get("RANK_ID", "0") == "0":
        print("median", statistics.median(times[3:]), flush=True)


def mycelia(*arguments: str) -> str:
    command = [sys.executable, "-m", "mycelia", *arguments]
    environment = {**os.environ, "MYCELIA_THREADS": "1"}
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env=environment).stdout


def measured(case: str, ranks: int, folder: str) -> float:
    run = ["run"] if ranks == 1 else ["msrun", "--worker_num", str(ranks), "--log_dir", folder]
    told = mycelia(*run, __file__, case)
    return float(told.split("median ")[1].split()[0])


def predicted(case: str, ranks: int, network: str) -> dict:
    told = mycelia("plan", "--ranks", str(ranks), "--network", network, "--json", __file__, "--", case)
    return json.loads(told)[-1]


def main() -> None:
    load, cores, rows = os.getloadavg()[0], len(os.sched_getaffinity(0)), []
    with tempfile.TemporaryDirectory() as folder:
        networks = {1: "ethernet-100g"}
        for ranks in RANKS[1:]:
            networks[ranks] = str(Path(folder, f"{ranks}.toml"))
            mycelia("plan", "--measure-network", str(ranks), "--network", networks[ranks])
        for case in CASES:
            for ranks in RANKS:
                plan = predicted(case, ranks, networks[ranks])
                expected = plan["compute"] * max(1.0, ranks / cores) + plan["exposed"]
                took = measured(case, ranks, folder)
                times = [f"{t * 1e3:.3g} ms" for t in (expected, plan["exposed"], took)]
                rows.append([case, str(ranks), *times, f"{expected / took:.2f}"])
    head = ["case", "ranks", "predicted step", "of it sending", "measured step", "predicted / measured"]
    peers.report("Planning", rows, NOTE.format(cores, load), head, "--no-write" not in sys.argv)


if __name__ == "__main__":
    named = [argument for argument in sys.argv[1:] if argument in CASES]
    train(named[0]) if named else main()
