"""Runs as columns: what is in event files, while they grow, are cut, broken or written again."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import (
    MINDSPORE,
    TENSORBOARD,
    double,
    event,
    field,
    framed,
    number,
    path_of,
    scalar,
    single,
    write,
)

from mycelia_insight.runs.discovery import find
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run

FIXTURE = Path(__file__).parents[1] / "fixtures/summary"


class Reader:
    """A base folder and its library, read to the end whenever it is asked."""

    def __init__(self, base: Path, workspace: Path):
        self.base, self.workspace = base, workspace
        self.library = Library(str(base), str(workspace))

    def close(self):
        """As at the end of a service: its columns are free."""
        del self.library

    def runs(self):
        self.library.look()
        while self.library.read():
            pass
        return {run.id: run for run in self.library.runs()}

    def points(self, tag="loss", run="./run", **how):
        found = self.runs()[run].points(tag, **how)
        return list(zip(found.steps.tolist(), found.values.tolist(), strict=True))


@pytest.fixture
def reader(tmp_path):
    (tmp_path / "base").mkdir()
    return Reader(tmp_path / "base", tmp_path / "workspace")


def test_a_folder_of_mindspore_has_its_values(tmp_path):
    expected = json.loads((FIXTURE / "run1.expected.json").read_text())
    before = {path: path.stat().st_mtime_ns for path in FIXTURE.rglob("*")}
    run = Reader(FIXTURE, tmp_path).runs()["./run1"]
    for name, wanted in expected["scalar"].items():
        found = run.points(name.removesuffix("/scalar"))
        assert found.steps.tolist() == wanted["steps"]
        np.testing.assert_array_equal(found.values, np.float32(wanted["values"]))
    for kind in ("histogram", "image", "tensor"):
        for name, wanted in expected[kind].items():
            entries = run.entries(Kind[kind.upper()], name.removesuffix(f"/{kind}"))
            assert [entry.step for entry in entries] == wanted["steps"]
            assert all(run.read(entry) for entry in entries)
    assert {path: path.stat().st_mtime_ns for path in FIXTURE.rglob("*")} == before


def test_a_file_is_followed_record_by_record(reader):
    path = write(reader.base / "run", [scalar("loss", 0, 1.0)])
    assert reader.points() == [(0, 1.0)]
    record = scalar("loss", 1, 0.5)
    for cut in (3, 11, 20, len(record) - 1):  # in the length, its checksum, the message, the last checksum
        path.write_bytes(MINDSPORE + scalar("loss", 0, 1.0) + record[:cut])
        assert reader.points() == [(0, 1.0)]
    with path.open("ab") as file:
        file.write(record[len(record) - 1 :])
    assert reader.points() == [(0, 1.0), (1, 0.5)]
    assert reader.runs()["./run"].broken() == []


def test_files_of_one_run_are_one_and_a_restart_replaces_what_it_repeats(reader):
    write(reader.base / "run", [scalar("loss", step, step) for step in range(10)], 1700000000)
    write(reader.base / "run", [scalar("loss", step, -step) for step in range(6, 12)], 1700000100)
    assert reader.points() == [(s, float(s)) for s in range(6)] + [(s, float(-s)) for s in range(6, 12)]
    write(reader.base / "run", [scalar("loss", step, 0) for step in range(3, 5)], 1700000200)
    assert reader.points() == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 0.0), (4, 0.0)]
    (tag,) = reader.runs()["./run"].tags()
    assert (tag.count, tag.first_step, tag.last_step, tag.last_value) == (5, 0, 4, 0.0)


def test_an_older_file_that_comes_later_is_put_in_its_place(reader):
    write(reader.base / "run", [scalar("loss", 5, 5.0)], 1700000100)
    assert reader.points() == [(5, 5.0)]
    write(reader.base / "run", [scalar("loss", step, 0) for step in range(8)], 1700000000)
    assert reader.points() == [(s, 0.0) for s in range(5)] + [(5, 5.0)]


def test_broken_records_are_named_and_passed_over(reader):
    good, bad = scalar("loss", 0, 1.0), bytearray(scalar("loss", 1, 2.0))
    bad[-6] ^= 1
    path = write(reader.base / "run", [good, bytes(bad), scalar("loss", 2, 3.0)])
    assert reader.points() == [(0, 1.0), (2, 3.0)]
    ((name, count, first),) = reader.runs()["./run"].broken()
    assert (name, count) == (str(path), 1)
    assert first == [(len(MINDSPORE) + len(good), "the checksum of a record is wrong")]


def test_reading_ends_where_no_length_can_be_trusted(reader):
    good = scalar("loss", 0, 1.0)
    lie = struct.pack("<QI", 2**40, 7)
    write(reader.base / "run", [good, lie, scalar("loss", 2, 3.0)])
    assert reader.points() == [(0, 1.0)]
    ((_, count, first),) = reader.runs()["./run"].broken()
    assert count == 1 and first[0][0] == len(MINDSPORE) + len(good)


def test_a_record_that_is_no_event_is_named(reader):
    write(reader.base / "run", [framed(b"\xff" * 9), scalar("loss", 1, 2.0)])
    assert reader.points() == [(1, 2.0)]
    ((_, _, first),) = reader.runs()["./run"].broken()
    assert first == [(len(MINDSPORE), "a record is no event")]


def test_a_file_that_was_replaced_or_cut_is_read_anew(reader):
    path = write(reader.base / "run", [scalar("loss", step, 1.0) for step in range(5)])
    assert len(reader.points()) == 5
    path.write_bytes(MINDSPORE + scalar("loss", 7, 2.0))
    assert reader.points() == [(7, 2.0)]
    path.unlink()
    write(reader.base / "run", [scalar("loss", step, 3.0) for step in range(50)])
    assert reader.points() == [(step, 3.0) for step in range(50)]


def test_a_run_that_is_gone_is_no_longer_listed(reader):
    path = write(reader.base / "run", [scalar("loss", 0, 1.0)])
    assert list(reader.runs()) == ["./run"]
    path.unlink()
    assert not reader.runs()


def test_columns_are_kept_and_read_on_after_a_start(reader, monkeypatch):
    points = 40000
    path = write(reader.base / "run", [scalar("loss", step, step % 97) for step in range(points)])
    assert len(reader.points()) == points
    with path.open("ab") as file:
        file.write(scalar("loss", points, 5.0))
    reader.close()
    again = Reader(reader.base, reader.workspace)
    found = again.points()
    assert found == [(step, float(step % 97)) for step in range(points)] + [(points, 5.0)]


@pytest.mark.parametrize("name", ["blocks", "manifest"])
@pytest.mark.parametrize("fault", ["cut", "bit", "gone"])
def test_a_damaged_index_is_made_anew(reader, name, fault):
    write(reader.base / "run", [scalar("loss", step, step % 97) for step in range(40000)])
    expected = reader.points()
    (path,) = reader.workspace.glob(f"index/*/{name}")
    data = bytearray(path.read_bytes())
    if fault == "gone":
        path.unlink()
    else:
        data[len(data) // 2] ^= 16
        path.write_bytes(data[: len(data) // 2] if fault == "cut" else data)
    reader.close()
    again = Reader(reader.base, reader.workspace)
    again.runs()["./run"].points("loss")  # finds the damage
    assert again.points() == expected


def test_a_full_disk_loses_nothing(reader, monkeypatch):
    write(reader.base / "run", [scalar("loss", step, step) for step in range(100)])
    reader.library.look()
    (folder,) = reader.workspace.glob("index/*")
    (folder / "manifest.tmp").mkdir()  # nothing can be written there
    assert len(reader.points()) == 100
    reader.close()
    assert Reader(reader.base, reader.workspace).points() == [(step, float(step)) for step in range(100)]


def test_without_room_for_blocks_points_stay_in_memory(reader, tmp_path):
    values = [(step, float(step % 97)) for step in range(100000)]
    write(reader.base / "run", [scalar("loss", *value) for value in values])
    program = (
        "import resource, sys; from mycelia_insight.runs.library import Library\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500000, 500000))\n"
        "library = Library(*sys.argv[1:]); library.look()\n"
        "while library.read(): pass\n"
        "found = library.get('./run').points('loss')\n"
        "print(sum(found.steps), sum(found.values.astype(int)), len(found.steps))"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, str(reader.base), str(reader.workspace)],
        capture_output=True,
        text=True,
    )
    assert out.stdout.split() == [
        str(sum(s for s, _ in values)),
        str(int(sum(v for _, v in values))),
        "100000",
    ]
    assert reader.points() == values


def test_a_run_that_cannot_be_read_stops_no_other(reader, monkeypatch, caplog):
    for name in ("bad", "run"):
        write(reader.base / name, [scalar("loss", 0, 1.0)])
    refresh = Run.refresh

    def failing(run, files):
        if run.name == "bad":
            raise OSError(28, "No space left on device")
        return refresh(run, files)

    monkeypatch.setattr(Run, "refresh", failing)
    assert reader.points() == [(0, 1.0)]
    assert reader.points() == [(0, 1.0)]
    assert len([r for r in caplog.records if "bad cannot be read" in r.getMessage()]) == 1
    monkeypatch.setattr(Run, "refresh", refresh)
    reader.library._troubles.clear()  # the time has come
    assert reader.points(run="./bad") == [(0, 1.0)]


def test_an_interval_of_zero_is_one_look(reader, monkeypatch):
    write(reader.base / "run", [scalar("loss", 0, 1.0)])
    looks = []
    library = Library(str(reader.base), str(reader.workspace), interval=0, pulse=0.01)
    look, read = library.look, library.read
    rounds = iter(range(5))

    def counted():
        if next(rounds, None) is None:
            library._stop.set()
        return read()

    monkeypatch.setattr(library, "look", lambda: (looks.append(1), look()))
    monkeypatch.setattr(library, "read", counted)
    library._follow()
    assert len(looks) == 1 and library.get("./run").points("loss").steps.tolist() == [0]


def reference(steps, values, low, high, columns):
    """Numbers of the points that are to be drawn."""
    inside = [i for i, step in enumerate(steps) if low <= step <= high]
    kept = set()
    parts = {}
    for i in inside:
        part = min(columns - 1, int((steps[i] - low) * (columns / (high - low))))
        parts.setdefault(part, []).append(i)
    for members in parts.values():
        finite = [i for i in members if np.isfinite(values[i])]
        kept |= {members[0], members[-1]} | {i for i in members if not np.isfinite(values[i])}
        if finite:
            kept |= {min(finite, key=lambda i: values[i]), max(finite, key=lambda i: values[i])}
    return sorted(kept)


@pytest.mark.parametrize("seed", range(20))
def test_drawn_points_are_the_first_last_extreme_and_not_finite_ones_of_each_column(reader, seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 40000))
    steps = np.cumsum(rng.integers(0 if seed % 2 else 1, 5, count)).tolist()
    values = rng.standard_normal(count).astype(np.float32)
    values[rng.random(count) < 0.01] = np.nan
    values[rng.random(count) < 0.01] = np.inf
    values[rng.random(count) < 0.01] = -np.inf
    write(reader.base / "run", [scalar("loss", s, v) for s, v in zip(steps, values.tolist(), strict=True)])
    run = reader.runs()["./run"]
    for _ in range(5):
        low, high = sorted(rng.integers(0, steps[-1] + 1, 2).tolist())
        columns = int(rng.integers(1, 500))
        if low == high:
            continue
        found = run.points("loss", low=low, high=high, columns=columns)
        kept = reference(steps, values, low, high, columns)
        assert found.steps.tolist() == [steps[i] for i in kept]
        np.testing.assert_array_equal(found.values, values[kept])


def test_smoothing_is_the_corrected_moving_average_over_all_points(reader):
    values = np.random.default_rng(1).standard_normal(40000).astype(np.float32)
    values[[0, 77, 20000]] = np.nan, np.inf, np.nan
    write(reader.base / "run", [scalar("loss", s, v) for s, v in enumerate(values.tolist())])
    last, n, expected = 0.0, 0, []
    for v in values.astype(float):
        if np.isfinite(v):
            n += 1
            last = last * 0.9 + 0.1 * v
            v = last / (1 - 0.9**n)
        expected.append(v)
    found = reader.runs()["./run"].points("loss", low=100, high=30000, columns=50, smoothing=0.9)
    np.testing.assert_allclose(found.smoothed, np.float32(expected)[found.steps], rtol=1e-6)
    write(reader.base / "constant", [scalar("loss", s, 0.1) for s in range(100)])
    found = reader.runs()["./constant"].points("loss", smoothing=0.99)
    np.testing.assert_array_equal(found.smoothed, found.values)


def test_runs_lie_at_any_depth_and_links_do_not_go_in_circles(reader):
    write(reader.base, [scalar("loss", 0, 1.0)])
    write(reader.base / "a" / "b" / "c", [scalar("loss", 0, 1.0)])
    (reader.base / "a" / "b" / "up").symlink_to(reader.base / "a")
    (reader.base / "nothing").symlink_to(reader.base / "is here")
    (reader.base / "events.summary.5").symlink_to("/dev/zero")
    assert sorted(reader.runs()) == ["./", "./a/b/c"]


def test_a_file_of_tensorboard_beside_the_same_values_is_passed_over(reader):
    path = write(reader.base / "run", [scalar("loss", 1, 1.0)])
    twin = path.with_name(path.name.replace(".events.summary.", ".tfevents."))
    twin.write_bytes(TENSORBOARD)
    other = path.with_name("events.out.tfevents.1600000000.host")
    other.write_bytes(TENSORBOARD)
    assert [[f.name for f in one.files] for one in find(str(path.parent))] == [[other.name, path.name]]
    path.unlink()
    assert [[f.name for f in one.files] for one in find(str(path.parent))] == [[other.name, twin.name]]


def test_names_from_files_are_taken_as_they_are(reader):
    tags = ["<script>alert(1)</script>", "a/b/../c", "ü" * 100, "", "\x00\n"]
    path = path_of(reader.base / "run")
    records = [scalar(tag, 0, 1.0) for tag in tags]
    records.append(framed(event(0, 1.0, field(5, field(1, field(1, b"\xff\xfe") + single(3, 2.0))))))
    path.write_bytes(MINDSPORE + b"".join(records))
    run = reader.runs()["./run"]
    assert [tag.name for tag in run.tags()] == [*tags, "\\xff\\xfe"]


def test_names_that_are_no_utf_8_are_asked_for_as_they_are_shown(reader):
    names = [b"\xff", b"loss \xed\xa0\x80", b"a\\xff", b"\xe2\x82", "ü\\x".encode()]
    records = [
        framed(event(1, 0.0, field(5, field(1, field(1, name) + single(3, place)))))
        for place, name in enumerate(names)
    ]
    records += [
        framed(event(2, 0.0, field(5, field(1, field(1, name) + field(4, b"x"))))) for name in names[:2]
    ]
    write(reader.base / "run", records)
    (run,) = reader.runs().values()
    known = [tag.name for tag in run.tags() if tag.kind == Kind.SCALAR]
    assert sorted(known) == sorted(name.decode("utf-8", "backslashreplace") for name in names)
    for place, name in enumerate(names):
        shown = name.decode("utf-8", "backslashreplace")
        assert run.points(shown).values.tolist() == [place]
        assert [part.values.tolist() for part in run.walk(shown)] == [[place]]
    for name in names[:2]:
        assert len(run.entries(Kind.IMAGE, name.decode("utf-8", "backslashreplace"))) == 1
    assert run.points("\\xfe") is None and run.entries(Kind.IMAGE, "a\\xff") is None


def test_a_file_that_cannot_be_read_hides_no_other(reader):
    (reader.base / "run" / "events.summary.1600000000").mkdir(parents=True)
    os.mkfifo(reader.base / "run" / "events.summary.1650000000")
    write(reader.base / "run", [scalar("loss", 0, 1.0)])
    assert reader.points() == [(0, 1.0)]


def tensor(dtype: int, *rest: bytes) -> bytes:
    return number(1, dtype) + b"".join(rest)


def plugin(name: str) -> bytes:
    return field(9, field(1, field(1, name)))


def test_files_of_tensorboard(reader):
    def value(tag, *rest):
        return framed(event(value.step, 2.0, field(5, field(1, field(1, tag) + b"".join(rest)))))

    records = []
    for value.step in (1, 2):
        told = plugin("scalars") if value.step == 1 else b""  # only the first value of a tag tells its plugin
        records += [
            value("old", single(2, 0.5)),
            value("new", told, field(8, tensor(1, field(4, struct.pack("<f", 1.5))))),
            value("wide", told, field(8, tensor(2, double(6, 2.5)))),
            value("picture", field(4, number(1, 3) + number(2, 4) + field(4, b"png"))),
            value("words", plugin("text"), field(8, tensor(7, field(8, b"hello")))),
        ]
    write(reader.base / "run", records, first=TENSORBOARD)
    run = reader.runs()["./run"]
    kinds = {tag.name: tag.kind for tag in run.tags()}
    assert kinds == {
        **dict.fromkeys(("old", "new", "wide"), Kind.SCALAR),
        "picture": Kind.IMAGE,
        "words": Kind.TEXT,
    }
    assert [run.points(tag).values.tolist() for tag in ("old", "new", "wide")] == [
        [v] * 2 for v in (0.5, 1.5, 2.5)
    ]
    assert (run.entries(Kind.IMAGE, "picture")[0].width, run.entries(Kind.IMAGE, "picture")[0].height) == (
        4,
        3,
    )


@pytest.mark.parametrize("seed", range(6))
def test_mutated_files_stop_nobody(reader, seed):
    rng = np.random.default_rng(seed)
    source = next((FIXTURE / "run1").glob("*_MS")).read_bytes()
    for trial in range(50):
        data = bytearray(source)
        for _ in range(int(rng.integers(1, 6))):
            at = int(rng.integers(len(data)))
            kind = rng.integers(3)
            if kind == 0:
                data[at] ^= 1 << int(rng.integers(8))
            elif kind == 1:
                del data[at : at + int(rng.integers(1, 200))]
            else:
                data[at:at] = rng.bytes(int(rng.integers(1, 40)))
        # Checksums made right again, so that the messages themselves are looked at.
        message = (
            bytes(rng.permutation(np.frombuffer(source[12:200], np.uint8)))
            if trial % 2
            else bytes(data[40:240])
        )
        path = path_of(reader.base / f"run{trial}")
        path.write_bytes(MINDSPORE + framed(message) + bytes(data) + framed(message))
    for run in reader.runs().values():
        for tag in run.tags():
            if tag.kind == Kind.SCALAR:
                run.points(tag.name, columns=10)
            else:
                for entry in run.entries(tag.kind, tag.name):
                    run.read(entry)
