"""A session of the offline debugger: a dump, the step that is looked at, watchpoints and what hits them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mycelia.debug.conditions import (
    CATALOGUE,
    Condition,
    check,
    condition,
    error_texts,
    is_activation,
    is_gradient,
    is_weight,
)
from mycelia_insight.debugger import DebuggerTensor, DumpAnalyzer, Node
from mycelia_insight.debugger.nodes import Tree, graph_name

#: What is offered when a session begins; numbers as MindInsight's, in one table that can be changed.
RECOMMENDED: tuple[tuple[str, dict[str, float], str], ...] = (
    ("weight_initialization", {"zero_percentage_ge": 100}, ""),
    ("weight_change_too_large", {"abs_mean_update_ratio_gt": 1}, ""),
    ("gradient_vanishing", {"abs_mean_lt": 1e-9}, ""),
    ("tensor_overflow", {}, ""),
    ("tensor_all_zero", {"zero_percentage_ge": 100}, ""),
    ("activation_range",
     {"range_start_inclusive": float(np.tanh(-8.8)), "range_end_inclusive": float(np.tanh(8.8)),
      "range_percentage_lt": 0.1}, "tanh"),
    ("activation_range",
     {"range_start_inclusive": 1 / (1 + float(np.exp(16.2))),
      "range_end_inclusive": 1 / (1 + float(np.exp(-16.2))), "range_percentage_lt": 0.1}, "sigmoid"),
    ("activation_range",
     {"range_start_inclusive": -1, "range_end_inclusive": 0, "range_percentage_gt": 99.9}, "relu"),
)  # fmt: skip

_TARGETS = {"weight": is_weight, "gradient": is_gradient, "activation": is_activation}


class Wrong(ValueError):
    """What a session refuses. `code`: MindInsight's."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


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


