"""How a finished model is stored: constants as float16, weights in a file beside it, encrypted."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import struct
from collections.abc import Iterator

import numpy as np

from mycelia.io.files import Temporary, atomic_write, replace_all
from mycelia_lite import format as ms_format
from mycelia_lite import runtime
from mycelia_lite.converter.errors import NotAvailable
from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.format.flatbuffer import encode_parts

_FEWEST = (
    17  # elements of a constant that is halved: less gains nothing, since constants begin at multiples of 64
)
_PLACES = 64  # bytes: where constants begin in a file of their own
_SEALED_PIECE = 64 << 20
_MAGIC = 0x7F3A5ED8  # of blocks in AES-GCM


def halve(model: Table, exactly: bool = False) -> int:
    """Store float32 constants as float16, in place; how many were. `exactly`: only where nothing changes.

    The runtime takes them for float32. Left alone are quantized constants and those that float16 cannot hold:
    with elements beyond 65504, or so small that the rest of the constant would drown them.
    """
    count = 0
    for tensor in model.allTensors:
        if tensor.dataType != int(DataType.FLOAT32) or len(tensor.data) < 4 * _FEWEST or tensor.quantParams:
            continue
        array = np.frombuffer(tensor.data, np.float32)
        with np.errstate(over="ignore"):
            half = array.astype(np.float16)
        if np.array_equal(array, half) if exactly else _holds(array, half):
            tensor.dataType = int(DataType.FLOAT16)
            tensor.data = memoryview(half).cast("B")
            count += 1
    return count


def brains(model: Table) -> int:
    """Store float32 constants as bfloat16, the nearest ones, in place; how many were.

    The runtime takes them for float32. Left alone are quantized constants, and those with elements that are
    not finite or would not be.
    """
    count = 0
    for tensor in model.allTensors:
        if tensor.dataType != int(DataType.FLOAT32) or len(tensor.data) < 4 * _FEWEST or tensor.quantParams:
            continue
        bits = np.frombuffer(tensor.data, np.uint32).astype(np.uint64)
        nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        if ((nearest & 0x7F80) == 0x7F80).any():
            continue
        tensor.dataType = int(DataType.BFLOAT16)
        tensor.data = memoryview(nearest.astype("<u2")).cast("B")
        count += 1
    return count


def _holds(array: np.ndarray, half: np.ndarray) -> bool:
    """Whether each element is one of the float16 that are as near as 11 bits allow, seen from the largest."""
    finite = np.isfinite(array)
    if not np.array_equal(finite, np.isfinite(half)):
        return False
    with np.errstate(invalid="ignore"):
        error = np.abs(array - half.astype(np.float32))[finite]
    return not error.size or error.max() <= np.abs(array[finite]).max() * 2.0**-11


def write(path: str, model: Table, key: bytes = b"", weights_apart: int = 2**31 - 1) -> None:
    """Write the file, whole or not at all; files that were at its places stay until then.

    `key`: encrypts it. `weights_apart`: bytes of weights above which they go to a file beside it, `net-` and
    their hash and `.weights` for `net.ms`; that of an earlier conversion is removed.

    Errors: NotAvailable for such weights and a key, OSError.
    """
    if sum(len(t.data) for t in model.allTensors) > weights_apart:
        if key:
            raise NotAvailable("encryptKey: weights in a file of their own cannot be encrypted")
        _write_apart(path, model)
        return
    parts = encode_parts(model)
    with atomic_write(path) as file:
        for part in _sealed(b"".join(parts), key) if key else parts:
            file.write(part)


def _write_apart(path: str, model: Table) -> None:
    """The weights' file has their hash in its name: no model is found beside the weights of another."""
    folder, name = os.path.split(path)
    stem = name.removesuffix(".ms")
    before = _weights_of(path, stem)
    apart = Temporary(os.path.join(folder, f"{stem}.weights"))
    try:
        places, digest = {}, hashlib.sha256()
        for i, tensor in enumerate(model.allTensors):
            if len(tensor.data) < _PLACES:  # shapes, axes and the like stay with the operators
                continue
            fill = bytes(-apart.file.tell() % _PLACES)
            for part in (fill, tensor.data):
                apart.file.write(part)
                digest.update(part)
            places[i] = apart.file.tell() - len(tensor.data)
        weights = f"{stem}-{digest.hexdigest()[:16]}.weights"
        apart.path = os.path.join(folder, weights)
        model = model.copy()
        for i, at in places.items():
            tensor = model.allTensors[i]
            length = len(tensor.data)
            tensor.externalData = [Table("ExternalData", location=weights, offset=at, length=length)]
            tensor.data = b""
        replace_all([apart])
    except BaseException as error:
        apart.discard()
        if (
            isinstance(error, OSError) and error.filename is None
        ):  # a full disk: the write itself knows no name
            error.filename = apart.path
        raise
    with atomic_write(path) as file:
        for part in encode_parts(model):
            file.write(part)
    for old in before - {weights}:
        os.unlink(os.path.join(folder, old))


def _weights_of(path: str, stem: str) -> set[str]:
    """Files of weights that an earlier conversion wrote beside the model at `path`."""
    try:
        model = ms_format.read(path)
    except (OSError, ms_format.FormatError):
        return set()
    folder = os.path.dirname(path)
    named = {place.location for tensor in model.allTensors for place in tensor.externalData}
    ours = re.compile(re.escape(stem) + r"-[0-9a-f]{16}\.weights")
    return {name for name in named if ours.fullmatch(name) and os.path.isfile(os.path.join(folder, name))}


def _sealed(plain: bytes, key: bytes) -> Iterator[bytes]:
    """Blocks as MindSpore writes them: magic, tag, sizes, iv, and what is encrypted."""
    for start in range(0, len(plain), _SEALED_PIECE):
        piece = bytearray(plain[start : start + _SEALED_PIECE])
        iv = os.urandom(16)  # the first 12 bytes are the nonce
        tag = ctypes.create_string_buffer(16)
        data = (ctypes.c_char * len(piece)).from_buffer(piece)
        runtime.check(
            runtime.library().MSEncryptInPlace(
                key, len(key), iv[:12], ctypes.addressof(data), len(piece), tag
            )
        )
        yield struct.pack("<I16sii16si", _MAGIC, tag.raw, len(iv) + len(piece) + 8, len(iv), iv, len(piece))
        yield bytes(piece)
