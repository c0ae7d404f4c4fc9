"""How much parameters of runs matter for a target together: permutation importance in a random forest.

Source: Breiman 2001, Random Forests, section 10. Other than a correlation it sees what is not monotonic, and
what matters only beside another parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia_insight.runs.importance import numbers

TREES = 40
FEWEST = 6  # runs
_MOST = 400  # runs that trees are grown of
_MOST_TEXTS = 12  # of a parameter that are told apart; the rest is one


def permutation(parameters: Sequence[Sequence[Any]], target: np.ndarray) -> np.ndarray | None:
    """For each parameter, of numbers or texts, how much worse runs that a tree was not grown of are predicted
    when its values are shuffled, as a share, 0 to 1, of what chance alone would be off.

    NaN for a parameter that does not vary among the runs that count. None for fewer than 6 runs with a finite
    target, or a target that does not vary.
    """
    have = np.flatnonzero(np.isfinite(target))
    have = have[np.linspace(0, len(have) - 1, min(len(have), _MOST)).astype(np.int64)] if len(have) else have
    y = target[have].astype(np.float64)
    if len(have) < FEWEST or y.min() == y.max():
        return None
    y /= np.abs(y).max()  # of numbers near the greatest one there is no sum
    y = (y - y.mean()) / np.abs(y - y.mean()).max()
    columns, owners = [], []
    for owner, values in enumerate(parameters):
        for column in _columns([values[i] for i in have]):
            columns.append(column)
            owners.append(owner)
    found = np.array([0.0 if i in owners else np.nan for i in range(len(parameters))])
    if not columns:
        return found
    x, owner_of = np.stack(columns, 1), np.array(owners)
    rng, grown = np.random.default_rng(0), 0
    for _ in range(TREES):
        drawn = rng.integers(0, len(y), len(y))
        left_out = np.setdiff1d(np.arange(len(y)), drawn)
        if not len(left_out):
            continue
        grown += 1
        tree = _grow(x[drawn], y[drawn], rng)
        right = np.square(_predict(tree, x[left_out]) - y[left_out]).mean()
        for owner in np.unique(owner_of):
            shuffled, mine = x[left_out].copy(), owner_of == owner
            shuffled[:, mine] = shuffled[rng.permutation(len(left_out))][:, mine]
            found[owner] += np.square(_predict(tree, shuffled) - y[left_out]).mean() - right
    # Two values drawn at random are apart by twice the variance, in the mean of squares.
    return np.clip(found / max(1, grown) / (2 * y.var()), 0, 1)


def _columns(values: list[Any]) -> list[np.ndarray]:
    """A parameter as columns of numbers: itself, or one for each of its texts; none if it does not vary."""
    given = numbers(values)
    if given is not None:
        finite = given[np.isfinite(given)]
        if not len(finite):
            return []
        middle = np.quantile(finite, 0.5, method="lower")
        columns = [np.clip(np.where(np.isnan(given), middle, given), finite.min(), finite.max())]
    else:
        texts = [str(value) for value in values]
        columns = [
            np.array([one == text for one in texts], np.float64)
            for text, _ in Counter(texts).most_common(_MOST_TEXTS)
        ]
    return [column for column in columns if column.min() < column.max()]


Tree = list[tuple[int, float, int, int, float]]  # column (-1: a leaf), threshold, the two below, mean


def _grow(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Tree:
    least = max(1, len(y) // 50)
    tried = max(1, x.shape[1] // 3)
    tree: Tree = [(-1, 0.0, 0, 0, 0.0)]
    stack = [(0, np.arange(len(y)))]
    while stack:
        place, rows = stack.pop()
        mean = float(y[rows].mean())
        best = (1e-12, -1, 0.0)
        for column in rng.permutation(x.shape[1])[:tried] if len(rows) >= 2 * least else ():
            best = max(best, _split(x[rows, column], y[rows] - mean, least, int(column)))
        _, column, threshold = best
        if column < 0:
            tree[place] = (-1, 0.0, 0, 0, mean)
            continue
        low = x[rows, column] <= threshold
        tree[place] = (column, threshold, len(tree), len(tree) + 1, mean)
        stack += [(len(tree), rows[low]), (len(tree) + 1, rows[~low])]
        tree += [(-1, 0.0, 0, 0, 0.0)] * 2
    return tree


def _split(x: np.ndarray, y: np.ndarray, least: int, column: int) -> tuple[float, int, float]:
    """(how much less the squares are, the column, the threshold) of the best place to part the rows."""
    order = np.argsort(x, kind="stable")
    x, sums = x[order], np.cumsum(y[order])[:-1]
    count = np.arange(1, len(x))
    gain = sums**2 / count + sums**2 / count[::-1]  # the sum of all is 0
    gain[(x[1:] <= x[:-1]) | (count < least) | (count[::-1] < least)] = -1
    at = int(gain.argmax())
    middle = x[at] / 2 + x[at + 1] / 2  # of neighbours among floats it is one of them
    return float(gain[at]), column, float(middle if x[at] <= middle < x[at + 1] else x[at])


def _predict(tree: Tree, x: np.ndarray) -> np.ndarray:
    columns, thresholds, lows, highs, means = map(np.array, zip(*tree, strict=True))
    at = np.zeros(len(x), np.int64)
    while (inner := np.flatnonzero(columns[at] >= 0)).size:
        now = at[inner]
        low = x[inner, columns[now]] <= thresholds[now]
        at[inner] = np.where(low, lows[now], highs[now])
    return means[at]
