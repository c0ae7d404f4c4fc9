"""Remarks and tags that users give to runs: one small file a run, in the workspace."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import threading
from dataclasses import asdict, dataclass, replace
from typing import Any

_REMARK = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MOST_TAG = 10


@dataclass(frozen=True)
class Note:
    """A remark, None for none, and the number of a tag, 0 for none."""

    remark: str | None = None
    tag: int = 0


class Notes:
    """Notes by the folders of runs. Several services may share the workspace: the last writer wins."""

    def __init__(self, workspace: str):
        self._place = os.path.join(workspace, "notes")
        self._lock = threading.Lock()
        self._cache: dict[str, tuple[tuple[int, int], Note]] = {}

    def of(self, folder: str) -> Note:
        path = self._path(folder)
        try:
            state = os.stat(path)
        except OSError:
            return Note()
        key = state.st_mtime_ns, state.st_ino
        if self._cache.get(path, ((0, 0), Note()))[0] != key:
            try:
                with open(path, encoding="utf-8") as file:
                    note = _checked(Note(), json.load(file))
            except (OSError, ValueError):
                note = Note()  # half of a file is never there: someone else's hand
            self._cache[path] = key, note
        return self._cache[path][1]

    def change(self, folder: str, changes: Any) -> Note:
        """Changes `remark` (1 to 128 of A-Z a-z 0-9 _ . -, None for none) or `tag` (0 to 10) of a run.

        Errors: ValueError names what is wrong; OSError if the workspace cannot be written.
        """
        with self._lock:
            note = _checked(self.of(folder), changes)
            os.makedirs(self._place, mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._place, suffix=".new")
            try:
                with open(handle, "w", encoding="utf-8") as file:
                    json.dump({"folder": os.path.realpath(folder), **asdict(note)}, file)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self._path(folder))
            except BaseException:
                os.unlink(temporary)
                raise
            return note

    def _path(self, folder: str) -> str:
        digest = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
        return os.path.join(self._place, f"{digest}.json")


def _checked(note: Note, changes: Any) -> Note:
    if not isinstance(changes, dict):
        raise ValueError("changes of a note must be an object with 'remark' or 'tag'")
    if "remark" in changes:
        remark = changes["remark"]
        if remark is not None and not (isinstance(remark, str) and _REMARK.fullmatch(remark)):
            raise ValueError(f"'remark' must be 1 to 128 of A-Z a-z 0-9 _ . -, got {remark!r:.150}")
        note = replace(note, remark=remark)
    if "tag" in changes:
        tag = changes["tag"]
        if type(tag) is not int or not 0 <= tag <= _MOST_TAG:
            raise ValueError(f"'tag' must be 0 to {_MOST_TAG}, got {tag!r:.80}")
        note = replace(note, tag=tag)
    return note
