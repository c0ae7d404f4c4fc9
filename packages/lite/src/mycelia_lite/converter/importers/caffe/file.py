"""The files of a Caffe model: the structure, a text, and the weights of its layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import DecodeError

import mycelia as ms
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.caffe import caffe_pb2

# The types of layers of files that have `layers`, where not the words of the name with capitals.
_OLD_TYPES = {
    "LRN": "LRN", "RELU": "ReLU", "TANH": "TanH", "ABSVAL": "AbsVal", "BNLL": "BNLL", "MVN": "MVN",
    "HDF5_DATA": "HDF5Data", "HDF5_OUTPUT": "HDF5Output", "IM2COL": "Im2col", "ARGMAX": "ArgMax",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
}  # fmt: skip


def read_structure(path: str) -> Any:
    """The NetParameter of a text. Errors: ConversionError with the line of what cannot be read."""
    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8")
        net = text_format.Parse(text, caffe_pb2.NetParameter(), allow_unknown_field=True)
    except (OSError, UnicodeDecodeError, text_format.ParseError, RecursionError, ValueError) as error:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{path}: {error}") from error
    if not net.layer and not net.layers:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{path} is no Caffe model: it has no layers")
    if net.layer and net.layers:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{path} has layers of both forms, old and new")
    return net


def require_known_fields(path: str) -> None:
    """Errors: ConversionError for a field of the text that the importer does not know."""
    try:
        with open(path, "rb") as file:
            text_format.Parse(file.read().decode("utf-8"), caffe_pb2.NetParameter())
    except text_format.ParseError as error:
        raise ConversionError(Code.INVALID_OP_ATTR, f"{path}: {error}") from error


def type_of(layer: Any) -> str:
    """The type of a layer as new files call it."""
    if isinstance(layer, caffe_pb2.Layer):
        return layer.type
    name = caffe_pb2.OldLayer.LayerType.Name(layer.type)
    return _OLD_TYPES.get(name) or "".join(word.capitalize() for word in name.split("_"))


def read_weights(path: str) -> dict[str, list[ms.Tensor]]:
    """The blobs of the layers by name. Errors: ConversionError for what is no such file."""
    try:
        with open(path, "rb") as file:
            net = caffe_pb2.NetWeights.FromString(file.read())
    except (OSError, DecodeError) as error:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{path}: {error}") from error
    found: dict[str, list[ms.Tensor]] = {}
    for layer in (*net.layers, *net.layer):
        if layer.blobs:
            found[layer.name] = [_tensor(path, layer.name, blob) for blob in layer.blobs]
    if not net.layers and not net.layer:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{path}: it has no layers")
    return found


def _tensor(path: str, layer: str, blob: Any) -> ms.Tensor:
    if blob.HasField("shape"):
        shape = tuple(blob.shape.dim)
    else:
        shape = (blob.num, blob.channels, blob.height, blob.width)
    values = blob.double_data if len(blob.double_data) else blob.data
    if any(n < 0 for n in shape) or math.prod(shape) != len(values):
        raise ConversionError(
            Code.GRAPH_FILE_ERROR,
            f"{path}: a blob of layer '{layer}' of shape {list(shape)} has {len(values)} values",
        )
    return ms.Tensor(np.array(values, np.float32).reshape(shape))
