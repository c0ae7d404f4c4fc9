"""Instances as JSON, the way of MindSpore Serving's REST: what a value becomes, and back.

Integers become int32, numbers with a point or an exponent float32, true and false bool, a string a string;
nested arrays are tensors of one of those; `{"b64": ..., "type": ..., "shape": ...}` is any type by its bytes.
"""

from __future__ import annotations

import binascii
import json
import secrets
from dataclasses import dataclass
from itertools import chain

import numpy as np
import orjson

from mycelia_serving.errors import ServingError, clip
from mycelia_serving.frontend.large import LARGE
from mycelia_serving.request import MOST_INSTANCES, Instance, Reply, Result, Value
from mycelia_serving.wire.tensors import MAX_RANK, array, check_shape, invalid, shape_text

try:
    from mycelia_serving import _json
except ImportError:  # without it large bodies are read like small ones
    _json = None

_DOUBLES = {"h": "d", "m": "d"}  # kinds that are no types of numpy
_DEEPEST = 64
_LONG = 64  # elements of an array that is taken out of a large body
_MOST_VALUES = 1_000_000  # of a large body beside such arrays
_MOST_EXACTLY = 4 << 20  # bytes of a document for Python's own parser
_PIECE = 1 << 20  # of base64; a multiple of 4
_INT32 = np.iinfo(np.int32)
_BEYOND = float(2**63)  # from here on the fast parser makes a float of an integer

_TYPES = {
    "int8": np.dtype("i1"),
    "int16": np.dtype("<i2"),
    "int32": np.dtype("<i4"),
    "int64": np.dtype("<i8"),
    "uint8": np.dtype("u1"),
    "uint16": np.dtype("<u2"),
    "uint32": np.dtype("<u4"),
    "uint64": np.dtype("<u8"),
    "fp16": np.dtype("<f2"),
    "fp32": np.dtype("<f4"),
    "fp64": np.dtype("<f8"),
    "float16": np.dtype("<f2"),
    "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"),
    "bool": np.dtype("?"),
}


class _Ambiguous(Exception):
    """A number that the fast parser may have rounded."""


@dataclass(slots=True, frozen=True)
class Numbers:
    """An array of a document: what native/src/json/arrays.h says."""

    kind: str
    shape: tuple[int, ...]
    data: np.ndarray | None  # flat, read-only


class Arrays:
    """The arrays that were taken out of a document; where they were stands a mark."""

    def __init__(self, text: bytes, mark: str = "", found: list = (), *, exact: bool = False) -> None:
        self.text = text  # of the document
        self.exact = exact  # no number in it may have been rounded
        self._mark = mark
        self._found = [
            Numbers(kind, shape, None if data is None else np.frombuffer(data, _DOUBLES.get(kind, kind)))
            for kind, shape, data in found
        ]

    def get(self, value) -> Numbers | None:
        """The array that a value of the document stands for."""
        if not self._found or type(value) is not dict or len(value) != 1:
            return None
        index = value.get(self._mark)
        return None if index is None else self._found[index]

    def inside(self, values: list) -> bool:
        """Whether some of these values are arrays."""
        return bool(self._found) and any(self.get(value) is not None for value in values)


def parse_instances(body: bytes) -> list[Result]:
    """The instances in the body of a request; a ServingError in the place of one with a bad value.

    Errors: ServingError if there is no list of instances.
    """
    document, arrays = load(body)
    try:
        return [_instance(instance, arrays, arrays.exact) for instance in _list(document, arrays)]
    except _Ambiguous:
        document = _load_exactly(arrays.text)
        return [_instance(instance, arrays, True) for instance in _list(document, arrays)]


def load(body: bytes, *, narrow: bool = True) -> tuple[object, Arrays]:
    """The JSON document of a body, and what was taken out of a large one.

    narrow: numbers become 32 bits wide. Errors: ServingError, also for a key `instances` that is there twice.
    """
    if len(body) > LARGE and _json is not None:
        return _load_large(body, narrow)
    document = _load_quickly(body)
    if body.count(b'"instances"') > 1 or b"\\u" in body:
        _load_exactly(body)
    return document, Arrays(body)


def _load_large(body: bytes, narrow: bool) -> tuple[object, Arrays]:
    """Python sees no number of a long array, nor the text of it, and is never busy for long."""
    mark = secrets.token_hex(8)
    text, found, values, keys, long_integers, infinite = _json.take_arrays(
        body, mark, "instances", _LONG, narrow, _MOST_VALUES
    )
    if values > _MOST_VALUES:
        raise invalid(f"the body has over {_MOST_VALUES:,} values beside arrays of {_LONG} numbers or more")
    if infinite:
        raise invalid("the body is not JSON: a number is beyond what a double holds")
    document = _load_quickly(text)
    arrays = Arrays(text, mark, found, exact=not long_integers)
    if keys > 1:
        _load_exactly(text)
    return document, arrays


