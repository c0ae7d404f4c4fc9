"""A session of the debugger: the step that is looked at, watchpoints and what hits them, over a dump or over
running trainings.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from mycelia.debug.conditions import CATALOGUE, Condition, condition, error_texts
from mycelia.debug.conditions.recommended import Recommended, recommended, suits
from mycelia.debug.reading.nonfinite import NonFinite
from mycelia_insight.debugger import DebuggerTensor, Node
from mycelia_insight.debugger.nodes import Tree, graph_name
from mycelia_insight.debugger.searching import Ticked
from mycelia_insight.debugger.wrong import Wrong, told

_ONLY_ONLINE = "a dump does not train: this is for running trainings"


class Source(Protocol):
    """Where nodes and tensors come from."""

    version: int  # of the nodes

    @property
    def nodes(self) -> Sequence[Node]:
        """Of all ranks and graphs, in order of execution."""

    def get_ranks(self) -> list[int]:
        """All ranks, least first."""

    def steps(self) -> tuple[int, int]:
        """The first and the last step that can be looked at, counted from 1."""

    def runs(self, rank: int) -> set[tuple[int, int]]:
        """(step, number of the graph) of each run that has values."""

    def health(self, rank: int, step: int) -> dict[str, Any]:
        """How many tensors a step made, and how many of their values are not finite.  Errors: Wrong."""

    def trace(self, rank: int, step: int) -> list[NonFinite]:
        """Outputs of a step that are not finite, those first whose inputs are.  Errors: Wrong."""

    def why_empty(self, tensor: DebuggerTensor) -> str:
        """Why a tensor that should be there has no elements; "" if nothing is known of that."""

    def load(self, tensors: Sequence[DebuggerTensor]) -> None:
        """Have the values of all of these at hand."""


@dataclass
class Watch:
    """A watchpoint: a condition with its parameters, on nodes by their names in the tree."""

    id: int
    condition: Condition
    given: dict[str, Any]
    nodes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As the page has it."""
        params = [{"name": name, "value": value} for name, value in self.given.items()]
        return {"id": self.id, "name": f"watchpoint_{self.id}", "watch_condition":
                {"id": self.condition.id, "abbr": self.condition.abbr, "params": params}}  # fmt: skip

    def point(self, actual: Mapping[str, float], error_code: int, reason: str = "") -> dict[str, Any]:
        """A hit of it, by the bounds that `actual` has numbers for, or why it could not be checked. `reason`,
        which MindInsight does not have: what bounds alone do not tell.
        """
        params = [
            {"name": name, "value": value, "actual_value": actual.get(name)}
            for name, value in self.given.items()
        ]
        condition = {"id": self.condition.id, "abbr": self.condition.abbr, "params": params}
        return {"id": self.id, "name": f"watchpoint_{self.id}", "error_code": error_code,
                "error_list": error_texts(error_code), "watch_condition": condition,
                **({"reason": reason} if reason else {})}  # fmt: skip


