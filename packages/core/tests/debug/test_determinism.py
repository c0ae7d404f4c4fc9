"""A seed for everything, and a block whose runs can be repeated."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, nn, ops


def drawn() -> list:
    numbers = ops.standard_normal((3,)).asnumpy().tolist()
    return [random.random(), float(np.random.rand()), numbers, nn.Dense(2, 2).weight.asnumpy().tolist()]


def test_one_seed_repeats_all_that_is_drawn():
    found = []
    for seed in (7, 7, 8):
        debug.seed_all(seed)
        found.append(drawn())
    assert found[0] == found[1]
    assert all(a != b for a, b in zip(found[0], found[2]))
    with pytest.raises(TypeError, match="'seed' must be type of int"):
        debug.seed_all("7")


def test_the_setting_is_on_in_the_block_alone():
    before = ms.config.get("deterministic")
    found = []
    for _ in range(2):
        with debug.deterministic(seed=3):
            assert ms.config.get("deterministic") == "ON"
            found.append(drawn())
    assert found[0] == found[1] and ms.config.get("deterministic") == before
