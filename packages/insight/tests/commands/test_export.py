"""`mycelia-insight export`: what is written is what was recorded, wholly or not at all.

TensorBoard 2.20 was asked for the exported files by hand; here they are read back by our own reader.
"""

from __future__ import annotations

import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
import little_room
from event_files import TENSORBOARD, event, field, framed, number, scalar, write
from test_media import recorded
from test_records import image_message, png

from mycelia_insight.cli import app
from mycelia_insight.exchange.export import parameters_of
from mycelia_insight.exchange.runs import opened
from mycelia_insight.records import histograms, images, tensors, texts
from mycelia_insight.records.layers import MOST_BOXES
from mycelia_insight.records.reading import message
from mycelia_insight.runs.kinds import Kind

FIXTURE = Path(__file__).parents[1] / "fixtures" / "summary"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0"  # 2 x 3; only its head is looked at


def export(form: str, folder: Path, target: Path, *more: str):
    arguments = ["export", "--format", form, "--summary-dir", str(folder), "--output", str(target), *more]
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def contents(folder: Path) -> dict[str, dict]:
    """All values of the runs below a folder, by run, kind and tag."""
    found: dict[str, dict] = {}
    with opened(str(folder)) as library:
        for run in library.runs():
            known = run.tags()
            values: dict = {"parameters": parameters_of(run, known)}
            for tag in known:
                if tag.kind == Kind.SCALAR:
                    points = [
                        p for part in run.walk(tag.name, 7) for p in zip(part.steps, part.times, part.values)
                    ]
                    values["scalar", tag.name] = [(int(s), float(t), float(v).hex()) for s, t, v in points]
                    continue
                for one in run.entries(tag.kind, tag.name) or ():
                    data, place = message(run, one), (tag.kind.name.lower(), tag.name)
                    if tag.kind == Kind.IMAGE:
                        value = images.decode(data, one.dialect)[0].data
                    elif tag.kind == Kind.HISTOGRAM:
                        d = histograms.decode(data, one.dialect)
                        value = [[float(f"{x:.12g}") for x in part] for part in (d.left, d.right, d.counts)]
                    elif tag.kind == Kind.TENSOR:
                        value = tensors.decode(data, one.dialect).values.tolist()
                    elif tag.kind == Kind.TEXT:
                        value = texts.decode(data)
                    else:
                        continue
                    values.setdefault(place, []).append((one.step, one.time, value))
            found[run.id] = values
    return found


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def json_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_tensorboards_files_say_the_same(tmp_path):
    result = export("tensorboard", FIXTURE, tmp_path / "out")
    assert result.exit_code == 0 and result.stderr == ""
    told = "1 graph, 36 histograms, 19 hyper-parameters, 12 images, 12 scalars, 6 tensors"
    assert result.stdout == f"1 run in {tmp_path / 'out'}: {told}\n"
    ((ours, before),) = contents(FIXTURE).items()
    ((theirs, after),) = contents(tmp_path / "out").items()
    assert ours == theirs == "./run1"
    assert after.keys() == before.keys()
    for place, values in before.items():
        if place != "parameters":
            assert after[place] == values, place
    # Numbers of single precision are told as the shortest decimal on both sides.
    assert after["parameters"] == before["parameters"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_tables_say_the_same(tmp_path, form):
    if form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
    result = export(form, FIXTURE, tmp_path / "out")
    assert result.exit_code == 0
    assert result.stderr == f"[WARNING] left out, as {form} has no place for them: 1 graph\n"
    read = {"csv": table, "jsonl": json_lines, "parquet": lambda p: parquet.read_table(p).to_pylist()}[form]
    place = tmp_path / "out" / "run1"
    rows = {path.stem: read(path) for path in place.glob(f"*.{form}")}
    ((_, before),) = contents(FIXTURE).items()
    scalars: dict = {}
    for row in rows["scalars"]:
        value = np.float32(row["value"])
        scalars.setdefault(("scalar", row["tag"]), []).append(
            (int(row["step"]), float(row["wall_time"]), float(value).hex())
        )
    assert scalars == {place: values for place, values in before.items() if place[0] == "scalar"}
    for row in rows["images"]:
        wanted = dict((s, data) for s, _, data in before["image", row["tag"]])
        assert (place / row["file"]).read_bytes() == wanted[int(row["step"])]
    for row in rows["tensors"]:
        wanted = dict((s, data) for s, _, data in before["tensor", row["tag"]])
        assert np.load(place / row["file"]).tolist() == wanted[int(row["step"])]
        assert (row["shape"], row["dtype"]) == ("4x4", "float32")
    first = rows["histograms"][0]
    of_step = [
        row for row in rows["histograms"] if (row["tag"], row["step"]) == (first["tag"], first["step"])
    ]
    wanted = dict((s, data) for s, _, data in before["histogram", first["tag"]])[int(first["step"])]
    assert [float(row["count"]) for row in of_step] == wanted[2]
    told = {row["name"]: row["value"] for row in rows["hyperparameters"]}
    assert told == {name: str(value) for name, value in before["parameters"].items()}
    assert told["optimizer"] == "Momentum"


def test_values_that_are_not_finite_stay_themselves(tmp_path):
    values = [1.5, math.nan, math.inf, -math.inf, 1e-45, -0.0]
    steps = [-3, 0, 1, 2**40, 2**62, 2**63 - 1]
    write(tmp_path / "runs" / "a", [scalar("x", s, v, 1.25) for s, v in zip(steps, values, strict=True)])
    write(tmp_path / "runs" / "a" / "b", [scalar("x", 7, 7.0)])
    before = contents(tmp_path / "runs")
    for form in ("tensorboard", "csv", "jsonl"):
        assert export(form, tmp_path / "runs", tmp_path / form).exit_code == 0
    assert contents(tmp_path / "tensorboard") == before
    rows = table(tmp_path / "csv" / "a" / "scalars.csv")
    assert [row["value"] for row in rows] == ["1.5", "nan", "inf", "-inf", "1.401298464324817e-45", "-0.0"]
    assert [int(row["step"]) for row in rows] == steps
    lines = json_lines(tmp_path / "jsonl" / "a" / "scalars.jsonl")
    assert [line["value"] for line in lines[1:4]] == ["NaN", "Infinity", "-Infinity"]
    assert table(tmp_path / "csv" / "a" / "b" / "scalars.csv")[0]["value"] == "7.0"


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf, -5.0, 1e300, 2.0**63])
def test_times_that_no_clock_shows(tmp_path, time):
    write(tmp_path / "run", [scalar("x", 1, 1.0, time)])
    for form in ("tensorboard", "csv", "jsonl"):
        assert export(form, tmp_path / "run", tmp_path / form).exit_code == 0
    ((_, values),) = contents(tmp_path / "tensorboard").items()
    assert repr(values["scalar", "x"]) == repr([(1, time, (1.0).hex())])
    assert float(table(tmp_path / "csv" / "scalars.csv")[0]["wall_time"]).hex() == time.hex()


