"""MindIR files to messages: the bytes of weights stay in the file, until they go to a Parameter's memory.

Protobuf gets the message without their bytes.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.engine.base import errors
from mycelia.io import crypto
from mycelia.io.mindir.values import dtype_of_data_type, read_tensor
from mycelia.io.proto import without_data
from mycelia.io.raw import Raw, empty, storage
from mycelia.io.reading import Bytes, FileBytes, MemoryBytes

_MAX_VERSION = 3


class Model:
    """A file that is open: `proto`, its ModelProto without the bytes of weights, and where these lie.

    Close it, or use it with `with`, when the weights are read.
    """

    def __init__(self, path: str, key: bytes | None = None, mode: str | Callable = "AES-GCM") -> None:
        self.path, self._key, self._mode = path, key, mode
        self._files: dict[str, Bytes] = {}
        try:
            source = self._open(path)
            message, places = _without_weights(source)
            self.proto = _parsed(message)
            self._places: list[tuple[Bytes, int, int] | None] = [
                None if place is None else (source, *place) for place in places
            ]
            _check(self.proto)
            self._find_external()
        except ValueError as e:
            self.close()
            raise damaged(path, e) from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def weight(self, index: int) -> Raw:
        """The content of parameter `index` of the main graph. Errors: ValueError if its size is wrong."""
        proto, place = self.proto.graph.parameter[index], self._places[index]
        if place is None:
            return read_tensor(proto)
        source, begin, end = place
        dtype, shape = dtype_of_data_type(proto.data_type).name, tuple(proto.dims)
        if any(n < 0 for n in shape):
            raise ValueError(f"shape {list(shape)} has negative sizes")
        size = math.prod(shape) * storage(dtype).itemsize
        if size != end - begin:
            raise ValueError(f"{dtype}{list(shape)} takes {size} bytes, the file has {end - begin}")
        raw = empty(dtype, shape)
        if size:
            source.into(np.frombuffer(raw.data, np.uint8), begin)
        return raw

    def complete(self) -> Any:
        """The ModelProto with the bytes of weights."""
        for proto, place in zip(self.proto.graph.parameter, self._places):
            if place is not None:
                source, begin, end = place
                proto.raw_data = source.piece(begin, end)
        return self.proto

    def _open(self, path: str) -> Bytes:
        """The plain content of a file."""
        if path in self._files:
            return self._files[path]
        if self._key is not None and callable(self._mode):
            source: Bytes = MemoryBytes(self._mode(path, self._key))
        else:
            source = FileBytes(path, lambda path, why: ValueError(why))
            encrypted = len(source) >= 4 and crypto.is_encrypted(source.piece(0, 4))
            if self._key is not None:
                with contextlib.closing(source):
                    source = MemoryBytes(crypto.decrypt(source, self._key, self._mode))
            elif encrypted:
                source.close()
                raise ValueError("it is encrypted: pass the right 'dec_key' and 'dec_mode'")
        self._files[path] = source
        return source

    def _find_external(self) -> None:
        """Weights in files beside the model: where the parameters say, or, in old files, as graphs."""
        directory, parameters = os.path.dirname(self.path), self.proto.graph.parameter
        for index, proto in enumerate(parameters):
            if not proto.HasField("external_data"):
                continue
            place = proto.external_data
            if not isinstance(place.location, str):  # protobuf hands over what is not UTF-8 as bytes
                raise ValueError(
                    f"the file of the weights '{proto.name}' is {place.location!r}, which is no text"
                )
            file = os.path.realpath(os.path.join(directory, place.location))
            if os.path.commonpath((file, directory)) != directory:
                raise ValueError(f"the weights '{proto.name}' lie outside its folder: {place.location}")
            if not os.path.isfile(file):
                raise MissingWeights(f"the file {file} with its weights does not exist; they belong together")
            source = self._open(file)
            if not 0 <= place.offset <= place.offset + place.length <= len(source):
                raise ValueError(
                    f"'{proto.name}', {place.length} bytes at {place.offset}, lies beyond the {len(source)} "
                    f"bytes of {file}: the file is cut off"
                )
            self._places[index] = (source, place.offset, place.offset + place.length)
        variables = self.path.removesuffix("_graph.mindir") + "_variables"
        if self.path.endswith("_graph.mindir") and not parameters and os.path.isdir(variables):
            for name in sorted(os.listdir(variables)):
                self._read_old_weights(os.path.join(variables, name))

    def _read_old_weights(self, path: str) -> None:
        from mycelia.io.mindir import mindir_pb2

        source = self._open(path)
        parsed = _parsed(source.piece(0, len(source)), mindir_pb2.GraphProto)
        self.proto.graph.parameter.extend(parsed.parameter)
        self._places += [None] * len(parsed.parameter)


class MissingWeights(ValueError):
    """A file with weights does not exist."""


def damaged(path: str, reason: object) -> errors.FileFormatError:
    """The error for a file that cannot be loaded."""
    return errors.error(errors.FileFormatError, path, f"Failed to load the MindIR file: {reason}")


def opened(path: str, key: bytes | None = None, mode: str | Callable = "AES-GCM") -> Model:
    """The Model of a file. Errors: FileFormatError with the reason; OSError."""
    while True:
        before = os.stat(path)
        try:
            return Model(path, key, mode)
        except errors.FileFormatError:
            if os.path.samestat(before, os.stat(path)):
                raise  # else another process has replaced it, and swept the weights of the old one


def _parsed(data: bytes, kind: Any = None) -> Any:
    from google.protobuf.message import DecodeError

    from mycelia.io.mindir import mindir_pb2

    try:
        return (kind or mindir_pb2.ModelProto).FromString(data)
    except DecodeError:
        raise ValueError("it is damaged, cut off, or no MindIR") from None


def _check(model: Any) -> None:
    if not model.HasField("producer_name") or not model.HasField("model_version"):
        raise ValueError("it names no producer and model version, so it is no MindIR")
    if model.HasField("little_endian") and not model.little_endian:
        raise ValueError("its numbers are big endian")
    if not 0 <= model.mind_ir_version <= _MAX_VERSION:
        raise ValueError(f"its version is {model.mind_ir_version}, versions up to {_MAX_VERSION} are known")
    if not model.HasField("graph"):
        raise ValueError("it has no graph")


def _without_weights(source: Bytes) -> tuple[bytes, list[tuple[int, int] | None]]:
    try:
        return without_data(source, "parameter")
    except ValueError as e:
        raise ValueError(f"it is damaged, cut off, or no MindIR ({e})") from None