def _load_quickly(text: bytes):
    try:
        return orjson.loads(text)
    except ValueError as error:
        raise invalid(f"the body is not JSON: {error}" if text else "the body is empty") from None


def _load_exactly(body: bytes):
    """By Python's own parser, which keeps long integers and sees what is there twice; it takes its time."""
    if len(body) > _MOST_EXACTLY:
        raise invalid("integers of 19 digits or more, or keys with escapes, in a large body")

    def once(pairs: list[tuple]) -> dict:
        if sum(name == "instances" for name, _ in pairs) > 1:
            raise ValueError("'instances' is there twice")
        return dict(pairs)

    def refuse(name: str):
        raise ValueError(f"{name} is not JSON")

    try:
        return json.loads(body, object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise invalid(f"the body is not JSON: {clip(error)}") from None


def _list(document, arrays: Arrays) -> list[dict]:
    if type(document) is not dict:
        raise invalid("the body is not a JSON object")
    if "instances" not in document:
        raise invalid("the body has no 'instances'")
    instances = document["instances"]
    if type(instances) is dict:
        instances = [instances]
    if type(instances) is not list or not instances or arrays.inside(instances):
        raise invalid("'instances' is an object or a list of one or more objects")
    if len(instances) > MOST_INSTANCES:
        raise invalid(f"{len(instances)} instances, the limit is {MOST_INSTANCES}")
    for instance in instances:
        if type(instance) is not dict:
            raise invalid("'instances' is an object or a list of one or more objects")
    for name, value in document.items():
        if name != "instances" and isinstance(value, (list, dict)):
            check_depth(value)
    return instances


def check_depth(value: list | dict) -> None:
    """Errors: ServingError for nesting that nobody needs."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = chain.from_iterable(v.values() if type(v) is dict else v for v in level)
        level = [v for v in inner if type(v) is dict or type(v) is list]
        if not level:
            return
    raise invalid(f"the body is nested over {_DEEPEST} levels")


def _instance(sent: dict, arrays: Arrays, exact: bool) -> Result:
    values: Instance = {}
    for name, value in sent.items():
        try:
            values[name] = _value(value, arrays, exact)
        except ServingError as error:
            return invalid(f"input {clip(name)!r}: {error.message}")
    return values


def _value(value, arrays: Arrays, exact: bool) -> Value:
    kind = type(value)
    if kind is list:
        return _array(value, arrays, exact)
    if kind is str:
        return value
    if kind is dict:
        numbers = arrays.get(value)
        return _from_base64(value) if numbers is None else _long_array(numbers)
    if kind in _KINDS:
        return _numbers([value], kind, (), exact)
    raise invalid("null is no value")


def _long_array(numbers: Numbers) -> np.ndarray:
    if numbers.kind in "?if":
        return numbers.data.reshape(numbers.shape)
    if numbers.kind == "m":
        raise invalid("an array mixes integers and numbers with a point")
    if numbers.kind == "F":
        raise invalid("a number is out of the range of float32")
    raise invalid("an integer is out of the range of int32")


def _array(value: list, arrays: Arrays, exact: bool) -> Value:
    """A tensor; all of its work on elements is done by C code of Python and numpy."""
    shape = [len(value)]
    if arrays.inside(value):
        raise invalid("an array is ragged, or mixes arrays with values")
    while value and type(value[0]) is list:
        if len(shape) == MAX_RANK:
            raise invalid(f"an array is nested over {MAX_RANK} levels")
        if set(map(type, value)) != {list}:
            raise invalid("an array mixes arrays with values")
        lengths = set(map(len, value))
        if len(lengths) > 1:
            raise invalid("an array is ragged")
        shape.append(lengths.pop())
        value = list(chain.from_iterable(value))
        if arrays.inside(value):
            raise invalid("an array is ragged, or mixes arrays with values")
    if not value:
        raise invalid("an array is empty")
    kinds = set(map(type, value))
    kind = type(value[0])
    if kind in _KINDS:
        if len(kinds) > 1:
            if kinds == {int, float} and not exact:
                raise _Ambiguous
            raise invalid(f"an array mixes {' and '.join(sorted(map(_word, kinds)))}")
        return _numbers(value, kind, tuple(shape), exact)
    if kind is type(None):
        raise invalid("null is no value")
    if shape != [1]:
        raise invalid(f"one {_word(kind)} for each instance, got an array of shape {shape_text(shape)}")
    return value[0] if kind is str else _from_base64(value[0])


_KINDS = {int: "integers", float: "numbers with a point", bool: "booleans"}


def _word(kind: type) -> str:
    return {**_KINDS, str: "string", dict: "object", list: "array"}.get(kind, "null")


def _numbers(values: list, kind: type, shape: tuple[int, ...], exact: bool) -> np.ndarray:
    if kind is bool:
        found = np.array(values, np.bool_)
    elif kind is int:
        try:
            wide = np.array(values, np.int64)
        except OverflowError:
            raise invalid("an integer is out of the range of int32") from None
        if wide.min() < _INT32.min or wide.max() > _INT32.max:
            raise invalid("an integer is out of the range of int32")
        found = wide.astype(np.int32)
    else:
        wide = np.array(values, np.float64)
        largest = np.abs(wide).max()
        if largest >= _BEYOND and not exact:
            raise _Ambiguous
        with np.errstate(over="ignore"):
            found = wide.astype(np.float32)
        if largest > 1e38 and not np.isfinite(found).all():
            raise invalid("a number is out of the range of float32")
    found = found.reshape(shape)
    found.flags.writeable = False
    return found


def _from_base64(value: dict) -> Value:
    unknown = sorted(value.keys() - {"b64", "type", "shape"})
    if unknown:
        raise invalid(f"unknown key {clip(unknown[0])!r} in an object, known are b64, type and shape")
    text, name, shape = value.get("b64"), value.get("type", "bytes"), value.get("shape", [])
    if type(text) is not str:
        raise invalid("an object needs 'b64', a string")
    try:
        data = _decoded(text.encode("ascii"))
    except (ValueError, UnicodeEncodeError) as error:
        raise invalid(f"'b64' is not base64: {error}") from None
    if type(shape) is not list or any(type(size) is not int or size < 0 for size in shape):
        raise invalid("'shape' is a list of integers that are not negative")
    if name in ("str", "bytes"):
        if shape not in ([], [1]):
            raise invalid(f"shape {shape_text(shape)} of a {name} value, which is a scalar")
        if name == "bytes":
            return data
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise invalid(f"a string that is not UTF-8: {error.reason} at byte {error.start}") from None
    dtype = _TYPES.get(name) if type(name) is str else None
    if dtype is None:
        raise invalid(f"unknown type {clip(name)!r}")
    size = check_shape(tuple(shape), dtype.itemsize)
    if size != len(data):
        raise invalid(f"{len(data)} bytes in 'b64', shape {shape_text(shape)} of {name} takes {size}")
    return array(dtype, tuple(shape), data)


def _decoded(text: bytes) -> bytes:
    """Bytes of base64, piece by piece: each takes a moment, and no other thread of Python runs meanwhile."""
    if len(text) <= _PIECE:
        return binascii.a2b_base64(text, strict_mode=True)
    last = (len(text) - 1) // _PIECE * _PIECE
    if text.find(b"=", 0, last) >= 0:
        raise ValueError("excess data after padding")
    return b"".join(
        binascii.a2b_base64(text[at : at + _PIECE], strict_mode=True) for at in range(0, len(text), _PIECE)
    )


# ---- answers -----------------------------------------------------------------------------------------------


def reply_body(reply: Reply, nan_literal: bool = False) -> tuple[int, bytes]:
    """HTTP status and body of a reply. `nan_literal`: NaN and Infinity instead of null."""
    error = reply.error
    if error is None:
        failed = [result for result in reply.results if type(result) is ServingError]
        if failed and len(failed) == len(reply.results):
            error = failed[0]
    if error is not None:
        return error.http_status, error_body(error)
    instances = [
        {"error_msg": result.message} if type(result) is ServingError else _plain(result)
        for result in reply.results
    ]
    if nan_literal:
        return 200, json.dumps({"instances": instances}, default=_listed, separators=(",", ":")).encode()
    return 200, dump({"instances": instances})


def error_body(error: ServingError) -> bytes:
    return dump({"error_msg": error.message})


def dump(document) -> bytes:
    """JSON, arrays included; what is not finite is null."""
    try:
        return orjson.dumps(
            document, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS, default=_rest
        )
    except orjson.JSONEncodeError:  # a lone surrogate in a text
        return json.dumps(document, default=_listed).encode()


def _plain(result: Instance) -> dict:
    return {
        name: value[()]
        if type(value) is np.ndarray and not value.ndim  # a scalar of numpy, which keeps its type
        else {"b64": binascii.b2a_base64(value, newline=False).decode()}
        if type(value) is bytes
        else value
        for name, value in result.items()
    }


def _rest(value):
    """What orjson leaves to us: arrays that are not contiguous, or of a foreign byte order."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def _listed(value):
    """Numbers as Python's, float32 as the shortest number that means it."""
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind == "f" and value.dtype.itemsize < 8:
            return value.astype("U").astype(np.float64).tolist()
        return value.tolist()
    return _rest(value)
