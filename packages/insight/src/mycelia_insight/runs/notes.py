"""What users note of runs, and which are archived: one small file a run, in the workspace."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from dataclasses import asdict, dataclass, replace
from typing import Any

from mycelia_insight.runs import kept

_REMARK = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MOST_TAG = 10
_MOST_LABELS, _LONGEST_LABEL = 10, 40


@dataclass(frozen=True)
class Note:
    """A remark, None for none, the number of a tag, 0 for none, and labels; archived runs are not listed."""

    remark: str | None = None
    tag: int = 0
    labels: tuple[str, ...] = ()
    archived: bool = False


class Notes:
    """Notes by the folders of runs. Several services may share the workspace: the last writer wins."""

    def __init__(self, workspace: str):
        self._workspace = workspace
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
                note = _checked(Note(), kept.read(path))
            except (OSError, ValueError):
                note = Note()
            self._cache[path] = key, note
        return self._cache[path][1]

    def change(self, folder: str, changes: Any) -> Note:
        """Changes `remark` (1 to 128 of A-Z a-z 0-9 _ . -, None for none), `tag` (0 to 10), `labels` (10 at
        most, each of 1 to 40 characters) or `archived` of a run.

        Errors: ValueError names what is wrong; OSError if the workspace cannot be written.
        """
        with self._lock:
            note = _checked(self.of(folder), changes)
            kept.write(self._path(folder), {"folder": os.path.realpath(folder), **asdict(note)})
            return note

    def forget(self, folder: str) -> None:
        """Takes the note of a run away."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(folder))

    def _path(self, folder: str) -> str:
        return kept.place_of(self._workspace, "notes", folder)


def _checked(note: Note, changes: Any) -> Note:
    if not isinstance(changes, dict):
        raise ValueError("changes of a note must be an object with 'remark', 'tag', 'labels' or 'archived'")
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
    if "labels" in changes:
        labels = changes["labels"]
        if not (isinstance(labels, list) and len(labels) <= _MOST_LABELS and all(map(_is_label, labels))):
            raise ValueError(
                f"'labels' must be at most {_MOST_LABELS} texts of 1 to {_LONGEST_LABEL} characters, "
                f"got {labels!r:.150}"
            )
        note = replace(note, labels=tuple(dict.fromkeys(label.strip() for label in labels)))
    if "archived" in changes:
        if not isinstance(changes["archived"], bool):
            raise ValueError(f"'archived' must be true or false, got {changes['archived']!r:.80}")
        note = replace(note, archived=changes["archived"])
    return note


def _is_label(label: Any) -> bool:
    return isinstance(label, str) and 1 <= len(label.strip()) <= _LONGEST_LABEL and label.isprintable()
