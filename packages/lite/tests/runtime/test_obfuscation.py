"""Obfuscated models: nothing of the structure is left in the file, the answers are the same."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia_lite as mslite
from mycelia_lite.cli import app
from mycelia_lite.converter import convert, trial
from mycelia_lite.format import Table, read, write
from mycelia_lite.obfuscate import obfuscate

from .test_stages import looper

MINDIR = mslite.FmkType.MINDIR


@pytest.fixture(scope="module")
def plain(lenet, tmp_path_factory):
    return convert(MINDIR, lenet[0], str(tmp_path_factory.mktemp("o") / "lenet")).path


def loaded(path):
    model = mslite.Model()
    model.build_from_file(path)
    return model


@pytest.mark.parametrize("degree", [0.01, 0.2, 1])
def test_answers_stay_and_the_structure_is_gone(lenet, plain, tmp_path, degree):
    path = tmp_path / "o.ms"
    write(path, obfuscate(read(plain), degree))
    assert read(plain).fixedBy and b"Flatten" not in path.read_bytes()
    expected = trial.answers(loaded(plain), [lenet[1]])
    found = trial.answers(loaded(path), [lenet[1]])
    assert np.array_equal(found[0], expected[0])
    made, source = read(path), read(plain)
    kinds = Counter(n.primitive.kind for n in made.nodes)
    added = max(1, round(degree * len(source.nodes)))
    assert len(made.nodes) == len(source.nodes) + added and kinds["Custom"] == 2 * added
    names = {t.name for t in source.allTensors} | {n.name for n in source.nodes}
    borders = {t.name for t in loaded(plain).get_inputs() + loaded(plain).get_outputs()}
    left = {t.name for t in made.allTensors} | {n.name for n in made.nodes}
    assert names & left == borders
    if degree == 1:
        assert set(kinds) == {"Custom"} and not any(
            k.encode() in path.read_bytes() for k in ("Conv", "MatMul")
        )
        assert sum(len(n.inputIndex) for n in made.nodes) > sum(len(n.inputIndex) for n in source.nodes)


def test_the_same_model_gives_the_same_file(plain):
    assert obfuscate(read(plain), 0.5) == obfuscate(read(plain), 0.5) != obfuscate(read(plain), 0.2)


def test_loops_can_be_hidden(tmp_path):
    looper().model(tmp_path / "plain.ms")
    write(tmp_path / "o.ms", obfuscate(read(tmp_path / "plain.ms"), 1))
    arrays = [np.array(4), np.array(True), np.float32([1, -2, 3])]
    plain, hidden = (trial.answers(loaded(tmp_path / f"{n}.ms"), arrays) for n in ("plain", "o"))
    assert len(plain) == 2 and all(np.array_equal(a, b) for a, b in zip(plain, hidden, strict=True))


def test_the_command(plain, tmp_path):
    out = tmp_path / "o.ms"
    run = ["obfuscate", f"--modelFile={plain}", "--output-file", str(out)]
    assert CliRunner().invoke(app, run).exit_code == 0 and read(out).obfuscate
    for degree in ("0", "1.5", "nan"):
        result = CliRunner().invoke(app, [*run, f"--obfDegree={degree}"])
        assert result.exit_code == 1 and "degree must be above 0 and at most 1" in result.output
    again = CliRunner().invoke(app, ["obfuscate", f"--modelFile={out}", f"--outputFile={out}"])
    assert again.exit_code == 1 and "obfuscated already" in again.output


@pytest.mark.parametrize("data", [b"", bytes(40), b"MYCOBF1\0" + bytes(8)])
def test_an_unknown_obfuscation_is_told(plain, tmp_path, data):
    model = read(plain).copy()
    model.obfuscate, model.obfMetaData = True, data
    write(tmp_path / "o.ms", model)
    with pytest.raises(RuntimeError, match="obfuscated in a way that is not known"):
        loaded(tmp_path / "o.ms")


def test_damaged_obfuscation_is_told_or_harmless(plain, tmp_path):
    good = obfuscate(read(plain), 0.5)
    good.allTensors[good.inputIndex[0]].dims = [1, 1, 32, 32]
    reasons = 0
    for number in range(150):
        rand, model = random.Random(number), good.copy()
        data = bytearray(model.obfMetaData)
        if number % 3:
            data[rand.randrange(16, len(data))] ^= 1 << rand.randrange(8)
        else:
            del data[rand.randrange(8, len(data)) :]
        model.obfMetaData = bytes(data)
        write(tmp_path / "d.ms", model)
        try:
            made = loaded(tmp_path / "d.ms")
            trial.answers(made, trial.random_inputs(made))
        except RuntimeError as error:
            assert str(error).strip()
            reasons += 1
    assert reasons > 50


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="degree"):
        obfuscate(Table("MetaGraph"), True)
