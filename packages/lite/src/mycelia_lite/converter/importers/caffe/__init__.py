"""CAFFE: the layers of a text run one after the other on core's ops, which are captured."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import mycelia as ms
from mycelia.capture.trace import Trace
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.caffe import caffe_pb2, layers, windows
from mycelia_lite.converter.importers.caffe.calls import LAYERS, Call
from mycelia_lite.converter.importers.caffe.file import (
    read_structure,
    read_weights,
    require_known_fields,
    type_of,
)
from mycelia_lite.converter.importers.inputs import given_shape, parameter, require_inputs
from mycelia_lite.converter.importers.nodes import Nodes, captured, operator_of, require_none
from mycelia_lite.converter.source import Source
from mycelia_lite.enums import FmkType

TOPICS = (layers, windows)
_LARGEST = 1 << 32  # elements of a blob


def load(path: str, input_shapes: Mapping[str, Sequence[int]], weight_file: str) -> Source:
    """The network of a text for inference. Inputs have these shapes, by name, or those of the text.

    Its outputs are the blobs that no layer reads. Errors: ConversionError if a file cannot be read, has
    layers or parameters that are not imported (all unknown layers in one error), or no input is called so.
    """
    net = read_structure(path)
    used = [m for m in (net.layer or net.layers) if _is_used(m, net.state)]
    inputs = _inputs(path, net, used)
    used = [m for m in used if type_of(m) != "Input"]
    missing = {type_of(m): m.name for m in reversed(used) if type_of(m) not in LAYERS}
    require_none(path, "CAFFE layers", missing, "layer")
    require_known_fields(path)
    require_inputs(inputs, input_shapes)
    inputs = {name: given_shape(name, shape, input_shapes) for name, shape in inputs.items()}
    return _source(path, used, inputs, read_weights(weight_file))


def _is_used(message: Any, state: Any) -> bool:
    """Whether a layer is part of the network for inference: its rules say so, if it has any."""

    def meets(rule: Any) -> bool:
        return (
            (not rule.HasField("phase") or rule.phase == state.phase)
            and (not rule.HasField("min_level") or state.level >= rule.min_level)
            and (not rule.HasField("max_level") or state.level <= rule.max_level)
            and all(stage in state.stage for stage in rule.stage)
            and not any(stage in state.stage for stage in rule.not_stage)
        )

    if message.include:
        return any(map(meets, message.include))
    return not any(map(meets, message.exclude))


def _inputs(path: str, net: Any, used: Sequence[Any]) -> dict[str, tuple[int, ...]]:
    """Shapes by name: those at the head of the text, and of Input layers."""
    shapes = [tuple(s.dim) for s in net.input_shape]
    if net.input_dim:
        dims = list(net.input_dim)
        shapes = [tuple(dims[i : i + 4]) for i in range(0, len(dims), 4)]
    names = list(net.input)
    for message in used:
        if type_of(message) == "Input" and isinstance(message, caffe_pb2.Layer):
            names += message.top
            given = [tuple(s.dim) for s in message.input_param.shape]
            shapes += given * len(message.top) if len(given) == 1 else given
    if len(shapes) != len(names) or len(set(names)) != len(names) or not names:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{path}: {len(shapes)} shapes for the inputs {names}")
    for name, shape in zip(names, shapes):
        count = 1
        for n in shape:
            count *= n
        if any(n < 1 for n in shape) or count > _LARGEST:
            raise ConversionError(
                Code.GRAPH_FILE_ERROR, f"{path}: the input '{name}' has the impossible shape {list(shape)}"
            )
    return dict(zip(names, shapes))


def _source(
    path: str, used: Sequence[Any], inputs: Mapping[str, tuple[int, ...]], weights: Mapping[str, list]
) -> Source:
    nodes = Nodes(os.path.basename(path))
    outputs: list[str] = []

    def run(trace: Trace) -> list[Any]:
        blobs = {name: parameter(trace, name, ms.float32, shape, (), {}) for name, shape in inputs.items()}
        unread = dict.fromkeys(blobs)
        for message in used:
            call = Call(type_of(message), message, weights.get(message.name, []))
            taken = _taken(call, blobs)
            results = nodes.run(trace, call, taken, len(message.top), partial(_results, call, taken))
            for name in message.bottom:
                unread.pop(name, None)
            for name, value in zip(message.top, results):
                if name in blobs and name not in message.bottom:
                    raise call.fail(f"its result '{name}' is there already", Code.GRAPH_FILE_ERROR)
                blobs[name] = value
                unread[name] = None
        outputs.extend(name for name in unread if name not in inputs)
        if not outputs:
            raise ConversionError(Code.GRAPH_FILE_ERROR, f"{path}: all results are read by a layer")
        return [blobs[name] for name in outputs]

    return Source(captured(run), list(inputs), outputs, FmkType.CAFFE)


def _taken(call: Call, blobs: Mapping[str, Any]) -> list[Any]:
    """The inputs of a layer."""
    for name in call.message.bottom:
        if name not in blobs:
            raise call.fail(f"its input '{name}' is computed by no layer before it", Code.GRAPH_FILE_ERROR)
    if not call.message.bottom:
        raise call.fail("it has no inputs", Code.GRAPH_FILE_ERROR)
    return [blobs[name] for name in call.message.bottom]


def _results(call: Call, inputs: Sequence[Any]) -> Sequence[Any]:
    result = operator_of(call, LAYERS)(call, *inputs)
    call.all_read()
    results = result if isinstance(result, (tuple, list)) else (result,)
    if len(results) != len(call.message.top):
        raise call.fail(f"it has {len(call.message.top)} results, not {len(results)}", Code.GRAPH_FILE_ERROR)
    return results
