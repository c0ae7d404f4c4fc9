"""What endpoints of `/api/v1` share: how runs and numbers are written."""

from __future__ import annotations

import numpy as np

from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.lineages import Lineage, lookup
from mycelia_insight.runs.notes import Note
from mycelia_insight.runs.query import QueryError, parse
from mycelia_insight.runs.run import Run, Tag
from mycelia_insight.service.endpoints import Parameter, RequestError

_SYSTEM = "system/"  # SummaryCollector's, and what is imported of W&B
_BASE = "@"  # how the base folder itself is called in paths
RUN = Parameter("run", str, f"path of the run below the base folder, '{_BASE}' for that itself")
TAG = Parameter("tag", str, "a tag of the run")
STEP = Parameter("step", int, "a step of the tag; the last one if it is left out", None)
QUERY = Parameter("query", str, 'which runs: `loss < 0.1 and optimizer == "Adam"`', "")
_WORDS = {np.inf: "Infinity", -np.inf: "-Infinity"}


def run_of(library: Library, name: str) -> Run:
    """The run that a path names.  Errors: RequestError (404)."""
    path = "" if name == _BASE else name.removeprefix(_BASE) if name[:2] == "@@" else name
    found = library.get(f"./{path}")
    if found is None:
        raise RequestError(404, f"run {name!r} does not exist")
    return found


def chosen(library: Library, query: str) -> list[tuple[Run, list[Tag], Lineage, Note]]:
    """Runs that a query is true of, with what it was asked of.  Errors: RequestError (400)."""
    try:
        wanted = parse(query)
    except QueryError as error:
        raise RequestError(400, f"'query': {error}") from error
    found = []
    for run in library.runs():
        tags = run.tags()
        lineage, note = library.lineages.of(run, tags), library.notes.of(run.folder)
        if wanted(lookup(name_of(run.id), tags, lineage, note)):
            found.append((run, tags, lineage, note))
    return found


def kind_of(tag: Tag) -> str:
    """What a page shows a tag by; scalars of the machine are a kind of their own."""
    is_system = tag.kind == Kind.SCALAR and tag.name.startswith(_SYSTEM)
    return "system" if is_system else tag.kind.name.lower()


def name_of(id: str) -> str:
    """How a run is called in paths: `./a/b` is `a/b`."""
    name = id.removeprefix("./")
    return f"@{name}" if name.startswith("@") else name or _BASE


def number(value: float) -> float | str:
    """A value as JSON has it: what is not finite as a word."""
    return value if np.isfinite(value) else _WORDS.get(value, "NaN")


def numbers(values: np.ndarray) -> np.ndarray | list:
    """Values as JSON has them: what is not finite as words."""
    odd = np.flatnonzero(~np.isfinite(values))
    if not len(odd):
        return values
    listed = values.tolist()
    for i in odd.tolist():
        listed[i] = number(listed[i])
    return listed
