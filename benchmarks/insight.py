"""Insight: reading event files, pages in a browser, memory, what the collector costs.

MYCELIA_BENCH_TENSORBOARD names a Python with tensorboard, MYCELIA_BENCH_MINDSPORE one with mindspore and
MYCELIA_BENCH_MINDINSIGHT one with mindinsight; without them only Mycelia's own figures are taken. Pages are
opened in headless Chromium (Debian's chromium and chromium-driver). --table chooses by a part of its name
(reading, pages, many_runs, graphs, collector); --pairs, --epochs: of trainings with and
without the collector.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import insight_files
import peers
from insight_collector import collector
from serving_processes import free_port, processes, resident_mb

ROUNDS = int(peers.option("--rounds", "3"))
TENSORBOARD = os.environ.get("MYCELIA_BENCH_TENSORBOARD", "")
MINDINSIGHT = os.environ.get("MYCELIA_BENCH_MINDINSIGHT", "")
WRITE = "--no-write" not in sys.argv
MILLION = 1_000_000


def ratio(ours: float, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}" if theirs else "-"


def shown(value: float | None, unit: str = "s") -> str:
    return "-" if value is None else f"{value:.3g} {unit}"


def cpu(pid: int) -> float:
    return sum(processes(pid).values())


def settled(pid: int, seconds: float = 1.0) -> float:
    """CPU seconds of a process, once it uses no more."""
    last = -1.0
    while (now := cpu(pid)) - last > 0.03:
        last = now
        time.sleep(seconds)
    return now


# ---- services ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def service(base: Path, workspace: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    """`mycelia-insight start --foreground` on `base`, once it answers."""
    port = free_port()
    process = subprocess.Popen(
        [
            sys.executable, "-c", "from mycelia_insight.cli import app; app()", "start", "--foreground",
            "--port", str(port), "--summary-base-dir", str(base), "--workspace", str(workspace),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    yield from _until_answered(process, f"http://127.0.0.1:{port}/")


@contextlib.contextmanager
def tensorboard(base: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    """TensorBoard with its native data server on `base`, once it answers."""
    port = free_port()
    process = subprocess.Popen(
        [TENSORBOARD, "-m", "tensorboard.main", "--logdir", base, "--port", str(port), "--load_fast", "true"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield from _until_answered(process, f"http://127.0.0.1:{port}/")


@contextlib.contextmanager
def mindinsight(base: Path, workspace: Path) -> Iterator[str]:
    """MindInsight on `base`, once it answers."""
    port = str(free_port())
    command = Path(MINDINSIGHT).parent / "mindinsight"
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    arguments = ["--port", port, "--summary-base-dir", base, "--workspace", workspace]
    subprocess.run([command, "start", *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        subprocess.run([command, "stop", "--port", port], env=environment, stdout=subprocess.DEVNULL)


def _until_answered(process: subprocess.Popen, address: str) -> Iterator[tuple[subprocess.Popen, str]]:
    try:
        until(lambda: ask(address), 60)
        yield process, address
    finally:
        process.terminate()
        process.wait(20)


def ask(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read()


def until(attempt: Callable, seconds: float = 120):
    """What `attempt` returns, once that is true and nothing is raised; tried every 10 ms."""
    end = time.monotonic() + seconds
    while True:
        try:
            if found := attempt():
                return found
        except (OSError, ValueError) as error:
            problem = error
        else:
            problem = TimeoutError("never true")
        if time.monotonic() > end:
            raise problem
        time.sleep(0.01)


# ---- reading -----------------------------------------------------------------------------------------------


_READ = """
import sys, tempfile, time
from mycelia_insight.runs.library import Library
start = time.process_time()
with tempfile.TemporaryDirectory() as workspace:
    library = Library(sys.argv[1], workspace)
    library.look()
    while library.read(): pass
