"""The fields of a row: what a schema may say, whether a row fits it, and a row as bytes and back."""

from __future__ import annotations

import math
import re
import struct

import numpy as np

from mycelia.mindrecord import exceptions, msgpack

_SCALARS = ("string", "int32", "int64", "float32", "float64", "bytes")
ARRAYS = {"int32": np.int32, "int64": np.int64, "float32": np.float32, "float64": np.float64}
INDEX_TYPES = {
    "string": "TEXT", "int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL",
}  # fmt: skip
# What a scalar field may hold in a file, and how it is read.
_READ = {
    "string": ((str,), str),
    **dict.fromkeys(("int32", "int64"), ((int, str), int)),
    **dict.fromkeys(("float32", "float64"), ((float, int, str), float)),
}
_NOTHING = b"\0\0\0\0"  # the blob of a row that has no blob fields


class Schema:
    """Checked fields. `scalars` lie in the raw page as MessagePack, `blobs` in the blob page; both sorted."""

    def __init__(self, fields: dict, description: str = ""):
        self.fields, self.description = fields, description
        self.blobs = sorted(name for name, spec in fields.items() if is_blob(spec))
        self.scalars = sorted(set(fields) - set(self.blobs))

    def to_header(self) -> dict:
        return {"blob_fields": self.blobs, "desc": self.description, "schema": self.fields}

    # ---- a row as bytes ------------------------------------------------------------------------------------

    def misfit(self, row: dict) -> str:
        """Why `row` does not fit, or an empty text. Fields that the schema lacks are not looked at."""
        for name, spec in self.fields.items():
            if name not in row:
                return f"field '{name}' is missing"
            why = _misfit(row[name], spec)
            if why:
                return f"field '{name}' {why}"
        return ""

    def encode_scalars(self, row: dict) -> bytes:
        if not self.scalars:
            return msgpack.pack({"id": 0})
        return msgpack.pack({name: _python(row[name]) for name in self.scalars})

    def encode_blobs(self, row: dict) -> tuple[bytes, int]:
        """The blob, and how many bytes the packing of ints saved."""
        if not self.blobs:
            return _NOTHING, 0
        parts, saved = [], 0
        for name in self.blobs:
            value = row[name]
            if isinstance(value, np.ndarray) and value.dtype.kind == "i":
                parts.append(pack_ints(value))
                saved += value.nbytes - len(parts[-1])
            else:
                parts.append(value if isinstance(value, bytes) else np.ascontiguousarray(value).tobytes())
        if len(parts) == 1:
            return parts[0], saved
        return b"".join(struct.pack(">Q", len(part)) + part for part in parts), saved

    def decode_scalars(self, data: bytes) -> dict:
        row = msgpack.unpack(data)
        if not isinstance(row, dict):
            raise ValueError("the row's fields are not a map")
        missing = [name for name in self.scalars if name not in row]
        if missing:
            raise ValueError(f"the row lacks the fields {missing}")
        return row

    def scalar(self, name: str, value) -> str | int | float:
        """What a scalar field holds, as its type; numbers may be written as texts.

        Errors: ValueError for another kind of value, and for an integer outside of the type's range.
        """
        kind = self.fields[name]["type"]
        taken, convert = _READ[kind]
        if type(value) not in taken:  # no subclasses: a bool is no number here
            raise ValueError(f"field '{name}' should be {kind}, but is {type(value).__name__}")
        try:
            number = convert(value)
        except (ValueError, OverflowError):
            raise ValueError(f"field '{name}' should be {kind}, but is {value!r}") from None
        if convert is int and not np.iinfo(kind).min <= number <= np.iinfo(kind).max:
            raise ValueError(f"field '{name}' is {number}, beyond the range of {kind}")
        return number

    def decode_blobs(self, data: bytes) -> dict[str, bytes]:
        """The bytes of each blob field."""
        if len(self.blobs) == 1:
            return {self.blobs[0]: data}
        parts, at = {}, 0
        for name in self.blobs:
            if at + 8 > len(data):
                raise ValueError(f"the row ends before field '{name}'")
            (size,) = struct.unpack_from(">Q", data, at)
            at += 8
            if size > len(data) - at:
                raise ValueError(f"field '{name}' wants {size} bytes, {len(data) - at} are left")
            parts[name] = data[at : at + size]
            at += size
        return parts

    def array(self, name: str, data: bytes) -> np.ndarray:
        """The array of a blob field with a shape."""
        spec = self.fields[name]
        dtype = np.dtype(ARRAYS[spec["type"]])
        if dtype.kind == "i":
            flat = unpack_ints(data, dtype, name)
        elif len(data) % dtype.itemsize:
            raise ValueError(f"field '{name}' has {len(data)} bytes, no multiple of {dtype.itemsize}")
        else:
            flat = np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)
        try:
            return flat.reshape(spec["shape"])
        except ValueError:
            raise ValueError(
                f"field '{name}' has {flat.size} elements, which do not fill the shape {spec['shape']}"
            ) from None


def is_blob(spec: dict) -> bool:
    return spec["type"] == "bytes" or "shape" in spec


