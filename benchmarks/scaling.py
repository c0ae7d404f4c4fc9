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
    "Wall time, medians of rounds by turns; faster = one thread / two threads, bar 1.8; slow-down = two "
    "threads beside two busy processes / without, bar 1.1 x the peer's. Figures mean something on an "
    "otherwise idle machine only: load was {}."
)


def spin() -> None:
    while True:
        pass


ROUNDS = 15


def walls(bench, case: str, sides: tuple[str, ...]) -> dict[str, list[float]]:
    """Wall seconds of one call by side: with one thread, with two, with two beside two busy processes.

    Medians of rounds by turns; a side without the case is left out.
    """
    path, table = Path(bench.__file__), bench.TABLES[0].title

    def medians(children: dict[str, Child]) -> dict[str, float]:
        found = {side: [] for side in children}
        for _ in range(ROUNDS):
            for side, child in children.items():
                found[side].append(child.ask(table=table, case=case, do="wall").get("value"))
        return {side: statistics.median(times) for side, times in found.items() if None not in times}

    one, two = ({side: Child(path, side, n, "0-1" if n == 2 else "0") for side in sides} for n in (1, 2))
    quiet = medians(one), medians(two)
    foreign = [multiprocessing.Process(target=spin, daemon=True) for _ in range(2)]
    for each in foreign:
        each.start()
    busy = medians(two)
    for each in foreign:
        each.kill()
    for child in (*one.values(), *two.values()):
        child.close()
    return {side: [quiet[0][side], quiet[1][side], busy[side]] for side in busy}


def report_of(benches: dict, title: str) -> None:
    """A table of `benches`, {name: (bench, case, (side, peer))}."""
    load = f"{Path('/proc/loadavg').read_text().split()[0]} before"
    rows = []
    for name, (bench, case, sides) in benches.items():
        found = walls(bench, case, tuple(side for side in sides if peers.python_of(side)))
        slow = {side: busy / two for side, (_, two, busy) in found.items()}
        for side in sides:
            if side not in found:
                rows.append([name, side, *("-" * 5)])
                continue
            one, two, busy = found[side]
            times = [f"{t * 1e3:.4g} ms" for t in found[side]]
            rows.append([name, side, *times, f"{one / two:.2f}", f"{slow[side]:.2f}"])
        if len(slow) == len(sides):
            ratio = slow[sides[0]] / slow[sides[1]]
            rows.append([name, "ratio", *("-" * 4), f"{ratio:.3f}"])
    head = ["case", "side", "one thread", "two threads", "two, machine busy", "faster", "slow-down"]
    peers.report(title, rows, NOTE.format(load), head, "--no-write" not in sys.argv)


if __name__ == "__main__":
    inference.prepare()
    report_of(BENCHES, "Threads")
