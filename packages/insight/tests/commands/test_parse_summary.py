"""`mycelia-insight parse_summary`: messages and files as MindInsight 2.3.1 has them."""

from __future__ import annotations

import csv
import errno
import json
import os
import random
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import MINDSPORE, event, field, framed, number, scalar, write

from mycelia_insight.cli import app
from mycelia_insight.exchange import output
from mycelia_insight.records.frames import Untrusted, frames

FIXTURE = Path(__file__).parents[1] / "fixtures" / "summary"
EXPECTED = json.loads((FIXTURE / "run1.expected.json").read_text())


def parse(*arguments: str | Path):
    result = CliRunner().invoke(app, ["parse_summary", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def parsed(folder: Path, target: Path) -> tuple[str, list[list[str]], Path]:
    result = parse("--summary-dir", folder, "--output", target)
    assert result.exit_code == 0
    (made,) = target.iterdir()
    assert re.fullmatch(r"output_\d{8}_\d{6}_\d{6}", made.name)
    with open(made / "scalar.csv", newline="") as file:
        return result.output.replace(str(made), "OUT"), list(csv.reader(file)), made


def test_a_run_of_mindspore(tmp_path):
    told, rows, made = parsed(FIXTURE / "run1", tmp_path)
    path = FIXTURE / "run1" / "events.out.events.summary.1795248749.0.host_MS"
    assert told.splitlines() == [
        f"[INFO]Loading {path}.",
        "[INFO]Current parsing process: 23842/182886, 13%.",
        "[INFO]Current parsing process: 50412/182886, 27%.",
        "[INFO]Current parsing process: 76786/182886, 41%.",
        "[INFO]Current parsing process: 103189/182886, 56%.",
        "[INFO]Current parsing process: 129728/182886, 70%.",
        "[INFO]Current parsing process: 156395/182886, 85%.",
        "[INFO]Current parsing process: 182886/182886, 100%.",
        "[INFO]Images are written in OUT/image.",
        "[INFO]Writing scalar data into OUT/scalar.csv.",
        f"[INFO]Finished loading {path}.",
    ]
    assert rows[:2] == [
        ["tag", "step", "wall_time (unit: seconds)", "value"],
        ["loss_op", "1", "1795248751.799135", "1.4481565952301025"],
    ]
    for tag, points in EXPECTED["scalar"].items():
        name = tag.removesuffix("/scalar")
        assert [int(row[1]) for row in rows if row[0] == name] == points["steps"]
    images = {
        f"{tag.removesuffix('/image').replace('/', '%2F')}_{step}.png"
        for tag, one in EXPECTED["image"].items()
        for step in one["steps"]
    }
    assert {path.name for path in (made / "image").iterdir()} == images
    assert all((path.stat().st_mode & 0o077) == 0 for path in made.rglob("*"))


def test_the_newest_file_counts_and_what_it_lacks_is_told(tmp_path):
    write(tmp_path / "run", [scalar("old", 1, 1.0)], 1600000000)
    write(tmp_path / "run", [scalar("new", 1, float("nan")), scalar("a,b\n", -2, -1.5)], 1700000000)
    told, rows, _ = parsed(tmp_path / "run", tmp_path / "out")
    assert rows[1:] == [["new", "1", "0.0", "nan"], ["a,b\n", "-2", "0.0", "-1.5"]]
    assert "[WARNING] The summary file contains no image." in told.splitlines()
    write(tmp_path / "run", [], 1800000000)
    told, rows, _ = parsed(tmp_path / "run", tmp_path / "none")
    assert "[WARNING] The summary file contains no image. The summary file contains no scalar value." in told
    assert len(rows) == 1


def test_names_of_images_stay_in_their_folder(tmp_path):
    image = b"\x08\x01\x10\x01\x18\x03" + field(4, b"\x89PNG")
    tags = ["../../x", "..", "<script>", "a" * 500, "/etc"]
    write(
        tmp_path / "run",
        [framed(event(1, 0.0, field(5, field(1, field(1, t) + field(4, image))))) for t in tags],
    )
    _, _, made = parsed(tmp_path / "run", tmp_path / "out")
    assert len(list((made / "image").iterdir())) == len(tags)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda at: at / "nothing", "Summary directory {} not exists."),
        (lambda at: write(at, []), "Summary directory {} is not a valid directory."),
        (lambda at: at, "Path {} has no summary file."),
    ],
)
def test_what_is_wrong_with_the_folder_is_told(tmp_path, make, message):
    given = make(tmp_path)
    result = parse("--summary-dir", given, "--output", tmp_path / "out")
    assert (result.exit_code, result.output) == (0, f"[ERROR]{message.format(given)}\n")
    assert not (tmp_path / "out").exists()


