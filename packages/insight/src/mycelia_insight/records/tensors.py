"""Tensors: both dialects' messages as arrays, slices of them, and what their values are like."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia_insight.records.wire import BYTES, VARINT, Broken, fields, numbers, signed, varints
from mycelia_insight.runs.kinds import Dialect

# DataType of MindSpore's graphs; the values of its summaries are float32 whatever the type.
_MINDSPORE = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32",
    9: "uint64", 10: "float16", 11: "float32", 12: "float64", 46: "bfloat16",
}  # fmt: skip
# DataType of TensorFlow: name, dtype of tensor_content, field of values, dtype of those or "" for varints.
_TENSORFLOW = {
    1: ("float32", "<f4", 5, "<f4"), 2: ("float64", "<f8", 6, "<f8"), 3: ("int32", "<i4", 7, ""),
    4: ("uint8", "u1", 7, ""), 5: ("int16", "<i2", 7, ""), 6: ("int8", "i1", 7, ""),
    9: ("int64", "<i8", 10, ""), 10: ("bool", "u1", 11, ""), 14: ("bfloat16", "<u2", 13, ""),
    17: ("uint16", "<u2", 7, ""), 19: ("float16", "<f2", 13, ""), 22: ("uint32", "<u4", 16, ""),
    23: ("uint64", "<u8", 17, ""),
}  # fmt: skip
_STRING = 7
_MOST_FILLED = 1 << 24  # values that a tensor of one value may stand for


@dataclass(frozen=True)
class Tensor:
    """A tensor's values, of `dtype`'s name where it was made; they may be of another dtype here."""

    dtype: str
    values: np.ndarray


def decode(message: bytes, dialect: Dialect) -> Tensor:
    """A tensor of numbers.  Errors: Broken."""
    return _tensorflow(message) if dialect == Dialect.TENSORBOARD else _mindspore(message)


def strings(message: bytes | memoryview) -> tuple[tuple[int, ...], list[bytes]]:
    """Shape and elements of a TensorFlow tensor of strings.  Errors: Broken."""
    shape: list[int] = []
    found: list[bytes] = []
    dtype = _STRING
    for number, kind, value in fields(message):
        if number == 1 and kind == VARINT:
            dtype = value
        elif number == 2 and kind == BYTES:
            shape += _shape(value)
        elif number == 8 and kind == BYTES:
            found.append(bytes(value))
    if dtype != _STRING or math.prod(shape) != len(found):
        raise Broken(f"not a tensor of texts: type {dtype}, shape {shape}, {len(found)} texts")
    return tuple(shape), found


def shape_of(begin: bytes, dialect: Dialect) -> tuple[int, ...]:
    """The shape that the begin of a message tells; what comes behind its shape need not be there."""
    shape: list[int] = []
    try:
        for number, kind, value in fields(begin):
            if dialect == Dialect.TENSORBOARD:
                shape += _shape(value) if number == 2 and kind == BYTES else []
            elif number == 1:
                shape += varints([value]).tolist()
    except Broken:
        pass  # cut off
    return tuple(shape)


def _mindspore(message: bytes) -> Tensor:
    shape, parts, dtype = [], [], 0
    for number, kind, value in fields(message):
        if number == 1:
            shape += varints([value]).tolist()
        elif number == 2 and kind == VARINT:
            dtype = value
        elif number == 3:
            parts.append(value)
    return Tensor(_MINDSPORE.get(dtype, "unknown"), _shaped(numbers(parts, "<f4"), shape))


def _tensorflow(message: bytes) -> Tensor:
    shape, parts, dtype, content = [], {}, 1, None
    for number, kind, value in fields(message):
        if number == 1 and kind == VARINT:
            dtype = value
        elif number == 2 and kind == BYTES:
            shape += _shape(value)
        elif number == 4 and kind == BYTES:
            content = value
        else:
            parts.setdefault(number, []).append(value)
    if dtype not in _TENSORFLOW:
        raise Broken(f"a tensor of TensorFlow's type {dtype} has no numbers")
    name, raw, place, held = _TENSORFLOW[dtype]
    if content is not None and len(content):
        values = numbers([content], raw)
    elif held:
        values = numbers(parts.get(place, []), held)
    else:
        values = varints(parts.get(place, []))
        if place == 13:
            values = values.astype("<u2").view(raw)
        elif dtype == 23:
            values = values.view("<u8")
    if name == "bfloat16":
        values = (values.astype("<u4") << 16).view("<f4")
    count = math.prod(shape)
    if values.size == 1 and 1 < count <= _MOST_FILLED and len(shape) <= 32:
        return Tensor(name, np.broadcast_to(values, shape))  # equal values are written once
    return Tensor(name, _shaped(values, shape))


def _shape(message: memoryview) -> list[int]:
    return [
        next((signed(size) for n, kind, size in fields(dim) if n == 1 and kind == VARINT), 0)
        for number, kind, dim in fields(message)
        if number == 2 and kind == BYTES
    ]


def _shaped(values: np.ndarray, shape: list[int]) -> np.ndarray:
    count = math.prod(shape)
    if len(shape) > 32 or any(size < 0 for size in shape):
        raise Broken(f"{shape[:40]} is no shape")
    if values.size != count:
        raise Broken(f"a tensor of shape {shape} has {values.size} values, expected {count}")
    return values.reshape(shape)


def parse(text: str, shape: tuple[int, ...]) -> tuple[int | slice, ...]:
    """`[0, :, 2:5]` as Python's indices of a tensor; at most two of them are ranges.  Errors: ValueError."""
    given = text.strip().removeprefix("[").removesuffix("]")
    parts = [part.strip() for part in given.split(",")] if given.strip() else []
    if len(parts) != len(shape):
        raise ValueError(
            f"'dims' must have {len(shape)} indices for the shape {list(shape)}, got {text[:80]!r}"
        )
    found: list[int | slice] = []
    for part, size in zip(parts, shape, strict=True):
        if len(part) > 40:
            raise ValueError("an index of 'dims' has more than 40 characters")
        try:
            if ":" in part:
                low, high = (int(bound) if bound.strip() else None for bound in part.split(":"))
                found.append(slice(*slice(low, high).indices(size)))
            else:
                found.append(int(part))
        except ValueError:
            raise ValueError(f"an index of 'dims' must be 'i', 'a:b' or ':', got {part!r}") from None
        last = found[-1]
        if isinstance(last, int) and not -size <= last < size:
            raise ValueError(f"index {last} of 'dims' is outside of a dimension of {size}")
    if sum(isinstance(one, slice) for one in found) > 2:
        raise ValueError(f"at most two of 'dims' may be ranges, got {text[:80]!r}")
    return tuple(found)


