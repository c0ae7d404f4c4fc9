"""Messages to MindIR files: the bytes of weights go from the tensors' memory to the file, past protobuf.

Weights of a large model lie in a file of their own, PATH_variables/data_N. Each export takes a new N, and the
graph, which names it, is renamed into its place last: a reader finds either the old graph with its weights or
the new one with its own. Weights that no graph names any more are removed then.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from mycelia.engine.base import errors
from mycelia.io.files import atomic_write, locked
from mycelia.io.proto import with_data

READ_ONLY = 0o400  # as MindSpore leaves its files: a model is replaced as a whole
_DATA = re.compile(r"data_\d+")
_ALIGNMENT = 64
_LARGEST = (1 << 31) - 1  # bytes of a protobuf message

Encrypt = Callable[[bytes], bytes]


def write(model: Any, weights: Sequence[memoryview | None], path: str, encrypted: Encrypt | None) -> None:
    """Writes a ModelProto as PATH.mindir. `weights`: the bytes of its parameters, which the message does not
    hold; None for one whose bytes lie elsewhere.

    Errors: ValueError for a file that would be larger than a protobuf message can be; OSError.
    """
    pieces = with_data(model, "parameter", weights)
    size = sum(map(len, pieces))
    if size > _LARGEST:
        raise errors.value_error(
            "export",
            f"{path}.mindir would have {size} bytes, but a MindIR file holds up to {_LARGEST}",
            hint="make large constants of the network Parameters: those go to a file of their own",
        )
    with atomic_write(path + ".mindir", READ_ONLY) as file:
        if encrypted is not None:
            pieces = [encrypted(b"".join(pieces))]
        for piece in pieces:
            file.write(piece)


def write_split(model: Any, weights: Sequence[memoryview], path: str, encrypted: Encrypt | None) -> None:
    """Writes PATH_graph.mindir and PATH_variables/data_N with the weights."""
    folder = path + "_variables"
    os.makedirs(folder, exist_ok=True)
    with locked(folder):  # writers of one model go one after the other
        present = {name for name in os.listdir(folder) if _DATA.fullmatch(name)}
        name = next(f"data_{n}" for n in itertools.count() if f"data_{n}" not in present)
        with atomic_write(os.path.join(folder, name), READ_ONLY) as file:
            _write_weights(model, weights, f"{os.path.basename(folder)}/{name}", file, encrypted)
        write(model, [None] * len(weights), path + "_graph", encrypted)
        for old in present:
            os.unlink(os.path.join(folder, old))


def _write_weights(
    model: Any, weights: Sequence[memoryview], location: str, file: BinaryIO, encrypted: Encrypt | None
) -> None:
    """The content of a data file: a front of 64 bytes that begins with 1 for little endian, then each weight,
    sorted by name and filled up to a multiple of 64 bytes. The model gets their places.
    """
    front = bytes([1]) + bytes(_ALIGNMENT - 1)
    file.write(front if encrypted is None else encrypted(front))
    offset = _ALIGNMENT
    for proto, data in sorted(zip(model.graph.parameter, weights), key=lambda pair: pair[0].ref_key):
        place = proto.external_data
        place.location, place.offset, place.length = location, offset, len(data)
        padding = bytes(-len(data) % _ALIGNMENT)
        if encrypted is None:
            file.write(data)
            file.write(padding)
        else:
            file.write(encrypted(b"".join((data, padding))))
        offset += len(data) + len(padding)