print(time.process_time() - start)
assert sum(tag.count for run in library.runs() for tag in run.tags()) == int(sys.argv[2])
"""


def read_all(path: Path) -> float:
    """CPU seconds in which a run is read into columns."""
    done = subprocess.run(
        [sys.executable, "-c", _READ, path.parent, str(MILLION)], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def data_server(folder: Path) -> float:
    """CPU seconds of TensorBoard's data server, checksums verified."""
    script = "import tensorboard_data_server as t; print(t.server_binary())"
    asked = subprocess.run([TENSORBOARD, "-c", script], capture_output=True, text=True, check=True)
    process = subprocess.Popen(
        [asked.stdout.strip(), "--logdir", folder, "--port", "0", "--reload", "once", "--checksum"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return settled(process.pid)
    finally:
        process.kill()
        process.wait()


def reading(place: Path) -> None:
    rows = []
    for name, foreign in (("MindSpore's", False), ("TensorBoard's", True)):
        path = insight_files.write(place / f"read-{foreign}", MILLION, ("loss/x",), foreign)
        ours = min(read_all(path) for _ in range(ROUNDS))
        theirs = None
        if TENSORBOARD and foreign:
            empty = place / "nothing"
            empty.mkdir()
            idle = min(data_server(empty) for _ in range(ROUNDS))
            theirs = min(data_server(path.parent) for _ in range(ROUNDS)) - idle
        size = f"{path.stat().st_size / 1e6:.0f} MB"
        rows.append(
            [
                f"1 M scalars, {name} format, {size}",
                shown(ours),
                shown(theirs),
                ratio(ours, theirs),
                "<= 0.25",
            ]
        )
    peers.report(
        "Insight: reading",
        rows,
        f"CPU time in which all is read, checksums verified, best of {ROUNDS}; TensorBoard's data server "
        "with --checksum, less what an empty folder takes. TensorBoard does not read MindSpore's files.",
        ["case", "Mycelia", "TensorBoard", "ratio", "bar"],
        WRITE,
    )


# ---- pages -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def browser(place: Path):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tempfile.mkdtemp(dir=place)}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(300)
    try:
        yield driver
    finally:
        driver.quit()


_WAIT = """
const done = arguments[arguments.length - 1], test = new Function("return " + arguments[0]);
const look = () => (test() ? requestAnimationFrame(() => done(performance.now())) : setTimeout(look, 5));
look();
"""
OURS = "[...document.querySelectorAll('[data-testid=scalar-chart]')].some((c) => +c.dataset.points > 0)"
LISTED = "+document.querySelector('[data-testid=run-table]')?.dataset.rows >= {}"
# All charts of the first page have a line for each run.
COMPARED = (
    "(all => all.length >= 6 && all.every((c) => +c.dataset.runs === {0}))"
    "([...document.querySelectorAll('[data-testid=scalar-chart]')])"
)
# A card of TensorBoard's has drawn its line when its table of values or its canvas is there.
THEIRS = "document.querySelector('scalar-card line-chart canvas, scalar-card line-chart svg path') !== null"
THEIR_CARDS = f"({THEIRS}) && !document.querySelector('scalar-card mat-spinner')"
THEIR_RUNS = "document.querySelector('runs-data-table, .run-name-cell, runs-table tr') !== null"


def opened(driver, address: str, test: str) -> float:
    """Seconds from the navigation's start to the frame after `test` has become true."""
    driver.get("about:blank")
    driver.get(address)
    return driver.execute_async_script(_WAIT, test) / 1e3


def peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def pages(place: Path) -> None:
    rows: list[list[str]] = []

    def row(case: str, ours: float, theirs: float | None, bar: str, unit: str = "s") -> None:
        rows.append([case, shown(ours, unit), shown(theirs, unit), ratio(ours, theirs), bar])

    scalar = "#/train-manage/scalar?train_id=./run"
    with browser(place) as driver:
        base = place / "million"
        insight_files.write(base / "run", MILLION, ("loss/x",), True)
        cold, warm, their_cold, their_warm, begun, idle = [], [], [], [], [], []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory(dir=place) as workspace:
                start = time.monotonic()
                with service(base, Path(workspace)) as (process, address):
                    begun.append(time.monotonic() - start)
                    opening = opened(driver, address + scalar, OURS)
                    cold.append(begun[-1] + opening)
                    warm.append(opened(driver, address + scalar, OURS))
                    settled(process.pid, 0.5)
                    idle.append(resident_mb(process.pid))
            if TENSORBOARD:
                start = time.monotonic()
                with tensorboard(base) as (process, address):
                    up = time.monotonic() - start
                    their_cold.append(up + opened(driver, address + "#timeseries", THEIRS))
                    their_warm.append(opened(driver, address + "#timeseries", THEIRS))
        low = statistics.median
        row("1 M points: resident memory, after the chart was seen", low(idle), None, "-", "MB")
        row(
            "1 M points: service started, chart drawn",
            low(cold),
            low(their_cold) if their_cold else None,
            "<= 3 s",
        )
        row("the same, opened again", low(warm), low(their_warm) if their_warm else None, "<= 0.5 s")

        base = place / "ten"
        insight_files.write(base / "run", 10 * MILLION, ("loss/x",), False)
        with (
            tempfile.TemporaryDirectory(dir=place) as workspace,
            service(base, Path(workspace)) as (process, address),
        ):
            until(
                lambda: (
                    json.loads(ask(address + "api/v1/runs/run/tags"))["kinds"]["scalar"][0]["count"]
                    == 10 * MILLION
                )
            )
            zooms = []
            for part in range(20):
                query = f"tag=loss/x&points=1200&from={part * 400_000}&to={part * 400_000 + 2_000_000}"
                start = time.perf_counter()
                ask(f"{address}api/v1/runs/run/scalars?{query}")
                zooms.append((time.perf_counter() - start) * 1e3)
            opened(driver, address + scalar, OURS)
            row("10 M points: greatest memory of the service", peak_mb(process.pid), None, "< 1024 MB", "MB")
            row("10 M points: answer to a zoom over 2 M, slowest of 20", max(zooms), None, "<= 150 ms", "ms")

        row("live: written to drawn, slowest of 10", live(driver, place), None, "<= 1 s")
    with tempfile.TemporaryDirectory(dir=place) as workspace:
        empty = place / "empty"
        empty.mkdir()
        started = []
        for _ in range(ROUNDS):
            start = time.monotonic()
            with service(empty, Path(workspace)) as (process, address):
                ask(address)
                started.append(time.monotonic() - start)
                time.sleep(2)
                idle = resident_mb(process.pid)
    row("start to first page", low(started), None, "<= 1.5 s")
    row("resident memory, idle", idle, None, "<= 60 MB", "MB")
    import mycelia_insight

    files = (Path(mycelia_insight.__file__).parent / "pages").rglob("*")
    row(
        "pages in the wheel", sum(f.stat().st_size for f in files if f.is_file()) / 1e6, None, "<= 5 MB", "MB"
    )
    peers.report(
        "Insight: pages",
        rows,
        f"Headless Chromium, medians of {ROUNDS}; of TensorBoard until a card has its line.",
        ["case", "Mycelia", "TensorBoard", "ratio", "bar"],
        WRITE,
    )


def many_runs(place: Path) -> None:
    tags = tuple(f"tag{i:02d}" for i in range(20))
    base, hundred = place / "thousand", place / "hundred"
    for i in range(1000):
        insight_files.write(base / f"run{i:04d}", 20, tags, True, 1.7e9 + i)
    for i in range(100):
        shutil.copytree(base / f"run{i:04d}", hundred / f"run{i:04d}")
    names = json.dumps([f"./run{i:04d}" for i in range(100)])
    board = f"#/compare-analysis/scalar?runs={urllib.parse.quote(names)}"
    listed = compared = their_list = their_cards = (None, None)
    with browser(place) as driver:

        def measured(process: subprocess.Popen, address: str, test: str) -> tuple[float, float]:
            """Seconds until it is drawn, and CPU seconds of the service and the browser: medians."""
            found = []
            for _ in range(ROUNDS):
                driver.get("about:blank")
                pids = process.pid, driver.service.process.pid
                before = sum(map(cpu, pids))
                found.append((opened(driver, address, test), sum(map(cpu, pids)) - before))
            return tuple(statistics.median(one) for one in zip(*found, strict=True))

        with (
            tempfile.TemporaryDirectory(dir=place) as workspace,
            service(base, Path(workspace)) as (process, address),
        ):
            until(lambda: not json.loads(ask(address + "api/v1/runs"))["loading"])
            listed = measured(process, address, LISTED.format(1000))
            compared = measured(process, address + board, COMPARED.format(100))
        if TENSORBOARD:
            with tensorboard(base) as (process, address):
                settled(process.pid)
                their_list = measured(process, address + "#timeseries", THEIR_RUNS)
            with tensorboard(hundred) as (process, address):
                settled(process.pid)
                their_cards = measured(process, address + "#timeseries", THEIR_CARDS)
    rows = [
        [f"{case}{what}", shown(ours[i]), shown(theirs[i]), ratio(ours[i], theirs[i]), bar if i == 0 else "-"]
        for case, ours, theirs, bar in (
            ("list drawn", listed, their_list, "<= 1 s"),
            ("100 runs compared, six charts drawn", compared, their_cards, "<= 2 s"),
        )
        for i, what in enumerate(("", ", CPU time of service and browser"))
    ]
    peers.report(
        "Insight: 1,000 runs x 20 tags",
        rows,
        f"Headless Chromium, medians of {ROUNDS}, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores; "
        "of TensorBoard until the list has a row, and until two cards have loaded, in a folder of 100 runs.",
        ["case", "Mycelia", "TensorBoard", "ratio", "bar"],
        WRITE,
    )


def live(driver, place: Path) -> float:
    """Seconds from a point's flush to the frame that draws it."""
    import numpy as np

    base = place / "live"
    path = insight_files.write(base / "run", 3, ("loss",), False)
    waits = []
    with tempfile.TemporaryDirectory(dir=place) as workspace, service(base, Path(workspace)) as (_, address):
        opened(driver, address + "#/train-manage/scalar?train_id=./run", OURS)
        for step in range(3, 13):
            time.sleep(0.37)
            one = np.array([step])
            with open(path, "ab") as file:
                file.write(insight_files.records("loss", one, one / 7, one + 1.7e9, False).tobytes())
            start = time.monotonic()
            driver.execute_async_script(_WAIT, OURS.replace("> 0", f"> {step}"))
            waits.append(time.monotonic() - start)
    return max(waits)


# ---- graphs ------------------------------------------------------------------------------------------------

DRAWN = "document.querySelectorAll('[data-testid=graph-node]').length >= {}"
OLD = "v1/mindinsight/datavisual/"


def answered(address: str, scopes: int) -> None:
    """Waits until the first level of the run's graph is there, of so many scopes."""

    def is_there() -> bool:
        (tag, *_) = json.loads(ask(f"{address}{OLD}plugins?train_id=./run"))["plugins"]["graph"]
        found = json.loads(ask(f"{address}{OLD}graphs/nodes?train_id=./run&tag={quote(tag)}"))
        return len(found["nodes"]) >= scopes

    until(is_there, 60)


def graphs(place: Path) -> None:
    """Pages of large graphs, and the first level as an answer, from the start of the service on."""
    rows = []
    with browser(place) as driver:
        for count in (10_000, 100_000):
            base = place / f"graph{count}"
            insight_files.write_graph(base / "run", count)
            scopes, page = count // 1000, "#/train-manage/graph?train_id=./run"
            opening, again, unfolding, answers, theirs = [], [], [], [], []
            for _ in range(ROUNDS):
                with tempfile.TemporaryDirectory(dir=place) as workspace:
                    start = time.monotonic()
                    with service(base, Path(workspace)) as (_, address):
                        answered(address, scopes)
                        answers.append(time.monotonic() - start)
                with (
                    tempfile.TemporaryDirectory(dir=place) as workspace,
                    service(base, Path(workspace)) as (_, address),
                ):
                    until(lambda address=address: json.loads(ask(address + "api/v1/runs"))["runs"])
                    opening.append(opened(driver, address + page, DRAWN.format(scopes)))
                    again.append(opened(driver, address + page, DRAWN.format(scopes)))
                    inside = '&open=["block3","block3/cell2"]'
                    unfolding.append(opened(driver, address + page + inside, DRAWN.format(scopes + 10 + 7)))
                if MINDINSIGHT:
                    with tempfile.TemporaryDirectory(dir=place) as workspace:
                        start = time.monotonic()
                        with mindinsight(base, Path(workspace)) as address:
                            answered(address, scopes)
                            theirs.append(time.monotonic() - start)
            low = statistics.median
            name = f"{count:,} nodes"
            bar = "<= 3 s" if count == 10_000 else "usable"
            rows += [
                [f"{name}: opened for the first time, drawn", shown(low(opening)), "-", "-", bar],
                [f"{name}: opened again", shown(low(again)), "-", "-", "-"],
                [f"{name}: opened with two scopes unfolded", shown(low(unfolding)), "-", "-", "-"],
            ]
            peer = low(theirs) if theirs else None
            case = f"{name}: service started, first level answered"
            rows.append([case, shown(low(answers)), shown(peer), ratio(low(answers), peer), "-"])
    peers.report(
        "Insight: graphs",
        rows,
        f"Headless Chromium, medians of {ROUNDS}; a chain of operators, 100 to a cell, 10 cells to a block.",
        ["case", "Mycelia", "MindInsight", "ratio", "bar"],
        WRITE,
    )


def main() -> None:
    only = peers.option("--table")
    with tempfile.TemporaryDirectory() as folder:
        for table in (reading, pages, many_runs, graphs, collector):
            if only in table.__name__:
                table(Path(folder))


if __name__ == "__main__":
    main()
