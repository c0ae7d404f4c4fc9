"""TFRecord files of tf.train.Example as MindRecord files, without TensorFlow.

A record is u64 length, u32 CRC, data, u32 CRC. An Example maps names to lists of bytes, floats or int64.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import numpy as np

from mycelia import errors
from mycelia.io import wire
from mycelia.mindrecord import exceptions
from mycelia.mindrecord.converters import write
from mycelia.mindrecord.writer import checked_name

_BYTES, _FLOATS, _INTS = 1, 2, 3
_KINDS = {"string": "string", "int64": "int64", "float32": "float32"}


def records(path: str) -> Iterator[bytes]:
    """The records of a file. Errors: RuntimeError when it is cut off."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        while head := file.read(12):
            length = int.from_bytes(head[:8], "little")
            if len(head) < 12 or length + 4 > size - file.tell():
                raise exceptions.damaged(path, f"the record before byte {file.tell()} is cut off")
            yield file.read(length)
            file.read(4)


def _values(feature: memoryview) -> list:
    """The list of a Feature."""
    made: list = []
    for kind, body in wire.fields(feature):
        for _, value in wire.fields(body):
            if kind == _BYTES:
                made.append(bytes(value))
            elif kind == _FLOATS:
                made += np.frombuffer(value, "<f4").tolist()
            elif isinstance(value, int):
                made.append(wire.signed(value))
            else:
                at = 0
                while at < len(value):
                    number, at = wire.read_varint(value, at)
                    made.append(wire.signed(number))
    return made


def example(data: bytes) -> dict[str, list]:
    """The features of a serialized Example. Errors: ValueError when it is none."""
    made = {}
    for _, features in wire.fields(memoryview(data)):
        for _, entry in wire.fields(features):
            parts = dict(wire.fields(entry))
            made[bytes(parts[1]).decode()] = _values(parts.get(2, memoryview(b"")))
    return made


class TFRecordToMR:
    """Examples with fixed features: `feature_dict` gives the `shape` and `dtype` of each (FixedLenFeature).

    Texts are strings, or bytes if named in `bytes_fields`; int64 and float32 are numbers or arrays.
    Errors: ValueError for other dtypes and shapes.
    """

    def __init__(
        self, source: str, destination: str, feature_dict: dict, bytes_fields: list[str] | None = None
    ):
        self.source, self.destination = checked_name(source), checked_name(destination)
        if not isinstance(feature_dict, dict) or not feature_dict:
            raise errors.value_error("TFRecordToMR", "feature_dict must be a dict of FixedLenFeature")
        if bytes_fields is not None and not isinstance(bytes_fields, list):
            raise errors.value_error("TFRecordToMR", f"bytes_fields must be a list, but got {bytes_fields!r}")
        unknown = [name for name in bytes_fields or () if name not in feature_dict]
        if unknown:
            raise errors.value_error("TFRecordToMR", f"bytes_fields {unknown} are not in feature_dict")
        self.schema = {
            name: self._field(name, feature, name in (bytes_fields or ()))
            for name, feature in feature_dict.items()
        }

    @staticmethod
    def _field(name: str, feature, as_bytes: bool) -> dict:
        if not hasattr(feature, "shape") or not hasattr(feature, "dtype"):
            raise errors.value_error("TFRecordToMR", f"feature {name!r} must be a FixedLenFeature")
        kind = getattr(feature.dtype, "name", None) or str(feature.dtype)
        shape = [int(n) for n in feature.shape or ()]
        if kind not in _KINDS or (kind == "string" and shape) or (as_bytes and kind != "string"):
            raise errors.value_error("TFRecordToMR", f"feature {name!r} of {kind} {shape} cannot be written")
        if as_bytes:
            return {"type": "bytes"}
        return {"type": _KINDS[kind], **({"shape": shape} if shape else {})}

    def _row(self, features: dict[str, list]) -> dict:
        row = {}
        for name, spec in self.schema.items():
            values = features.get(name)
            if not values:
                raise ValueError(f"feature {name!r} is missing")
            if "shape" in spec:
                row[name] = np.asarray(values, spec["type"]).reshape(spec["shape"])
            elif len(values) != 1:
                raise ValueError(f"feature {name!r} has {len(values)} values, one is wanted")
            else:
                row[name] = values[0].decode() if spec["type"] == "string" else values[0]
        return row

    def tfrecord_iterator(self) -> Iterator[dict]:
        """The rows. Errors: RuntimeError for damaged files, and for records that lack a feature."""
        for number, data in enumerate(records(self.source)):
            try:
                yield self._row(example(data))
            except (ValueError, KeyError, TypeError, struct.error) as e:
                raise exceptions.damaged(self.source, f"record {number}: {e}") from None

    def transform(self) -> None:
        """Write the file."""
        if not os.path.isfile(self.source):
            raise errors.error(errors.MyceliaOSError, "TFRecordToMR", f"{self.source} does not exist")
        write(self.destination, self.schema, "Examples of a TFRecord file", [], self.tfrecord_iterator())

    run = transform
