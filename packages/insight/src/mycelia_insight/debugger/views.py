"""What pages show of a session beside MindInsight's interface: graphs, the health of steps, tensors, whys."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np

from mycelia.debug.reading.nonfinite import NonFinite
from mycelia.debug.reading.origins import trace_back
from mycelia_insight.debugger import DebuggerTensor, Node
from mycelia_insight.debugger.nodes import graph_name, stack_of
from mycelia_insight.debugger.session import Session
from mycelia_insight.debugger.wrong import Wrong
from mycelia_insight.records import tensors
from mycelia_insight.records.graph import Leaf, ScopeGraph

MOST_CELLS = 100_000  # values of a slice that are shown


class Views:
    """The views of one session; what was computed once is kept."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._graphs: dict[tuple[int, int, str], ScopeGraph] = {}  # by the version of the source, too
        self._lock = threading.Lock()

    # ---- graphs

    def graph(self, rank: int, graph: str) -> ScopeGraph:
        """A graph of the dump, its scopes folded; "" for the first one.  Errors: Wrong."""
        tree = self.session.tree(rank)
        name = graph or (tree.graphs[0] if tree.graphs else "")
        if name not in tree.graphs:
            raise Wrong("5054B081", f"there is no graph {graph!r}")
        with self._lock:
            key = tree.version, rank, name
            if key not in self._graphs:
                self._graphs = {k: graph for k, graph in self._graphs.items() if k[0] == key[0]}
                self._graphs[key] = _scopes(
                    name, [node for node in tree.nodes.values() if graph_name(node.graph) == name]
                )
            return self._graphs[key]

    def stack(self, rank: int, graph: str, name: str) -> list[dict[str, Any]]:
        """The lines of code that made a node, the innermost first; none of a scope.  Errors: Wrong."""
        tree = self.session.tree(rank)
        node = tree.nodes.get(f"{graph or tree.graphs[0]}/{name}")
        return [] if node is None else stack_of(node)

    def nodes(self, rank: int, known: int) -> dict[str, Any]:
        """All nodes of a rank in order of execution; None if those of version `known` still hold.

        Errors: Wrong.
        """
        tree = self.session.tree(rank)
        if known == tree.version:
            return {"rank": rank, "version": known, "nodes": None}
        nodes = [
            {
                "graph": n.graph, "name": n.name, "type": n.kind, "inputs": n.feeds, "stack": stack_of(n),
                "attributes": dict(n.attributes),
            }
            for n in tree.nodes.values()
        ]  # fmt: skip
        return {"rank": rank, "version": tree.version, "nodes": nodes}

    # ---- steps

    def steps(self, rank: int) -> list[dict[str, Any]]:
        """Recorded steps of a rank, with the graphs that ran in them."""
        self.session.tree(rank)
        found: dict[int, list[str]] = {}
        for step, graph in sorted(self.session.source.runs(rank)):
            found.setdefault(step, []).append(graph_name(graph))
        return [{"step": step, "graphs": found[step]} for step in sorted(found)]

    def health(self, rank: int, step: int) -> dict[str, Any]:
        """How many tensors of a step there are, and how many values in how many outputs are not finite."""
        self.session.tree(rank)
        return {"step": step, **self.session.source.health(rank, step)}

    def why(self, rank: int, step: int, name: str, limit: int) -> dict[str, Any]:
        """What is not finite in a step, those born so first, at most `limit` of them; of `name` the way back
        to where it was born.
        """
        rows = self.session.source.trace(rank, step)
        tree = self.session.tree(rank)
        way: list[NonFinite] = []
        if name:
            node = self.session.node(name, "", rank)
            mine = [row for row in rows if row.graph == node.graph]
            feeds = {n.name: n.feeds for n in tree.nodes.values() if n.graph == node.graph}
            way = trace_back(mine, feeds, node.name)
        return {
            "step": step, "total": len(rows),
            "rows": [_told(row) for row in rows[:limit]], "way": [_told(row) for row in way],
        }  # fmt: skip

    # ---- tensors

    def tensor(
        self,
        name: str,
        rank: int,
        step: int,
        dims: str,
        other: int | None,
        tolerance: float,
        against: Views | None = None,
    ) -> dict[str, Any]:
        """A slice of a tensor, and its distance from that of step `other` where one is given, of this session
        or of that which `against` shows.

        ``abs(now - then) <= tolerance * abs(then)`` is alike; what is not finite is alike if it is the same.
        Errors: Wrong.
        """
        value = self._value(name, rank, step)
        shown = dims or tensors.first_view(value.shape)
        part, free = _part(value, shown)
        found = {
            "name": name, "step": step, "dtype": str(value.dtype), "shape": list(value.shape), "dims": shown,
            "free": free, "rows": _rows(part), "statistics": tensors.statistics(part),
            "overall": tensors.statistics(value), "steps": self.recorded(name, rank),
        }  # fmt: skip
        if other is not None:
            before = (against or self)._value(self.name_in(against, name, rank), rank, other)
            if before.shape != value.shape:
                text = f"{name} has shape {list(value.shape)} in step {step}, {list(before.shape)} in {other}"
                raise Wrong("5054B185", text)
            alike = _alike(value, before, tolerance)
            was, _ = _part(before, shown)
            with np.errstate(invalid="ignore"):
                apart = part.astype(np.float64) - was.astype(np.float64)
            found |= {
                "other": other, "before": _rows(was), "apart": _rows(apart),
                "alike": _part(alike, shown)[0].reshape(_two(part)).tolist(),
                "different": int(alike.size - np.count_nonzero(alike)),
                "greatest": tensors.statistics(np.abs(apart))["max"],
            }  # fmt: skip
        return found

    def name_in(self, against: Views | None, name: str, rank: int) -> str:
        """What a tensor is called in another session: graphs have other numbers there, nodes the same names.

        Errors: Wrong.
        """
        if against is None:
            return name
        head, io, slot = parted(name)
        node = self.session.node(head, "", rank)
        known = against.session.tree(rank)
        found = known.find(known.full_name(node)) or known.find(node.name)
        if found is None:
            raise Wrong("5054B185", f"the other session has no node {node.name}")
        return f"{known.full_name(found)}:{'input:' if io == 'input' else ''}{slot}"

    def difference(
        self, rank: int, step: int, against: Views, other: int, tolerance: float, limit: int
    ) -> dict[str, Any]:
        """Outputs of a step that differ from those of step `other`, of this session or another, in order of
        execution: where the two went apart comes first.

        A row's `kind`: "values", of which `different` are not alike (see `tensor`) and `greatest` is the
        greatest difference that is finite; "shape"; "missing", what the other has not. The counts are of
        all, rows at most `limit`.  Errors: Wrong.
        """
        tree, known = self.session.tree(rank), against.session.tree(rank)
        counts, rows = {"compared": 0, "values": 0, "shape": 0, "missing": 0}, []
        for name, node in tree.nodes.items():
            twin = known.find(name) or known.find(node.name)
            then = {} if twin is None else _outputs(against.session, twin, other)
            for slot, now in _outputs(self.session, node, step).items():
                row = _apart(now, then.get(slot), tolerance)
                counts["compared"] += row["kind"] != "missing"
                if row["kind"] == "values" and not row["different"]:
                    continue
                counts[row["kind"]] += 1
                if len(rows) < limit:
                    rows.append({"node": name, "slot": slot, "type": node.kind, **row})
        return {"step": step, "other": other, **counts, "rows": rows}

    def recorded(self, name: str, rank: int) -> list[int]:
        """The steps in which a tensor was dumped.  Errors: Wrong."""
        return sorted({tensor.iteration + 1 for tensor in self._all(name, rank)})

    def history(self, name: str, rank: int) -> list[dict[str, Any]]:
        """Statistics of a tensor in each step in which it was dumped.  Errors: Wrong."""
        found = {}
        known = self._all(name, rank)
        self.session.source.load(known)
        for tensor in known:
            value = tensor.value()
            if value is not None:
                found[tensor.iteration + 1] = tensors.statistics(value)
        return [{"step": step, **found[step]} for step in sorted(found)]

    def _all(self, name: str, rank: int) -> list[DebuggerTensor]:
        head, io, slot = parted(name)
        node = self.session.node(head, "", rank)
        return (node.get_input_tensors if io == "input" else node.get_output_tensors)([slot])

    def _value(self, name: str, rank: int, step: int) -> np.ndarray:
        return self.session.elements(name, "", rank, step)


