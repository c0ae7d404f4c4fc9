"""The session over running trainings, one process a rank, which go where it says."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.online.watchpoints import number_of
from mycelia_insight.debugger import Node
from mycelia_insight.debugger.nodes import Tree, graph_name
from mycelia_insight.debugger.online.listener import Listener
from mycelia_insight.debugger.online.source import TrainingSource
from mycelia_insight.debugger.online.training import (
    MISMATCH,
    PENDING,
    RECEIVED,
    RUNNING,
    SENDING,
    Command,
    Training,
)
from mycelia_insight.debugger.session import Session, Watch, whole_number
from mycelia_insight.debugger.wrong import Wrong
from mycelia_insight.records import tensors

_MOST_STEPS = 2**31 - 1


def _edit(edit: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """An edit as trainings take it.  Errors: Wrong."""
    if not isinstance(edit, dict) or "value" not in edit or not isinstance(edit.get("index", ""), str):
        raise Wrong("5054B081", f"an edit needs a value, and an index such as [0, :], but is {edit!r}")
    index = None
    if edit.get("index"):
        try:
            parts = tensors.parse(edit["index"], shape)
        except ValueError as cause:
            raise Wrong("5054B081", str(cause)) from None
        index = [[p.start, p.stop, p.step] if isinstance(p, slice) else p for p in parts]
    return {"index": index, "value": edit["value"]}


class OnlineSession(Session):
    """The trainings of `listener`. `step` follows them, unless an earlier one that they keep is looked at."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self._past: int | None = None  # the step that is looked at, if it is not the latest
        self._unchecked = 0  # the last step that ran before the watchpoints were as they are
        self._rechecked: set[int] = set()  # of these steps those that were checked since then
        self._starting = threading.Lock()  # of two pages that say "go on" one is heard
        super().__init__(TrainingSource(listener), 0)
        self.changed = listener.changed
        listener.follow(self._look)

    # ---- where one is

    @property
    def step(self) -> int:
        if self._past is not None:
            return self._past
        present = self.source.present()
        within = [t.step for t in present if t.metadata.cur_node]
        # The last that all ranks have, unless one stands within a step: what stopped one did not stop others
        # at once.
        return max(within) if within else min((t.step for t in present), default=0)

    @step.setter
    def step(self, step: int) -> None:
        first, last = self.source.steps()
        self._past = step if first <= step < last else None

    def show(self, step: int) -> None:
        self.step = step
        if any(not t.is_gone for t in self.source.trainings.values()):
            self.recheck()
        else:
            self.tell()  # what was found there while the trainings were there

    @property
    def is_outdated(self) -> bool:
        """Whether the step that is looked at was not checked for the watchpoints as they are."""
        return 0 < self.step <= self._unchecked and self.step not in self._rechecked

    @is_outdated.setter
    def is_outdated(self, is_outdated: bool) -> None:
        """Of all steps that have run, or run; `recheck` notes each that was checked."""
        if is_outdated:
            known = self.source.trainings.values()
            self._unchecked = max((t.step + (t.state == RUNNING) for t in known), default=0)
            self._rechecked.clear()

    @property
    def position(self) -> int:
        return self.listener.position

    @position.setter
    def position(self, position: int) -> None:
        """The listener counts."""

    def tell(self) -> None:
        self.listener.tell()

    def tree(self, rank: int) -> Tree:
        return Tree((), 0) if rank == 0 and 0 not in self.listener.trainings else super().tree(rank)

    def _look(self, training: Training) -> None:
        """A training connected: it gets the watchpoints that there are."""
        with self._watching:
            for watch in self.watches.values():
                training.send(self._command(watch))

    def state(self, rank: int) -> dict[str, Any]:
        found = self.listener.trainings.get(rank)
        states = [t.state for t in self.source.trainings.values() if not t.is_gone]
        refused = "; ".join(told for _, told in sorted(self.listener.mismatched.items()))
        other = {"state": MISMATCH, "reason": refused} if refused and not states else {}
        if found is None:
            return {**super().state(rank), "state": PENDING, **other}
        busy = next((s for s in (RUNNING, SENDING, RECEIVED, PENDING) if s in states), found.state)
        told = found.metadata
        node = next((n for n, one in self.trees[rank].nodes.items() if one.name == told.cur_node), "")
        return {
            "state": busy, "device_name": told.device_name, "ip": found.peer.rpartition(":")[0],
            "node_name": node, "backend": told.device_target or told.backend,
            "graph_name": node.partition("/")[0],
            "debugger_version": {"ms": told.ms_version, "mi": "2.3.1"}, "training_done": found.is_done,
            "training_lost": found.is_gone and not found.is_done,
            "reason": told.reason or refused, "first_step": found.first_step, "last_step": found.step,
            **other,
        }  # fmt: skip

    # ---- where they go

    def go(self, mode: str, level: str, steps: Any, node: Node | None = None, rank: int = 0) -> None:
        if mode == "reset":
            first, last = self.source.steps()
            self.show(whole_number(steps, "steps", first, max(first, last)))
        elif mode == "continue" and level == "recheck":
            self._forward(-1) if steps is not None else self.recheck()
        elif mode == "continue" and level == "node":
            place = ("", "") if node is None else (graph_name(node.graph), node.name)
            with self._starting:
                self._waiting("5054B183", [rank])[0].go(node=place)
        elif mode == "continue":
            count = whole_number(steps if steps is not None else 1, "steps", -1, _MOST_STEPS)
            if not count:
                raise Wrong("5054B081", "steps must be a whole number from 1 on, or -1 for all, but is 0")
            self._forward(count)
        elif mode == "pause":
            for training in self._all("5054B184"):
                training.pause()
        elif mode == "terminate":
            self._past = None
            for training in self._all("5054B183"):
                training.send(Command(exit=True))
        else:
            raise Wrong("5054B183", f"mode must be continue, pause, terminate or reset, but is {mode!r}")

    def _forward(self, steps: int) -> None:
        """Through steps that are kept as far as they go, else the trainings run."""
        past = self._past
        if past is not None:
            last = self.source.steps()[1]
            self.show(last if steps < 0 else min(last, past + steps))
            return
        with self._starting:
            for training in self._waiting("5054B183"):
                training.go(steps)

    def _all(self, code: str, ranks: Sequence[int] | None = None) -> list[Training]:
        found = [t for r, t in sorted(self.source.trainings.items()) if ranks is None or r in ranks]
        if not found or all(t.is_gone for t in found):
            raise Wrong(code, "there is no training, or it has ended")
        return [t for t in found if not t.is_gone]

    def _waiting(self, code: str, ranks: Sequence[int] | None = None) -> list[Training]:
        found = self._all(code, ranks)
        if any(t.state in (RUNNING, SENDING) for t in found):
            raise Wrong(code, "the training runs: pause it first")
        return found

    def release(self) -> None:
        """Trainings go on, unwatched."""
        self.delete(None)
        self._past = None
        self.listener.mismatched.clear()
        for training in self.source.trainings.values():
            training.go(-1)

    # ---- beyond MindSpore's

    def rerun(self, name: str, graph: str, rank: int, edits: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        node = self.node(name, graph, rank)
        if not isinstance(edits, list):
            raise Wrong("5054B081", "edits must be a list of {slot, index, value}")
        told = []
        for edit in edits:
            slot = edit.get("slot") if isinstance(edit, dict) else None
            if isinstance(slot, bool) or not isinstance(slot, int):
                raise Wrong("5054B081", f"an edit needs the slot of an input, but is {edit!r}")
            shape = self.elements(f"{name}:input:{slot}", graph, rank).shape
            told.append({"slot": slot, **_edit(edit, shape)})
        where = {"graph": graph_name(node.graph), "name": node.name, "step": self.step, "edits": told}
        made = self.source.rerun(rank, where)
        return [(a, self.elements(f"{name}:{slot}", graph, rank)) for slot, a in enumerate(made)]

    def edit(self, name: str, graph: str, rank: int, edit: Any) -> dict[str, Any]:
        node = self.node(name, graph, rank)
        if node.kind != "Parameter":
            raise Wrong("5054B081", f"{name} is no Parameter: inputs are edited where an operator runs again")
        self._waiting("5054B081", [rank])
        shape = self._shape_of(node, rank)
        where = {"graph": graph_name(node.graph), "name": node.name}
        return self.source.answer(rank, "edit", **where, **_edit(edit, shape))

    def dump(self, rank: int) -> dict[str, Any]:
        self._all("5054B081", [rank])
        is_running = self.listener.trainings[rank].state in (RUNNING, SENDING)
        return self.source.answer(rank, "dump", step=0 if is_running else self.step)

    def _shape_of(self, node: Node, rank: int) -> tuple[int, ...]:
        graph = self.listener.trainings[rank].graphs.get(graph_name(node.graph))
        known = () if graph is None else graph.parameters
        found = next((p for p in known if p.name == node.name), None)
        if found is None:
            raise Wrong("5054B081", f"the training tells no more of {node.name}")
        return tuple(d.size for d in found.type.tensor_type.shape.dim)

    def script(self, name: str, graph: str, rank: int) -> str:
        node = self.node(name, graph, rank)
        where = {"graph": graph_name(node.graph), "name": node.name, "step": self.step}
        return self.source.answer(rank, "script", **where)

    # ---- watchpoints

    def recheck(self) -> None:
        shown, changes, commands = self.step, self._changes, []
        for training in self._waiting("5054B186"):
            step = min(shown, training.step)
            run = messages.RunCMD(run_level="recheck", run_steps=step)
            commands.append((training, Command(step, run_cmd=run)))
        for training, command in commands:
            training.ask(command)
        with self._watching:
            if changes == self._changes:  # else another page has changed watchpoints since
                self._rechecked.add(shown)
        self.tell()

    @property
    def hits(self) -> dict[int, list[dict[str, Any]]]:
        """By rank, of the step that is shown."""
        return {rank: self._rows(rank, t) for rank, t in sorted(self.source.trainings.items())}

    @hits.setter
    def hits(self, hits: Any) -> None:
        """They are the trainings'."""

    def _rows(self, rank: int, training: Training) -> list[dict[str, Any]]:
        points: dict[str, dict[int, list[dict[str, Any]]]] = {}
        tree = self.trees.get(rank)
        for hit in training.hits.get(self.step, ()) if tree else ():
            watch = self.watches.get(hit.id)
            node = tree.find(hit.tensor.node_name, hit.tensor.graph_name)
            if watch is None or node is None or not hit.tensor.slot.isdecimal():
                continue
            actual = {p.name: p.actual_value for p in hit.watch_condition.params if p.hit}
            slots = points.setdefault(tree.full_name(node), {})
            slots.setdefault(int(hit.tensor.slot), []).append(
                watch.point(actual, hit.error_code, hit.watch_condition.reason)
            )
        for found in self.listener.ranks.of(self.step, rank) if tree else ():
            watch, node = self.watches.get(found.number), tree.find(found.name, found.graph)
            if watch is not None and node is not None:
                slots = points.setdefault(tree.full_name(node), {})
                slots.setdefault(found.slot, []).append(
                    watch.point(found.actual, found.error_code, found.reason)
                )
        rows = [self.hit_row(name, tree.nodes[name], slots) for name, slots in points.items()]
        return [row for row in rows if row]

    def changed_watch(self, watch: Watch, is_deleted: bool = False) -> None:
        for training in self.source.trainings.values():
            training.send(self._command(watch, is_deleted))

    def _command(self, watch: Watch, is_deleted: bool = False) -> Command:
        if is_deleted:
            return Command(set_cmd=messages.SetCMD(id=watch.id, delete=True))
        values = watch.condition.values(watch.given)
        condition = messages.WatchCondition(condition=number_of(watch.condition))
        for parameter in watch.condition.parameters:
            value = values.get(parameter.name)
            sent = condition.params.add(name=parameter.name, disabled=value is None)
            if parameter.type == "STRING":
                sent.text = value or ""
            else:
                sent.value = float(value or 0)
        nodes = []
        for name in watch.nodes:
            graph, _, full = name.partition("/")
            nodes.append(messages.WatchNode(node_name=full, node_type="leaf", graph_name=graph))
        return Command(set_cmd=messages.SetCMD(watch_nodes=nodes, watch_condition=condition, id=watch.id))
