"""`mycelia doctor --summary-dir`: what was planted into records is found, good records are not blamed."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
from mycelia import dataset as ds
from mycelia import nn
from mycelia.cli import app
from mycelia.engine.base.wire import field
from mycelia.train import SummaryCollector, SummaryRecord
from mycelia.train.checks import RECORDED, examine_recorded, read_summaries
from mycelia.train.summary.events import framed
from mycelia.train.summary.lineage import TrainLineage

STEPS = 100
RNG = np.random.default_rng(0)
NOISE = RNG.standard_normal((STEPS,))
WEIGHT, GRADIENT = RNG.standard_normal((2, 8, 8)).astype(np.float32)


def falling(k):
    """A loss as of a training that goes well."""
    return 0.2 + 2.1 * math.exp(-k / 12) + 0.02 * NOISE[k]


GOOD = {
    "loss": falling,
    "val/loss": lambda k: falling(k) + 0.1,
    "learning_rate": lambda k: 0.1,
    "fc.weight": lambda k: WEIGHT * np.float32(1 + k / STEPS),
    "fc.relu": lambda k: np.maximum(GRADIENT * np.float32(1 + k / STEPS), 0),
    "fc.weight.grad": lambda k: GRADIENT * np.float32(math.exp(-k / 50)),
    "loss_scale": lambda k: 1024.0,
}


def records(folder, steps=STEPS, **changed):
    """Record what `GOOD` and `changed` give for each step."""
    with SummaryRecord(str(folder)) as record:
        for k in range(steps):
            for tag, made in {**GOOD, **{name.replace("__", "."): f for name, f in changed.items()}}.items():
                value = np.asarray(made(k), np.float32)
                record.add_value("histogram" if value.ndim else "scalar", tag, ms.Tensor(value))
            record.record(10 * (k + 1))
        record.add_value("train_lineage", "train", TrainLineage(optimizer="SGD", learning_rate=0.25))
        record.record(0)
    return folder


def said(folder, number):
    (result,) = [r for r in examine_recorded(read_summaries(folder)) if r.check == number]
    return result


def test_good_records_are_not_blamed(tmp_path):
    results = examine_recorded(read_summaries(records(tmp_path)))
    assert [r.check for r in results] == sorted(RECORDED) and all(r.evidence for r in results)
    assert not [r for r in results if r.verdict != "not found"], results


def after(step, value, before=falling):
    """`before` until a record, then `value`."""
    return lambda k: value(k) if k >= step else before(k)


PLANTED = {
    "cg.04 nan": (dict(loss=after(40, lambda k: math.nan)), "loss is nan at step 410, "),
    "cg.04 constant": (dict(loss=lambda k: 0.75), "loss is 0.75 at all 100 steps"),
    "cg.04 diverges": (dict(loss=after(60, lambda k: 0.2 + 0.05 * (k - 59))), "loss diverges: 0.2"),
    "cg.04 guesses": (
        dict(loss=lambda k: math.log(10) + 0.01 * NOISE[k]), "as of guesses among 10 classes (ln 10 = 2.303)",
    ),
    "hp.01 first": (dict(loss=lambda k: falling(k) + 30 * (k == 2)), "too high: loss rises from "),
    "hp.01 jumps": (dict(loss=lambda k: falling(k) + 3 * (k % 12 == 11)), "too high: loss jumps 7 times"),
    "hp.01 low": (dict(loss=lambda k: 2.3 - 0.001 * k + 0.002 * NOISE[k]), "too low: loss falls by 0.09"),
    "hp.01 still": (
        dict(loss=lambda k: 2.3 + 0.002 * NOISE[k], fc__weight=lambda k: WEIGHT * np.float32(1 + 1e-6 * k)),
        "learning_rate from 0.1 to 0.1; too low: loss does not fall, and no weights move: fc.weight most",
    ),
    "hp.02 many": (
        {"val/loss": after(50, lambda k: 0.3 + 0.02 * (k - 50))}, "too many: val/loss is least, 0.",
    ),
    "hp.02 few": (dict(loss=lambda k: 3 * 0.98**k), "too few: the mean of loss is "),
    "mp.01": (
        dict(fc__relu=after(30, lambda k: np.array([1, np.inf, np.nan]), lambda k: WEIGHT)),
        "from step 310 on: fc.relu has 1 NaN and 1 infinities of 3",
    ),
    "mp.02": (dict(loss_scale=lambda k: max(1.0, 1024.0 / 2**k)), "from 1024 to 1, 10 times lower"),
    "cg.03": (dict(fc__weight=lambda k: WEIGHT), "unchanged from step 10 to 1000: fc.weight"),
    "wi.01": (dict(fc__weight=lambda k: WEIGHT * k), "all zero: fc.weight at step 10"),
    "rc.01": (dict(fc__weight=lambda k: WEIGHT * 1.1**k), "fc.weight from "),
    "rc.02": (dict(fc__relu=after(70, lambda k: WEIGHT * 0, lambda k: WEIGHT)), "zero from step 710"),
    "rc.03 explodes": (
        dict(fc__weight__grad=lambda k: GRADIENT * (1e4 if k == 55 else 1)), "fc.weight.grad is ",
    ),
    "rc.03 vanishes": (
        dict(fc__weight__grad=lambda k: GRADIENT * 0.5**k), "fc.weight.grad from ",
    ),
    "rc.03 norm": ({"grad_norm": lambda k: 500.0 if k == 20 else 1.0}, "500 at step 210, 1 before"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_is_found(name, tmp_path):
    changed, evidence = PLANTED[name]
    result = said(records(tmp_path, **changed), name.split()[0])
    assert result.verdict == "found" and evidence in result.evidence, result


def test_what_is_not_recorded_needs_you(tmp_path):
    with SummaryRecord(str(tmp_path)) as record:
        record.add_value("scalar", "accuracy", ms.Tensor(0.5))
        record.record(1)
    verdicts = {r.check: r.verdict for r in examine_recorded(read_summaries(tmp_path))}
    assert verdicts.pop("mp.01") == "not found" and set(verdicts.values()) == {"needs you"}, verdicts


def test_a_short_curve_is_not_judged(tmp_path):
    records(tmp_path, steps=5)
    assert said(tmp_path, "cg.04").verdict == said(tmp_path, "hp.01").verdict == "needs you"


def test_a_run_that_goes_on_is_read_to_its_last_whole_record(tmp_path):
    records(tmp_path)
    (path,) = tmp_path.glob("*_MS")
    path.chmod(0o600)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 7])
    summaries = read_summaries(tmp_path)
    assert not summaries.notes and len(summaries.curves["loss"]) == STEPS - 1
    assert summaries.facts["learning_rate"] == 0.25 and summaries.facts["optimizer"] == "SGD"


def test_damage_is_told_and_what_is_before_it_is_read(tmp_path):
    records(tmp_path)
    (path,) = tmp_path.glob("*_MS")
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    summaries = read_summaries(tmp_path)
    assert len(summaries.notes) == 1 and "record" in summaries.notes[0]


def test_steps_that_were_done_again_count_once(tmp_path):
    for value in (1.0, 2.0):
        with SummaryRecord(str(tmp_path), file_suffix=f"_{value}") as record:
            for step in (3, 1, 2):
                record.add_value("scalar", "loss", ms.Tensor(value * step))
                record.record(step)
    curve = read_summaries(tmp_path).curves["loss"]
    assert curve.steps.tolist() == [1, 2, 3] and curve.values.tolist() == [2.0, 4.0, 6.0]


def doctor(*words):
    command = [sys.executable, "-m", "mycelia", "doctor", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def collected(folder, rate):
    """A training that SummaryCollector records."""
    ms.set_seed(1)
    ds.config.set_seed(1)
    x = np.random.default_rng(0).standard_normal((512, 4)).astype(np.float32)
    data = ds.NumpySlicesDataset((x, x[:, :3].argmax(1).astype(np.int32)), ["x", "y"]).batch(8)
    net = nn.SequentialCell(nn.Dense(4, 16), nn.ReLU(), nn.Dense(16, 3))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.Model(net, loss, nn.SGD(net.trainable_params(), rate))
    model.train(8, data, [SummaryCollector(str(folder), collect_freq=4)])


def test_learning_rates_of_real_trainings_are_judged(tmp_path):
    for rate, verdict, evidence in (
        (0.1, "not found", "rate 0.1; loss/auto neither"),
        (1e-5, "found", "too low: loss/auto does not fall, and no weights move"),
        (30.0, "found", "too high: loss/auto rises"),
    ):
        folder = tmp_path / str(rate)
        collected(folder, rate)
        result = said(folder, "hp.01")
        assert result.verdict == verdict and evidence in result.evidence, result
    done = doctor("--summary-dir", tmp_path / "0.1")
    assert done.returncode == 0 and "loss/auto falls from" in done.stdout, done.stdout + done.stderr
    done = doctor("--json", "--summary-dir", tmp_path / "30.0")
    found = {r["check"]: r["verdict"] for r in json.loads(done.stdout)}
    assert done.returncode == 1 and found["cg.04"] == found["mp.01"] == found["rc.01"] == "found", found


def test_what_is_no_summary_folder_is_refused(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    for words, text in (
        (["--summary-dir", tmp_path], "has no event file"),
        (["--summary-dir", tmp_path, script], "instead of a script"),
        ([], "a script, or a folder with scripts, is missing"),
    ):
        done = CliRunner().invoke(app, ["doctor", *map(str, words)])
        said = " ".join(done.output.replace("\u2502", " ").split())
        assert done.exit_code == 2 and text in said, done.output


@pytest.mark.parametrize(
    "message",
    [
        field(5, 1), field(5, field(1, 1)), field(5, field(1, field(1, 10**12))),
        field(5, field(1, field(3, 1))), field(5, field(1, field(9, field(1, 1)))),
        field(5, field(1, field(9, 1))),
    ],
)  # fmt: skip
def test_a_number_where_a_message_belongs_is_a_note(tmp_path, message):
    (tmp_path / "a.out.events.summary.1.host").write_bytes(framed(message))
    (note,) = read_summaries(tmp_path).notes
    assert "a record is no event" in note
