"""TFRecord files of tf.train.Example as MindRecord files, without TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from mycelia.engine.base import errors
from mycelia.io import tfrecord
from mycelia.mindrecord.converters import write
from mycelia.mindrecord.writer import checked_name

_KINDS = {"string": "string", "int64": "int64", "float32": "float32"}


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
            if values is None or not len(values):
                raise ValueError(f"feature {name!r} is missing")
            if "shape" in spec:
                row[name] = np.asarray(values, spec["type"]).reshape(spec["shape"])
            elif len(values) != 1:
                raise ValueError(f"feature {name!r} has {len(values)} values, one is wanted")
            else:
                row[name] = self._scalar(values[0], spec["type"])
        return row

    @staticmethod
    def _scalar(value, kind: str):
        return value.decode() if kind == "string" else value if kind == "bytes" else value.item()

    def tfrecord_iterator(self) -> Iterator[dict]:
        """The rows. Errors: RuntimeError for damaged files, and for records that lack a feature."""
        for number, data in enumerate(tfrecord.records(self.source)):
            try:
                yield self._row(tfrecord.example(data))
            except (ValueError, TypeError, AttributeError) as e:
                raise tfrecord.damaged(self.source, f"record {number}: {e}") from None

    def transform(self) -> None:
        """Write the file."""
        if not os.path.isfile(self.source):
            raise errors.error(errors.MyceliaOSError, "TFRecordToMR", f"{self.source} does not exist")
        write(self.destination, self.schema, "Examples of a TFRecord file", [], self.tfrecord_iterator())

    run = transform
