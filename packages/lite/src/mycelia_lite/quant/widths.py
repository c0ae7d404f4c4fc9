"""A width for each layer's weights, under a bound of their error or of their size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mycelia_lite.quant.rounding import round_rows

_SAMPLE = 32  # rows by which a layer's error is told
_MOST = 8  # bits


class _Layer:
    def __init__(self, rows: np.ndarray, shifts: bool) -> None:
        self.elements = rows.size
        self._rows = rows[:: -(-len(rows) // _SAMPLE)]
        self._square = float(np.square(self._rows, dtype=np.float64).sum())
        self._shifts = shifts
        self._known: dict[int, float] = {}

    def error(self, bits: int) -> float:
        """Mean square of what the weights would depart by, relative to their own."""
        if bits not in self._known:
            off = round_rows(self._rows, bits, self._shifts).numbers().astype(np.float64) - self._rows
            self._known[bits] = float(np.square(off).sum()) / self._square if self._square else 0.0
        return self._known[bits]

    def bytes(self, bits: int) -> int:
        return -(-self.elements * bits // 8)


def by_error(rows: Sequence[np.ndarray], most: float, shifts: bool) -> list[int]:
    """The least bits, of 1 to 8, with which the root of each layer's relative mean square is at most `most`.

    rows: the weights of each layer, [rows, n]. 8 bits where no width does.
    """
    found = []
    for layer in (_Layer(each, shifts) for each in rows):
        bits = _MOST
        while bits > 1 and layer.error(bits - 1) <= most * most:
            bits -= 1
        found.append(bits)
    return found


def by_size(rows: Sequence[np.ndarray], most: int, shifts: bool) -> list[int]:
    """Bits of each layer, of 1 to 8, with at most `most` bytes of integers in all and small errors.

    From 8 bits on the layer whose error grows least for a byte loses one.
    Errors: ValueError if 1 bit for each weight is too much.
    """
    layers = [_Layer(each, shifts) for each in rows]
    bits = [_MOST] * len(layers)
    total = sum(layer.bytes(_MOST) for layer in layers)
    least = sum(layer.bytes(1) for layer in layers)
    if least > most:
        raise ValueError(f"most_bytes is {most}, but {len(layers)} weights of 1 bit take {least}")

    def price(i: int) -> float:
        grows = layers[i].error(bits[i] - 1) - layers[i].error(bits[i])
        return max(grows, 0.0) / max(1, layers[i].bytes(bits[i]) - layers[i].bytes(bits[i] - 1))

    prices = {i: price(i) for i in range(len(layers))}
    while total > most:
        i = min(prices, key=prices.__getitem__)
        total -= layers[i].bytes(bits[i]) - layers[i].bytes(bits[i] - 1)
        bits[i] -= 1
        if bits[i] > 1:
            prices[i] = price(i)
        else:
            del prices[i]
    return bits
