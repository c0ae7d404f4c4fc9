"""ONNX messages to files: the bytes of weights go from the tensors' memory to the file, past protobuf."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mycelia.io.files import Temporary, atomic_write, replace_all
from mycelia.io.onnx.types import IR_VERSIONS
from mycelia.io.proto import with_data

_ALIGNMENT = 4096  # of weights beside the model, so that they can be mapped
_LARGEST = (1 << 31) - 1  # bytes of a protobuf message
_OUTSIDE = 1024  # bytes; smaller tensors, such as shapes, stay in the model, where readers want to see them


def write(model: Any, weights: Sequence[tuple[Any, memoryview]], path: str) -> None:
    """Writes a ModelProto with these initializers, TensorProtos without data and their data, to `path`.

    Errors: OSError.
    """
    from mycelia import __version__

    version = model.opset_import[0].version
    model.ir_version, model.producer_name, model.producer_version = (
        IR_VERSIONS[version],
        "Mycelia",
        __version__,
    )
    model.graph.initializer.extend(proto for proto, _ in weights)
    pieces = with_data(model, "initializer", [data for _, data in weights])
    if sum(map(len, pieces)) > _LARGEST:
        _write_beside(model, [data for _, data in weights], path)
        return
    with atomic_write(path) as file:
        for piece in pieces:
            file.write(piece)


def _write_beside(model: Any, weights: Sequence[memoryview], path: str) -> None:
    """The model, and its weights in a file beside it; both take their places together."""
    temporaries = [Temporary(path)]
    try:
        temporaries.append(Temporary(path + ".data"))
        inside: list[memoryview | None] = []
        offset, file = 0, temporaries[1].file
        for proto, data in zip(model.graph.initializer, weights, strict=True):
            inside.append(data if len(data) < _OUTSIDE else None)
            if len(data) < _OUTSIDE:
                continue
            padding = -offset % _ALIGNMENT
            file.write(bytes(padding))
            file.write(data)
            proto.data_location = 1
            places = {
                "location": os.path.basename(path) + ".data",
                "offset": offset + padding,
                "length": len(data),
            }
            for key, value in places.items():
                proto.external_data.add(key=key, value=str(value))
            offset += padding + len(data)
        for piece in with_data(model, "initializer", inside):
            temporaries[0].file.write(piece)
        replace_all(temporaries)
    except BaseException:
        for temporary in temporaries:
            temporary.discard()
        raise
