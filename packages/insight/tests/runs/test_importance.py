"""What parameters tell of a target, against values known by construction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mycelia_insight.runs import importance


def test_correlation_is_numpys_and_says_why_there_is_none():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = -x + rng.normal(size=200)
    x[7] = math.nan
    found, reason = importance.pearson(x, y)
    known = ~np.isnan(x)
    assert reason == 0 and found == pytest.approx(abs(np.corrcoef(x[known], y[known])[0, 1]), rel=1e-12)
    assert importance.pearson(x * 1e200, y * 1e-200)[0] == pytest.approx(found, rel=1e-9)
    assert importance.pearson(x[:2], y[:2]) == (0.0, importance.TOO_FEW)
    assert importance.pearson(np.ones(9), y[:9]) == (0.0, importance.NOT_A_NUMBER)
    assert importance.pearson(np.array([1, 2, math.inf]), y[:3]) == (0.0, importance.NOT_A_NUMBER)


def test_information_sees_what_correlation_does_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    noise = rng.normal(size=500)
    assert importance.pearson(x, x * x)[0] < 0.2
    assert importance.information(x.tolist(), x * x)[0] > 0.4
    assert importance.information(x.tolist(), noise)[0] < 0.05
    assert importance.information(x.tolist(), x)[0] == pytest.approx(1)
    words = ["ab"[int(v > 0)] for v in x]
    assert importance.information(words, np.sign(x))[0] == pytest.approx(1)
    assert (
        importance.information([str(i) for i in range(500)], x)[0] < 0.01
    )  # a name of its own tells nothing
    assert importance.information([1, None, "a"], np.array([1.0, 2.0, math.nan])) == (0.0, importance.TOO_FEW)


def test_five_buckets_hold_all_finite_values():
    found = importance.buckets(np.array([0.0, 10.0, 5.0, 4.9, math.nan, math.inf]))
    assert [count for *_, count in found] == [1, 0, 2, 0, 1]
    assert found[0][:2] == [0.0, 2.0]
    assert importance.buckets(np.array([3.0]))[0] == [2.5, pytest.approx(0.2), 0]
    assert sum(count for *_, count in importance.buckets(np.array([math.nan]))) == 0


@pytest.mark.parametrize(
    "values",
    [(1e20, 1e20), (0.3, 0.1 + 0.2), (0.0, 5e-324), (-1.7e308, 1.7e308), (np.finfo(float).max,)],
    ids=str,
)
def test_buckets_where_floats_have_no_five_parts(values):
    found = importance.buckets(np.array(values))
    assert sum(count for *_, count in found) == len(values) and len(found) == 5
    assert all(math.isfinite(left) and 0 < width < math.inf for left, width, _ in found)


def test_integers_beyond_floats_are_infinite():
    assert importance.numbers([10**400, -(10**400), 3]).tolist() == [math.inf, -math.inf, 3]
