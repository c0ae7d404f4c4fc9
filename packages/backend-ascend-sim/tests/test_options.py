"""Options: names, values, environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import mycelia as ms
from mycelia_backend_ascend_sim import chip, options


def test_the_environment_is_read():
    found = options.from_environment(
        {"MYCELIA_ASCEND_CHIP": "310", "MS_ASCEND_CHECK_OVERFLOW_MODE": "SATURATION_MODE",
         "MYCELIA_ASCEND_FLUSH_DENORMALS": "1", "MYCELIA_ASCEND_ACCUMULATE": ""}
    )  # fmt: skip
    assert found == options.Options(chip="310", overflow_mode="SATURATION_MODE", flush_denormals=True)


@pytest.mark.parametrize(
    "name, value",
    [("MYCELIA_ASCEND_CHIP", "911"), ("MS_ASCEND_CHECK_OVERFLOW_MODE", "NONE"),
     ("MYCELIA_ASCEND_ACCUMULATE", "fp8"), ("MYCELIA_ASCEND_FLUSH_DENORMALS", "yes")],
)  # fmt: skip
def test_the_environment_is_checked(name, value):
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        options.from_environment({name: value})


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"chips": "910"}, TypeError),
        ({"accumulate": "fp64"}, ValueError),
        ({"flush_denormals": 1}, ValueError),
    ],
)
def test_other_options_are_refused_and_nothing_changes(changes, error):
    before = options.present()
    with pytest.raises(error), options.context(**changes):
        pass
    with pytest.raises(error):
        options.configure(**changes)
    assert options.present() is before


def test_each_chip_has_a_complete_table():
    assert chip.names() == ["310", "910"]
    big, small = chip.load("910"), chip.load("310")
    assert (big.l0a, big.l0b, big.l0c, big.l1, big.ub) == (64 << 10, 64 << 10, 256 << 10, 1 << 20, 256 << 10)
    assert big.cube == (16, 16, 16) and big.vector_bytes == 256 and big.cores > small.cores


MODES = {"force_fp16": "allow_fp32_to_fp16", "force_fp32": "must_keep_origin_dtype"}


@pytest.mark.parametrize("asked", MODES)
def test_the_context_sets_the_precision_mode(asked):
    found = ms.config.context(device_target="Ascend", ascend_config={"precision_mode": asked})
    with options.context(), found:
        assert options.present().precision_mode == MODES[asked]


def test_other_precision_modes_are_told(capfd):
    before = options.present()
    asked = {"precision_mode": "allow_mix_precision"}
    with ms.config.context(device_target="Ascend", ascend_config=asked):
        assert options.present() is before
    assert "no precision_mode 'allow_mix_precision', it has force_fp16" in capfd.readouterr().err


def test_a_variable_that_is_wrong_is_named_at_the_first_use():
    code = "import mycelia as ms; ms.set_context(device_target='Ascend'); ms.Tensor([1.0]) + 1"
    environment = os.environ | {"MS_ASCEND_CHECK_OVERFLOW_MODE": "HALF_MODE"}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert ended.returncode == 1
    assert "the variable MS_ASCEND_CHECK_OVERFLOW_MODE: option 'overflow_mode' must be one of" in ended.stderr
