"""Files and texts changed at random: read as what can be written again, or refused by FormatError."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from mycelia_lite.format import FormatError, decode, encode, from_text, read, to_text

from .test_flatbuffer import FILES, FIXTURES, content

sys.path.insert(0, str(Path(__file__).parents[4] / "packages/core/tests"))

from mutations import mutated

AT_ONCE = 20  # mutations of each file for one seed


@pytest.mark.fuzz(10)
@pytest.mark.parametrize("name", FILES)
def test_changed_files_are_read_or_refused(name, seed):
    rng = random.Random(f"{name} {seed}")
    for _ in range(AT_ONCE):
        data = mutated(content(name), rng)
        try:
            model = decode(data)
        except FormatError as e:
            assert str(e).startswith("MYC-FILE MetaGraph"), e
            continue
        if any(table.unknown_fields for table in (model, *model.nodes, *model.allTensors)):
            continue
        try:
            again = decode(encode(model))
        except FormatError as e:  # a table deep inside, with fields that are not known
            assert "newer version" in str(e), e
        else:
            assert again == model


@pytest.mark.parametrize("name", FILES)
def test_files_that_end_early_are_refused(name):
    data = content(name)
    for size in range(0, len(data) - 64, 61):
        try:
            decode(data[:size])
        except FormatError:
            continue
        raise AssertionError(f"{size} of {len(data)} bytes are taken for a model")


@pytest.mark.fuzz(10)
@pytest.mark.parametrize("name", FILES)
def test_changed_texts_are_read_or_refused(name, seed):
    rng = random.Random(f"text {name} {seed}")
    text = to_text(read(FIXTURES / name)).encode()
    for _ in range(5):
        try:
            model = from_text(mutated(text, rng).decode("utf-8", "replace"))
        except FormatError as e:
            assert "line " in str(e), e
            continue
        try:
            encode(model)
        except FormatError as e:
            assert "does not fit" in str(e) or "no text" in str(e), e
