"""Permutation importance in a random forest: what matters is found, what does not is not."""

import numpy as np

from mycelia_insight.runs.forest import FEWEST, permutation

R = np.random.default_rng(5)


def test_what_matters_is_told_apart_from_what_does_not():
    n = 120
    rate, noise, size = R.random(n), R.random(n), R.integers(0, 3, n).astype(float)
    optimizer = R.choice(["Adam", "SGD"], n)
    path = [f"run{i}" for i in range(n)]  # different for each: it tells nothing of others
    target = (rate - 0.5) ** 2 * 20 + 2 * (optimizer == "Adam")
    found = dict(
        zip(
            ("rate", "noise", "size", "optimizer", "path", "same", "missing"),
            permutation([rate, noise, size, optimizer, path, [1] * n, [None] * n], target),
            strict=True,
        )
    )
    assert abs(np.corrcoef(rate, target)[0, 1]) < 0.3  # which no correlation sees
    assert min(found["rate"], found["optimizer"]) > 0.15
    assert max(found["noise"], found["size"], found["path"]) < 0.05
    assert np.isnan(found["same"]) and np.isnan(found["missing"])


def test_what_matters_only_beside_another_one():
    a, b = R.integers(0, 2, (2, 200))
    found = permutation([a, b, R.random(200)], (a ^ b).astype(float))
    assert min(found[:2]) > 0.3 > 0.1 > found[2]


def test_the_same_each_time_with_odd_values():
    rate = [None, np.nan, np.inf, -np.inf, *np.linspace(1e-300, 1e300, 20)]
    target = np.array([np.nan, 1.0, np.inf, -1.0, *np.linspace(0, 1e300, 20)])
    once, again = (permutation([rate, ["x"] * 24], target) for _ in range(2))
    assert once[0] > 0.3 and np.isnan(once[1])
    np.testing.assert_array_equal(once, again)


def test_values_with_no_number_between_or_near_the_greatest_one():
    greatest = np.finfo(np.float64).max
    for low, high in ((0.3, 0.1 + 0.2), (0.9 * greatest, greatest), (0.0, 5e-324), (-greatest, greatest)):
        found = permutation([[low, high] * 10], np.array([1.0, 2.0] * 10))
        assert found[0] > 0.3
        found = permutation([[1, 2] * 10], np.array([low, high] * 10))
        assert found[0] > 0.3, (low, high)


def test_integers_beyond_floats_are_as_the_greatest_of_the_others():
    assert permutation([[10**400, 1, 2] * 10], np.array([1.0, 2.0, 1.0] * 10))[0] > 0.3


def test_too_few_runs_and_a_target_that_does_not_vary():
    assert permutation([[1.0] * 5], np.arange(5.0)) is None and FEWEST == 6
    assert permutation([np.arange(9.0)], np.ones(9)) is None
    assert permutation([np.arange(9.0)], np.full(9, np.nan)) is None
    assert np.isnan(permutation([[np.inf, None] * 5], np.arange(10.0))[0])  # nothing that can be compared
    assert permutation([], np.arange(9.0)).size == 0