def first_view(shape: tuple[int, ...], rows: int = 100, columns: int = 30) -> str:
    """The text of `parse` for the first rows and columns of the last two dimensions."""
    limits = [0] * max(0, len(shape) - 2) + [rows, columns][-len(shape) :] if shape else []
    parts = [
        "0" if not limit else ":" if size <= limit else f"0:{limit}"
        for size, limit in zip(shape, limits, strict=True)
    ]
    return f"[{', '.join(parts)}]"


#: NaN, infinity, negative infinity in JSON, which has no numbers for them.
MINDINSIGHTS_WORDS = ("NAN", "INF", "-INF")
JAVASCRIPTS_WORDS = ("NaN", "Infinity", "-Infinity")


def cells(part: np.ndarray, words: tuple[str, str, str] = MINDINSIGHTS_WORDS) -> Any:
    """Nested lists for JSON: what is not finite is a word, complex numbers are texts."""
    found = np.array(part, object)
    if part.dtype.kind == "f":
        for word, where in zip(words, (np.isnan, np.isposinf, np.isneginf), strict=True):
            found[where(part)] = word
    elif part.dtype.kind not in "biu":
        found[...] = np.array([str(one) for one in found.reshape(-1)], object).reshape(found.shape)
    return found.tolist()


def statistics(values: np.ndarray) -> dict[str, float | int | None]:
    """max, min and avg of the finite values, None without such; count, and counts of kinds of values."""
    wide = values if values.dtype.kind == "f" else values.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    some = finite.size > 0
    return {
        "max": float(finite.max()) if some else None,
        "min": float(finite.min()) if some else None,
        "avg": float(finite.mean(dtype=np.float64)) if some else None,
        "count": int(values.size),
        "nan_count": int(np.isnan(wide).sum()),
        "neg_inf_count": int(np.isneginf(wide).sum()),
        "pos_inf_count": int(np.isposinf(wide).sum()),
        "zero_count": int((wide == 0).sum()),
        "pos_zero_count": int((wide > 0).sum()),
        "neg_zero_count": int((wide < 0).sum()),
    }
