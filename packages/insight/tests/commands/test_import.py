"""`mycelia-insight import`: runs of other programs, read back as the runs that they became.

Files of wandb 0.31 and 0.16 and of MLflow 3 were imported by hand, and MindInsight 2.3.1 was asked for the
results; here the same forms are written byte by byte.
"""

from __future__ import annotations

import math
import os
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import little_room
from event_files import field, framed, scalar, write
from exchange_files import BLOCK, history, item, mlflow_run, put, statistics, typed, wandb_log, wandb_run
from test_export import PNG, contents, export

from mycelia.train.summary.events import single
from mycelia_insight.cli import app
from mycelia_insight.exchange import scalar_events
from mycelia_insight.exchange.runs import opened
from mycelia_insight.exchange.wandb_log import records
from mycelia_insight.runs.kinds import Dialect
from mycelia_insight.runs.lineages import Lineages

FIXTURE = Path(__file__).parents[1] / "fixtures" / "summary"


def bring(form: str, folder: Path, target: Path):
    arguments = ["import", "--format", form, "--input", str(folder), "--output", str(target)]
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def imported(form: str, folder: Path, target: Path) -> tuple[dict, list[str]]:
    """What the runs have, and what was warned of."""
    result = bring(form, folder, target)
    assert result.exit_code == 0, result.stderr
    with opened(str(target)) as library:
        assert all(run.broken() == [] for run in library.runs())
    return contents(target), result.stderr.splitlines()


def scalars(values: dict, tag: str) -> list[tuple[int, float]]:
    return [(step, float.fromhex(value)) for step, _, value in values["scalar", tag]]


def test_what_was_exported_to_tensorboard_comes_back(tmp_path):
    assert export("tensorboard", FIXTURE / "run1", tmp_path / "logs" / "a b").exit_code == 0
    before = contents(FIXTURE)["./run1"]
    found, warnings = imported("tensorboard", tmp_path / "logs", tmp_path / "out")
    assert warnings == [] and list(found) == ["./a b"]
    for place, values in before.items():
        if place != "parameters":
            assert found["./a b"][place] == values, place
    assert before["parameters"].items() <= found["./a b"]["parameters"].items()
    with opened(str(tmp_path / "out")) as library:
        (run,) = library.runs()
        assert run.dialects() >= {Dialect.MINDSPORE}
        lineage = Lineages().of(run, run.tags())
        assert lineage.is_whole and lineage.fields["optimizer"] == "Momentum"
        assert lineage.fields["learning_rate"] == 0.02
    # Files of MindSpore's summaries are no log of TensorBoard's.
    refused = bring("tensorboard", FIXTURE, tmp_path / "none")
    assert refused.exit_code == 1 and "there are no runs of tensorboard in" in refused.stderr


def wandb_folder(base: Path, *rows: bytes, name: str = "offline-run-1", **of_run) -> Path:
    folder = base / name
    (folder / "files" / "media" / "images").mkdir(parents=True)
    (folder / "files" / "media" / "images" / "a_1.png").write_bytes(PNG)
    settings = (
        item("lr", 0.5),
        item("opt", "Adam"),
        item("net", {"depth": 3, "on": True}),
        item("_wandb", {"x": 1}),
    )
    run = wandb_run("my run", 1700000000, *settings, **of_run)
    (folder / "run-abc.wandb").write_bytes(wandb_log([run, *rows]))
    return folder


