"""An operator of a dump by itself: run once more on its dumped inputs, edited if wanted, or written as a
script that runs alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mycelia.debug.dump.operator_files import RecordedOperator, is_sampled, read_operators
from mycelia.debug.isolated import rerun_isolated
from mycelia.debug.operators import edited, rerun, script_of
from mycelia.debug.slices import indices
from mycelia.debug.statistics import array_of
from mycelia.engine.base import errors
from mycelia.engine.base.origins import Origin
from mycelia.engine.observing import Operator
from mycelia.engine.ops.define import find
from mycelia.engine.tensors.tensor import Tensor

if TYPE_CHECKING:
    from mycelia.debug.analyzer import Node


def rerun_recorded(
    node: Node, iteration: int, edits: Sequence[Mapping[str, Any]] = (), isolated: bool = False
) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """(made, dumped or None) of each output of an operator that runs once more on its inputs of `iteration`.

    `edits`: {"slot": an input, "index": text such as ``[0, 2:5]`` or "" for all of it, "value": a number or
    nested lists of them}; `isolated`: in a process of its own.
    Errors: ValueError if the dump does not have what that needs, or for edits that do not fit; what the op
    raises.
    """
    operator, given, before = _recorded(node, iteration)
    for edit in edits:
        slot = edit.get("slot")
        tensor = given[slot] if isinstance(slot, int) and 0 <= slot < len(given) else None
        if tensor is None or "value" not in edit:
            raise errors.value_error(
                "rerun", f"an edit has the slot of an input and a value, but is {dict(edit)!r}"
            )
        index = indices(edit["index"], tensor.shape) if edit.get("index") else None
        given[slot] = edited(tensor, index, edit["value"])
    made = rerun_isolated(operator, given) if isolated else [array_of(t) for t in rerun(operator, given)]
    return [(array, before.get(slot)) for slot, array in enumerate(made)]


def script_of_recorded(node: Node, iteration: int) -> str:
    """A Python script that runs the operator alone, on its inputs of `iteration`, and tells whether it makes
    what was dumped.

    Errors: as of `rerun_recorded`, but for edits; more than 64 MiB of tensors.
    """
    operator, given, before = _recorded(node, iteration)
    if sorted(before) != list(range(len(before))) or not before:
        raise errors.value_error("script", f"the outputs of {node.name} were not dumped")
    outputs = [Tensor(before[slot]) for slot in range(len(before))]
    title = f"{operator.type}, {operator.name}, in iteration {iteration}."
    return script_of(operator, given, outputs, title)


def _recorded(node: Node, iteration: int) -> tuple[Operator, list[Tensor | None], dict[int, np.ndarray]]:
    """(operator, its inputs, its dumped outputs by slot) of a node."""
    folder = node.analyzer.dump.ranks[node.rank]
    if is_sampled(folder):
        raise errors.value_error(
            "dump", "it holds samples of tensors (sample_mode 1), with which no operator runs"
        )
    found = read_operators(folder, node.graph).get(node.name)
    if found is None:
        raise errors.value_error(
            "dump", f"it does not say how {node.name} ran: no operator, or a dump of another program"
        )
    if found.missing:
        raise errors.value_error(
            "dump", f"{node.name} cannot run: the dump has no text for {', '.join(found.missing)}"
        )
    origin = Origin(tuple((line.file, line.line, "") for line in node.stack)) if node.stack else None
    operator = Operator(find(found.op), node.name, origin, dict(found.attrs), node.kind)
    operator.numbers = dict(found.numbers)
    read = dict(_empty(found, "input:")) | _last(node, "input", iteration)
    lost = [slot for slot, dtype in enumerate(found.inputs) if dtype is not None and slot not in read]
    if lost:
        raise errors.value_error(
            "dump", f"input {lost[0]} of {node.name} was not dumped in iteration {iteration}",
            hint='"input_output": 0 dumps inputs and outputs',
        )  # fmt: skip
    given = [None if dtype is None else Tensor(read[slot], dtype) for slot, dtype in enumerate(found.inputs)]
    made = dict(_empty(found, "")) | _last(node, "output", iteration)
    return operator, given, made


def _empty(found: RecordedOperator, mark: str) -> Iterator[tuple[int, np.ndarray]]:
    """(slot, array) of what has no elements, and so no file."""
    for slot, (dtype, shape) in found.empty.items():
        if slot.startswith("input:") == bool(mark):
            yield int(slot.removeprefix(mark)), array_of(Tensor(np.zeros(shape, np.float32), dtype))


def _last(node: Node, io: str, iteration: int) -> dict[int, np.ndarray]:
    """Slot -> elements; of an operator that ran several times, the last."""
    get = node.get_input_tensors if io == "input" else node.get_output_tensors
    found = {}
    for tensor in sorted(get(iterations=[iteration]), key=lambda t: t.record.stamp):
        value = tensor.value()
        if value is not None:
            found[tensor.slot] = value
    return found
