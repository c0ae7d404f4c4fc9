"""Where values of Parameters come from, a file or the run that trained them, and who is told of new files.

A run (`train.summary.artifacts`) registers itself in `open_runs`; what saves or exports calls `writing`
before and what that gives afterwards, with the path. Nothing is read or computed here.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class File:
    """A file as it was when it was read or written; time in nanoseconds since 1970."""

    path: str
    size: int
    modified_ns: int
    inode: int


class Run(Protocol):
    """Who keeps a record of files."""

    def wrote(self, path: str, role: str, sources: list[Source]) -> None:
        """`role`: "checkpoint" or "export"; `sources`: of the Parameters in it."""


Source = File | Run
open_runs: list[Run] = []  # the innermost last
_sources: dict[int, tuple[weakref.ref, Source]] = {}  # by id of the Parameter
_writers: dict[File, Run] = {}


def file_at(path: str) -> File | None:
    """The file as it is now, None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return File(os.path.realpath(path), found.st_size, found.st_mtime_ns, found.st_ino)


def mark(parameters: Iterable[Any], source: Source | None) -> None:
    """From now on the values of these Parameters come from `source`; None: nobody knows from where."""
    for parameter in parameters:
        key = id(parameter)
        if source is None:
            _sources.pop(key, None)
        else:
            _sources[key] = weakref.ref(parameter, lambda _, key=key: _sources.pop(key, None)), source


def source_of(parameter: Any) -> Source | None:
    """Where the values of a Parameter come from, as far as it is known."""
    known, source = _sources.get(id(parameter), (None, None))
    return source if known is not None and known() is parameter else None


def sources_of(parameters: Iterable[Any]) -> list[Source]:
    """The distinct ones, in the order in which they are met."""
    return list(dict.fromkeys(s for s in map(source_of, parameters) if s is not None))


def read(path: Any, parameters: Iterable[Any]) -> None:
    """These Parameters were made of what the file holds; a stream is none."""
    mark(parameters, file_at(path) if isinstance(path, str) else None)


def writing(role: str, parameters: Iterable[Any]) -> Callable[[str], None]:
    """What is to be called with the path, on any thread, when a file with these Parameters is written.

    It tells the run that is open, or else the one that trained them or wrote the file that they came from.
    """
    parameters = list(parameters)
    sources = sources_of(parameters)
    run = open_runs[-1] if open_runs else next(filter(None, map(_run_of, sources)), None)
    if run is None:
        return _nobody
    if open_runs:
        mark((p for p in parameters if source_of(p) is None), run)

    def tell(path: str) -> None:
        run.wrote(path, role, sources)
        if file := file_at(path):
            _writers[file] = run

    return tell


def writer_of(file: File) -> Run | None:
    """The run of this process that wrote it."""
    return _writers.get(file)


def forget(run: Run) -> None:
    """A run is open no more; files of what it trained are still its own."""
    with contextlib.suppress(ValueError):
        open_runs.remove(run)


def _run_of(source: Source) -> Run | None:
    return _writers.get(source) if isinstance(source, File) else source


def _nobody(path: str) -> None:
    """No run is told."""
