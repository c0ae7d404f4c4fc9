"""Running a bench in Mycelia and its peers by turns: each side is a child process on one
core; ratios of CPU time.

A bench file defines `CASES = {name: (unit, bar)}` and functions `run_<side>(results)` that
fill name -> CPU seconds.
MYCELIA_BENCH_TORCH names a python that has torch; without it only Mycelia's figures are printed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"


def cpu_time_of(function: Callable[[], object], repeats: int, batches: int = 7) -> float:
    """Median CPU seconds of one call, over batches of `repeats` calls, after a warm-up batch."""
    loop = range(repeats)
    times = []
    for _ in range(batches + 1):
        start = time.process_time()
        for _ in loop:
            function()
        times.append((time.process_time() - start) / repeats)
    return statistics.median(times[1:])


def loop_time_of(function: Callable[[int], object], repeats: int, batches: int = 7) -> float:
    """The same for a function that loops itself `repeats` times, to leave the calling overhead out."""
    times = []
    for _ in range(batches + 1):
        start = time.process_time()
        function(repeats)
        times.append((time.process_time() - start) / repeats)
    return statistics.median(times[1:])


def child(bench: Path, side: str, python: str, threads: int, core: str) -> dict[str, float]:
    """One round of one side in a process of its own."""
    environment = dict(
        os.environ,
        OMP_NUM_THREADS=str(threads),
        MKL_NUM_THREADS=str(threads),
        MYCELIA_NUM_THREADS=str(threads),
    )
    command = ["taskset", "-c", core, python, str(bench), "--side", side, "--threads", str(threads)]
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{bench.name}: side {side} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(bench: Path, cases: dict, rounds: int = 3, threads: int = 1) -> list[list[str]]:
    """Rounds A B A B; rows (case, mycelia, torch, ratio, bar)."""
    torch_python = os.environ.get("MYCELIA_BENCH_TORCH")
    core = "0" if threads == 1 else "0-1"
    seen: dict[str, list[dict]] = {"mycelia": [], "torch": []}
    for _ in range(rounds):
        seen["mycelia"].append(child(bench, "mycelia", sys.executable, threads, core))
        if torch_python:
            seen["torch"].append(child(bench, "torch", torch_python, threads, core))
    rows = []
    for name, (unit, bar) in cases.items():
        ours = [r[name] for r in seen["mycelia"]]
        theirs = [r[name] for r in seen["torch"] if name in r]
        scale = {"ns": 1e9, "us": 1e6, "ms": 1e3}[unit]
        mine = statistics.median(ours)
        row = [name, f"{mine * scale:.4g} {unit}"]
        if theirs:
            # Round by round: both sides saw the same minute of a shared machine.
            ratio = statistics.median(a / b for a, b in zip(ours, theirs))
            row += [f"{statistics.median(theirs) * scale:.4g} {unit}", f"{ratio:.3f}"]
        else:
            row += ["-", "-"]
        rows.append([*row, "-" if bar is None else f"<= {bar}"])
    return rows


HEAD = ["case", "Mycelia", "torch", "ratio", "bar"]


def report(title: str, rows: list[list[str]], note: str, head: list[str] = HEAD, write: bool = True) -> None:
    """Print the table and put it into RESULTS.md in place of the older one of that title."""
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(c.ljust(w) for c, w in zip(row, widths)))
    if not write:
        return
    table = [
        f"## {title}",
        "",
        f"{date.today()}. {note}".strip(),
        "",
        "| " + " | ".join(head) + " |",
        "| " + " | ".join("---" for _ in head) + " |",
    ]
    table += ["| " + " | ".join(r) + " |" for r in rows]
    text = RESULTS.read_text() if RESULTS.exists() else "# Results\n"
    parts = text.split("\n## ")
    kept = [parts[0].rstrip()] + ["## " + p.rstrip() for p in parts[1:] if not p.startswith(title + "\n")]
    temporary = RESULTS.with_suffix(".tmp")
    temporary.write_text("\n\n".join([*kept, "\n".join(table)]) + "\n")
    temporary.replace(RESULTS)


def main(
    bench: str,
    cases: dict,
    sides: dict[str, Callable],
    title: str,
    note: str,
    threads: tuple[int, ...] = (1,),
) -> None:
    """Command line of a bench: without arguments compare; with --side NAME run one round and print JSON."""
    if "--side" in sys.argv:
        side = sys.argv[sys.argv.index("--side") + 1]
        count = int(sys.argv[sys.argv.index("--threads") + 1])
        print(json.dumps(sides[side](count)))
        return
    write = "--no-write" not in sys.argv
    for count in threads:
        suffix = "" if threads == (1,) else f", {count} thread{'s' if count > 1 else ''}"
        print(f"\n{title}{suffix}")
        rows = compare(Path(bench).resolve(), cases, threads=count)
        report(title + suffix, rows, note, write=write)