def _outputs(session: Session, node: Node, step: int) -> dict[int, np.ndarray]:
    """Slot -> elements of what a node made in a step, as far as it was recorded."""
    made = node.get_output_tensors(iterations=[step - 1])
    session.source.load(made)
    values = {tensor.slot: tensor.value() for tensor in made}
    return {slot: value for slot, value in values.items() if value is not None}


def _apart(now: np.ndarray, then: np.ndarray | None, tolerance: float) -> dict[str, Any]:
    """How an output differs from its twin."""
    if then is None:
        return {"kind": "missing"}
    if now.shape != then.shape:
        return {"kind": "shape", "shapes": [list(now.shape), list(then.shape)]}
    alike = _alike(now, then, tolerance)
    kind = np.complex128 if "c" in (now.dtype.kind, then.dtype.kind) else np.float64
    with np.errstate(invalid="ignore"):
        apart = np.abs(now.astype(kind) - then.astype(kind))[~alike]
    finite = apart[np.isfinite(apart)]
    return {
        "kind": "values", "different": int(apart.size), "size": int(now.size),
        "greatest": float(finite.max()) if finite.size else None,
    }  # fmt: skip


def parted(name: str) -> tuple[str, str, int]:
    """(node, "input" or "output", slot) of ``NODE:SLOT`` or ``NODE:input:SLOT``.  Errors: Wrong."""
    head, _, slot = name.rpartition(":")
    if not (slot.isascii() and slot.isdecimal() and len(slot) < 10):
        raise Wrong("5054B081", f"a tensor is called NODE:SLOT, but got {name[:200]!r}")
    is_input = head.endswith(":input")
    return head.removesuffix(":input"), "input" if is_input else "output", int(slot)


