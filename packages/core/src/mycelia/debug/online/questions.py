"""Questions to a debugged training beyond MindSpore's protocol."""

from __future__ import annotations

import json
import linecache
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any

import numpy as np

from mycelia.debug.dump.operator_files import is_infinite
from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.messages.graphs import Call, graph_name
from mycelia.debug.messages.values import to_messages
from mycelia.debug.online import dumping
from mycelia.debug.online.steps import INPUT, GraphValues, Step
from mycelia.debug.operators import edited, rerun, script_of
from mycelia.debug.reading.folders import nonfinite
from mycelia.debug.reading.ir import SourceLine
from mycelia.debug.reading.nonfinite import NonFinite, by_birth, counted
from mycelia.debug.statistics import array_of, is_finite
from mycelia.engine.base import config, errors
from mycelia.engine.observing import Operator
from mycelia.engine.tensors.tensor import Tensor

_MOST_OF_LAST = 64 << 20  # bytes of a training's last step that the service gets


def _step(debugged: Any, arguments: dict[str, Any]) -> tuple[int, Step]:
    """Errors: ValueError for a step that is not kept."""
    step = arguments.get("step")
    found = debugged.steps.get(step - 1) if isinstance(step, int) else None
    if found is None:
        raise ValueError(f"step {step!r} is not kept; there are {[i + 1 for i in debugged.steps]}")
    return step - 1, found


def _counts(tensor: Tensor) -> dict[str, int]:
    return {} if is_finite(tensor) else nonfinite(array_of(tensor))


def _health(debugged: Any, arguments: dict[str, Any]) -> dict[str, int]:
    """Of a step (`step`): outputs, those that are not finite, elements by kind."""
    _, step = _step(debugged, arguments)
    outputs = [t for values in step.values() for name in values.names() for t in values.outputs(name)]
    return counted([_counts(t) for t in outputs])