def test_a_run_of_wandb(tmp_path):
    image = {"_type": "image-file", "path": "media/images/a_1.png", "width": 2}
    several = {"_type": "images/separated", "filenames": ["media/images/a_1.png"] * 2}
    histogram = {"_type": "histogram", "values": [1, 0, 2], "bins": [0, 0.5, 1, 4]}
    packed = {"_type": "histogram", "values": [3, 4], "packedBins": {"min": -1.0, "size": 0.5, "count": 2}}
    rows = [
        history(
            0, 10.5, item("loss", 1), item("a", {"b": {"c": 2.5}}), item(["d", "e"], True), item("say", "<b>")
        ),
        history(3, 11.5, item("loss", "NaN"), item("img", image), item("h", histogram)),
        history(4, 12.5, item("loss", None, "Infinity"), item("h", packed), item("some", several)),
        history(
            5, 13.5, typed("loss", 6, 0.25), typed("whole", 5, -7), typed("on", 4, 1), item("list", [1, 2])
        ),
        field(5, field(1, item("late", {"value": 7, "desc": None}))),
        statistics(1700000002, item("cpu", 12.5), item("gpu.0.name", "x")),
        field(3, field(1, item("loss", 0.25)) + field(1, item(["_wandb", "runtime"], 5))),
        field(3, field(1, item("best", 0.98)) + field(1, item(["by", "set"], {"test": "NaN"}))),
        field(6, b"whatever"),
    ]
    wandb_folder(tmp_path / "wandb", *rows)
    found, warnings = imported("wandb-offline", tmp_path / "wandb", tmp_path / "out")
    assert warnings == ["[WARNING] left out, as there is no place for them: 1 list"]
    ((name, values),) = found.items()
    assert name == "./proj/my run-abc"
    assert [(s, t) for s, t, _ in values["scalar", "loss"]] == [(0, 10.5), (3, 11.5), (4, 12.5), (5, 13.5)]
    losses = [value for _, value in scalars(values, "loss")]
    assert losses[0] == 1 and math.isnan(losses[1]) and losses[2:] == [math.inf, 0.25]
    assert [scalars(values, tag) for tag in ("a.b.c", "d.e", "whole", "on")] == [
        [(0, 2.5)], [(0, 1.0)], [(5, -7.0)], [(5, 1.0)],
    ]  # fmt: skip
    assert scalars(values, "system/cpu") == [(2, 12.5)]
    assert values["text", "say"] == [(0, 10.5, [["<b>"]])]
    assert values["image", "img"] == [(3, 11.5, PNG)] and values["image", "some/1"] == [(4, 12.5, PNG)]
    assert [row[2] for row in values["histogram", "h"]] == [
        [[0, 0.5, 1], [0.5, 1, 4], [1, 0, 2]],
        [[-1, -0.5], [-0.5, 0], [3, 4]],
    ]
    wanted = {"lr": 0.5, "opt": "Adam", "net.depth": 3, "net.on": "True", "late": 7, "wandb.name": "my run"}
    assert wanted.items() <= values["parameters"].items() and "_wandb" not in values["parameters"]
    results = {key: one for key, one in values["parameters"].items() if key.startswith("summary.")}
    assert results == {"summary.best": 0.98, "summary.by.set.test": "NaN"}  # the others are in the history
    assert values["parameters"]["learning_rate"] == 0.5


def test_numbers_and_depths_beyond_bounds(tmp_path):
    rows = [
        history(1, 1.0, item("loss", None, "1" + "0" * 400)),
        history(2, 1.0, item("loss", None, "-1e999")),
        history(3, 1.0, item("loss", None, "[" * 100_000)),
        history(4, 1.0, item("loss", None, '{"a":' * 500 + "1" + "}" * 500)),
        history(5, 1.0, item(["k"] * 1000, 1)),
        history(6, 1e400, item("loss", 1e300)),
        field(5, field(1, item("big", 2**80)) + field(1, item("deep", None, '{"a":' * 90 + "1" + "}" * 90))),
    ]
    wandb_folder(tmp_path / "wandb", *rows)
    found, warnings = imported("wandb-offline", tmp_path / "wandb", tmp_path / "out")
    (values,) = found.values()
    assert scalars(values, "loss") == [(1, math.inf), (2, -math.inf), (6, math.inf)]
    assert len(warnings) >= 3 and values["parameters"]["big"] == 2**80
    # Those that W&B itself took for infinite are not counted.
    assert sum(one.endswith("numbers beyond single precision, now infinite: 1") for one in warnings) == 1