def _scopes(name: str, nodes: list[Node]) -> ScopeGraph:
    places = {node.name: place for place, node in enumerate(nodes)}
    leaves = [
        Leaf(
            node.name, node.kind, node.name.rpartition("/")[0],
            "parameter" if node.kind == "Parameter" else "operator",
            [(places[feed], False) for feed in node.feeds if feed in places],
            source=f"{node.stack[0].file}:{node.stack[0].line}" if node.stack else "",
            attributes=partial(dict, node.attributes),
        )
        for node in nodes
    ]  # fmt: skip
    return ScopeGraph(name, leaves)


def _told(row: NonFinite) -> dict[str, Any]:
    found = row.as_dict()
    found["node"] = f"{graph_name(row.graph)}/{row.op_full_name}"
    found["step"] = found.pop("iteration") + 1
    return found


def _part(value: np.ndarray, dims: str) -> tuple[np.ndarray, list[dict[str, int]]]:
    """What `dims` picks, and where its free dimensions begin.  Errors: Wrong."""
    try:
        index = tensors.parse(dims, value.shape)
    except ValueError as cause:
        raise Wrong("5054B081", str(cause)) from None
    part = np.asarray(value[index])
    if part.size > MOST_CELLS:
        raise Wrong("5054B081", f"'dims' select {part.size} values; at most {MOST_CELLS} are shown")
    free = [
        {"dimension": i, "start": one.start, "size": len(range(value.shape[i])[one])}
        for i, one in enumerate(index) if isinstance(one, slice)
    ]  # fmt: skip
    return part, free


def _two(part: np.ndarray) -> tuple[int, ...]:
    return (1, -1) if part.ndim < 2 else part.shape


def _rows(part: np.ndarray) -> list[np.ndarray]:
    """Rows of numbers as JSON takes them."""
    table = part.reshape(_two(part))
    if table.dtype.kind not in "biuf":  # complex numbers are shown as text
        return [np.array([str(one) for one in row], object) for row in table]
    wide = table.astype(np.float64) if table.dtype.kind == "f" else table
    return [row.copy() for row in wide]


def _alike(now: np.ndarray, before: np.ndarray, tolerance: float) -> np.ndarray:
    kind = np.complex128 if "c" in (now.dtype.kind, before.dtype.kind) else np.float64
    a, b = now.astype(kind), before.astype(kind)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= tolerance * np.abs(b)
    return near | (a == b) | (np.isnan(a) & np.isnan(b))
