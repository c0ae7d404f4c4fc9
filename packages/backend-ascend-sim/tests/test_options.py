"""Options: names, values, environment."""

from __future__ import annotations

import pytest

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
