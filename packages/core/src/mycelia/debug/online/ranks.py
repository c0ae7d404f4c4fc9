"""What a rank has of tensors that all ranks should share, as it tells the service after a step, which
compares. Of a Parameter that is the value after the update, so that a step is named by what went wrong in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from mycelia.debug.conditions import NO_VALUE, OUT_OF_MEMORY, Around, check
from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.messages.graphs import graph_name
from mycelia.debug.messages.values import from_messages, to_messages
from mycelia.debug.online.steps import Steps
from mycelia.debug.online.watchpoints import Watch
from mycelia.debug.statistics import array_of
from mycelia.engine.tensors.tensor import Tensor


def values(
    watches: Iterable[Watch], steps: Steps, iteration: int, parameters: Mapping[tuple[int, str], Tensor]
) -> Iterator[Any]:
    """The messages `RankValue` of a step that has run. `parameters`: those of the training, as they are, by
    the numbers of graphs and the names that they have there. A Parameter of a graph is told in steps that ran
    another one with it, too, which may be the step of one rank alone.
    """
    ran = steps.get(iteration, {})
    touched = {id(parameters[n, name]) for n, step in ran.items() for name in step.parameters
               if (n, name) in parameters}  # fmt: skip
    elsewhere = [place for place, one in parameters.items() if place[0] not in ran and id(one) in touched]
    for watch in watches:
        if watch.condition.compares_ranks:
            for number, name in elsewhere:
                if (graph_name(number), name) in watch.nodes:
                    value = _after(steps, iteration, (number, name), parameters)
                    yield from _messages(watch, iteration, graph_name(number), name, 0, array_of(value))
            for number, step in ran.items():
                graph = graph_name(number)
                for name in (n for where, n in watch.nodes if where in ("", graph)):
                    made = step.outputs(name)
                    if name in step.parameters:
                        made = [_after(steps, iteration, (number, name), parameters)]
                    for slot, tensor in enumerate(made):
                        yield from _messages(watch, iteration, graph, name, slot, array_of(tensor))
                    if not made and steps.is_full:
                        yield from _messages(watch, iteration, graph, name, 0, None)


def _after(
    steps: Steps, iteration: int, wanted: tuple[int, str], parameters: Mapping[tuple[int, str], Tensor]
) -> Tensor:
    """A Parameter after a step: what a later one began with, or else what it is now."""
    number, name = wanted
    found = parameters.get(wanted)
    # Another graph may have it under another name, and another Parameter under this one.
    same = {wanted} if found is None else {place for place, one in parameters.items() if one is found}
    for later in sorted(i for i in steps if i > iteration):
        for graph, values in steps[later].items():
            for label, value in values.parameters.items():
                if (graph, label) in same:
                    return value
    return steps[iteration][number].parameters[name] if found is None else found


def _messages(
    watch: Watch, iteration: int, graph: str, name: str, slot: int, array: np.ndarray | None
) -> Iterator[Any]:
    bound = watch.condition.values(watch.given)["max_difference_gt"]
    told = {"id": watch.number, "step": iteration + 1, "bound": bound}
    where = {"graph_name": graph, "node_name": name, "slot": str(slot)}
    if array is None:
        lost = messages.TensorProto(**where, finished=True)
        yield messages.RankValue(**told, error_code=NO_VALUE | OUT_OF_MEMORY, tensor=lost)
        return
    told["digest"] = digest(array)
    told["error_code"] = check(watch.condition, watch.given, array, Around(others=[array])).error_code
    if bound:
        for part in to_messages(array, **where):
            yield messages.RankValue(**told, tensor=part)
    else:
        yield messages.RankValue(**told, tensor=messages.TensorProto(**where, finished=True))


def digest(array: np.ndarray) -> bytes:
    """The same for arrays of one dtype and shape whose elements are equal; 0 and -0 are."""
    if array.dtype.kind in "fc":
        array = array + array.dtype.type(0)  # -0 + 0 is 0
    found = hashlib.sha256(f"{array.dtype.name}{array.shape}".encode())
    found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return found.digest()


def received(found: Iterable[Any]) -> Iterator[tuple[Any, np.ndarray | None]]:
    """(message, elements or None) of each tensor.  Errors: ValueError for elements that do not fit."""
    last: list[Any] = []

    def parts() -> Iterator[Any]:
        for message in found:
            last[:] = [message]
            yield message.tensor

    for _, array in from_messages(parts()):
        yield last[0], array