def test_all_points_go_out_piece_by_piece(tmp_path, monkeypatch):
    from mycelia_insight.exchange import to_tables
    from mycelia_insight.runs.run import Run

    count = 150_000
    write(tmp_path / "run", [scalar("x", s % 1000, s) for s in range(count)])
    write(tmp_path / "run", [scalar("x", s, -1.0) for s in range(500, 510)], 1800000000)
    longest = 0

    class Seen(to_tables.CsvTable):
        def add(self, *columns):
            nonlocal longest
            longest = max(longest, len(columns[0]))
            super().add(*columns)

    monkeypatch.setattr(to_tables, "CsvTable", Seen)
    whole = {}
    with opened(str(tmp_path)) as library:
        (run,) = library.runs()
        assert isinstance(run, Run)
        points = run.points("x")
        whole = list(zip(points.steps.tolist(), points.values.tolist(), strict=True))
    assert export("csv", tmp_path / "run", tmp_path / "out").exit_code == 0
    assert longest <= 1 << 16
    rows = table(tmp_path / "out" / "scalars.csv")
    assert [(int(row["step"]), float(row["value"])) for row in rows] == whole
    assert len(whole) == count // 2 + 10


def test_texts_sounds_and_batches_of_tensorboard(tmp_path):
    def put(tag, plugin, tensor):
        metadata = field(9, field(1, field(1, plugin)))
        return framed(event(1, 2.0, field(5, field(1, field(1, tag) + metadata + field(8, tensor)))))

    def texts_of(shape, *parts):
        return (
            number(1, 7)
            + field(2, b"".join(field(2, number(1, n)) for n in shape))
            + b"".join(field(8, p) for p in parts)
        )

    wave = b"RIFF\0\0\0\0WAVE data"
    records = [
        put("t", "text", texts_of([1], "=1+1\n<script>")),
        put("table", "text", texts_of([2, 2], *"abcd")),
        put("s", "audio", texts_of([1, 2], wave, "")),
        put("i", "images", texts_of([4], "2", "3", PNG, PNG)),
    ]
    write(tmp_path / "run", records, first=TENSORBOARD)
    before = contents(tmp_path / "run")
    for form in ("tensorboard", "csv"):
        result = export(form, tmp_path / "run", tmp_path / form)
        assert (result.exit_code, result.stderr) == (0, "")
    after = contents(tmp_path / "tensorboard")["./"]
    assert {k: v for k, v in after.items() if k != ("image", "i/1")} == before["./"]
    assert after["image", "i/1"] == after["image", "i"]
    cells = [
        (row["tag"], row["row"], row["column"], row["text"]) for row in table(tmp_path / "csv" / "texts.csv")
    ]
    assert cells[0] == ("t", "0", "0", "=1+1\n<script>")
    assert [cell[1:] for cell in cells[1:]] == [
        ("0", "0", "a"),
        ("0", "1", "b"),
        ("1", "0", "c"),
        ("1", "1", "d"),
    ]
    assert (tmp_path / "csv" / "sounds" / "s_1.wav").read_bytes() == wave
    assert {path.name for path in (tmp_path / "csv" / "images").iterdir()} == {"i_1.png", "i_1_1.png"}