def test_broken_records_are_left_out(tmp_path):
    records = [scalar("loss", step, float(step)) for step in range(4)]
    broken = bytearray(records[1])
    broken[-1] ^= 1
    write(tmp_path / "run", [records[0], bytes(broken), records[2], records[3][:-1]])
    told, rows, _ = parsed(tmp_path / "run", tmp_path / "out")
    assert [row[1] for row in rows[1:]] == ["0", "2"]
    at = len(MINDSPORE) + len(records[0])
    assert f"[WARNING]Check crc failed, the record at byte {at} is left out." in told.splitlines()
    lost = bytearray(records[1])
    lost[0] ^= 1
    write(tmp_path / "run", [records[0], bytes(lost), records[2]])
    told, rows, _ = parsed(tmp_path / "run", tmp_path / "more")
    assert [row[1] for row in rows[1:]] == ["0"] and f"offset={at}." in told


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(output.os, "rename", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    result = parse("--summary-dir", FIXTURE / "run1", "--output", tmp_path / "out")
    assert "[ERROR]Parse summary file failed, detail: [Errno 28] full" in result.output
    assert os.listdir(tmp_path / "out") == []


def test_records_longer_than_what_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("mycelia_insight.records.frames._AT_ONCE", 50)
    messages = [os.urandom(n) for n in (0, 10, 500, 34, 35, 1, 200)]
    path = tmp_path / "file"
    path.write_bytes(b"".join(map(framed, messages)) + b"\x01\x02")
    with path.open("rb") as file:
        assert [message for _, message in frames(file, path.stat().st_size)] == messages


def test_a_record_that_passes_several_tenths_is_one_line_as_are_those_after_it(tmp_path):
    """MindInsight 2.3.1 printed these lines for the same records: after each the next tenth is due."""
    sizes = [200_000, 10, 10, 300_000, 5, 150_000, 10]
    image = lambda i: number(1, 1) + number(2, 1) + number(3, 3) + field(4, bytes([i]) * sizes[i])
    records = [
        framed(event(i, 1.7e9 + i, field(5, field(1, field(1, "t") + field(4, image(i))))))
        for i in range(len(sizes))
    ]
    write(tmp_path / "run", [*records, *(scalar("loss", i, 1.0, 1.7e9) for i in range(3))])
    told, _, _ = parsed(tmp_path / "run", tmp_path / "out")
    lines = [line for line in told.splitlines() if "process" in line]
    places = [
        (200096, 30), (200150, 30), (200204, 30), (500256, 76), (500305, 76), (650357, 99), (650411, 99),
        (650453, 99), (650495, 99), (650537, 100),
    ]  # fmt: skip
    assert lines == [f"[INFO]Current parsing process: {at}/650537, {share}%." for at, share in places]


@pytest.mark.fuzz(60)
def test_mutated_files_are_read_as_far_as_they_can_be(tmp_path, seed):
    draw = random.Random(seed)
    source = FIXTURE / "run1" / "events.out.events.summary.1795248749.0.host_MS"
    data = bytearray(source.read_bytes()[:40000])
    for _ in range(draw.choice([1, 3, 30])):
        at = draw.randrange(len(data))
        if draw.random() < 0.5:
            data[at] ^= 1 << draw.randrange(8)
        elif draw.random() < 0.5:
            del data[at : at + draw.choice([1, 100])]
        else:
            data[at:at] = draw.randbytes(draw.choice([1, 8, 100]))
    run = tmp_path / "run"
    run.mkdir()
    (run / source.name).write_bytes(data)
    with (run / source.name).open("rb") as file:
        try:
            right = [message for _, message in frames(file, len(data))]
        except Untrusted as error:
            assert 0 <= error.offset < len(data)
            right = []
    assert all(message is None or framed(message) in data for message in right)
    told, rows, _ = parsed(run, tmp_path / "out")
    assert "Finished loading" in told and all(len(row) == 4 for row in rows)
