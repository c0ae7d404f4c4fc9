"""Running a bench in Mycelia and its peers by turns, each a child process on one core; ratios of CPU time.

A bench file has TABLES. A side is a function of a thread count that gives a function of a case's name; that
builds the case and gives what is to be timed, or None if the side has no such case.
PYTHONS names the environment variables with a python that has the peer; a peer without one is left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = "RESULTS.md"  # of AVX2; other instruction sets have RESULTS-<name>.md
# Models in the formats of the peers.
FILES = Path(os.environ.get("MYCELIA_BENCH_FILES", Path(tempfile.gettempdir()) / "mycelia-bench"))
PYTHONS = {
    "torch": "MYCELIA_BENCH_TORCH",
    "torch.compile": "MYCELIA_BENCH_TORCH_COMPILE",
    "jax": "MYCELIA_BENCH_JAX",
    "MindSpore": "MYCELIA_BENCH_MINDSPORE",
    "ORT": "MYCELIA_BENCH_INFERENCE",
    "OpenVINO": "MYCELIA_BENCH_INFERENCE",
    "MNN": "MYCELIA_BENCH_INFERENCE",
    "ncnn": "MYCELIA_BENCH_INFERENCE",
    "LiteRT": "MYCELIA_BENCH_INFERENCE",
    "oneDNN": "MYCELIA_BENCH_ONEDNN",
    "tf.data": "MYCELIA_BENCH_TENSORFLOW",
    "redis": "MYCELIA_BENCH_REDIS",
    "servers": "MYCELIA_BENCH_SERVING",
}
SCALES = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0, "MB": 1.0}


@dataclass(frozen=True)
class Case:
    """A row. `bars` belong to the table's groups of peers; `work` is FLOPs or bytes of one call."""

    name: str
    unit: str = "ms"
    bars: tuple[float | None, ...] = ()
    work: float = 0.0


@dataclass(frozen=True)
class Table:
    """A table of RESULTS.md. `do` is time, items, first or memory; `rate` is flops or bytes if cases have
    work; `groups` maps the title of a ratio column to the peers whose best counts.
    """

    title: str
    note: str
    cases: list[Case]
    sides: dict[str, Callable]
    do: str = "time"
    rate: str = ""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    rounds: int = 3


@dataclass(frozen=True)
class Loop:
    """What loops itself: `function(count)` is `count` times `per` operations."""

    function: Callable[[int], object]
    count: int
    per: int = 1


@dataclass(frozen=True)
class Items:
    """What makes many items in a call: `function()` is their number; `servers` are processes that help."""

    function: Callable[[], int]
    servers: tuple[int, ...] = ()


# ---- in the child ------------------------------------------------------------------------------------------


def timed(what: Callable | Loop, budget: float = 0.4, clock: Callable = time.process_time) -> float:
    """Median seconds of one operation over batches that fill the budget."""
    loop = what if isinstance(what, Loop) else None

    def batch(count: int) -> float:
        start = clock()
        if loop:
            loop.function(count)
        else:
            for _ in range(count):
                what()
        return clock() - start

    count, per = (loop.count, loop.per) if loop else (1, 1)
    once = batch(count)
    if loop is None and once < 0.02:
        count = max(1, int(0.02 / max(once, 1e-7)))
    times, used = [], 0.0
    while len(times) < 1 or (used < budget and len(times) < 50):
        spent = batch(count)
        times.append(spent / (count * per))
        used += spent
    return statistics.median(times)


