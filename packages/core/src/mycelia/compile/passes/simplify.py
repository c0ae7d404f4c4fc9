"""Algebraic identities that hold exactly, bit for bit, for every input."""

from __future__ import annotations

from mycelia.ir.graph import Builder, Graph, Node, Value
from mycelia.ir.rewrite import Any, Constant, Rule, Use, rewrite, rule

x = Any("x")
one = Constant("one", 1)


@rule(Use("mul", x, one, node="node"))
def times_one(build: Builder, x: Value, node: Node) -> Value | None:
    return x if x.type == node.outputs[0].type else None


@rule(Use("mul", one, x, node="node"))
def one_times(build: Builder, x: Value, node: Node) -> Value | None:
    return x if x.type == node.outputs[0].type else None


@rule(Use("div", x, one, node="node"))
def over_one(build: Builder, x: Value, node: Node) -> Value | None:
    return x if x.type == node.outputs[0].type else None


@rule(Use("neg", Use("neg", x)))
def double_negation(build: Builder, x: Value) -> Value:
    return x


@rule(Use("logical_not", Use("logical_not", x)))
def double_not(build: Builder, x: Value) -> Value | None:
    return x if x.type.dtype.is_bool else None


def _to_same_type(op: str) -> Rule:
    """`op` that gives its input's own type changes nothing."""

    @rule(Use(op, x, node="node"))
    def same_type(build: Builder, x: Value, node: Node) -> Value | None:
        return x if x.type.is_static and x.type == node.outputs[0].type else None

    return same_type


@rule(Use("reshape", Use("reshape", x), node="node"))
def reshape_twice(build: Builder, x: Value, node: Node) -> Value:
    return build.emit(node.op, [x], node.attrs)[0]


RULES = [
    times_one, one_times, over_one, double_negation, double_not, reshape_twice,
    *(_to_same_type(op) for op in ("cast", "reshape", "broadcast_to", "sum_to")),
]  # fmt: skip


def run(graph: Graph) -> int:
    return rewrite(graph, RULES)
