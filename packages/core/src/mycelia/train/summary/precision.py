"""Which nodes of a graph compute in fewer bits than the numbers that they were given had."""

from __future__ import annotations

from mycelia.engine.ir.graph import Graph, Node, Value

REDUCED, RAISED = "precision_reduce", "precision_raise"  # MindInsight looks for "reduce"


def precision_flags(graph: Graph) -> dict[Node, str]:
    """`REDUCED` for casts to a floating type of fewer bits, and for what computes with their results or with
    those of others that do; `RAISED` for casts to more bits, and for what reads their results otherwise.

    Nodes of branches and loops are not looked into.
    """
    flags: dict[Node, str] = {}
    reduced: set[Value] = set()
    raised: set[Value] = set()
    for node in graph.nodes:
        given = [value for value in node.inputs if value is not None and _bits(value)]
        made = [value for value in node.outputs if _bits(value)]
        if node.op.name == "cast" and given and made:
            change = _bits(made[0]) - _bits(given[0])
            flag = REDUCED if change < 0 else RAISED if change > 0 else ""
            if change == 0 and given[0] in reduced:
                flag = REDUCED
        else:
            flag = (
                REDUCED
                if any(v in reduced for v in given)
                else RAISED
                if any(v in raised for v in given)
                else ""
            )
        if not flag:
            continue
        flags[node] = flag
        if flag == REDUCED:
            narrow = min((_bits(value) for value in given if value in reduced), default=64)
            is_cast = node.op.name == "cast"
            reduced.update(value for value in made if is_cast or _bits(value) <= narrow)
        elif node.op.name == "cast":
            raised.update(made)
    return flags


def _bits(value: Value) -> int:
    """Of a floating type, 0 of others."""
    dtype = value.type.dtype
    return dtype.itemsize * 8 if dtype.name.startswith(("float", "bfloat")) else 0