def cpu_seconds() -> float:
    """CPU time of this process and of compilers that it started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def cpu_of_all(servers: tuple[int, ...] = ()) -> float:
    """CPU seconds of this process, its children, dead and alive, and the servers."""
    times = {}
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            words = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            times[int(entry.name)] = int(words[1]), sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
    found, wave = set(servers) & set(times), {os.getpid()}
    while wave := {pid for pid, (parent, _) in times.items() if parent in wave}:
        found |= wave
    return cpu_seconds() + sum(times[pid][1] for pid in found)


def per_item(items: Items, budget: float = 1.0) -> float:
    """Median CPU seconds of an item, all processes counted."""
    found, spent = [], 0.0
    while not found or (spent < budget and len(found) < 20):
        start = cpu_of_all(items.servers)
        count = items.function()
        used = cpu_of_all(items.servers) - start
        spent += used
        found.append(used / count)
    return statistics.median(found)


def peak_mb() -> float:
    """High-water mark of resident memory."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def serve(tables: list[Table], side: str, threads: int) -> None:
    """Answer requests of the driver, a JSON line each, until the input ends."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what frameworks print must not come between the answers
    table_of = {t.title: t for t in tables}
    made, build = {}, {}
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        if request["do"] == "peaks":
            from mycelia.profiler import peaks

            limits, size = peaks(threads), request["size"]
            answer = {"flops": limits.flops, "bytes": limits.bytes_at(size)}
        else:
            title, case, do = request["table"], request["case"], request["do"]
            if title not in build:
                build[title] = table_of[title].sides[side](threads)
            before = peak_mb()
            if made.get("case") != (title, case):
                made.clear()
                made.update(case=(title, case), call=build[title](case))
                warm = made["call"].function if isinstance(made["call"], Items) else made["call"]
                if do != "first" and warm is not None and not isinstance(warm, Loop):
                    warm()
            call = made["call"]
            if call is None:
                pass
            elif do == "first":
                start = cpu_seconds()
                call()
                answer = {"value": cpu_seconds() - start}
            elif do == "items":
                answer = {"value": per_item(call)}
            elif do == "memory":
                for _ in range(3):
                    call()
                answer = {"value": peak_mb(), "before": before}
            else:
                clock = time.perf_counter if do == "wall" else time.process_time
                answer = {"value": timed(call, clock=clock)}
        print(json.dumps(answer), file=channel, flush=True)


# ---- the driver --------------------------------------------------------------------------------------------


def python_of(side: str) -> str | None:
    return sys.executable if side not in PYTHONS else os.environ.get(PYTHONS[side])


class Child:
    """One side of a bench in a process of its own, confined to `cores`."""

    def __init__(self, bench: Path, side: str, threads: int = 1, cores: str = "0") -> None:
        count = str(threads)
        environment = dict(os.environ, MYCELIA_NUM_THREADS=count, MYCELIA_BENCH_FILES=str(FILES), GLOG_v="3")
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[name] = count
        command = ["taskset", "-c", cores, python_of(side), str(bench), "--side", side, "--threads", count]
        self.log = open(os.devnull, "w") if "--quiet" in sys.argv else None
        FILES.mkdir(parents=True, exist_ok=True)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(  # in a directory of its own, since some peers leave files
            command, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=self.log, cwd=FILES
        )
        self.side, self.alive = side, True

    def ask(self, **request) -> dict:
        """The answer; empty when the side has no such case, failed or took too long, which is said once."""
        if not self.alive:
            return {}
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], float(option("--timeout", "300")))
            line = self.process.stdout.readline() if ready else ""
            if line:
                return json.loads(line)
        print(f"{self.side}: no answer to {request}", file=sys.stderr)
        self.close(kill=True)
        return {}

    def close(self, kill: bool = False) -> None:
        self.alive = False
        if kill:
            self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def measure(bench: Path, table: Table, threads: int = 1, only: str = "") -> tuple[dict, dict]:
    """Rounds A B A B, case by case: ({case: {side: answers}}, {case: peaks of the machine})."""
    cores = "0" if threads == 1 else f"0-{threads - 1}"
    names = [s for s in table.sides if python_of(s)]
    fresh = table.do in ("first", "memory")
    children: dict[str, Child] = {}

    def child(side: str) -> Child:
        if side not in children or not children[side].alive:
            children[side] = Child(bench, side, threads, cores)
        return children[side]

    seen, peaks = {}, {}
    for case in table.cases:
        if only not in case.name:
            continue
        found = seen[case.name] = {s: [] for s in names}
        for _ in range(int(option("--rounds", str(table.rounds)))):
            for side in names:
                if found[side] == [{}]:  # once without an answer, always
                    continue
                answer = child(side).ask(table=table.title, case=case.name, do=table.do)
                found[side].append(answer)
                if fresh:
                    children.pop(side).close()
        if table.rate:
            peaks[case.name] = child("mycelia").ask(do="peaks", size=case.work)
    for c in children.values():
        c.close()
    return seen, peaks


def rows_of(table: Table, seen: dict, peaks: dict) -> list[list[str]]:
    """The table's rows: times of each side, ratios to the best peer of each group, rates."""
    peers = [s for s in table.sides if s != "mycelia"]
    groups = table.groups or ({"ratio": tuple(peers)} if peers else {})
    rows = []
    for case in table.cases:
        if case.name not in seen:
            continue
        values = {s: [a["value"] for a in answers if a] for s, answers in seen[case.name].items()}
        median = {s: statistics.median(v) for s, v in values.items() if v}
        scale = SCALES[case.unit]
        row = [case.name]
        for side in table.sides:
            cell = f"{median[side] * scale:.4g} {case.unit}" if side in median else "-"
            before = [a["before"] for a in seen[case.name].get(side, ()) if "before" in a]
            row.append(cell + (f" ({statistics.median(before):.0f} before)" if before else ""))
        for k, members in enumerate(groups.values()):
            best = min((s for s in members if s in median), key=median.get, default=None)
            bar = case.bars[k] if k < len(case.bars) else None
            if best is None or "mycelia" not in median:
                row.append("-")
            else:
                # Round by round: both sides saw the same minute of a shared machine.
                ratio = statistics.median(a / b for a, b in zip(values["mycelia"], values[best]))
                row.append(f"{ratio:.3f}" + (f" ({best})" if len(members) > 1 else ""))
            row.append("-" if bar is None else f"<= {bar}")
        if table.rate:
            rate = case.work / median["mycelia"] if "mycelia" in median else 0
            peak = peaks.get(case.name, {}).get(table.rate)
            row += [f"{rate / 1e9:.1f}", f"{100 * rate / peak:.0f} %" if peak else "-"]
        rows.append(row)
    return rows


