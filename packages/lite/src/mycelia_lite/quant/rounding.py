"""Numbers as integers of few bits: which ones, and what each stands for, with the least squared error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

_MOST_CANDIDATES = 8  # bits: of more the extremes of a row are its best range
_FEW = 3  # bits: levels that are moved as a whole lie better
_REFITS = 4
_SYMMETRIC = 1.05  # by which the error without zero points may be larger with few bits: decoding is faster
_FAST = 4  # bits that gain by that


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


def round_rows(rows: np.ndarray, bits: int, moves: bool = True) -> Rounded:
    """Integers of `bits` bits for the finite numbers [rows, n] of float32, n at least 1.

    `moves`: with 3 bits and fewer levels may be moved by a fraction of a step, so that means stay.
    """
    parts = [_round_some(part, bits, moves) for part in _parts(rows)]
    return Rounded(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("q", "scale", "zero", "shift"))
    )


def _parts(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Rows by so many that what is computed on the way stays small."""
    step = max(1, (1 << 20) // rows.shape[1])
    for start in range(0, max(1, len(rows)), step):
        yield rows[start : start + step]


def _round_some(rows: np.ndarray, bits: int, moves: bool) -> Rounded:
    wide = rows.astype(np.float64)
    low, high = wide.min(1), wide.max(1)
    factors = np.array([1.0]) if bits > _MOST_CANDIDATES else _factors(bits)
    moved = moves and bits <= _FEW
    best = _best(wide, bits, [_ranged(low, high, f, bits, moved) for f in factors], moved)
    if not moved and bits <= _MOST_CANDIDATES:
        even = _best(wide, bits, [_symmetric(low, high, f, bits) for f in factors], False, zero=False)
        if even[0].sum() <= (_SYMMETRIC if bits <= _FAST else 1) * best[0].sum():
            best = even
    _, q, scale, zero, shift = best
    if moved:
        shift = shift + (rows - q * scale[:, None] - shift[:, None]).mean(1)
    same = low == high  # one number: it is exact
    scale[same] = np.where(low[same] == 0, 1, np.abs(low[same]))
    zero[same], shift[same], q[same] = -np.sign(low[same]), 0, 0
    return Rounded(
        q.astype(np.int32), scale.astype(np.float32), zero.astype(np.float32), shift.astype(np.float32)
    )


def _factors(bits: int) -> np.ndarray:
    """Shares of the whole range that may be worth more than its extremes."""
    least = {1: 0.2, 2: 0.3, 3: 0.45, 4: 0.55, 5: 0.7}.get(bits, 0.85)
    return np.linspace(1.0, least, 12 if bits <= 5 else 4)


def _ranged(low: np.ndarray, high: np.ndarray, factor: float, bits: int, moved: bool):
    """(scale, zero, shift) of the levels that lie over the middle part of a range."""
    middle, half = (low + high) / 2, (high - low) / 2 * factor
    scale = np.maximum(2 * half / (2**bits - 1), np.finfo(np.float32).tiny)
    offset = middle - half + 2 ** (bits - 1) * scale  # of the level 0
    if moved:
        return scale, np.zeros_like(scale), offset
    return scale, np.round(-offset / scale), np.zeros_like(scale)


def _symmetric(low: np.ndarray, high: np.ndarray, factor: float, bits: int):
    """The same with 0 as level 0, the longer side on that of the level more."""
    most = np.maximum(-low, high) * factor
    scale = np.maximum(most / 2 ** (bits - 1), np.finfo(np.float32).tiny)
    return np.where(high > -low, -scale, scale), np.zeros_like(scale), np.zeros_like(scale)


def _best(rows: np.ndarray, bits: int, candidates: list, moved: bool, zero: bool = True):
    """Of each row the candidate of least error, its scale (and shift if `moved`) fitted to the integers."""
    found = None
    for candidate in candidates:
        found = _better(rows, found, _with_levels(rows, bits, *candidate))
    for _ in range(_REFITS if bits <= _MOST_CANDIDATES else 0):
        _, q, scale, zeros, shift = found
        x = q - zeros[:, None]
        x_mean = x.mean(1) if moved else np.zeros(len(x))
        y_mean = rows.mean(1) if moved else np.zeros(len(x))
        centered = x - x_mean[:, None]
        square = (centered * centered).sum(1)
        fitted = (centered * (rows - y_mean[:, None])).sum(1) / np.where(square == 0, 1, square)
        fitted = np.where((square == 0) | (fitted == 0), scale, fitted)
        moved_by = y_mean - fitted * x_mean if moved else shift
        found = _better(rows, found, _with_levels(rows, bits, fitted, zeros, moved_by))
    return found


def _with_levels(rows: np.ndarray, bits: int, scale: np.ndarray, zero: np.ndarray, shift: np.ndarray):
    """(error of each row, integers, scale, zero, shift), with the numbers that a file holds."""
    scale, shift = scale.astype(np.float32).astype(np.float64), shift.astype(np.float32).astype(np.float64)
    half = 2 ** (bits - 1)
    q = np.round((rows - shift[:, None]) / scale[:, None]) + zero[:, None]
    np.clip(q, -half, half - 1, out=q)
    error = (q - zero[:, None]) * scale[:, None] + shift[:, None] - rows
    return (error * error).sum(1), q, scale, zero, shift


def _better(rows: np.ndarray, old, new):
    if old is None:
        return new
    wins = new[0] < old[0]
    for a, b in zip(old, new, strict=True):
        a[wins] = b[wins]
    return old