class Session(ABC):
    """One source that is looked at. `step`: the one that is shown, counted from 1; 0: none has run yet."""

    def __init__(self, source: Source, step: int) -> None:
        self.source, self.step = source, step
        self.watches: dict[int, Watch] = {}
        self.hits: dict[int, list[dict[str, Any]]] = {}  # by rank
        self.is_outdated = self.is_confirmed = False
        self.position = 0  # grows with each change that a page must hear of
        self.changed = threading.Condition()
        self._trees: dict[int, Tree] = {}
        self._version = -1
        self._building = threading.RLock()
        self._watching = threading.RLock()  # of watchpoints: several pages change them
        self._changes = 0  # of watchpoints

    # ---- where one is

    @property
    def trees(self) -> dict[int, Tree]:
        """The nodes of each rank."""
        with self._building:  # a page asks several things at once
            version = self.source.version
            if self._version != version:
                nodes = self.source.nodes
                self._trees = {rank: Tree(nodes, rank, version) for rank in self.source.get_ranks()}
                self._version = version
            return self._trees

    @property
    def last_step(self) -> int:
        """The last step that can be looked at."""
        return self.source.steps()[1]

    def state(self, rank: int) -> dict[str, Any]:
        """What of the metadata depends on the source."""
        return {"state": "waiting", "device_name": "", "ip": "", "node_name": "", "backend": "CPU",
                "graph_name": "", "debugger_version": {"ms": "2.10.0", "mi": "2.3.1"}}  # fmt: skip

    def metadata(self, rank: int = 0) -> dict[str, Any]:
        """As MindInsight's sessions tell it; `graph_version`, which they have not, is another one when nodes
        are others.
        """
        return {
            "step": self.step, "pos": str(self.position), "graph_version": self.source.version,
            "enable_recheck": self.is_outdated and bool(self.watches),
            "recommendation_confirmed": self.is_confirmed,
            "data_version": {"ms": "2.10.0", "mi": "2.3.1", "state": "match"},
            **self.state(rank),
        }  # fmt: skip

    def tell(self) -> None:
        """Something changed."""
        with self.changed:
            self.position += 1
            self.changed.notify_all()

    def poll(self, position: str, timeout_s: float = 5.0) -> dict[str, Any]:
        """The metadata, as soon as `position` is not that of now, or after a while."""
        with self.changed:
            self.changed.wait_for(lambda: str(self.position) != position, timeout_s)
        return {"metadata": self.metadata()}

    @abstractmethod
    def go(self, mode: str, level: str, steps: Any, node: Node | None = None, rank: int = 0) -> None:
        """Move: `continue` by steps, to the next hit or to a node, `reset` to step `steps`, `pause`,
        `terminate`.

        Errors: Wrong.
        """

    def release(self) -> None:  # noqa: B027  a hook
        """Nobody looks any more."""

    # ---- one operator

    @abstractmethod
    def rerun(
        self, name: str, graph: str, rank: int, edits: Any
    ) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """(made, recorded or None) of each output of an operator that runs once more, on inputs that are
        edited.

        `edits`: [{"slot": 0, "index": "[0, :]", "value": number or nested lists}, ...].  Errors: Wrong.
        """

    @abstractmethod
    def script(self, name: str, graph: str, rank: int) -> str:
        """An operator of the step that is shown as a script that runs alone.  Errors: Wrong."""

    # ---- what only running trainings can

    def edit(self, name: str, graph: str, rank: int, edit: Any) -> dict[str, Any]:
        """Change a Parameter of the training, `edit` as above without a slot.  Errors: Wrong."""
        raise Wrong("5054B081", _ONLY_ONLINE)

    def dump(self, rank: int) -> dict[str, Any]:
        """Let a training write the step that is looked at, or, while it runs, its latest, as a data dump:
        `folder`, on its machine, and `step`.  Errors: Wrong.
        """
        raise Wrong("5054B081", _ONLY_ONLINE)

    # ---- steps

    def show(self, step: int) -> None:
        """Look at another step; watchpoints are checked there."""
        self.step = step
        self.recheck()

    @abstractmethod
    def recheck(self) -> None:
        """Check all watchpoints on the tensors of the step that is shown."""

    # ---- watchpoints

    def watch(self, number: Any) -> Watch | None:
        """The watchpoint with this number."""
        is_number = isinstance(number, int) and not isinstance(number, bool)
        return self.watches.get(number) if is_number else None

    def create(self, given: Any, nodes: Ticked, rank: int) -> int:
        """A new watchpoint; its number.  Errors: Wrong."""
        if not isinstance(given, Mapping) or not isinstance(given.get("id"), str):
            raise Wrong("5054B180", "condition must be an object with an id")
        try:
            wanted = condition(given["id"])
            params = {p["name"]: p["value"] for p in given.get("params") or []}
            wanted.values(params)
        except (ValueError, TypeError, KeyError) as cause:
            raise Wrong("5054B180", f"Create watchpoint failed. {told(cause)}") from None
        names = self._named(nodes, wanted, rank)
        with self._watching:
            number = self._add(wanted, params, names)
            self._outdate()
        return number

    def _add(self, wanted: Condition, given: dict[str, Any], names: list[str]) -> int:
        number = max(self.watches, default=0) + 1
        self.watches[number] = Watch(number, wanted, given, names)
        self.changed_watch(self.watches[number])
        return number

    def recommendations(self) -> list[tuple[Recommended, list[str]]]:
        """The watchpoints that are offered, each with the nodes that it is about.  Errors: Wrong."""
        return [(one, self._about(one)) for one in _offered({})]

    def recommend(self, wanted: bool, chosen: Mapping[str, Mapping[str, Any]] | None = None) -> list[int]:
        """Add the recommended watchpoints; their numbers, none if they are not wanted. `chosen`: those alone,
        by name, with parameters in the place of the table's; None: all as they are.

        Errors: Wrong.
        """
        offered = _offered(chosen or {}) if wanted else []
        self.is_confirmed = True
        made = []
        with self._watching:
            for one in offered:
                names = self._about(one) if chosen is None or one.name in chosen else []
                if names:
                    made.append(self._add(one.condition, dict(one.given), names))
            self._outdate()
        return made

    def _about(self, one: Recommended) -> list[str]:
        return [
            name for tree in self.trees.values() for name, node in tree.nodes.items()
            if one.suits(node.kind, node.name, node.attributes)
        ]  # fmt: skip

    def update(self, number: Any, nodes: Ticked, mode: Any, rank: int) -> None:
        """Add nodes to a watchpoint (mode 1 or true), or take them away.  Errors: Wrong."""
        with self._watching:
            watch = self.watch(number)
            if watch is None:
                raise Wrong("5054B181", f"Update watchpoint failed. There is no watchpoint {number!r}")
            names = self._named(nodes, watch.condition, rank)
            changed = set(names)
            kept = [n for n in watch.nodes if n not in changed]
            watch.nodes = [*kept, *names] if mode else kept
            self.changed_watch(watch)
            self._outdate()

    def delete(self, number: Any) -> None:
        """Delete a watchpoint, or all if `number` is None.  Errors: Wrong."""
        with self._watching:
            if number is not None and self.watch(number) is None:
                raise Wrong("5054B182", f"Delete watchpoint failed. There is no watchpoint {number!r}")
            for gone in list(self.watches) if number is None else [number]:
                self.changed_watch(self.watches.pop(gone), is_deleted=True)
            self._outdate()

    def changed_watch(self, watch: Watch, is_deleted: bool = False) -> None:  # noqa: B027  a hook
        """A watchpoint is new, has other nodes, or is no more: for those who check elsewhere."""

    def _outdate(self) -> None:
        """The watchpoints are others than those of the hits."""
        self._changes += 1
        self.is_outdated = True
        self.tell()

    def _named(self, ticks: Ticked, wanted: Condition, rank: int) -> list[str]:
        """The nodes below what is ticked, those that the condition is about and the search picks."""
        nodes = ticks.names
        if not isinstance(nodes, list) or not all(isinstance(n, str) for n in nodes):
            raise Wrong("5054B180", "watch_nodes must be a list of names")

        tree = self.tree(rank)
        below = {ticked: tree.below(ticked, ticks.graph) for ticked in nodes}
        unknown = next((ticked for ticked, names in below.items() if not names), None)
        if unknown is not None:
            raise Wrong("5054B180", f"watch_nodes: there is no node and no scope {unknown!r}")
        ticked = {name for names in below.values() for name in names}
        return [
            n for n, node in tree.nodes.items()
            if n in ticked and suits(wanted, node.kind, node.name, attributes=node.attributes)
            and (ticks.picked is None or ticks.picked(n, node))
        ]  # fmt: skip

    def tree(self, rank: int) -> Tree:
        """Errors: Wrong."""
        found = self.trees.get(rank)
        if found is None:
            raise Wrong("5054B081", f"there is no rank {rank}")
        return found

    @staticmethod
    def hit_row(name: str, node: Node, points: Mapping[int, list[dict[str, Any]]]) -> dict[str, Any] | None:
        """The hits of a node, by slot, as pages have them; None if there are none."""
        if not points:
            return None
        tensors = [{"slot": slot, "watch_points": points[slot]} for slot in sorted(points)]
        return {"node_name": name, "graph_name": graph_name(node.graph), "graph_id": node.graph,
                "tensors": tensors, "watchpoint_id": tensors[0]["watch_points"][0]["id"]}  # fmt: skip

    # ---- tensors

    def history(self, name: str, graph: str, rank: int) -> list[dict[str, Any]]:
        """What a node read and made in this step.  Errors: Wrong."""
        node = self.node(name, graph, rank)
        hits = {h["node_name"]: h for h in self.hits.get(rank, ())}
        hit = hits.get(self.tree(rank).full_name(node))
        slots = {t["slot"] for t in hit["tensors"]} if hit else set()
        steps = [self.step - 1]
        tensors = [*node.get_input_tensors(iterations=steps), *node.get_output_tensors(iterations=steps)]
        self.source.load(tensors)
        return [_row(tensor, node, tensor.io == "output" and tensor.slot in slots) for tensor in tensors]

    def node(self, name: str, graph: str, rank: int) -> Node:
        """Errors: Wrong."""
        found = self.tree(rank).find(name, graph)
        if found is None:
            raise Wrong("5054B081", f"there is no node {name!r}")
        return found

    def tensor(self, name: str, graph: str, rank: int, step: int | None = None) -> DebuggerTensor:
        """``NODE:SLOT``, an output, or ``NODE:input:SLOT``, at a step.  Errors: Wrong."""
        head, _, slot = name.rpartition(":")
        head, io = (head.removesuffix(":input"), "input") if head.endswith(":input") else (head, "output")
        if not slot.isdecimal():
            raise Wrong("5054B081", f"a tensor is called NODE:SLOT, but got {name!r}")
        node = self.node(head, graph, rank)
        get = node.get_input_tensors if io == "input" else node.get_output_tensors
        found = get([int(slot)], [(self.step if step is None else step) - 1])
        if not found:
            raise Wrong("5054B081", f"{name} has no value in step {self.step if step is None else step}")
        return found[0]

    def elements(self, name: str, graph: str, rank: int, step: int | None = None) -> np.ndarray:
        """Those of a tensor, see `tensor`.  Errors: Wrong if it has none, with the reason."""
        found = self.tensor(name, graph, rank, step)
        value = found.value()
        if value is None:
            when = found.iteration + 1
            why = self.source.why_empty(found)
            raise Wrong("5054B081", f"{name} has no elements in step {when}" + (f": {why}" if why else ""))
        return value

    def step_before(self, name: str, graph: str, rank: int) -> int:
        """The last step before the one that is shown in which the graph of a node ran, as far back as no
        step is missing.  Errors: Wrong if there is none.
        """
        number, runs = self.node(name, graph, rank).graph, self.source.runs(rank)
        step = self.step - 1
        while any(one == step for one, _ in runs):
            if (step, number) in runs:
                return step
            step -= 1
        raise Wrong("5054B081", f"no step before step {self.step} has values of {name}")