def test_boxes_and_masks_go_out_with_their_image(tmp_path):
    image = image_message(png(4, 4), 4, 4)
    many = {
        "boxes": [[0, 0, n, 1] for n in range(MOST_BOXES + 1)],
        "labels": ["=1", "\ud83d\ude00"],
        "scores": [0.5],
    }
    layer = (
        field(1, "a/b")
        + field(2, json.dumps(many))
        + field(3, png(4, 4))
        + field(4, json.dumps({"2": "x,y"}))
    )
    broken = field(100, field(1, "c") + field(2, "["))
    write(
        tmp_path / "run",
        [recorded(4, "i", image + field(100, layer), 3), recorded(4, "i", image + broken, 4)],
    )
    result = export("csv", tmp_path / "run", tmp_path / "csv")
    assert result.exit_code == 0 and "image 'i' at step 4 is left out" in result.stderr
    assert "1 image, 1 layer" in result.stdout
    boxes = table(tmp_path / "csv" / "boxes.csv")
    assert len(boxes) == MOST_BOXES + 1  # the page shows fewer
    first = boxes[0]
    assert (first["layer"], first["label"], first["score"], first["step"]) == ("a/b", "=1", "0.5", "3")
    assert {row["score"] for row in boxes[1:]} == {"nan"} and boxes[1]["label"] == "\U0001f600"
    assert [float(row["width"]) for row in boxes] == list(range(MOST_BOXES + 1))
    (mask,) = table(tmp_path / "csv" / "masks.csv")
    assert json.loads(mask["classes"]) == {"2": "x,y"}
    assert (tmp_path / "csv" / mask["file"]).read_bytes() == png(4, 4)
    (row,) = [one for one in json_lines_of(tmp_path, "boxes") if one["label"] == "=1"]
    assert row["score"] == 0.5
    result = export("tensorboard", tmp_path / "run", tmp_path / "tb")
    assert "1 layer" in result.stderr  # has no place for them, and says so


def json_lines_of(tmp_path: Path, name: str) -> list[dict]:
    assert export("jsonl", tmp_path / "run", tmp_path / "jsonl").exit_code == 0
    return json_lines(tmp_path / "jsonl" / f"{name}.jsonl")


def test_tags_are_chosen_and_names_stay_inside(tmp_path):
    hostile = ["../../up", "<script>alert(1)</script>", "a" * 400, "..", "x\0y"]
    image = number(1, 3) + number(2, 2) + number(3, 3) + field(4, PNG)
    records = [
        framed(event(s, 0.0, field(5, field(1, field(1, t) + field(4, image)))))
        for t in hostile
        for s in (1, 1)
    ]
    write(tmp_path / "run", [*records, scalar("keep/loss", 1, 1.0), scalar("drop", 1, 1.0)])
    assert export("csv", tmp_path / "run", tmp_path / "out").exit_code == 0
    assert len(list((tmp_path / "out" / "images").iterdir())) == 2 * len(hostile)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"]
    assert export("csv", tmp_path / "run", tmp_path / "some", "--tags", "^keep/").exit_code == 0
    assert [row["tag"] for row in table(tmp_path / "some" / "scalars.csv")] == ["keep/loss"]
    assert os.listdir(tmp_path / "some") == ["scalars.csv"]


