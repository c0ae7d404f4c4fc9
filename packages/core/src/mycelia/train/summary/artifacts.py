"""Which files a run was made of and has made: `mycelia-artifacts.jsonl` in its folder.

One line of JSON for each fact, only ever added: `{"line": "run" | "input" | "artifact", "session": ...}`. A
session is one opening of the folder. Files are hashed on a thread of their own, from the file that was open
when they had been written: a checkpoint that is deleted meanwhile has its hash, and training goes on.
Mycelia Insight reads it (`records/artifacts.py` there). A reader passes over lines that are cut off.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import secrets
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

from mycelia.engine.base import log
from mycelia.io import provenance
from mycelia.io.provenance import File, Source
from mycelia.train.summary.data_fingerprint import fingerprint
from mycelia.train.summary.environment import git_commit

FILE = "mycelia-artifacts.jsonl"
_WAITING = 32  # files that are open at once until they are hashed
_GIT_S = 10.0  # seconds after which nobody waits any longer for whether files differ from the commit


class Artifacts:
    """The record of one session. All of its methods return at once but `close`, and none raises OSError."""

    def __init__(self, folder: str):
        self.session = secrets.token_hex(8)
        self._folder, self._path = folder, os.path.join(folder, FILE)
        self._begun, self._warned = False, False
        self._params: Any = None  # of the training, for its step
        self._known: dict[Source, None] = {}  # what is written down as input already
        self._last: Future | None = None
        self._lock = threading.Lock()
        provenance.open_runs.append(self)

    def begin(self, mode: str, name: str, network: Any, dataset: Any = None, params: Any = None) -> None:
        """The run has begun: what it is, its data, and the files its network was loaded from.

        mode: "train" or "eval"; name: of the network's class; network: a Cell, whose Parameters are the run's
        from now on where it trains; params: has `get`, for "cur_step_num".
        """
        self._params = params
        described = dataset.to_json() if hasattr(dataset, "to_json") else None
        parameters = list(network.get_parameters())
        self._begin({"mode": mode, "network": name})
        self._use([s for s in provenance.sources_of(parameters) if s is not self])
        if described is not None:
            self._submit(lambda: self._add("input", role="data", **fingerprint(described)))
        if mode == "train":
            provenance.mark(parameters, self)

    def wrote(self, path: str, role: str, sources: list[Source]) -> None:
        """A file of the run is there; on the thread that wrote it."""
        self._begin({})
        others = [s for s in sources if s is not self]
        own = [s for s in others if isinstance(s, File) and provenance.writer_of(s) is self]
        self._use([s for s in others if s not in own])
        try:
            file = open(path, "rb")
        except OSError as error:
            self._warn(error)
            return
        step = self._params.get("cur_step_num") if self._params is not None else None
        facts = {"role": role, "path": os.path.realpath(path), "time": time.time()}
        if isinstance(step, int):
            facts["step"] = step
        written = provenance.file_at(path)
        _slots.acquire()

        def add() -> None:
            try:
                with file:
                    facts["size"] = os.fstat(file.fileno()).st_size
                    facts["sha256"] = _sha256(file)
                if written is not None:
                    _digests[written] = facts["sha256"]
            finally:
                _slots.release()
            self._add("artifact", **facts, parents=[_described(one) for one in own])

        self._submit(add)

    def close(self) -> None:
        """The session is over, and all lines so far are written; exports may still follow."""
        provenance.forget(self)
        self._params = None
        if self._last is not None:
            self._last.exception()

    # ---- lines ---------------------------------------------------------------------------------------------

    def _begin(self, facts: dict[str, Any]) -> None:
        with self._lock:
            if self._begun:
                return
            self._begun = True
        started = time.time()
        self._submit(lambda: self._add("run", time=started, **facts, **_surroundings()))

    def _use(self, sources: list[Source]) -> None:
        for source in sources:
            with self._lock:
                if source in self._known:
                    continue
                self._known[source] = None
            if isinstance(source, File):
                self._submit(functools.partial(self._add_parent, source, _opened(source)))
            elif isinstance(source, Artifacts):  # trained on in the same process
                facts = {"role": "run", "from_session": source.session, "folder": source._folder}
                self._submit(lambda facts=facts: self._add("input", **facts))

    def _add_parent(self, source: File, file: BinaryIO | None) -> None:
        if file is not None:
            with file:
                _digests[source] = _sha256(file)
        self._add("input", role="checkpoint", **_described(source))

    def _add(self, line: str, **facts: Any) -> None:
        data = json.dumps({"line": line, "session": self.session, **facts}, allow_nan=False).encode() + b"\n"
        flags = (
            os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        handle = os.open(self._path, flags, 0o644)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(f"{self._path} is no file")
            if found.st_size and os.pread(handle, 1, found.st_size - 1) != b"\n":
                data = b"\n" + data  # the last writer was ended in the middle of its line
            while data:
                data = data[os.write(handle, data) :]
        finally:
            os.close(handle)

    def _submit(self, job: Callable[[], None]) -> None:
        def run() -> None:
            try:
                job()
            except OSError as error:  # no room, no rights
                self._warn(error)

        self._last = _thread().submit(run)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            log.logger(__name__).warning("%s does not tell of all files: %s", self._path, error)


_digests: dict[File, str] = {}  # of files that runs of this process wrote or were made of
_slots = threading.BoundedSemaphore(_WAITING)


@functools.cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "artifacts")  # the end of the process waits for it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread.cache_clear)  # a child has no threads of its parent


def _sha256(file: BinaryIO) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(file: File) -> BinaryIO | None:
    """The file, if it is still as it was: what is open keeps its content when others replace it."""
    with contextlib.suppress(OSError):
        if provenance.file_at(file.path) == file:
            return open(file.path, "rb")
    return None


def _described(file: File) -> dict[str, Any]:
    """sha256 is null for a file that had changed since it was loaded."""
    return {"path": file.path, "size": file.size, "sha256": _digests.get(file)}


def _surroundings() -> dict[str, Any]:
    versions = {"python": platform.python_version(), "mycelia": metadata.version("mycelia-core")}
    with contextlib.suppress(metadata.PackageNotFoundError):
        versions["numpy"] = metadata.version("numpy")
    script = Path(sys.argv[0] if sys.argv else "").absolute()
    facts: dict[str, Any] = {"host": platform.node(), "process": os.getpid(), "versions": versions}
    if script.is_file():
        facts["script"] = str(script)
    folder = script.parent if script.is_file() else Path.cwd()
    commit = git_commit(folder)
    return {**facts, "git_commit": commit, "git_dirty": _is_dirty(folder)} if commit else facts


def _is_dirty(folder: Path) -> bool | None:
    """Whether tracked files differ from the commit; None if git does not tell."""
    command = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain", "--untracked-files=no"]
    surroundings = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # it shall not write the index
    try:
        done = subprocess.run(
            command, cwd=folder, env=surroundings, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_GIT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return bool(done.stdout.strip()) if done.returncode == 0 else None
