"""Rules of control flow: branches and loops become graphs that call one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycelia.engine.base import dtypes
from mycelia.engine.ir import Graph, TensorType
from mycelia.io.mindir.rules.shape import part_of
from mycelia.io.mindir.rules.table import Unsupported, attributes, cast_to, reshape_to, rule, shaped

# ---- control flow ------------------------------------------------------------------------------


@rule("call")
def _call(w, node, inputs):
    return w.inline(node.attrs["graph"], inputs)


@rule("cond")
def _cond(w, node, inputs):
    *values, condition = inputs
    types = [v.type for v in node.inputs[:-1]]
    out = [v.type for v in node.outputs]
    branches = []
    for label, graph in (("true", node.attrs["then"]), ("false", node.attrs["otherwise"])):
        name = w.model.declare(label)
        w.model.define(name, types, _region(graph, out), out[0] if len(out) == 1 else tuple(out))
        branches.append((name, values))
    condition = _condition(w, condition, node.inputs[-1].type)
    return w.results(w.choose(condition, *branches, out=out[0] if len(out) == 1 else tuple(out)), out)


def _region(graph: Graph, out: Sequence[TensorType]) -> Callable:
    return lambda w, inputs: w.result(w.inline(graph, inputs), out)


def _condition(w: Any, name: Any, type: TensorType) -> Any:
    """A condition as Switch takes it: a bool tensor without dimensions."""
    return cast_to(w, reshape_to(w, name, type, ()), type, dtypes.bool_)


@rule("while_loop")
def _while_loop(w, node, inputs):
    """A graph that tests and goes to the body, which ends in a call of it, or to the end,
    which returns the values.
    """
    test, body, carried = attributes(node, "test", "body", "carried")
    types = [v.type for v in body.parameters]
    out_types = types[:carried]
    out = out_types[0] if carried == 1 else tuple(out_types)
    header, again, done = (w.model.declare(label) for label in ("while", "body", "after"))

    def build_header(g, values):
        (condition,) = g.inline(test, values)
        condition = _condition(g, condition, test.outputs[0].type)
        return g.choose(condition, (again, values), (done, values[:carried]), out)

    def build_body(g, values):
        new = g.inline(body, values)
        return g.call("CNode", header, (*new, *values[carried:]), out)

    w.model.define(header, types, build_header, out)
    w.model.define(done, out_types, lambda g, values: g.result(values, out_types), out)
    w.model.define(again, types, build_body, out)
    return w.results(w.call("CNode", header, inputs, out), out_types)


@rule("scan")
def _scan(w, node, inputs):
    """Unrolled, as MindSpore does with recurrent layers."""
    body, carried, scanned, backwards = attributes(node, "body", "carried", "scanned", "reverse")
    columns = inputs[carried : carried + scanned]
    types = [v.type for v in node.inputs[carried : carried + scanned]]
    length = types[0].shape[0]
    if length < 1:
        raise Unsupported("scan with a number of rounds that is not known")
    values, rest = list(inputs[:carried]), inputs[carried + scanned :]
    made: list[list] = [[] for _ in node.outputs[carried:]]
    for i in range(length - 1, -1, -1) if backwards else range(length):
        rows = [_row(w, name, type, i) for name, type in zip(columns, types)]
        results = w.inline(body, [*values, *rows, *rest])
        values = results[:carried]
        for row, result in zip(made, results[carried:]):
            row.append(result)
    for rows in made:
        if backwards:
            rows.reverse()
    stacked = [
        w.primitive("Stack", w.tuple(rows), out=v.type, axis=0, N=length, num=length)
        for rows, v in zip(made, node.outputs[carried:])
    ]
    return [*values, *stacked]


@rule("print_lines")
def _print_lines(w, node, inputs):
    for piece in node.attrs["pieces"]:
        if type(piece) not in (int, str):
            raise Unsupported("print of a text that is made of tensors")
        w.print(inputs[piece] if type(piece) is int else piece)
    return []


def _row(w: Any, name: Any, type: TensorType, index: int) -> Any:
    part = (1, *type.shape[1:])
    row = part_of(w, name, (index, *(0 for _ in part[1:])), part, (1,) * type.rank, shaped(type, part))
    return w.op("Squeeze", row, (0,), out=shaped(type, part[1:]))
