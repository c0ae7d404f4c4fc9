"""Services that are killed or share a workspace, folders that must not change, runs of odd size and names."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from event_files import scalar, write  # noqa: E402

from mycelia_insight.runs.library import Library  # noqa: E402

TAGS = ("loss", "accuracy")
STEPS = 20_000


def library_of(base: Path, workspace: Path) -> Library:
    library = Library(str(base), str(workspace), 0)
    library.look()
    while library.read():
        pass
    return library


def columns(library: Library, run: str = "./run") -> dict[str, tuple[list[int], bytes]]:
    """Steps and values of each scalar, bit by bit."""
    found = {}
    for tag in library.get(run).tags():
        points = library.get(run).points(tag.name)
        found[tag.name] = (points.steps.tolist(), points.values.tobytes())
    return found


@pytest.fixture
def base(tmp_path):
    """A run of three files, the last of which begins again in the middle of the one before."""
    folder = tmp_path / "base"
    rng = np.random.default_rng(0)
    for number, begin in enumerate((0, STEPS, STEPS + STEPS // 2)):
        steps = range(begin, begin + STEPS)
        values = rng.standard_normal((STEPS, len(TAGS)))
        records = [scalar(tag, s, v) for s, row in zip(steps, values, strict=True)
                   for tag, v in zip(TAGS, row, strict=True)]  # fmt: skip
        write(folder / "run", records, 1700000000 + number)
    return folder


def killed(base: Path, workspace: Path, after: float) -> bool:
    """A process that reads the run and is killed `after` so many seconds; whether it was still reading."""
    child = os.fork()
    if child == 0:
        try:
            library_of(base, workspace)
        finally:
            os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_columns_are_right_after_fifty_kills(base, tmp_path, monkeypatch):
    import mycelia_insight.runs.run as module

    monkeypatch.setattr(module, "_AT_ONCE", 1 << 18)  # so that it is committed often
    expected = columns(library_of(base, tmp_path / "whole"))
    rng, workspace, copy, span, interrupted = random.Random(5), tmp_path / "killed", tmp_path / "copy", 1.0, 0
    while interrupted < 50:
        if killed(base, workspace, rng.random() * span):
            interrupted += 1
            shutil.copytree(workspace, copy) if workspace.exists() else copy.mkdir()
            assert columns(library_of(base, copy)) == expected, f"after kill {interrupted}"
            shutil.rmtree(copy)
        else:  # it was through before the signal came: begin anew, and send it sooner
            shutil.rmtree(workspace)
            span *= 0.8


def test_services_share_a_workspace(base, tmp_path):
    workspace = tmp_path / "workspace"
    expected = columns(library_of(base, tmp_path / "whole"))
    first = library_of(base, workspace)
    second = library_of(base, workspace)
    with open(next((base / "run").glob("*1700000002*")), "ab") as file:
        file.write(scalar("loss", 10**6, 1.0))
    for library in (second, first, second):
        while library.read():
            pass
        found = columns(library)
        assert found["accuracy"] == expected["accuracy"]
        assert found["loss"][0] == [*expected["loss"][0], 10**6]
    places = sorted(map(str, (workspace / "index").iterdir()))
    assert places[1:] == [places[0] + ".1"]
    del first
    assert library_of(base, workspace).get("./run").place == places[0]


_FOLLOW = """
import sys, time
from mycelia_insight.runs.library import Library
library = Library(*sys.argv[1:3], 0)
library.look()
while library.read(): pass
print(len(library.get("./run").points("loss").steps), flush=True)
sys.stdin.readline()
print(len(library.get("./run").points("loss", columns=10, low=0, high=1e6).steps), flush=True)
"""


def test_a_second_process_leaves_the_first_ones_columns_alone(base, tmp_path):
    arguments = [sys.executable, "-c", _FOLLOW, str(base), str(tmp_path / "workspace")]
    first = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    count = first.stdout.readline()
    second = subprocess.run(arguments, input="\n", capture_output=True, text=True, timeout=60)
    told, _ = first.communicate("\n", timeout=60)
    assert first.returncode == second.returncode == 0
    assert second.stdout == count + told and int(count) == 2 * STEPS + STEPS // 2


def state_of(folder: Path) -> dict[str, tuple]:
    """What there is below a folder: content, sizes, modes and times of change."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        state = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (content, state.st_size, state.st_mode, state.st_mtime_ns, state.st_ctime_ns)
    return found