def head_of(table: Table) -> list[str]:
    peers = [s for s in table.sides if s != "mycelia"]
    head = ["case", "Mycelia", *peers]
    for title in table.groups or (["ratio"] if peers else []):
        head += [title, "bar"]
    return head + {"": [], "flops": ["GFLOP/s", "of peak"], "bytes": ["GB/s", "of peak"]}[table.rate]


def processor() -> tuple[str, str]:
    """(name of the processor, instruction set that the kernels use)"""
    from mycelia_backend_cpu import _native

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names[0] if names else platform.processor() or platform.machine()), _native.isa()


def report(title: str, rows: list[list[str]], note: str, head: list[str], write: bool = True) -> None:
    """Print the table and put it into the results of this instruction set in place of the older one of that
    title, to which --processor adds a name."""
    if processor_name := option("--processor"):
        title, note = f"{title}, {processor_name}", f"{note} Load before: {os.getloadavg()[2]:.1f}."
    print(f"\n{title}")
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip(), flush=True)
    if not write:
        return
    name, isa = processor()
    results = HERE / (RESULTS if isa == "avx2" else f"RESULTS-{isa}.md")
    lines = [f"## {title}", "", f"{date.today()}, {name}, {isa}. {note}".strip(), ""]
    lines += ["| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head), *rows]]
    text = results.read_text() if results.exists() else f"# Results with {isa}\n"
    parts = text.split("\n## ")
    sections = {p.split("\n", 1)[0]: "## " + p.rstrip() for p in parts[1:]}
    sections[title] = "\n".join(lines)
    temporary = results.with_suffix(".tmp")
    temporary.write_text("\n\n".join([parts[0].rstrip(), *sections.values()]) + "\n")
    temporary.replace(results)


if {"-h", "--help"} & set(sys.argv):
    print(sys.modules["__main__"].__doc__, "\n--no-write only prints.")
    sys.exit()


def option(name: str, default: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def main(bench: str, tables: list[Table]) -> None:
    """Command line of a bench: --table and --case choose by a part of the name, --rounds is how often each
    side is asked, --timeout the seconds that it may take, --no-write only prints. --processor "EPYC of the
    fourth generation" keeps tables of another processor, and tells how loaded the machine was.

    With --side NAME the process is a child that serves that side.
    """
    if "--side" in sys.argv:
        serve(tables, option("--side"), int(option("--threads", "1")))
        return
    for table in tables:
        if option("--table") not in table.title:
            continue
        seen, peaks = measure(Path(bench).resolve(), table, only=option("--case"))
        write = "--no-write" not in sys.argv and not option("--case")
        report(table.title, rows_of(table, seen, peaks), table.note, head_of(table), write)
