"""Integers as a `.ms` file holds them: raw ones of 8 and 16 bits, fields of other widths, their scales."""

from __future__ import annotations

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table

_PIECE = 8 << 20  # integers that are packed at once
_WHOLE = 8  # bits: the default of QuantParam.numBits


def quant_params(
    scales: np.ndarray, zeros: np.ndarray, shifts: np.ndarray | float = 0, bits: int = _WHOLE
) -> list[Table]:
    """What integers stand for, (q - zero) * scale + shift, as a Tensor has it."""
    many = (np.broadcast_to(numbers, np.shape(scales)) for numbers in (zeros, shifts))
    return [
        Table("QuantParam", scale=float(scale), zeroPoint=int(zero), meanCorr=float(shift), numBits=bits)
        for scale, zero, shift in zip(scales, *many, strict=True)
    ]


def store(tensor: Table, q: np.ndarray, bits: int, params: list[Table]) -> None:
    """Let a constant be the integers `q` of `bits` bits, in the order of its elements."""
    kind = np.int8 if bits <= _WHOLE else np.int16
    tensor.dataType = int(DataType.of(np.dtype(kind)))
    tensor.quantParams = params
    if bits in (8, 16):
        tensor.data = memoryview(np.ascontiguousarray(q, kind).reshape(-1)).cast("B")
    else:
        tensor.weightQuantCompressType = "BITPACKING"
        tensor.data = memoryview(packed(q, bits, np.dtype(kind).itemsize))


def packed(q: np.ndarray, bits: int, item: int = 1) -> np.ndarray:
    """Bytes with a field q + 2^(bits - 1) of `bits` bits for each integer, the first in the lowest bits.

    `item`: bytes, of which there are whole ones. [n] of uint8.
    """
    parts = []
    flat = q.reshape(-1)
    for start in range(0, flat.size, _PIECE):
        fields = (flat[start : start + _PIECE] + (1 << (bits - 1))).astype("<u2")
        spread = np.unpackbits(fields.view(np.uint8).reshape(-1, 2), axis=1, bitorder="little")[:, :bits]
        parts.append(np.packbits(spread.reshape(-1), bitorder="little"))
    stream = np.concatenate(parts)
    return np.pad(stream, (0, -stream.size % item))
