"""`mycelia-artifacts.jsonl` of a run's folder: what each session of it was made of and made.

Core's mycelia/train/summary/artifacts.py writes it. Lines that are cut off or
no such facts are passed over.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

FILE = "mycelia-artifacts.jsonl"
_MOST = 64 << 20  # bytes that are read
_LONGEST = 4096  # characters of a text
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Artifact:
    """A file or data. role: "checkpoint", "export" or "data"; sha256 and path are "" where nobody knows.

    step is of the training, time in seconds since 1970, size in bytes, of data of all their files together.
    """

    role: str
    path: str = ""
    sha256: str = ""
    size: int = 0
    step: int | None = None
    time: float = 0
    files: int = 0
    sources: tuple[str, ...] = ()  # of data: classes, where no path tells more
    parents: tuple[Artifact, ...] = ()

    @property
    def key(self) -> str:
        """What is the same for the same content; "" where that cannot be told."""
        return f"{'data' if self.role == 'data' else 'file'}:{self.sha256}" if self.sha256 else ""


@dataclass
class Session:
    """One opening of a run's folder. `facts`: mode, network, script, git_commit, ... as far as told."""

    id: str
    facts: dict[str, Any] = field(default_factory=dict)
    inputs: list[Artifact] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # sessions whose network it went on with
    outputs: list[Artifact] = field(default_factory=list)


def read(folder: str) -> list[Session]:
    """The sessions of a run, in the order of the file; [] if there is none.  Errors: OSError."""
    sessions: dict[str, Session] = {}
    for line in _lines(os.path.join(folder, FILE)):
        id = _text(line.get("session"), 64)
        if not id:
            continue
        session = sessions.setdefault(id, Session(id))
        kind, role = line.get("line"), line.get("role")
        if kind == "run":
            session.facts |= _facts(line)
        elif kind == "artifact" and role in ("checkpoint", "export"):
            session.outputs.append(_artifact(line, role))
        elif kind == "input" and role in ("checkpoint", "data"):
            session.inputs.append(_artifact(line, role))
        elif kind == "input" and role == "run" and _text(line.get("from_session"), 64):
            session.before.append(_text(line.get("from_session"), 64))
    return list(sessions.values())


def _lines(path: str) -> Iterator[dict]:
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return
        data = file.read(_MOST)
    for line in data.split(b"\n"):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _artifact(line: dict, role: str, deep: bool = True) -> Artifact:
    sources = [one for one in _list(line.get("sources")) if isinstance(one, dict)]
    paths = [_text(path) for one in sources for path in _list(one.get("paths"))]
    parents = _list(line.get("parents")) if deep else []
    digest = _text(line.get("sha256"), 64)
    step = _whole(line.get("step"))
    return Artifact(
        role, _text(line.get("path")) or ", ".join(filter(None, paths[:20])),
        digest if _DIGEST.fullmatch(digest) else "", _whole(line.get("size")) or 0, step,
        _number(line.get("time")), _whole(line.get("files")) or 0,
        tuple(_text(one.get("kind")) for one in sources[:20]),
        tuple(_artifact(one, "checkpoint", False) for one in parents if isinstance(one, dict)),
    )  # fmt: skip


def _facts(line: dict) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("mode", "network", "script", "git_commit", "host"):
        if _text(line.get(name)):
            found[name] = _text(line[name])
    if isinstance(line.get("git_dirty"), bool):
        found["git_dirty"] = line["git_dirty"]
    if _number(line.get("time")):
        found["time"] = _number(line["time"])
    versions = line.get("versions")
    if isinstance(versions, dict):
        told = {_text(k, 100): _text(v, 100) for k, v in list(versions.items())[:100]}
        found["versions"] = {name: value for name, value in told.items() if name and value}
    return found


def _list(value: Any) -> list:
    """The first hundred of a list, [] for anything else."""
    return value[:100] if isinstance(value, list) else []


def _text(value: Any, most: int = _LONGEST) -> str:
    """A text as UTF-8 can hold it, "" for anything else."""
    if not isinstance(value, str) or len(value) > most:
        return ""
    return value.encode("utf-8", "backslashreplace").decode()


def _whole(value: Any) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return value if is_whole else None


def _number(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return 0
    return float(value) if abs(value) < 1e15 and math.isfinite(value) else 0
