"""Where one is: the rank that is looked at, nodes and tensors by what is typed, the last list."""

from __future__ import annotations

import re

import numpy as np

from mycelia.debug.analyzer import DebuggerTensor, Node
from mycelia.debug.reading.nonfinite import NonFinite
from mycelia.debug.text.source import Source
from mycelia.engine.base import errors


class Place:
    """A source with what is looked at in it; its iterations have the source's numbers."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.rank = source.get_ranks()[0]
        self.listed: list[Node] = []  # what numbers stand for

    @property
    def iteration(self) -> int:
        """The one that is looked at."""
        return self.source.iteration

    @property
    def iterations(self) -> list[int]:
        """Those that have values of the rank."""
        return self.source.get_iterations(self.rank)

    @property
    def nodes(self) -> list[Node]:
        """All nodes of the rank, in order of execution."""
        return self.source.nodes(self.rank)

    def when(self, iteration: int | None = None) -> str:
        """An iteration by its name, that which is looked at if none is said."""
        return f"{self.source.unit} {self.iteration if iteration is None else iteration}"

    def trace(self) -> list[NonFinite]:
        """What is not finite in this iteration of the rank, what was born so first."""
        return self.source.trace(self.rank, self.iteration)

    def node(self, text: str, iteration: int | None = None) -> Node:
        """The node with this number in the last list, this full name, or a name that this ends; of two graphs
        that have it, the one that ran in the iteration (that which is looked at if none is said), or the one
        whose number stands in front, ``1:fc.weight``.

        Errors: ValueError if there is none, or more than one.
        """
        if text.isdecimal():
            if not 1 <= int(text) <= len(self.listed):
                raise errors.value_error("nodes", f"the last list has no number {text}")
            return self.listed[int(text) - 1]
        graph, _, rest = text.partition(":")
        is_of_graph = graph.isascii() and graph.isdecimal() and bool(rest)
        nodes, name = self.nodes, text
        if is_of_graph:
            nodes, name = [n for n in nodes if n.graph == int(graph)], rest
        for found in (
            [n for n in nodes if n.name == name],
            [n for n in nodes if n.name.endswith(f"/{name}")],
            [n for n in nodes if name.lower() in n.name.lower()],
        ):
            if len({n.name for n in found}) == 1 < len(found):
                ran = self.source.graphs(self.rank, self.iteration if iteration is None else iteration)
                found = [n for n in found if n.graph in ran] or found
            if len(found) == 1:
                return found[0]
            if found:
                several = len({n.graph for n in found}) > 1
                names = ", ".join(f"{n.graph}:{n.name}" if several else n.name for n in found[:3])
                raise errors.value_error(
                    "nodes", f"{text!r} may be {len(found)} nodes: {names}{', ...' * (len(found) > 3)}",
                    hint="`nodes` lists them with numbers",
                )  # fmt: skip
        raise errors.value_error("nodes", f"there is no node {text!r}")

    def tensor(self, text: str, iteration: int | None = None) -> DebuggerTensor:
        """``NODE``, its first output, ``NODE:SLOT`` or ``NODE:input:SLOT``.

        Errors: ValueError if there is none, or it has nothing in the iteration.
        """
        match = re.fullmatch(r"(.+?)(?::(input|output))?(?::(\d{1,9}))?", text, re.DOTALL)
        name, io, slot = match.groups() if match else (text, None, None)
        when = self.iteration if iteration is None else iteration
        node = self.node(name, when)
        get = node.get_input_tensors if io == "input" else node.get_output_tensors
        found = get([int(slot or 0)], [when])
        if not found:
            raise errors.value_error("tensors", f"{text!r} has nothing in {self.when(when)}")
        return found[0]

    def array(self, tensor: DebuggerTensor) -> np.ndarray:
        """Errors: ValueError if it has no elements."""
        value = tensor.value()
        if value is None:
            raise errors.value_error(
                "tensors", f"{tensor.node.name} has no elements in {self.when(tensor.iteration)}",
                hint=self.source.why_empty(),
            )  # fmt: skip
        return value
