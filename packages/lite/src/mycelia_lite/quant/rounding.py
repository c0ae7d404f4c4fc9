"""Numbers as integers of few bits: which ones, and what each stands for, with the least squared error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mycelia_lite.quant.codes import entropy

_CODED = 1 << 14  # elements by which levels of an entropy code are chosen
_CHOICES = np.geomspace(0.8, 8, 14)  # standard deviations to both sides that levels may span
_FINER = np.geomspace(0.87, 1.15, 7)
_SEARCHED = 8  # bits: of more the extremes of a row are its best range
_SAMPLE = 512  # elements of a row by which ranges are compared
_REFITS = 3
_FARTHEST = 1 << 22  # zeros: integers less these are exact in float32
_AT_ONCE = 1 << 20  # elements


@dataclass
class Rounded:
    """Rows as (q - zero) * scale + shift. q: [rows, n] of int32; others: [rows] of float32, zeros whole."""

    q: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    shift: np.ndarray

    def numbers(self) -> np.ndarray:
        """What the integers stand for, in float32, as the runtime widens them."""
        widened = (self.q.astype(np.float32) - self.zero[:, None]) * self.scale[:, None]
        return widened + self.shift[:, None] if self.shift.any() else widened


def round_rows(rows: np.ndarray, bits: int, shifts: bool = True) -> Rounded:
    """Integers of `bits` bits for the finite numbers [rows, n] of float32, n at least 1.

    `shifts`: with at most 8 bits the mean of a row stays; else zeros do, of a row with numbers on both sides.
    """
    parts = [_round_some(part, bits, shifts and bits <= _SEARCHED) for part in _parts(rows)]
    return Rounded(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("q", "scale", "zero", "shift"))
    )


def _parts(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Rows by so many that what is computed on the way stays small."""
    step = max(1, _AT_ONCE // rows.shape[1])
    for start in range(0, max(1, len(rows)), step):
        yield rows[start : start + step]


def _round_some(rows: np.ndarray, bits: int, shifts: bool) -> Rounded:
    wide = rows.astype(np.float64)
    low, high = wide.min(1), wide.max(1)
    factor = _factor(wide, low, high, bits, shifts) if bits <= _SEARCHED else np.ones(len(rows))
    levels = _levels(low, high, factor, bits, shifts)
    q = _nearest(wide, bits, *levels)
    for _ in range(_REFITS if bits <= _SEARCHED else 0):
        levels = _fitted(wide, q, *levels, shifts)
        q = _nearest(wide, bits, *levels)
    scale, zero, shift = levels
    if shifts:
        shift = (shift + (wide - q * scale[:, None] - shift[:, None]).mean(1)).astype(np.float32)
    same = low == high  # one number: it is exact
    scale[same] = np.where(low[same] == 0, 1, np.abs(low[same]))
    zero[same], shift[same], q[same] = -np.sign(low[same]), 0, 0
    return Rounded(q.astype(np.int32), *(a.astype(np.float32) for a in (scale, zero, shift)))


def _factor(rows: np.ndarray, low: np.ndarray, high: np.ndarray, bits: int, shifts: bool) -> np.ndarray:
    """The share of each row's range over which levels leave the least error, by a sample of its elements."""
    sample = rows[:, :: -(-rows.shape[1] // _SAMPLE)]
    least = {1: 0.2, 2: 0.3, 3: 0.45, 4: 0.55, 5: 0.7}.get(bits, 0.85)
    best, error = np.ones(len(rows)), np.full(len(rows), np.inf)
    for factor in np.linspace(1.0, least, 12 if bits <= 5 else 4):
        scale, zero, shift = _levels(low, high, np.full(len(rows), factor), bits, shifts)
        off = (_nearest(sample, bits, scale, zero, shift) - zero[:, None]) * scale[:, None]
        off += shift[:, None] - sample
        square = np.einsum("ij,ij->i", off, off)
        best[square < error] = factor
        error = np.minimum(error, square)
    return best


def _levels(low: np.ndarray, high: np.ndarray, factor: np.ndarray, bits: int, shifts: bool):
    """(scale, zero, shift) of levels over the middle part of a range, as a file holds them."""
    middle, half = (low + high) / 2, (high - low) / 2 * factor
    least = (
        np.finfo(np.float32).tiny
        if shifts
        else np.maximum(np.abs(middle) / _FARTHEST, np.finfo(np.float32).tiny)
    )
    scale = np.maximum(2 * half / (2**bits - 1), least).astype(np.float32).astype(np.float64)
    offset = middle - half + 2 ** (bits - 1) * scale  # of the level 0
    nothing = np.zeros_like(scale)
    return (scale, nothing, offset) if shifts else (scale, np.round(-offset / scale), nothing)


def _nearest(
    rows: np.ndarray, bits: int, scale: np.ndarray, zero: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    q = np.round((rows - shift[:, None]) / scale[:, None])
    q += zero[:, None]
    return np.clip(q, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, out=q)


def _fitted(
    rows: np.ndarray, q: np.ndarray, scale: np.ndarray, zero: np.ndarray, shift: np.ndarray, shifts: bool
):
    """The scale, and the shift if there is one, with the least error for given integers."""
    x = q - zero[:, None]
    middle = x.mean(1) if shifts else np.zeros(len(x))
    mean = rows.mean(1) if shifts else middle
    x -= middle[:, None]
    square = np.einsum("ij,ij->i", x, x)
    product = np.einsum("ij,ij->i", x, rows)
    fitted = np.where((square == 0) | (product <= 0), scale, product / np.where(square == 0, 1, square))
    fitted = fitted.astype(np.float32).astype(np.float64)
    return fitted, zero, mean - fitted * middle if shifts else shift


def round_for_code(
    rows: np.ndarray, bits: int, shifts: bool = True, slack: float = 0.0, most_error: float = 0.0
) -> Rounded:
    """The same of at most 8 bits for integers that are stored in an entropy code, rows alike.

    Of levels that lie more or fewer standard deviations of a row apart those with the shortest code, whose
    error is at most `most_error` (the root of the mean square, relative) or the least times 1 + `slack`.
    """
    some = rows[:: -(-rows.size // _CODED)] if rows.size > _CODED else rows
    whole = float(np.sqrt(np.square(some, dtype=np.float64).sum()))
    found: list[
        tuple[float, float, float, bool]
    ] = []  # length of the code, error, spread, a level on the mean

    def look(spread: float, on_mean: bool) -> None:
        made = _spread_out(some, bits, shifts, spread, on_mean)
        error = float(np.linalg.norm(made.numbers().astype(np.float64) - some))
        counts = np.bincount((made.q + (1 << (bits - 1))).ravel(), minlength=1 << bits)
        found.append((entropy(counts), error, spread, on_mean))

    def best() -> tuple[float, float, float, bool]:
        least = min(error for _, error, _, _ in found)
        limit = max(most_error * whole, least * (1 + slack) * (1 + 1e-9))
        return min(one for one in found if one[1] <= limit)

    for on_mean in (False, True):
        for spread in _CHOICES:
            look(float(spread), on_mean)
    *_, spread, on_mean = min(found, key=lambda one: one[1])
    for factor in _FINER:
        look(float(spread * factor), on_mean)
    *_, spread, on_mean = best()
    for factor in _FINER:
        look(float(spread * factor), on_mean)
    *_, spread, on_mean = best()
    parts = [_spread_out(part, bits, shifts, spread, on_mean) for part in _parts(rows)]
    return Rounded(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("q", "scale", "zero", "shift"))
    )


def _spread_out(rows: np.ndarray, bits: int, shifts: bool, spread: float, on_mean: bool) -> Rounded:
    """Levels `spread` standard deviations to both sides of each row's mean, or one on it; fitted once."""
    wide = rows.astype(np.float64)
    mean, half = wide.mean(1), wide.std(1) * spread
    scale, zero, shift = _levels(mean - half, mean + half, np.ones(len(rows)), bits, shifts)
    if on_mean and shifts:
        shift = mean
    q = _nearest(wide, bits, scale, zero, shift)
    scale, zero, shift = _fitted(wide, q, scale, zero, shift, shifts)
    same = wide.min(1) == wide.max(1)  # one number: it is exact
    first = wide[:, 0]
    scale[same] = np.where(first[same] == 0, 1, np.abs(first[same]))
    zero[same], shift[same], q[same] = -np.sign(first[same]), 0, 0
    return Rounded(q.astype(np.int32), *(a.astype(np.float32) for a in (scale, zero, shift)))