def test_files_of_wandb_are_read_from_the_runs_folder_alone(tmp_path):
    (tmp_path / "secret.png").write_bytes(PNG)
    paths = ["../../../secret.png", str(tmp_path / "secret.png"), "media/link.png", "media/there/../../x",
             "missing", "link/secret.png", "media/pipe"]  # fmt: skip
    rows = [history(i, 1.0, item("i", {"_type": "image-file", "path": path})) for i, path in enumerate(paths)]
    run = wandb_folder(tmp_path / "wandb", *rows, history(9, 1.0, item("x", 1)))
    (run / "files" / "media" / "link.png").symlink_to(tmp_path / "secret.png")
    (run / "files" / "link").symlink_to(tmp_path)
    os.mkfifo(run / "files" / "media" / "pipe")
    found, warnings = imported("wandb-offline", tmp_path / "wandb", tmp_path / "out")
    (values,) = found.values()
    assert not [place for place in values if place[0] == "image"] and scalars(values, "x") == [(9, 1.0)]
    assert len(warnings) == len(paths)


@pytest.mark.parametrize(
    "size", [0, 1, 100, BLOCK - 7 - 7 - 8, BLOCK - 7 - 7 - 7, BLOCK - 14, BLOCK, 5 * BLOCK]
)
def test_records_of_wandb_lie_across_blocks(tmp_path, size):
    wanted = [b"1" * size, b"behind", b"2" * size, b""]
    path = tmp_path / "log"
    path.write_bytes(wandb_log(wanted))
    warnings: list[str] = []
    with path.open("rb") as file:
        assert list(records(file, warnings.append)) == wanted
    assert warnings == []
    if not size:
        return
    damaged = bytearray(path.read_bytes())
    damaged[7 + 7 + size // 2] ^= 1  # in the first record, or in the head of the second
    path.write_bytes(damaged)
    with path.open("rb") as file:
        left = list(records(file, warnings.append))
    assert len(warnings) == 1 and set(left) <= set(wanted) and wanted[0] not in left


def test_what_is_no_log_of_wandb_hides_no_other(tmp_path):
    wandb_folder(tmp_path / "wandb", history(0, 1.0, item("x", 1)))
    for name, data in {"empty": b"", "text": b"hello world", "old": b":W&B\xe1\xbe\x07"}.items():
        (tmp_path / "wandb" / f"{name}.wandb").write_bytes(data)
    os.mkfifo(tmp_path / "wandb" / "pipe.wandb")
    found, warnings = imported("wandb-offline", tmp_path / "wandb", tmp_path / "out")
    assert len(found) == 1 and len(warnings) == 4
    assert any("version 07 of W&B's log is not known" in line for line in warnings)


def test_a_run_of_mlflow(tmp_path):
    run = mlflow_run(tmp_path / "mlruns" / "1")
    put(
        run,
        "metrics",
        "loss",
        "1700000001000 1.0 0\n1700000002000 nan 1\n1700000003500 inf 2\n1700000004000 1e300 9\n",
    )
    put(run, "metrics", "val/acc", "1700000001000 0.5\nno line\n1 2 99999999999999999999\n")
    for name, text in {"lr": "0.5", "epochs": "3", "a/b": "x\ny", "<script>": "alert(1)"}.items():
        put(run, "params", name, text)
    put(run, "tags", "team", "red")
    put(run, "tags", "mlflow.user", "me")
    put(run, "artifacts", "model/weights", "many bytes")
    gone = mlflow_run(tmp_path / "mlruns" / "1", lifecycle_stage="deleted")
    mlflow_run(tmp_path / "mlruns" / "1", "'it''s: mine'")
    found, warnings = imported("mlflow", tmp_path / "mlruns", tmp_path / "out")
    assert sorted(found) == ["./exp _b_/it_s_ mine-3f815462", f"./exp _b_/run 0-{run.name[:8]}"]
    values = found[f"./exp _b_/run 0-{run.name[:8]}"]
    losses = scalars(values, "loss")
    assert [step for step, _ in losses] == [0, 1, 2, 9]
    assert (
        losses[0][1] == 1 and math.isnan(losses[1][1]) and [v for _, v in losses[2:]] == [math.inf, math.inf]
    )
    assert [time for _, time, _ in values["scalar", "loss"]] == [
        1700000001,
        1700000002,
        1700000003.5,
        1700000004,
    ]
    assert scalars(values, "val/acc") == [(0, 0.5)]
    wanted = {
        "lr": 0.5, "epochs": 3, "epoch": 3, "a/b": "x\ny", "<script>": "alert(1)", "mlflow.tag.team": "red",
        "mlflow.experiment": "exp <b>", "mlflow.name": "run 0", "learning_rate": 0.5,
    }  # fmt: skip
    assert wanted.items() <= values["parameters"].items()
    assert warnings == [
        f"[WARNING] {gone}: the run was deleted and is passed over",
        f"[WARNING] {run}/metrics/val/acc: 2 lines are left out, not of the form `milliseconds value step`",
        f"[WARNING] exp _b_/run 0-{run.name[:8]}: numbers beyond single precision, now infinite: 1",
        "[WARNING] left out, as there is no place for them: 1 artifact",
    ]


def test_links_and_pipes_of_mlflow_are_not_read(tmp_path):
    run = mlflow_run(tmp_path / "mlruns" / "1")
    (tmp_path / "secret").write_text("1 1 1\n")
    (run / "metrics" / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(run / "metrics" / "pipe")
    (run / "params" / "link").symlink_to(tmp_path / "secret")
    found, warnings = imported("mlflow", tmp_path / "mlruns", tmp_path / "out")
    (values,) = found.values()
    assert list(values) == ["parameters"] and "link" not in values["parameters"]
    assert len(warnings) == 3


def test_runs_of_one_name_stay_apart(tmp_path):
    for name in ("a", "b"):
        wandb_folder(tmp_path / "wandb", history(0, 1.0, item("x", 1)), name=name)
    assert sorted(imported("wandb-offline", tmp_path / "wandb", tmp_path / "out")[0]) == [
        "./proj/my run-abc", "./proj/my run-abc (2)",
    ]  # fmt: skip


def test_names_of_runs_stay_inside(tmp_path):
    folder = tmp_path / "wandb" / "r"
    folder.mkdir(parents=True)
    (folder / "run-x.wandb").write_bytes(
        wandb_log([wandb_run("../../../up", 1, id="/etc/../x\0y"), history(0, 1.0, item("../z", 1))])
    )
    run = mlflow_run(tmp_path / "mlruns" / "1", name="..", run_id="../../../etc")
    (tmp_path / "mlruns" / "1" / "meta.yaml").write_text('name: "../../up"\n')
    put(run, "metrics", "x", "1 1 1\n")
    for form, place in (("wandb-offline", "wandb"), ("mlflow", "mlruns")):
        assert bring(form, tmp_path / place, tmp_path / "out" / form).exit_code == 0
    names = {path.name for path in (tmp_path / "out").rglob("*")}
    assert all(re.fullmatch(r"[\w .+=@,()-]+", name) and not name.startswith(".") for name in names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlruns", "out", "wandb"]


@pytest.mark.parametrize(
    "arguments, code, text",
    [
        (["--format", "csv"], 2, "'csv' is not one of"),
        (["--input", "nowhere"], 2, "nowhere is not a folder"),
        (["--input", "empty"], 1, "there are no runs of mlflow in empty"),
        (["--output", "taken"], 1, "is there already"),
        (["--output", "mlruns/out"], 1, "which is only read"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, monkeypatch, arguments, code, text):
    monkeypatch.chdir(tmp_path)
    mlflow_run(tmp_path / "mlruns" / "1")
    (tmp_path / "empty").mkdir()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    given = {"--format": "mlflow", "--input": "mlruns", "--output": "out"} | dict([arguments])
    result = CliRunner().invoke(app, ["import", *(word for pair in given.items() for word in pair)])
    assert result.exit_code == code and text in " ".join(result.stderr.split())
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a file's size as on Linux")
def test_a_full_disk_leaves_nothing(tmp_path):
    wandb_folder(tmp_path / "wandb", *(history(i, 1.0, item("x", i)) for i in range(3000)))

    result = little_room.run(
        "import", "--format", "wandb-offline", "--input", tmp_path / "wandb", "--output", tmp_path / "out"
    )
    assert result.returncode == 1 and "Nothing was imported: " in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["wandb"]


def mutated(draw: random.Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(draw.choice([1, 3, 20])):
        at = draw.randrange(len(made))
        how = draw.random()
        if how < 0.6:
            made[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x5B, 0x7B, draw.randrange(256)])
        elif how < 0.8:
            del made[at : at + draw.choice([1, 10, 1000])]
            made += b"" if made else b"\0"
        else:
            made[at:at] = draw.choice([b"[" * 3000, b'"NaN"', b"1e999", b"-", b"\xff" * 9, draw.randbytes(9)])
    return bytes(made)


@pytest.mark.fuzz(60)
def test_mutated_runs_of_wandb_end_well(tmp_path, seed):
    draw = random.Random(seed)
    image = {"_type": "image-file", "path": "media/images/a_1.png"}
    histogram = {"_type": "histogram", "values": [1, 0, 2], "bins": [0, 0.5, 1, 4]}
    rows = [
        history(i, 1.0, item("loss", 1 / i), item("img", image), item("h", histogram), item(["a", "b"], i))
        for i in range(1, 5)
    ]  # fmt: skip
    rows += [field(5, field(1, item("late", {"value": 7}))), statistics(1700000002, item("cpu", 12.5))]
    folder = wandb_folder(tmp_path / "wandb", *rows)
    path = folder / "run-abc.wandb"
    if seed % 2:
        path.write_bytes(mutated(draw, path.read_bytes()))
    else:  # what messages say, under right checksums
        some = [wandb_run("my run", 1700000000, item("lr", 0.5)), *rows]
        place = draw.randrange(len(some))
        some[place] = mutated(draw, some[place])
        path.write_bytes(wandb_log(some))
    check_end(bring("wandb-offline", tmp_path / "wandb", tmp_path / "out"), tmp_path)


@pytest.mark.fuzz(30)
def test_mutated_runs_of_mlflow_end_well(tmp_path, seed):
    draw = random.Random(seed)
    run = mlflow_run(tmp_path / "mlruns" / "1")
    put(run, "metrics", "loss", "".join(f"170000000{i}000 {i / 7} {i}\n" for i in range(9)))
    put(run, "params", "lr", "0.5")
    path = draw.choice([path for path in (tmp_path / "mlruns").rglob("*") if path.is_file()])
    path.write_bytes(mutated(draw, path.read_bytes()))
    check_end(bring("mlflow", tmp_path / "mlruns", tmp_path / "out"), tmp_path)


@pytest.mark.fuzz(40)
def test_mutated_logs_of_tensorboard_end_well(tmp_path, seed, exported):
    draw = random.Random(seed)
    (path,) = exported.rglob("*tfevents*")
    data, messages, at = path.read_bytes(), [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        messages.append(data[at + 12 : at + 12 + size])
        at += size + 16
    for _ in range(draw.choice([1, 5])):
        place = draw.randrange(1, len(messages))
        messages[place] = mutated(draw, messages[place])
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / path.name).write_bytes(b"".join(map(framed, messages)))
    check_end(bring("tensorboard", tmp_path / "logs", tmp_path / "out"), tmp_path)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    assert export("tensorboard", FIXTURE / "run1", folder / "a").exit_code == 0
    return folder


def check_end(result, folder: Path) -> None:
    """Whole runs that can be read, or nothing."""
    assert not [name for name in os.listdir(folder) if name.startswith(".")]
    if result.exit_code:
        assert "Nothing was imported: " in result.stderr and not (folder / "out").exists()
        return
    with opened(str(folder / "out")) as library:
        runs = library.runs()
        assert runs and all(run.broken() == [] for run in runs)
    contents(folder / "out")


def test_events_of_many_scalars_are_what_single_ones_would_be(tmp_path):
    draw = np.random.default_rng(0)
    for steps in ([0], [127, 128, 3], [2**63 - 1, -1, 0], list(range(300))):
        times, numbers = draw.random(len(steps)), draw.standard_normal(len(steps)).astype(np.float32)
        made = scalar_events.records(b"a/tag", single(3, 0.0), np.array(steps), times, numbers)
        write(tmp_path / "many", [made])
        write(
            tmp_path / "one",
            [scalar("a/tag", *one) for one in zip(steps, map(float, numbers), map(float, times))],
        )
        assert contents(tmp_path / "many") == contents(tmp_path / "one")