def _nonfinite(debugged: Any, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """All outputs of a step that are not finite, those born there first, in order of execution."""
    iteration, step = _step(debugged, arguments)
    is_first = iteration == min(debugged.steps)
    found = [f for number, values in step.items() for f in _bad(iteration, number, values, is_first)]
    return [_told(one) for one in by_birth(found)]


def _bad(iteration: int, number: int, values: GraphValues, is_first: bool) -> Iterator[NonFinite]:
    rank = config.get("rank")
    for name, tensor in values.parameters.items():  # where they became so is known of the steps that are kept
        for kind, count in _counts(tensor).items():
            born = is_first
            yield NonFinite(name, "Parameter", 0, iteration, kind, count, tensor.size, born, rank, number, ())
    for name, (operator, inputs, outputs) in values.calls.items():
        for slot, tensor in enumerate(outputs):
            counts = _counts(tensor)
            reads_finite = bool(counts) and all(t is None or is_finite(t) for t in inputs)
            given = reads_finite and "nan" not in counts and is_infinite(operator.attrs, operator.numbers)
            born = reads_finite and not given
            for kind, count in counts.items():
                yield NonFinite(
                    name, operator.type, slot, iteration, kind, count, tensor.size, born, rank, number,
                    tuple(_lines(operator)), given,
                )  # fmt: skip


def _lines(operator: Operator) -> Iterator[SourceLine]:
    for file, line, _ in operator.stack:
        yield SourceLine(file, line, linecache.getline(file, line).strip())


def _told(found: NonFinite) -> dict[str, Any]:
    lines: Sequence[SourceLine] = found.stack
    return {**found.as_dict(), "stack": [[line.file, line.line, line.code] for line in lines]}


def _call(debugged: Any, arguments: dict[str, Any]) -> Call:
    """The call of an operator (`graph`, `name`) in a step.  Errors: ValueError if it is not kept."""
    _, step = _step(debugged, arguments)
    for number, values in step.items():
        if arguments.get("graph") == graph_name(number) and arguments.get("name") in values.calls:
            return values.calls[arguments["name"]]
    raise ValueError(f"no operator {arguments.get('name')!r} is kept in step {arguments.get('step')}")


def _edited(tensor: Tensor, edit: dict[str, Any]) -> Tensor:
    """A tensor with `value` at `index`, a list of numbers and of [start, stop, step]; None: everywhere."""
    index = edit.get("index")
    place = None if index is None else tuple(slice(*i) if isinstance(i, list) else i for i in index)
    return edited(tensor, place, edit["value"])


def _rerun(debugged: Any, arguments: dict[str, Any]) -> list[np.ndarray]:
    """Outputs of an operator that runs once more, on inputs with `edits` (`slot`, `index`, `value`)."""
    operator, inputs, _ = _call(debugged, arguments)
    given = list(inputs)
    for edit in arguments.get("edits", ()):
        slot = edit["slot"]
        tensor = given[slot] if 0 <= slot < len(given) else None
        if tensor is None:
            raise ValueError(f"{operator.name} has no tensor at input {slot}")
        given[slot] = _edited(tensor, edit)
    return [array_of(t) for t in rerun(operator, given)]


def _edit(debugged: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Change a Parameter (`graph`, `name`, `index`, `value`) of the training, from the next step on."""
    wanted = arguments.get("graph"), arguments.get("name")
    known = ((graph_name(number), name) == wanted for number, name in debugged.parameters)
    tensor = next(compress(debugged.parameters.values(), known), None)
    if tensor is None:
        raise ValueError(f"{arguments.get('name')!r} is no Parameter of the training")
    if debugged.is_running:
        raise ValueError("a Parameter is changed between steps, not within one")
    place = tensor._tape_place
    tensor._assign(_edited(tensor, arguments))
    tensor._tape_place = place
    return {"shape": list(tensor.shape), "dtype": str(array_of(tensor).dtype)}


def _script(debugged: Any, arguments: dict[str, Any]) -> str:
    """An operator as a script that runs alone."""
    operator, inputs, outputs = _call(debugged, arguments)
    step = arguments["step"]
    return script_of(operator, inputs, outputs, f"{operator.type}, {operator.name}, in step {step}.")


def _dump(debugged: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Write a step (`step`; 0: the latest) as a data dump: `folder`, absolute, and `step`."""
    if arguments.get("step") == 0 and debugged.steps:
        arguments = {**arguments, "step": max(debugged.steps) + 1}
    iteration, step = _step(debugged, arguments)
    return {"folder": dumping.write(iteration, step), "step": iteration + 1}


_ANSWERS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "health": _health, "nonfinite": _nonfinite, "rerun": _rerun, "edit": _edit, "script": _script,
    "dump": _dump,
}  # fmt: skip


def last_step(debugged: Any) -> Iterator[Any]:
    """What a training says unasked before it ends, a message `Answer`: the values of its last step, as far as
    they fit into 64 MiB, and what of them is not finite; nothing if no step is kept. `same`: inputs, and the
    outputs that they are.
    """
    iteration = max(debugged.steps, default=None)
    if iteration is None:
        return
    arguments = {"step": iteration + 1}
    parts, same, left = [], [], _MOST_OF_LAST
    known: dict[tuple, list[str] | None] = {}  # None: there was no room for it
    for number, values in debugged.steps[iteration].items():
        for name, slot, tensor in _tensors(values):
            place = [graph_name(number), name, slot]
            key = (tensor._memory, tensor.shape, tensor.dtype)
            if key in known:
                if known[key] is not None:
                    same.append([place, known[key]])
                continue
            known[key] = place if tensor.nbytes <= left else None
            if known[key] is not None:
                left -= tensor.nbytes
                parts += to_messages(array_of(tensor), graph_name=place[0], node_name=name, slot=slot)
    told = {
        **arguments, "same": same,
        "answers": {"health": _health(debugged, arguments), "nonfinite": _nonfinite(debugged, arguments)},
    }  # fmt: skip
    yield messages.Answer(text=json.dumps(told), tensors=parts)


def _tensors(values: GraphValues) -> Iterator[tuple[str, str, Tensor]]:
    """(name, slot, tensor) of all that a graph's operators read and made in a step."""
    for name, tensor in values.parameters.items():
        yield name, "0", tensor
    for name, (_, inputs, outputs) in values.calls.items():
        for mark, tensors in ((INPUT, inputs), ("", outputs)):
            for slot, tensor in enumerate(tensors):
                if tensor is not None:
                    yield name, f"{mark}{slot}", tensor


def answer(debugged: Any, question: str, arguments: str) -> Any:
    """The message `Answer`; what cannot be answered tells why."""
    ask = _ANSWERS.get(question)
    if ask is None:
        return messages.Answer(error=f"{question!r} is no question; there are {', '.join(sorted(_ANSWERS))}")
    try:
        found = ask(debugged, json.loads(arguments or "{}"))
        if question == "rerun":
            parts = [m for slot, array in enumerate(found) for m in to_messages(array, slot=str(slot))]
            return messages.Answer(tensors=parts)
        return messages.Answer(text=json.dumps(found))
    except errors.MyceliaError as cause:
        return messages.Answer(error=f"{cause.subject}: {cause.message}")
    except Exception as cause:  # the training goes on, whatever a question runs into
        return messages.Answer(error=f"{type(cause).__name__}: {cause}")
