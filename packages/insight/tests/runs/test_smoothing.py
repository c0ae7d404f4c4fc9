"""Smoothing by neighbours, against the sums as they are written down."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mycelia_insight.runs import smoothing
from mycelia_insight.runs.smoothing import smoothed


def by_hand(values: np.ndarray, weights: dict[int, float]) -> np.ndarray:
    """The mean of the finite neighbours, those at a distance i with a weight of weights[|i|]."""
    out = values.astype(np.float64)
    for i, value in enumerate(values):
        if math.isfinite(value):
            near = [(weights[abs(i - k)], float(values[k])) for k in range(len(values))
                    if abs(i - k) in weights and math.isfinite(values[k])]  # fmt: skip
            out[i] = sum(w * v for w, v in near) / sum(w for w, _ in near)
    return out


def noisy(n: int) -> np.ndarray:
    values = np.random.default_rng(1).standard_normal(n).astype(np.float32) + 1000
    values[3 : n : n // 4] = np.nan, np.inf, -np.inf, np.nan
    return values


@pytest.mark.parametrize("width", [2, 3, 8, 101])
def test_a_moving_average_is_the_mean_around(width):
    values = noisy(60)
    reach = (width | 1) // 2
    expected = by_hand(values, dict.fromkeys(range(reach + 1), 1.0))
    np.testing.assert_allclose(smoothed(values, "average", width), expected, rtol=1e-6)


@pytest.mark.parametrize("width", [4, 20, 60])
def test_a_gaussian_weighs_by_distance(width):
    values = noisy(60)
    weights = {i: math.exp(-0.5 * (i / (width / 4)) ** 2) for i in range(width + 1)}
    np.testing.assert_allclose(smoothed(values, "gaussian", width), by_hand(values, weights), rtol=1e-6)


@pytest.mark.parametrize("smoother", ["average", "gaussian"])
def test_pieces_join_without_a_seam(monkeypatch, smoother):
    values = noisy(4000)
    whole = smoothed(values, smoother, 300)
    monkeypatch.setattr(smoothing, "_PIECE", 333)
    np.testing.assert_allclose(smoothed(values, smoother, 300), whole, rtol=1e-6)


@pytest.mark.parametrize("smoother", ["average", "gaussian"])
def test_edges(smoother):
    constant = np.full(500, 0.1, np.float32)
    np.testing.assert_array_equal(smoothed(constant, smoother, 99), constant)
    assert len(smoothed(np.empty(0, np.float32), smoother, 9)) == 0
    nothing = np.full(5, np.nan, np.float32)
    np.testing.assert_array_equal(smoothed(nothing, smoother, 9), nothing)
    one = np.array([2.5], np.float32)
    np.testing.assert_array_equal(smoothed(one, smoother, 100_000), one)
    with pytest.raises(ValueError, match="'smoother' must be one of"):
        smoothed(one, "ema", 3)
