"""A dumped tensor against a watch condition, with what the dump has around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mycelia.debug.conditions import Around, Condition, Hit, check

if TYPE_CHECKING:
    from mycelia.debug.analyzer import DebuggerTensor


def check_tensor(tensor: DebuggerTensor, condition: Condition, given: Mapping[str, Any]) -> Hit:
    """What `check` finds.  Errors: as it says."""
    around = Around(
        _earlier(tensor, condition.depth(condition.values(given))),
        tensor.node.kind,
        _inputs(tensor) if condition.reads_inputs else None,
        _of_other_ranks(tensor) if condition.compares_ranks else (),
    )
    return check(condition, given, tensor.value(), around, tensor.iteration)


def _earlier(tensor: DebuggerTensor, depth: int) -> list[np.ndarray]:
    """The values of the steps of its graph right before, as far as all steps between were dumped."""
    node = tensor.node
    steps = node.analyzer.dump.steps_before(node.rank, node.graph, tensor.iteration, depth)
    get = node.get_input_tensors if tensor.io == "input" else node.get_output_tensors
    known = {t.iteration: t for t in get([tensor.slot], steps)} if steps else {}
    found = []
    for step in steps:
        value = known[step].value() if step in known else None
        if value is None:
            break
        found.append(value)
    return found


def _inputs(tensor: DebuggerTensor) -> list[np.ndarray] | None:
    """What the operator read; where outputs alone were dumped, those of the nodes before it. None if a part
    is not there.
    """
    node, steps = tensor.node, [tensor.iteration]
    if node.kind in ("Parameter", "Const"):
        return []
    read = node.get_input_tensors(iterations=steps)
    if not read:
        made = [n.get_output_tensors(iterations=steps) for n in node.analyzer.get_input_nodes(node)]
        if len(made) < len(set(node.feeds)) or not all(made):
            return None
        read = [t for outputs in made for t in outputs]
    values = [t.value() for t in read]
    found = [v for v in values if v is not None]
    return found if len(found) == len(values) and found else None


def _of_other_ranks(tensor: DebuggerTensor) -> list[np.ndarray]:
    found = []
    for node in tensor.node.analyzer.node_index.on_other_ranks(tensor.node):
        others = node.get_output_tensors([tensor.slot], [tensor.iteration])
        found += [v for v in (t.value() for t in others) if v is not None]
    return found
