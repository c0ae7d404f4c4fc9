"""A program as text: its instructions in order of execution, what runs each and where its results lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mycelia.engine import _C
from mycelia.engine.compile.memory import Placement
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.types import TensorType
from mycelia.engine.observing.operator_names import named_operators

_RUNS = (  # kinds of Plan
    "kernel", "view", "reference body", "composition", "call of a device", "copy to a device",
)  # fmt: skip


def to_text(
    made: _C.Program,
    graph: Graph,
    order: Sequence[tuple[Node, tuple[int, ...], tuple[int, ...]]],
    plans: Mapping[Node, _C.Plan | None],
    numbers: Mapping[Value, int],
    places: Placement,
    frees: Mapping[int, tuple[int, ...]],
) -> str:
    """`order`: the instructions of `made` with the `numbers` of what they read and make; `frees`: values with
    memory of their own that go after an instruction.
    """
    lines = [f"program of {graph.name}: {len(order)} instructions, arena {made.info.peak} bytes"]
    lines += [f"%{numbers[v]} = parameter {v.name or i}: {v.type}" for i, v in enumerate(graph.parameters)]
    lines += [f"%{n} = constant: {v.type}" for v, n in numbers.items() if v.is_constant]
    tasks = {begin: ends for begin, ends in made.task_groups}
    names = named_operators([node for node, *_ in order])
    for place, ((node, used, results), operator) in enumerate(zip(order, names)):
        if place in tasks:
            begins = (place, *tasks[place][:-1])
            parts = ", ".join(f"{a}..{b - 1}" for a, b in zip(begins, tasks[place]))
            lines.append(f"# side by side: instructions {parts}")
        left = ", ".join(f"%{n}" for n in results)
        lines.append(f"{left} = {node.op.name}({', '.join(f'%{n}' if n >= 0 else 'None' for n in used)})")
        plan = plans[node]
        lines.append(f"    # runs: {'Python' if plan is None else _RUNS[plan.kind]}")
        lines.append(f"    # type: {_types(node.inputs)} -> {_types(node.outputs)}")
        lines.append(f"    # address: {', '.join(_address(v, places) for v in node.outputs)}")
        lines.append(f"    # fullname: {operator.name}")
        if place in frees:
            lines.append(f"    # frees: {', '.join(f'%{n}' for n in frees[place])}")
    lines.append(f"return {', '.join(f'%{numbers[v]}' for v in graph.outputs)}")
    return "\n".join([*lines, ""])


def _types(values: Sequence[Value | None]) -> str:
    types: list[TensorType | None] = [v and v.type for v in values]
    return f"<{', '.join(map(str, types))}>"


def _address(value: Value, places: Placement) -> str:
    if value not in places.offsets:
        return "its own"
    begin = places.offsets[value]
    inside = ", in the place of another" if value in places.root else ""
    return f"arena[{begin}:{begin + value.type.nbytes}]{inside}"
