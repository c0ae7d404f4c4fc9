"""Formulas of conditions that MindSpore's debugger does not have, on finite values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mycelia.debug.conditions.around import Around
from mycelia.debug.conditions.catalogue import SATURATION
from mycelia.debug.conditions.found import ParameterHit
from mycelia.engine.base import errors

_Values = Mapping[str, Any]


def _dead_relu(values: _Values, array: np.ndarray, around: Around) -> Iterator[ParameterHit]:
    """The share of channels that are 0 in this step and in those before that are there."""
    dead = _dead_channels(array)
    for before in around.earlier[: values["steps"] - 1]:
        other = _dead_channels(before)
        if other.shape != dead.shape:
            break
        dead = dead & other
    yield _at_least("dead_percentage_ge", values, 100.0 * np.count_nonzero(dead) / dead.size)


def _dead_channels(array: np.ndarray) -> np.ndarray:
    """Channels are the second axis of images, (N, C, H, W) or (N, C, D, H, W), and the last of all else."""
    axis = 1 if array.ndim > 3 else max(array.ndim - 1, 0)
    rest = tuple(i for i in range(array.ndim) if i != axis)
    return np.atleast_1d((array == 0).all(axis=rest))


def _saturated(values: _Values, array: np.ndarray, around: Around) -> Iterator[ParameterHit]:
    """The share of elements within `margin` of an end of the activation, by the width of its range."""
    ends = SATURATION.get(around.kind.lower())
    if ends is None:
        raise errors.one_of(
            around.kind, sorted(SATURATION), subject="saturated_activation", what="the type of the operator"
        )
    low, high = ends
    x = array.astype(np.float64)
    margin = values["margin"] * (high - (low or 0.0))
    is_at = x >= high - margin
    if low is not None:
        is_at |= x <= low + margin
    yield _at_least("saturated_percentage_ge", values, 100.0 * np.count_nonzero(is_at) / x.size)


def _loss_not_decreasing(values: _Values, array: np.ndarray, around: Around) -> Iterator[ParameterHit]:
    """``EMA(last window) > EMA(window before) - min_rel_drop * abs(EMA(window before))``."""
    window = values["window"]
    losses = [float(x.reshape(-1)[0]) for x in (array, *around.earlier[: 2 * window - 1])][::-1]
    before, last = moving_average(losses[:window]), moving_average(losses[window:])
    bound = values["min_rel_drop"]
    drop = (before - last) / max(abs(before), 1e-30)
    yield ParameterHit("min_rel_drop", bound, drop, last > before - bound * abs(before))


def moving_average(numbers: Sequence[float]) -> float:
    """The exponential moving average after the last of them, with ``2 / (n + 1)`` as the weight of each."""
    found, weight = numbers[0], 2.0 / (len(numbers) + 1)
    for number in numbers[1:]:
        found += weight * (number - found)
    return found


def _gradient_norm(values: _Values, array: np.ndarray, around: Around) -> Iterator[ParameterHit]:
    yield from _bounds("l2norm", values, _norm(array))


def _update_ratio(values: _Values, array: np.ndarray, around: Around) -> Iterator[ParameterHit]:
    """``norm(now - before) / (norm(before) + epsilon)``, Euclidean norms."""
    before = around.earlier[0]
    change = _norm(_wide(array) - _wide(before))
    yield from _bounds("update_ratio", values, change / (_norm(before) + values["epsilon"]))


def _rank_mismatch(values: _Values, array: np.ndarray, around: Around) -> Iterator[ParameterHit]:
    """The greatest absolute difference to another rank; of another shape infinity."""
    x = _wide(array)
    apart = max(
        float(np.abs(x - _wide(other)).max()) if other.shape == x.shape else math.inf
        for other in around.others
    )
    yield from _bounds("max_difference", values, apart)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _norm(array: np.ndarray) -> float:
    return float(np.linalg.norm(_wide(array).reshape(-1)))


def _at_least(name: str, values: _Values, actual: float) -> ParameterHit:
    return ParameterHit(name, values[name], actual, actual >= values[name])


def _bounds(measure: str, values: _Values, actual: float) -> Iterator[ParameterHit]:
    above, below = f"{measure}_gt", f"{measure}_lt"
    if above in values:
        yield ParameterHit(above, values[above], actual, actual > values[above])
    if below in values:
        yield ParameterHit(below, values[below], actual, actual < values[below])


MEASURES: dict[str, Callable[[_Values, np.ndarray, Around], Iterator[ParameterHit]]] = {
    "dead_relu": _dead_relu,
    "saturated_activation": _saturated,
    "loss_not_decreasing": _loss_not_decreasing,
    "gradient_norm": _gradient_norm,
    "update_ratio": _update_ratio,
    "rank_mismatch": _rank_mismatch,
}
