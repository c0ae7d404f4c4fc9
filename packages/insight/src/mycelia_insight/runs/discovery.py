"""Which folders are runs: those that hold event files, at any depth."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAME = re.compile(r"(?:summary|tfevents)\.(\d+)")


@dataclass(frozen=True, order=True)
class EventFile:
    """An event file; `seconds`, since 1970, stand in its name and give the order of a run's files."""

    seconds: int
    name: str

    @property
    def is_lineage(self) -> bool:
        return self.name.endswith("_lineage")


def event_file(name: str) -> EventFile | None:
    """What a file's name says, or None if it is no event file's."""
    found = _NAME.search(name)
    return EventFile(int(found[1]), name) if found else None


def find(base: str, other: str = "") -> Iterator[tuple[str, list[EventFile]]]:
    """(path below `base`, event files in the order of their times) of each run; "" is `base` itself.

    Folders that cannot be read are passed over. A folder that is met again through a link is met once, under
    the name without links if it has one. `other`: the name of a file whose folders are given, too, without
    event files.
    """
    seen: set[tuple[int, int]] = set()
    stack, links = [""], []
    while stack or links:
        below = stack.pop() if stack else links.pop()
        try:
            here = os.stat(os.path.join(base, below))
            if (here.st_dev, here.st_ino) in seen:
                continue
            seen.add((here.st_dev, here.st_ino))
            with os.scandir(os.path.join(base, below)) as entries:
                files, folders, linked, has_other = [], [], [], False
                for entry in entries:
                    if _is_folder(entry):
                        (linked if entry.is_symlink() else folders).append(os.path.join(below, entry.name))
                    elif file := event_file(entry.name):
                        files.append(file)
                    else:
                        has_other |= entry.name == other
        except OSError:
            continue
        if files or has_other:
            yield below, sorted(_without_twins(files))
        stack += sorted(folders, reverse=True)
        links += sorted(linked, reverse=True)


def _without_twins(files: list[EventFile]) -> list[EventFile]:
    """Without those that `SummaryRecord(tensorboard=True)` wrote beside others with the same values."""
    names = {file.name for file in files}
    return [file for file in files if _twin(file.name) == file.name or _twin(file.name) not in names]


def _twin(name: str) -> str:
    return name.replace(".tfevents.", ".events.summary.")


def _is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