def test_reading_and_reports_write_nothing_into_the_folder_of_runs(base, tmp_path):
    from typer.testing import CliRunner

    from mycelia_insight.cli import app

    (base / "run" / "broken.pb").write_bytes(b"\xff\xff")
    (base / "link").symlink_to(base / "run")
    before = state_of(base)
    library = library_of(base, tmp_path / "workspace")
    assert columns(library)
    for arguments in (
        ["check", base], ["html", "--summary-dir", base, "-o", tmp_path / "report.html"],
        ["export", "--format", "csv", "--summary-dir", base, "--output", tmp_path / "out"],
        ["parse_summary", "--summary-dir", base / "run", "--output", tmp_path],
    ):  # fmt: skip
        assert CliRunner().invoke(app, [str(one) for one in arguments]).exit_code == 0
    assert state_of(base) == before


def test_a_link_hides_no_run(base, tmp_path):
    (base / "a link").symlink_to(base / "run")
    (tmp_path / "elsewhere").mkdir()
    shutil.move(base / "run", tmp_path / "elsewhere" / "run")
    (base / "b link").symlink_to(tmp_path / "elsewhere" / "run")
    assert [run.id for run in library_of(base, tmp_path / "workspace").runs()] == ["./b link"]
    shutil.move(tmp_path / "elsewhere" / "run", base / "run")
    assert [run.id for run in library_of(base, tmp_path / "workspace").runs()] == ["./run"]


def test_ten_thousand_tags_of_numbers_that_are_none(tmp_path):
    tags = [f"layer{i}/weight" for i in range(10_000)]
    odd = (float("nan"), float("inf"), float("-inf"))
    write(tmp_path / "base" / "run", [scalar(tag, s, odd[s % 3]) for s in range(3) for tag in tags])
    library = library_of(tmp_path / "base", tmp_path / "workspace")
    found = library.get("./run").tags()
    assert [tag.name for tag in found] == tags and {tag.count for tag in found} == {3}
    points = library.get("./run").points("layer9999/weight", low=0, high=2, columns=1)
    assert [str(value) for value in points.values] == ["nan", "inf", "-inf"]
    smoothed = library.get("./run").points("layer0/weight", smoothing=0.9)
    assert [str(value) for value in smoothed.smoothed] == ["nan", "inf", "-inf"]


def test_steps_of_any_size(tmp_path):
    steps = [-(2**63), -(10**12), 0, 10**9, 10**9 + 1, 2**53 + 1, 2**63 - 1]
    write(tmp_path / "base" / "run", [scalar("loss", step, i) for i, step in enumerate(steps)])
    run = library_of(tmp_path / "base", tmp_path / "workspace").get("./run")
    assert run.points("loss").steps.tolist() == steps
    assert run.points("loss", low=10**9, high=10**9 + 1, columns=100).values.tolist() == [3, 4]
    whole = run.points("loss", low=float(steps[0]), high=float(steps[-1]), columns=7)
    assert whole.values.tolist()[0] == 0 and whole.values.tolist()[-1] == 6


@pytest.mark.parametrize(
    "name",
    [
        "deep/" * 60 + "run",
        "mit Leerzeichen",
        "日本語/ключ",
        "a+b%2F&c=d?#e",
        "'\"$(x)`;",
        "-n",
        "...",
        "é\u0301",
    ],
)
def test_runs_with_any_name_are_found(tmp_path, name):
    write(tmp_path / "base" / name, [scalar("tag with / and é", 1, 1.0)])
    library = library_of(tmp_path / "base", tmp_path / "workspace")
    (run,) = library.runs()
    assert run.id == f"./{name}"
    assert library.get(f"./{name}").points("tag with / and é").values.tolist() == [1.0]


def test_many_small_files_of_one_run(tmp_path):
    for number in range(300):
        write(tmp_path / "base" / "run", [scalar("loss", number, number)], 1700000000 + number)
    run = library_of(tmp_path / "base", tmp_path / "workspace").get("./run")
    assert run.points("loss").values.tolist() == list(range(300))