def _row(tensor: DebuggerTensor, node: Node, is_hit: bool) -> dict[str, Any]:
    value = tensor.value()
    graph = graph_name(node.graph)
    mark = "input:" if tensor.io == "input" else ""
    name = f"{node.name}:{mark}{tensor.slot}"
    row = {"name": f"{graph}/{name}", "full_name": name, "node_type": node.kind, "type": tensor.io,
           "is_hit": is_hit, "graph_name": graph}  # fmt: skip
    if value is not None:
        small = "click to view" if value.size > 1 else str(value.reshape(-1)[0]) if value.size else "[]"
        row |= {"dtype": str(value.dtype), "shape": list(value.shape), "value": small}
    return row


def _offered(changes: Mapping[str, Mapping[str, Any]]) -> list[Recommended]:
    """Errors: Wrong."""
    try:
        return recommended(changes)
    except (ValueError, TypeError) as cause:
        raise Wrong("5054B180", f"Create watchpoint failed. {told(cause)}") from None


def whole_number(value: Any, name: str, low: int, high: int) -> int:
    """Errors: Wrong."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Wrong("5054B081", f"{name} must be a whole number from {low} to {high}, but is {value!r}")
    return value


def condition_collections() -> list[dict[str, Any]]:
    """The conditions with their parameters, by what they are about, those beyond MindSpore's marked; hidden
    parameters are left out.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for found in CATALOGUE.values():
        parameters = [
            {"name": p.name, "type": p.type,
             "support_disable": not p.support, "default_value": p.default,
             "param_type": "SUPPORT_PARAM" if p.support else "CHECK_PARAM",
             "required_params": list(p.required)}
            for p in found.parameters if not p.hidden
        ]  # fmt: skip
        groups.setdefault(f"{found.target}_condition_collection", []).append(
            {"id": found.id, "abbr": found.abbr, "supported_target_type": found.target.upper(),
             "parameters": parameters, **({"beyond": True} if found.beyond else {})}
        )  # fmt: skip
    return [{"id": name, "conditions": conditions} for name, conditions in groups.items()]