class Session:
    """One dump that is looked at. Steps count from 1: step 1 is iteration 0.

    Errors: ValueError if no dump lies in `folder`.
    """

    def __init__(self, folder: Path) -> None:
        self.analyzer = DumpAnalyzer(folder)
        self.trees = {rank: Tree(self.analyzer, rank) for rank in self.analyzer.get_ranks()}
        self.iterations = self.analyzer.get_iterations()
        self.step = self.iterations[0] + 1
        self.watches: dict[int, Watch] = {}
        self.hits: dict[int, list[dict[str, Any]]] = {}  # by rank
        self.is_outdated = self.is_confirmed = False
        self.position = 0  # grows with each change that a page must hear of
        self.changed = threading.Condition()

    # ---- where one is

    def metadata(self, rank: int = 0) -> dict[str, Any]:
        """As MindInsight's sessions tell it."""
        return {
            "state": "waiting", "step": self.step, "device_name": "", "pos": str(self.position), "ip": "",
            "node_name": "", "backend": "CPU", "enable_recheck": self.is_outdated and bool(self.watches),
            "graph_name": "", "recommendation_confirmed": self.is_confirmed,
            "debugger_version": {"ms": "2.10.0", "mi": "2.3.1"},
            "data_version": {"ms": "2.10.0", "mi": "2.3.1", "state": "match"},
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

    def go(self, mode: str, level: str, steps: Any) -> dict[str, Any]:
        """Move by steps, to the next with a hit, or back to the first (`reset`: to step `steps`)."""
        if mode == "reset":
            self.show(_whole(steps, "steps", 1, self.iterations[-1] + 1))
        elif mode == "continue":
            count = _whole(steps if steps is not None else 1, "steps", -1, 2**31 - 1)
            self._advance(count, until_hit=level == "recheck")
        elif mode not in ("pause", "terminate"):
            raise Wrong("5054B183", f"mode must be continue, pause, terminate or reset, but is {mode!r}")
        return {"metadata": {"state": "waiting", "enable_recheck": self.metadata()["enable_recheck"]}}

    def _advance(self, count: int, until_hit: bool) -> None:
        last = self.iterations[-1] + 1
        target = last if count < 0 else min(last, self.step + count)
        while self.step < target:
            self.show(self.step + 1)
            if until_hit and any(self.hits.values()):
                break

    def show(self, step: int) -> None:
        """Look at another step; watchpoints are checked there."""
        self.step = step
        self.recheck()

    # ---- watchpoints

    def create(self, given: Any, nodes: Any, rank: int) -> int:
        """A new watchpoint; its number.  Errors: Wrong."""
        if not isinstance(given, Mapping) or not isinstance(given.get("id"), str):
            raise Wrong("5054B180", "condition must be an object with an id")
        try:
            wanted = condition(given["id"])
            params = {p["name"]: p["value"] for p in given.get("params") or []}
            wanted.values(params)
        except (ValueError, TypeError, KeyError) as cause:
            raise Wrong("5054B180", f"Create watchpoint failed. {cause}") from None
        number = max(self.watches, default=0) + 1
        self.watches[number] = Watch(number, wanted, params, self._named(nodes, wanted, rank))
        self._outdate()
        return number

    def recommend(self, wanted: bool) -> list[int]:
        """Add the recommended watchpoints; their numbers, none if they are not wanted."""
        self.is_confirmed = True
        made = []
        for name, params, kind in RECOMMENDED if wanted else ():
            found = condition(name)
            names = [
                n for tree in self.trees.values() for n, node in tree.nodes.items()
                if _suits(found, node) and (not kind or node.kind.lower().removesuffix("v2") == kind)
            ]  # fmt: skip
            if names:
                number = max(self.watches, default=0) + 1
                self.watches[number] = Watch(number, found, dict(params), names)
                made.append(number)
        self._outdate()
        return made

    def update(self, number: Any, nodes: Any, mode: Any, rank: int) -> None:
        """Add nodes to a watchpoint (mode 1 or true), or take them away.  Errors: Wrong."""
        watch = self.watches.get(number)
        if watch is None:
            raise Wrong("5054B181", f"Update watchpoint failed. There is no watchpoint {number!r}")
        names = self._named(nodes, watch.condition, rank)
        kept = [n for n in watch.nodes if n not in names]
        watch.nodes = [*kept, *names] if mode else kept
        self._outdate()

    def delete(self, number: Any) -> None:
        """Delete a watchpoint, or all if `number` is None.  Errors: Wrong."""
        if number is not None and number not in self.watches:
            raise Wrong("5054B182", f"Delete watchpoint failed. There is no watchpoint {number!r}")
        self.watches = {} if number is None else {n: w for n, w in self.watches.items() if n != number}
        self._outdate()

    def _outdate(self) -> None:
        self.is_outdated = True
        self.tell()

    def _named(self, nodes: Any, wanted: Condition, rank: int) -> list[str]:
        """The nodes below what is ticked, those that the condition is about."""
        if (
            not isinstance(nodes, Sequence)
            or isinstance(nodes, str)
            or not all(isinstance(n, str) for n in nodes)
        ):
            raise Wrong("5054B180", "watch_nodes must be a list of names")

        def is_ticked(name: str, node: Node) -> bool:
            return any(name == n or name.startswith(f"{n}/") or node.name == n for n in nodes)

        tree = self.tree(rank)
        return [n for n, node in tree.nodes.items() if _suits(wanted, node) and is_ticked(n, node)]

    def tree(self, rank: int) -> Tree:
        """Errors: Wrong."""
        found = self.trees.get(rank)
        if found is None:
            raise Wrong("5054B081", f"there is no rank {rank}")
        return found

    def recheck(self) -> None:
        """Check all watchpoints on the tensors of this step."""
        self.hits = {rank: self._hits_of(rank, tree) for rank, tree in self.trees.items()}
        self.is_outdated = False
        self.tell()

    def _hits_of(self, rank: int, tree: Tree) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        watched = {name for watch in self.watches.values() for name in watch.nodes}
        for name, node in tree.nodes.items():
            if name not in watched:
                continue
            tensors = []
            for tensor in node.get_output_tensors(iterations=[self.step - 1]):
                points = [
                    p for w in self.watches.values() if name in w.nodes for p in self._checked(w, tensor)
                ]
                if points:
                    tensors.append({"slot": tensor.slot, "watch_points": points})
            if tensors:
                found.append({
                    "node_name": name, "graph_name": graph_name(node.graph), "graph_id": node.graph,
                    "tensors": tensors, "watchpoint_id": tensors[0]["watch_points"][0]["id"],
                })  # fmt: skip
        return found

    def _checked(self, watch: Watch, tensor: DebuggerTensor) -> list[dict[str, Any]]:
        before = self._previous(tensor) if watch.condition.needs_previous else None
        hit = check(watch.condition, watch.given, tensor.value(), before, tensor.iteration)
        if not (hit.hit or hit.error_code):
            return []
        actual = {p.name: p.actual for p in hit.parameters if p.hit}
        params = [
            {"name": name, "value": value, "actual_value": actual.get(name)}
            for name, value in watch.given.items()
        ]
        return [{
            "id": watch.id, "name": watch.as_dict()["name"], "error_code": hit.error_code,
            "error_list": error_texts(hit.error_code),
            "watch_condition": {"id": watch.condition.id, "abbr": watch.condition.abbr, "params": params},
        }]  # fmt: skip

    def _previous(self, tensor: DebuggerTensor) -> np.ndarray | None:
        found = tensor.node.get_output_tensors([tensor.slot], [tensor.iteration - 1])
        return found[0].value() if found else None

    # ---- tensors

    def history(self, name: str, graph: str, rank: int) -> list[dict[str, Any]]:
        """What a node read and made in this step.  Errors: Wrong."""
        node = self.node(name, graph, rank)
        hits = {h["node_name"]: h for h in self.hits.get(rank, ())}
        hit = hits.get(self.tree(rank).full_name(node))
        slots = {t["slot"] for t in hit["tensors"]} if hit else set()
        steps = [self.step - 1]
        tensors = [*node.get_input_tensors(iterations=steps), *node.get_output_tensors(iterations=steps)]
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
            raise Wrong("5054B081", f"{name} was not dumped in step {self.step if step is None else step}")
        return found[0]


def _suits(wanted: Condition, node: Node) -> bool:
    test = _TARGETS.get(wanted.target)
    return test is None or test(node.kind, node.name)


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


def _whole(value: Any, name: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Wrong("5054B081", f"{name} must be a whole number from {low} to {high}, but is {value!r}")
    return value


def condition_collections() -> list[dict[str, Any]]:
    """All conditions with their parameters, by what they are about; hidden parameters are left out."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for found in CATALOGUE.values():
        parameters = [
            {"name": p.name, "type": "BOOL" if isinstance(p.default, bool) else "FLOAT64",
             "support_disable": not p.support, "default_value": p.default,
             "param_type": "SUPPORT_PARAM" if p.support else "CHECK_PARAM",
             "required_params": list(p.required)}
            for p in found.parameters if not p.hidden
        ]  # fmt: skip
        groups.setdefault(f"{found.target}_condition_collection", []).append(
            {"id": found.id, "abbr": found.abbr, "supported_target_type": found.target.upper(),
             "parameters": parameters}
        )  # fmt: skip
    return [{"id": name, "conditions": conditions} for name, conditions in groups.items()]