def check(content) -> dict:
    """The fields of a user's schema.

    Errors: MRMInvalidSchemaError for names and types, MRMBuildSchemaError for sizes of a shape.
    """
    if not content:
        raise exceptions.MRMInvalidSchemaError("Schema content is empty.")
    if not isinstance(content, dict):
        raise exceptions.MRMInvalidSchemaError("Schema content should be dict.")
    for name, spec in content.items():
        if not re.fullmatch(r"[0-9a-zA-Z_]+", name):
            raise exceptions.MRMInvalidSchemaError(
                f"Field '{name}' should be composed of '0-9' or 'a-z' or 'A-Z' or '_'."
            )
        if not spec or not isinstance(spec, dict):
            raise exceptions.MRMInvalidSchemaError(f"Field '{name}' should be dict.")
        if set(spec) - {"type", "shape"} or "type" not in spec:
            raise exceptions.MRMInvalidSchemaError(f"Field '{spec}' contains illegal attributes.")
        kind = spec["type"]
        if kind not in _SCALARS or ("shape" in spec and kind not in ARRAYS):
            raise exceptions.MRMInvalidSchemaError(f"Field '{name}' contain illegal attribute '{kind}'.")
        if "shape" in spec:
            _check_shape(name, spec["shape"])
    return {
        name: {**({"shape": list(spec["shape"])} if "shape" in spec else {}), "type": spec["type"]}
        for name, spec in sorted(content.items())
    }


def _check_shape(name: str, shape) -> None:
    if not isinstance(shape, list):
        raise exceptions.MRMInvalidSchemaError(f"Field '{name}' contain illegal attribute '{shape}'.")
    if any(isinstance(n, bool) or not isinstance(n, int) or (n < 1 and n != -1) for n in shape):
        raise exceptions.MRMBuildSchemaError
    if shape.count(-1) > 1:
        raise exceptions.MRMBuildSchemaError


def _python(value):
    return value.item() if isinstance(value, np.generic) else value


# What a scalar field takes, as in MindSpore: NumPy numbers only of the very dtype.
TAKEN = {
    "string": (str,),
    "int32": (int, np.int32),
    "int64": (int, np.int64),
    "float32": (float, np.float32),
    "float64": (float, np.float64),
    "bytes": (bytes,),
}


def _misfit(value, spec: dict) -> str:
    kind = spec["type"]
    if "shape" not in spec:
        if type(value) not in TAKEN[kind]:  # no subclasses: a bool is no int here
            return f"should be {kind}, but is {type(value).__name__}"
        return ""
    if not isinstance(value, np.ndarray):
        return f"should be an array, but is {type(value).__name__}"
    return misfit_of_array(value, spec)


def misfit_of_array(value: np.ndarray, spec: dict) -> str:
    """Why an array does not fit its field, or an empty text."""
    kind = spec["type"]
    if value.dtype != ARRAYS[kind]:
        return f"should be an array of {kind}, but is of {value.dtype}"
    known = math.prod(n for n in spec["shape"] if n != -1)
    if value.size % known if -1 in spec["shape"] else value.size != known:
        return f"has {value.size} elements, which do not fill the shape {spec['shape']}"
    return ""


_WIDTHS = (np.dtype("<i1"), np.dtype("<i2"), np.dtype("<i4"), np.dtype("<i8"))


def pack_ints(array: np.ndarray) -> bytes:
    """Ints in the fewest bytes each: their number, 2 bits of width code an element, the elements."""
    flat = np.ascontiguousarray(array).reshape(-1).astype(np.int64)
    codes = np.zeros(flat.size, np.uint8)
    for dtype in _WIDTHS[:3]:
        limits = np.iinfo(dtype)
        codes += (flat < limits.min) | (flat > limits.max)
    padded = np.zeros(-(-flat.size // 4) * 4, np.uint8)
    padded[: flat.size] = codes
    packed = (padded.reshape(-1, 4) << np.array([6, 4, 2, 0], np.uint8)).sum(1, dtype=np.uint8)
    sizes = 1 << codes.astype(np.int64)
    ends = np.cumsum(sizes)
    out = np.zeros(int(ends[-1]) if flat.size else 0, np.uint8)
    raw = flat.astype("<i8").view(np.uint8).reshape(-1, 8)
    for byte in range(8):
        wide = sizes > byte
        out[(ends - sizes)[wide] + byte] = raw[wide, byte]
    return struct.pack(">I", flat.size) + packed.tobytes() + out.tobytes()


def unpack_ints(data: bytes, dtype: np.dtype, name: str) -> np.ndarray:
    """What `pack_ints` packed. Errors: ValueError when bytes are missing or left over."""
    if len(data) < 4:
        raise ValueError(f"field '{name}' is cut off")
    (count,) = struct.unpack_from(">I", data)
    start = 4 + -(-count // 4)
    if len(data) < start:
        raise ValueError(f"field '{name}' says that it has {count} elements, but is cut off")
    packed = np.frombuffer(data, np.uint8, start - 4, 4)
    codes = ((packed[:, None] >> np.array([6, 4, 2, 0], np.uint8)) & 3).reshape(-1)[:count]
    sizes = 1 << codes.astype(np.int64)
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if count else 0
    if len(data) - start != total:
        raise ValueError(f"field '{name}' has {len(data) - start} bytes of numbers, {total} are needed")
    body = np.frombuffer(data, np.uint8, total, start)
    out = np.zeros(count, dtype)
    for code, width in enumerate(_WIDTHS):
        chosen = codes == code
        if chosen.any():
            at = (ends - sizes)[chosen][:, None] + np.arange(width.itemsize)
            out[chosen] = np.ascontiguousarray(body[at]).view(width).reshape(-1)
    return out
