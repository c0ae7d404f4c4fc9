"""Pattern rewriting: rules over small trees of ops, applied with a worklist until nothing changes.

    x = Any("x")
    @rule(Use("neg", Use("neg", x)))
    def double_negation(build, x):
        return x

A rule's function gets the builder (new nodes land right before the matched one), the values and attributes
its pattern named, and returns the replacement of the root's outputs (one Value or a list), or None to
leave the match alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import EllipsisType
from typing import Any as Object

from mycelia.engine.ir.graph import Builder, Graph, Node, Value, flat_parts
from mycelia.engine.ir.walk import users


class Any:
    """Matches every value, under a name; the same name twice must be the same value. `test` narrows it."""

    def __init__(self, name: str, test: Callable[[Value], bool] | None = None) -> None:
        self.name, self.test = name, test


class Constant(Any):
    """Matches a constant; `number` asks for every element to be that number."""

    def __init__(self, name: str, number: float | None = None) -> None:
        def is_wanted(value: Value) -> bool:
            if not value.is_constant:
                return False
            return number is None or (
                value.type.size > 0 and bool((value.constant.asnumpy() == number).all())
            )

        super().__init__(name, is_wanted)


class Use:
    """Matches output 0 of a node of `op` whose inputs match `operands`.

    `node` names the node itself for the rule's function; `once` asks that nobody else uses the result, so
    that the rewrite does not compute it twice; attributes given by keyword must be equal. A sole operand
    `...` stands for inputs of any number.
    """

    def __init__(
        self,
        op: str,
        *operands: Any | Use | EllipsisType,
        node: str = "",
        once: bool = False,
        **attrs: Object,
    ) -> None:
        self.op, self.operands, self.node, self.once, self.attrs = op, operands, node, once, attrs
        self.any_inputs = operands == (...,)


class Rule:
    __slots__ = ("pattern", "function", "wants")

    def __init__(self, pattern: Use, function: Callable[..., Object]) -> None:
        self.pattern, self.function = pattern, function
        self.wants = function.__code__.co_varnames[1 : function.__code__.co_argcount]

    @property
    def name(self) -> str:
        return self.function.__name__


def rule(pattern: Use) -> Callable[[Callable[..., Object]], Rule]:
    """Decorator: the function becomes the right-hand side of `pattern`."""
    return lambda function: Rule(pattern, function)


class _Rewriter:
    def __init__(self, graph: Graph, rules: Iterable[Rule]) -> None:
        self.graph = graph
        self.rules: dict[str, list[Rule]] = {}
        for r in rules:
            self.rules.setdefault(r.pattern.op, []).append(r)
        self.users = users(graph)
        self.results = {v: graph.outputs.count(v) for v in graph.outputs}
        self.before: dict[Node, list[Node]] = {}  # nodes to be placed in front of a node
        self.live = set(graph.nodes)
        self.applied = 0
        self.matched: list[Node] = []  # of the present match, the root first

    def uses(self, value: Value) -> int:
        return len(self.users.get(value, ())) + self.results.get(value, 0)

    def match(
        self, pattern: Any | Use, value: Value | None, found: dict[str, Object], root: bool = False
    ) -> bool:
        if value is None:
            return False
        if isinstance(pattern, Any):
            if pattern.test is not None and not pattern.test(value):
                return False
            return found.setdefault(pattern.name, value) is value
        node = value.producer
        if node is None or node not in self.live or node.op.name != pattern.op:
            return False
        if not root and (node.outputs[0] is not value or (pattern.once and self.uses(value) != 1)):
            return False
        if len(node.inputs) != len(pattern.operands) and not pattern.any_inputs:
            return False
        if any(node.attrs.get(k) != v for k, v in pattern.attrs.items()):
            return False
        if pattern.node:
            found[pattern.node] = node
        self.matched.append(node)
        return pattern.any_inputs or all(
            self.match(p, v, found) for p, v in zip(pattern.operands, node.inputs)
        )

    def run(self) -> int:
        work = list(reversed(self.graph.nodes))
        queued = set(work)
        while work:
            node = work.pop()
            queued.discard(node)
            if node not in self.live or not node.outputs:
                continue
            for candidate in self.rules.get(node.op.name, ()):
                touched = self.apply(candidate, node)
                if touched is not None:
                    self.applied += 1
                    for other in touched:
                        if other in self.live and other not in queued:
                            queued.add(other)
                            work.append(other)
                    break
        if self.applied:
            self.rebuild()
        return self.applied

    def apply(self, candidate: Rule, node: Node) -> list[Node] | None:
        found: dict[str, Object] = {}
        self.matched = []
        if not self.match(candidate.pattern, node.outputs[0], found, root=True):
            return None
        build = Builder(self.graph, node.location)
        build.added = []
        result = candidate.function(build, *[found[name] for name in candidate.wants])
        if result is None:
            return None
        replacements: Sequence[Value] = [result] if isinstance(result, Value) else list(result)
        if len(replacements) != len(node.outputs):
            raise ValueError(f"rule {candidate.name} gives {len(replacements)} values for {node!r}")
        for old, new in zip(node.outputs, replacements):
            if not old.type.accepts(new.type):
                raise ValueError(f"rule {candidate.name} replaces {old.type} of {node!r} by {new.type}")
        if len(self.matched) > 1 and build.added:
            build.added[-1].parts = flat_parts(reversed(self.matched))
        self.before.setdefault(node, []).extend(build.added)
        touched = list(build.added)
        for added in build.added:
            self.live.add(added)
            for index, value in enumerate(added.inputs):
                if value is not None:
                    self.users.setdefault(value, []).append((added, index))
        for old, new in zip(node.outputs, replacements):
            touched += self.replace(old, new)
        touched += self.remove(node)
        return touched

    def replace(self, old: Value, new: Value) -> list[Node]:
        touched = []
        for user, index in self.users.pop(old, ()):
            user.inputs[index] = new
            self.users.setdefault(new, []).append((user, index))
            touched.append(user)
        if old in self.results:
            self.graph.outputs = [new if v is old else v for v in self.graph.outputs]
            self.results[new] = self.results.get(new, 0) + self.results.pop(old)
        return touched

    def remove(self, node: Node) -> list[Node]:
        """Takes out `node` and producers that only it used; returns producers whose use count
        fell (they may match now).
        """
        touched = []
        dead = [node]
        while dead:
            gone = dead.pop()
            self.live.discard(gone)
            for index, value in enumerate(gone.inputs):
                if value is None:
                    continue
                self.users[value].remove((gone, index))
                producer = value.producer
                if producer is None or producer not in self.live:
                    continue
                if producer.has_effect or any(self.uses(v) for v in producer.outputs):
                    touched += [producer, *(user for user, _ in self.users[value])]
                else:
                    dead.append(producer)
        return touched

    def rebuild(self) -> None:
        nodes: list[Node] = []

        def place(node: Node) -> None:
            for earlier in self.before.get(node, ()):
                place(earlier)
            if node in self.live:
                nodes.append(node)

        for node in self.graph.nodes:
            place(node)
        self.graph.nodes = nodes


def rewrite(graph: Graph, rules: Iterable[Rule]) -> int:
    """Applies `rules` to `graph` (not to its regions) until none matches;
    returns how often one was applied.
    """
    return _Rewriter(graph, rules).run()
