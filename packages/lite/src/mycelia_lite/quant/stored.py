"""Integers as a `.ms` file holds them: raw ones of 8 and 16 bits, fields of other widths, their scales."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.format.custom import custom
from mycelia_lite.quant.codes import encoded
from mycelia_lite.quant.rounding import Rounded

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


def shortened(rounded: Rounded) -> Rounded:
    """The same integers with scales and shifts as `store_compact` writes them."""
    shift = rounded.shift - rounded.zero * rounded.scale
    if not rounded.zero.any():
        shift = _short(shift).astype(np.float32)
    return replace(
        rounded, scale=_short(rounded.scale).astype(np.float32), zero=0 * rounded.zero, shift=shift
    )


def store_compact(
    model: Table, index: int, q: np.ndarray, bits: int, axis: int, rounded: Rounded, group: int, encode: bool
) -> Table:
    """Let a constant be the result of a new node `low_bit`, of fields and scales; the node.

    q: in the order of the constant's elements. rounded: rows are groups of the channels along `axis`. encode:
    in an entropy code if that is shorter.
    """
    weights = model.allTensors[index]
    name = f"{weights.name}/low_bit"
    code = encoded(q, bits) if encode else None
    fields, more = (packed(q, bits), {}) if code is None else (code[0], {"lanes": code[1]})
    parts = {"fields": fields, "scale": _short(rounded.scale)}
    if rounded.shift.any():
        parts["shift"] = _short(rounded.shift)
    places = []
    for what, array in parts.items():
        places.append(len(model.allTensors))
        model.allTensors.append(
            Table(
                "Tensor", nodeType=0, dataType=int(DataType.of(array.dtype)), dims=list(array.shape),
                name=f"{name}:{what}", data=memoryview(array).cast("B"),
            )
        )  # fmt: skip
    weights.data, weights.nodeType = b"", 2
    node = Table("CNode", name=name, primitive=custom("low_bit", bits=bits, axis=axis, group=group, **more))
    node.inputIndex, node.outputIndex = places, [index]
    return node


def _short(numbers: np.ndarray) -> np.ndarray:
    """As float16 where each is as near as 11 bits allow, else as they are."""
    with np.errstate(over="ignore"):
        half = numbers.astype(np.float16)
    near = np.abs(half.astype(np.float32) - numbers) <= 2.0**-11 * np.abs(numbers)
    return half if near.all() else numbers.astype(np.float32)


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
