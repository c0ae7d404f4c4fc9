"""Which run made which file, of what: sessions of runs as one graph, and the run of a file by its hash."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mycelia_insight.records import artifacts
from mycelia_insight.records.artifacts import Artifact, Session
from mycelia_insight.runs.run import Run


@dataclass
class Node:
    """Of the graph. kind: "data", "run", "checkpoint" or "export"; `run`: the id of a run's node's run."""

    kind: str
    label: str
    run: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Provenance:
    """nodes by key; edges (from, to) of keys."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[tuple[str, str], None] = field(default_factory=dict)


class Sessions:
    """Sessions of runs, read again when their file has changed."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[tuple, list[Session]]] = {}
        self._lock = threading.Lock()

    def of(self, run: Run) -> list[Session]:
        """[] for a run that lists no files, or whose list cannot be read."""
        path = os.path.join(run.folder, artifacts.FILE)
        try:
            found = os.stat(path)
            state = found.st_size, found.st_mtime_ns, found.st_ino
            with self._lock:
                known = self._cache.get(run.folder)
            if known is None or known[0] != state:
                known = state, artifacts.read(run.folder)
                with self._lock:
                    self._cache[run.folder] = known
            return known[1]
        except OSError:
            return []


def digest_of(path: str) -> str:
    """SHA-256 of a file.  Errors: OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Makers:
    """Sessions of runs, by the files that they made. `listed`: ids of runs and their sessions."""

    def __init__(self, listed: Iterable[tuple[str, list[Session]]]) -> None:
        self._listed = [(run, session) for run, sessions in listed for session in sessions]
        self._listed.sort(key=lambda pair: (pair[1].facts.get("time", 0), pair[0]))
        self._run_of = {session.id: run for run, session in self._listed}
        self._made: dict[str, dict[str, None]] = {}
        for run, session in self._listed:
            for one in session.outputs:
                self._made.setdefault(one.sha256, {})[run] = None

    def of(self, sha256: str) -> dict[str, list[dict[str, Any]]]:
        """`made_by`, `used_by`: runs that made the file with this hash, and that were made of it, by time;
        of each the facts of its session, path, role, step and size of the file, and its own `inputs`, whose
        `made_by` are ids of runs.
        """
        found: dict[str, list[dict[str, Any]]] = {"made_by": [], "used_by": []}
        for run, session in self._listed:
            for how, files in (("made_by", session.outputs), ("used_by", session.inputs)):
                same = [one for one in files if sha256 and one.sha256 == sha256 and one.role != "data"]
                if same:  # a file that was written twice with one content was there at the first time
                    found[how].append(self._described(run, session, same[0]))
        return found

    def _described(self, run: str, session: Session, file: Artifact) -> dict[str, Any]:
        inputs = [
            {
                "role": one.role, "path": one.path, "sha256": one.sha256 or None,
                "sources": list(one.sources),
                "made_by": list(self._made.get(one.sha256, ())) if one.sha256 else [],
            }
            for one in (*session.inputs, *file.parents)
        ]  # fmt: skip
        inputs += [
            {"role": "run", "path": "", "sha256": None, "sources": [], "made_by": [self._run_of[one]]}
            for one in session.before
            if one in self._run_of
        ]
        return {
            "run": run, **session.facts, "path": file.path, "role": file.role, "step": file.step,
            "size": file.size, "inputs": inputs,
        }  # fmt: skip


def graph(runs: Iterable[Run], sessions: Sessions) -> Provenance:
    """Data, sessions and files of all runs."""
    whole = Provenance()
    listed = [(run, sessions.of(run)) for run in runs]
    known = {one.id for _, of_run in listed for one in of_run}
    for run, of_run in listed:
        for number, session in enumerate(of_run, 1):
            here = f"run:{session.id}"
            facts = {**session.facts, "session": number if len(of_run) > 1 else None}
            whole.nodes[here] = Node("run", run.id, run.id, facts)
            for before in session.before:
                if before in known:
                    whole.edges[f"run:{before}", here] = None
            for i, one in enumerate(session.inputs):
                whole.edges[_place(whole, one, f"{session.id}:in{i}"), here] = None
            for i, one in enumerate(session.outputs):
                there = _place(whole, one, f"{session.id}:out{i}")
                whole.edges[here, there] = None
                for j, parent in enumerate(one.parents):
                    whole.edges[_place(whole, parent, f"{session.id}:out{i}.{j}"), there] = None
    return whole


def around(whole: Provenance, runs: set[str]) -> Provenance:
    """What came of these runs, and what led to all of it."""
    begin = [key for key, node in whole.nodes.items() if node.run in runs]
    forward: dict[str, list[str]] = {}
    backward: dict[str, list[str]] = {}
    for start, end in whole.edges:
        forward.setdefault(start, []).append(end)
        backward.setdefault(end, []).append(start)
    kept = _reached(list(_reached(begin, forward)), backward)
    edges = {edge: None for edge in whole.edges if edge[0] in kept and edge[1] in kept}
    return Provenance({key: node for key, node in whole.nodes.items() if key in kept}, edges)


def folded(whole: Provenance) -> Provenance:
    """Of checkpoints that nothing was made of, only the last of each session; it tells how many there are."""
    used = {start for start, _ in whole.edges}
    outputs: dict[str, list[str]] = {}
    for start, end in whole.edges:
        if whole.nodes[start].kind == "run" and whole.nodes[end].kind == "checkpoint":
            outputs.setdefault(start, []).append(end)
    dropped = set()
    for run, listed in outputs.items():
        unused = [key for key in listed[:-1] if key not in used]
        dropped |= set(unused)
        node = whole.nodes[run]
        whole.nodes[run] = Node(node.kind, node.label, node.run, {**node.facts, "left_out": len(unused)})
    return Provenance(
        {key: node for key, node in whole.nodes.items() if key not in dropped},
        {edge: None for edge in whole.edges if not dropped.intersection(edge)},
    )


def _reached(begin: list[str], ways: dict[str, list[str]]) -> set[str]:
    seen, waiting = set(begin), list(begin)
    while waiting:
        for key in ways.get(waiting.pop(), ()):
            if key not in seen:
                seen.add(key)
                waiting.append(key)
    return seen


def _place(whole: Provenance, one: Artifact, otherwise: str) -> str:
    """The key of a file's or data's node, which is made if it is new."""
    key = one.key or f"unknown:{otherwise}"
    facts = {
        "path": one.path, "sha256": one.sha256, "size": one.size, "step": one.step, "time": one.time or None,
        "files": one.files, "sources": list(one.sources),
    }  # fmt: skip
    known = whole.nodes.get(key)
    if known is None:
        name = os.path.basename(one.path.rstrip("/")) or ", ".join(one.sources) or one.sha256[:12]
        whole.nodes[key] = Node(one.role, name, "", facts)
    else:  # the run that made it tells more than those that read it
        told = {name: value for name, value in facts.items() if value and not known.facts.get(name)}
        known.facts |= told
        if one.role == "export":
            known.kind = "export"
    return key