def test_what_cannot_be_read_is_named_and_passed_over(tmp_path):
    bad = framed(event(3, 0.0, field(5, field(1, field(1, "i") + field(4, field(4, b"no image"))))))
    broken = bytearray(scalar("x", 2, 2.0))
    broken[-1] ^= 1
    write(
        tmp_path / "run",
        [scalar("x", 1, 1.0), bytes(broken), bad, framed(event(1, 0.0, field(4, b"\xff\xff")))],
    )
    result = export("tensorboard", tmp_path / "run", tmp_path / "out")
    assert result.exit_code == 0
    warnings = result.stderr.splitlines()
    assert len(warnings) == 3 and all(line.startswith("[WARNING] ") for line in warnings)
    assert "image 'i' at step 3 is left out" in result.stderr and "1 broken record," in result.stderr
    assert list(contents(tmp_path / "out")["./"]) == ["parameters", ("scalar", "x")]


@pytest.mark.parametrize(
    "arguments, code, text",
    [
        (["--format", "xml"], 2, "'xml' is not one of"),
        (["--summary-dir", "nowhere"], 2, "nowhere is not a folder"),
        (["--tags", "("], 2, "--tags must be a regular expression, got '('"),
        (["--summary-dir", "empty"], 1, "there are no runs in empty"),
        (["--output", "taken"], 1, "is there already"),
        (["--output", "taken/file"], 1, "is there already"),
        (["--output", "runs/out"], 1, "runs/out lies in runs, which is only read"),
        (["--output", "link"], 1, "which is only read"),
        (["--output", "taken/file/below"], 1, "Nothing was exported: [Errno"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, monkeypatch, arguments, code, text):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "runs", [scalar("x", 1, 1.0)])
    (tmp_path / "empty").mkdir()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "runs" / "new")
    before = sorted(tmp_path.rglob("*"))
    given = {"--format": "csv", "--summary-dir": "runs", "--output": "out"} | dict(
        zip(arguments[::2], arguments[1::2])
    )
    result = CliRunner().invoke(app, ["export", *(word for pair in given.items() for word in pair)])
    assert result.exit_code == code and text in " ".join(result.stderr.split())
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "taken" / "file").read_text() == "mine"


def test_parquet_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = export("parquet", FIXTURE, tmp_path / "out")
    assert result.exit_code == 1
    assert 'parquet needs pyarrow: pip install "mycelia-insight[parquet]"' in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a file's size as on Linux")
@pytest.mark.parametrize("form", ["tensorboard", "csv", "jsonl"])
def test_a_full_disk_leaves_nothing(tmp_path, form):
    write(tmp_path / "run", [scalar("x", s, s) for s in range(6000)])

    result = little_room.run(
        "export", "--format", form, "--summary-dir", tmp_path / "run", "--output", tmp_path / "out"
    )
    assert result.returncode == 1 and "Nothing was exported: " in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_command_that_is_ended_leaves_nothing(tmp_path):
    write(tmp_path / "run", [scalar("x", s, s) for s in range(300_000)])
    command = "from mycelia_insight.cli import app; app()"
    place = ["--summary-dir", str(tmp_path / "run"), "--output", str(tmp_path / "out")]
    process = subprocess.Popen([sys.executable, "-c", command, "export", "--format", "jsonl", *place])
    while process.poll() is None and not list(tmp_path.glob(".out.*.tmp/scalars.jsonl")):
        time.sleep(0.005)
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.fuzz(40)
def test_mutated_runs_are_exported_as_far_as_they_can_be_read(tmp_path, seed):
    draw = random.Random(seed)
    (tmp_path / "run").mkdir()
    for source in sorted((FIXTURE / "run1").iterdir()):
        data = bytearray(source.read_bytes()[:30000])
        records, at = [], 0
        while at + 12 <= len(data):  # messages are changed under right checksums
            size = int.from_bytes(data[at : at + 8], "little")
            records.append(bytearray(data[at + 12 : at + 12 + size]))
            at += size + 16
        for _ in range(draw.choice([1, 10])):
            one = draw.choice(records)
            if one:
                one[draw.randrange(len(one))] = draw.choice([0, 1, 127, 128, 255, draw.randrange(256)])
        (tmp_path / "run" / source.name).write_bytes(b"".join(framed(bytes(one)) for one in records))
    form = draw.choice(["tensorboard", "csv", "jsonl"])
    result = export(form, tmp_path / "run", tmp_path / "out")
    if result.exit_code:  # nothing was left to be read
        assert "Nothing was exported" in result.stderr and not (tmp_path / "out").exists()
    elif form == "tensorboard":
        before, after = contents_of_scalars(tmp_path / "run"), contents_of_scalars(tmp_path / "out")
        assert after == before
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []


def contents_of_scalars(folder: Path) -> dict:
    with opened(str(folder)) as library:
        (run,) = library.runs()
        return {
            tag.name: [p.values.tobytes() for p in run.walk(tag.name)]
            for tag in run.tags()
            if tag.kind == Kind.SCALAR
        }
