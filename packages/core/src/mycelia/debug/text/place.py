"""Where one is in a dump: the rank and iteration that are looked at, the watchpoints, the last list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mycelia.debug.analyzer import DebuggerTensor, DumpAnalyzer, Node
from mycelia.debug.conditions import Condition
from mycelia.debug.reading.nonfinite import NonFinite, trace_nonfinite
from mycelia.engine.base import errors


@dataclass
class Watch:
    """A watchpoint: a condition with its parameters, on nodes."""

    condition: Condition
    given: dict[str, Any]
    nodes: list[Node] = field(default_factory=list)


class Place:
    """A dump with what is looked at in it. Iterations are those of the files, counted from 0."""

    def __init__(self, analyzer: DumpAnalyzer) -> None:
        self.analyzer = analyzer
        self.rank = analyzer.get_ranks()[0]
        self.iteration = self.iterations[0]
        self.watches: dict[int, Watch] = {}
        self.listed: list[Node] = []  # what numbers stand for
        self._traces: dict[int, list[NonFinite]] = {}

    @property
    def iterations(self) -> list[int]:
        """Those that were dumped of the rank."""
        return self.analyzer.get_iterations([self.rank])

    @cached_property
    def _nodes(self) -> dict[int, list[Node]]:
        found: dict[int, list[Node]] = {}
        for node in self.analyzer.nodes:
            found.setdefault(node.rank, []).append(node)
        return found

    @property
    def nodes(self) -> list[Node]:
        """All nodes of the rank, in order of execution."""
        return self._nodes.get(self.rank, [])

    def go(self, iteration: int) -> None:
        """Errors: ValueError for an iteration that was not dumped."""
        if iteration not in self.iterations:
            shown = ", ".join(map(str, self.iterations[:20]))
            raise errors.value_error(
                "step", f"iteration {iteration} was not dumped; there are {shown}"
                + (", ..." if len(self.iterations) > 20 else "")
            )  # fmt: skip
        self.iteration = iteration

    def trace(self) -> list[NonFinite]:
        """What is not finite in this iteration of the rank, what was born so first."""
        if self.iteration not in self._traces:
            self._traces[self.iteration] = trace_nonfinite(self.analyzer.dump, self.iteration)
        return [row for row in self._traces[self.iteration] if row.rank == self.rank]

    def node(self, text: str) -> Node:
        """The node with this number in the last list, this full name, or a name that this ends.

        Errors: ValueError if there is none, or more than one.
        """
        if text.isdecimal():
            if not 1 <= int(text) <= len(self.listed):
                raise errors.value_error("nodes", f"the last list has no number {text}")
            return self.listed[int(text) - 1]
        for found in (
            [n for n in self.nodes if n.name == text],
            [n for n in self.nodes if n.name.endswith(f"/{text}")],
            [n for n in self.nodes if text.lower() in n.name.lower()],
        ):
            if len(found) == 1:
                return found[0]
            if found:
                names = ", ".join(n.name for n in found[:3]) + (", ..." if len(found) > 3 else "")
                raise errors.value_error(
                    "nodes", f"{text!r} may be {len(found)} nodes: {names}",
                    hint="`nodes` lists them with numbers",
                )  # fmt: skip
        raise errors.value_error("nodes", f"there is no node {text!r}")

    def tensor(self, text: str, iteration: int | None = None) -> DebuggerTensor:
        """``NODE``, its first output, ``NODE:SLOT`` or ``NODE:input:SLOT``.

        Errors: ValueError if there is none, or nothing was dumped of it in the iteration.
        """
        match = re.fullmatch(r"(.+?)(?::(input|output))?(?::(\d{1,9}))?", text, re.DOTALL)
        name, io, slot = match.groups() if match else (text, None, None)
        node = self.node(name)
        when = self.iteration if iteration is None else iteration
        get = node.get_input_tensors if io == "input" else node.get_output_tensors
        found = get([int(slot or 0)], [when])
        if not found:
            raise errors.value_error("tensors", f"{text!r} was not dumped in iteration {when}")
        return found[0]

    def array(self, tensor: DebuggerTensor) -> np.ndarray:
        """Errors: ValueError if only statistics were dumped."""
        value = tensor.value()
        if value is None:
            raise errors.value_error("tensors", f"of {tensor.node.name} only statistics were dumped")
        return value


def indices(text: str, shape: Sequence[int]) -> tuple[int | slice, ...]:
    """``[0, :, 2:5]`` as Python's indices; those that are left out are ``:``.  Errors: ValueError."""
    parts = [one.strip() for one in text.strip().removeprefix("[").removesuffix("]").split(",")]
    if parts == [""]:
        parts = []
    if len(parts) > len(shape):
        raise errors.value_error("show", f"{text!r} has {len(parts)} indices, the shape is {list(shape)}")
    found: list[int | slice] = []
    for one, size in zip(parts, shape, strict=False):
        if not re.fullmatch(r"-?\d{1,18}|(-?\d{1,18})?:(-?\d{1,18})?(:-?\d{1,18})?", one):
            raise errors.value_error("show", f"an index must be 'i', 'a:b' or ':', but got {one!r}")
        if ":" in one:
            ends = [int(end) if end else None for end in one.split(":")]
            if len(ends) == 3 and ends[2] == 0:
                raise errors.value_error("show", f"the step of {one!r} must not be 0")
            found.append(slice(*ends))
        elif -size <= int(one) < size:
            found.append(int(one))
        else:
            raise errors.value_error("show", f"index {one} is outside of a dimension of {size}")
    return tuple(found)
