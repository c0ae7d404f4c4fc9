"""MindIR, MindSpore's own or ours: the graph is captured, Parameters become constants.

Those that a run of the model changes are variables, which keep their values from run to run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import mycelia as ms
from mycelia import errors
from mycelia.io.capture import capture
from mycelia.ir import TensorType, Value
from mycelia.ir.walk import substitute
from mycelia_lite.converter.errors import Code, ConversionError, NotAvailable
from mycelia_lite.converter.importers.inputs import given_shape, require_inputs
from mycelia_lite.converter.source import NodePlace, Source
from mycelia_lite.converter.training import Step, Variable
from mycelia_lite.enums import FmkType


def load(
    path: str, input_shapes: Mapping[str, Sequence[int]], key: bytes = b"", mode: str = "AES-GCM"
) -> Source:
    """The graph of a MindIR file with inputs of these shapes, by name; others keep the file's.

    `key`, `mode`: of an encrypted file.

    Errors: ConversionError if the file cannot be read, an input has no such name or dimensions, or its
    control flow is neither branches nor loops.
    """
    known, found = _captured(path, input_shapes, key, mode)
    graph = found["graph"]
    weights = found["weights"]
    kept = {id(tensor): value for value, tensor in weights.items()}
    changed = [kept[id(tensor)] for tensor, _ in found["updates"]]
    states = [weights.pop(value).asnumpy() for value in changed]
    constants = {}
    for value, tensor in weights.items():
        constant = Value(TensorType(tensor.dtype, tensor.shape), name=value.name, constant=tensor)
        constants[value] = constant
    substitute(graph, constants)
    inner = {*constants, *changed}
    graph.parameters = [p for p in graph.parameters if p not in inner] + changed
    outputs = [f"output{i}" for i in range(len(graph.outputs) - len(changed))]
    return Source(graph, known, outputs, FmkType.MINDIR, states=states)


def load_step(
    path: str, input_shapes: Mapping[str, Sequence[int]], key: bytes = b"", mode: str = "AES-GCM"
) -> Step:
    """The same for a file that holds a training step: all Parameters are variables. Errors: as for `load`."""
    known, found = _captured(path, input_shapes, key, mode)
    graph, following = found["graph"], {id(tensor): value for tensor, value in found["updates"]}
    variables = [
        Variable(tensor.name, tensor.asnumpy(), value, following.get(id(tensor)))
        for value, tensor in found["weights"].items()
    ]
    for variable in variables:
        if variable.value.type.dtype == ms.bfloat16:
            raise NotAvailable(f"trainModel: the Parameter '{variable.name}' is bfloat16")
    variables.sort(key=lambda v: v.following is None)
    values = {v.value for v in variables}
    inputs = [p for p in graph.parameters if p not in values]
    graph.parameters = inputs + [v.value for v in variables]
    losses = graph.outputs[: len(graph.outputs) - len(following)]
    graph.outputs = losses + [v.following for v in variables if v.following is not None]
    return Step(graph, known, variables)


def _captured(
    path: str, input_shapes: Mapping[str, Sequence[int]], key: bytes, mode: str
) -> tuple[list[str], dict[str, Any]]:
    """Names of the inputs of a MindIR file, and its graph with its Parameters (`io.capture`)."""
    try:
        model = ms.load(path, **({"dec_key": key, "dec_mode": mode} if key else {}))
    except (errors.MyceliaError, ValueError, OSError, ImportError) as error:
        raise ConversionError(Code.GRAPH_FILE_ERROR, str(error)) from error
    known = [name for name, *_ in model.inputs]
    require_inputs(known, input_shapes)
    inputs = []
    for name, dtype, shape in model.inputs:
        wanted = given_shape(name, shape, input_shapes)
        inputs.append(ms.Tensor(shape=[None if n < 0 else n for n in wanted], dtype=dtype))
    for number, step in enumerate(model.steps, 1):
        if step.operator:  # each call of a graph makes nodes of its own
            step.locate = partial(
                NodePlace, f"{os.path.basename(path)} node", number, step.name, step.operator
            )
    try:
        found = capture(ms.nn.GraphCell(model), inputs)
    except (errors.MyceliaError, ValueError, TypeError, NotImplementedError) as error:
        raise ConversionError(Code.NOT_SUPPORT, f"{path}: {error}") from error
    return known, found
