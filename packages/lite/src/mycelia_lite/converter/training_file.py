"""The `.ms` file of a model that learns: a step of its training, its answers, the halves of a step.

Variables are State nodes with the elements of the Parameters. The file for inference that the runtime writes
is in it as a pattern without them: the bytes of a converted model, and the places where variables belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

import mycelia as ms
from mycelia.ir import TensorType, Value
from mycelia.ir.walk import clone, substitute
from mycelia_lite import format as ms_format
from mycelia_lite.converter import optimise
from mycelia_lite.converter.errors import ConversionError, NotAvailable
from mycelia_lite.converter.importers import mindir
from mycelia_lite.converter.options import Options
from mycelia_lite.converter.rules import RULES
from mycelia_lite.converter.source import Source
from mycelia_lite.converter.training import Part, Step, take_apart
from mycelia_lite.converter.writer import TO_LAST, State, Writer
from mycelia_lite.enums import FmkType
from mycelia_lite.format import Table
from mycelia_lite.format.custom import custom

#: Options that say how a file for inference is made.
_OF_INFERENCE = (
    "input_format", "output_format", "input_data_type", "output_data_type", "weight_fp16", "weight_bf16",
    "infer", "check", "pack_weights", "optimize_transformer", "quantization",
)  # fmt: skip


def check(options: Options, framework: FmkType) -> None:
    """Errors: NotAvailable for an option that is of models for inference, and other sources than MINDIR."""
    if framework is not FmkType.MINDIR:
        raise NotAvailable(f"trainModel: a training step comes from a MINDIR file, not from {framework.name}")
    defaults = {f.name: f.default for f in fields(Options)}
    for name in _OF_INFERENCE:
        if getattr(options, name) != defaults[name]:
            raise NotAvailable(f"trainModel: {name} is for models for inference")


def make(path: str, options: Options) -> Table:
    """The tables of a training step in a MINDIR file. Errors: ConversionError."""
    more = dict(key=options.decrypt_key, mode=options.decrypt_mode) if options.decrypt_key else {}
    step = mindir.load_step(path, options.input_shape, **more)
    _check_borders(step)
    take_apart(step)
    losses = [f"loss{i}" if len(step.losses) > 1 else "loss" for i in range(len(step.losses))]
    states = [State(v.first, v.name, int(v.role)) for v in step.variables]
    pattern, holes = _answers(step, step.forward) if step.forward is not None else (b"", [])
    source = Source(step.graph, step.inputs, losses, FmkType.MINDIR, states=states)
    writer = Writer(source, keeps_layout=True)
    model = writer.run(RULES)
    numbers = {}
    for part in (step.forward, step.gradients, step.update):
        if part is None:
            continue
        kept = [State(None, step.variables[i].name, of=i) for i in part.reads]
        numbers[part.graph.name] = writer.beside(part.graph, part.inputs, part.outputs, kept)
    told = custom("Training", **numbers)
    told.attr += [
        Table("Attribute", name="answers", data=pattern),
        Table("Attribute", name="holes", data=np.asarray(holes, "<i8").tobytes()),
    ]
    model.subGraph[0].nodeIndices.append(len(model.nodes))
    model.nodes.append(Table("CNode", name="Training", primitive=told))
    return model


def _check_borders(step: Step) -> None:
    """Training graphs have borders of float32 and integers."""
    for what, values in (("input", step.graph.parameters[: len(step.inputs)]), ("output", step.losses)):
        for value in values:
            if value.type.dtype.is_floating and value.type.dtype.np != np.float32:
                raise NotAvailable(f"trainModel: an {what} is {value.type}, but training computes in float32")


# ---- the pattern of the file for inference -----------------------------------------------------------------


def _answers(step: Step, forward: Part) -> tuple[bytes, list[tuple[int, int, int]]]:
    """The file for inference without the bytes of variables, and (place, variable, whether it is turned) of
    each; nothing if what it has of variables is more than their elements.

    Rules of the optimiser that compute with weights cannot be part of it: where they would, there are none.
    """
    for without in ((), tuple(optimise.RULES)):
        first, second = (_with_marks(step, forward, seed, without) for seed in (1, 2))
        if first is not None and first == second:
            return first
    return b"", []


def _with_marks(
    step: Step, forward: Part, seed: int, without: Sequence[str]
) -> tuple[bytes, list[tuple[int, int, int]]] | None:
    """The same with random numbers in the place of variables; None if one of them is not there as it is."""
    chance = np.random.default_rng(seed)
    graph = clone(forward.graph)
    inputs = graph.parameters[: len(forward.inputs)]
    marks: dict[bytes, tuple[int, int]] = {}
    constants: dict[Value, Value] = {}
    for number, value in zip(forward.reads, graph.parameters[len(inputs) :], strict=True):
        first = step.variables[number].first
        mark = chance.uniform(0.5, 1.5, first.shape)
        mark = (mark if first.dtype.kind == "f" else mark * 2**20).astype(first.dtype)
        if first.size:
            marks[mark.tobytes()] = number, 0
            if mark.ndim == 4:
                marks.setdefault(np.ascontiguousarray(mark.transpose(TO_LAST)).tobytes(), (number, 1))
        tensor = ms.Tensor(mark)
        constants[value] = Value(TensorType(tensor.dtype, tensor.shape), name=value.name, constant=tensor)
    graph.parameters = inputs
    substitute(graph, constants)
    try:
        model = Writer(Source(graph, forward.inputs, forward.outputs, FmkType.MINDIR)).run(RULES)
        optimise.run(model, tuple({*without, *optimise.TRANSFORMER}), None)
    except ConversionError:
        return None
    return _cut(ms_format.encode(model), marks, set(forward.reads))


def _cut(
    data: bytes, marks: dict[bytes, tuple[int, int]], wanted: set[int]
) -> tuple[bytes, list[tuple[int, int, int]]] | None:
    """The bytes without the marks in constants, and where those were."""
    begin = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    holes, sizes = [], {}
    for tensor in ms_format.decode(data).allTensors:
        found = marks.get(bytes(tensor.data)) if len(tensor.data) else None
        if found is None:
            continue
        place = np.frombuffer(tensor.data, np.uint8).__array_interface__["data"][0] - begin
        holes.append((place, *found))
        sizes[place] = len(tensor.data)
    holes.sort()
    if {number for _, number, _ in holes} != wanted:
        return None
    kept, at = [], 0
    for place, _, _ in holes:
        kept.append(data[at:place])
        at = place + sizes[place]
    return b"".join([*kept, data[at:]]), holes
