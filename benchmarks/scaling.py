"""Two threads against one, and beside two foreign busy processes: wall time, ours and a peer's."""

import multiprocessing
import statistics
import sys
from pathlib import Path

import inference
import peers
import training
from peers import Child

HERE = Path(__file__).parent
BENCHES = {  # name: (bench, case, (our side, the peer's))
    "ResNet-50 224 inference": (inference, "ResNet-50 224", ("mycelia", "LiteRT")),
    "BERT-base t128 inference": (inference, "BERT-base t128", ("mycelia", "LiteRT")),
    "BERT-mini training": (training, "BERT-mini b8 t128", ("mycelia", "torch")),
}
NOTE = (
    "Wall time, best of the rounds; faster = one thread / two threads, bar 1.8; slow-down = two threads "
    "beside two busy processes / without, bar 1.1 x LiteRT's. Figures mean something on an otherwise idle "
    "machine only: load was {}."
)


def spin() -> None:
    while True:
        pass


def walls(bench, case: str, side: str) -> list[float]:
    """Best wall seconds of one call: with one thread, with two, with two beside two busy processes."""
    path, table = Path(bench.__file__), bench.TABLES[0].title
    one, two = Child(path, side, 1, "0"), Child(path, side, 2, "0-1")

    def best(child: Child, rounds: int = 15) -> float | None:
        found = [child.ask(table=table, case=case, do="wall").get("value") for _ in range(rounds)]
        return None if None in found else min(found)

    quiet = [best(one), best(two)]
    one.close()
    foreign = [multiprocessing.Process(target=spin, daemon=True) for _ in range(2)]
    for each in foreign:
        each.start()
    times = [two.ask(table=table, case=case, do="wall").get("value") for _ in range(5)]
    for each in foreign:
        each.kill()
    two.close()
    return [*quiet, None if None in times else statistics.median(times)]


def report_of(benches: dict, title: str) -> None:
    """A table of `benches`, {name: (bench, case, (side, peer))}."""
    load = f"{Path('/proc/loadavg').read_text().split()[0]} before"
    rows = []
    for name, (bench, case, sides) in benches.items():
        for side in sides:
            found = walls(bench, case, side) if peers.python_of(side) else [None] * 3
            if None in found:
                rows.append([name, side, *("-" * 5)])
                continue
            times = [f"{t * 1e3:.4g} ms" for t in found]
            rows.append([name, side, *times, f"{found[0] / found[1]:.2f}", f"{found[2] / found[1]:.2f}"])
    head = ["case", "side", "one thread", "two threads", "two, machine busy", "faster", "slow-down"]
    peers.report(title, rows, NOTE.format(load), head, "--no-write" not in sys.argv)


if __name__ == "__main__":
    inference.prepare()
    report_of(BENCHES, "Threads")
