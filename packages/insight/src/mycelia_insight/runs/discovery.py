"""Which folders are runs: those that hold event files, at any depth, or a graph or a dump."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAME = re.compile(r"(?:summary|tfevents)\.(\d+)")
_MEMORY = re.compile(r"memory_usage_\d+\.pb")  # no graph
GRAPHS = (".pb", ".ir", ".onnx", ".mindir")  # files of graphs, and of models that have one
NO_GRAPHS = "actor_set"  # a folder of `save_graphs` with texts of another form
RANK = re.compile(r"rank_(\d+)")  # a folder of a dump
RECORDED = frozenset({".dump_metadata", "execution_order"})  # of which it has one


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


@dataclass(frozen=True)
class Found:
    """A run: what its folder holds.

    name: path below the base folder, "" for that itself; files: event files in the order of their times;
    dumps: paths below the base folder of dumps in it, by name, or of itself; has_graphs: whether files of
    graphs lie in it or in folders in it that are no runs themselves; written: where there are no event files,
    when what makes it a run was written to last, in seconds since 1970.
    """

    name: str
    files: tuple[EventFile, ...] = ()
    dumps: tuple[str, ...] = ()
    has_graphs: bool = False
    written: float = 0.0


@dataclass
class _Folder:
    files: list[EventFile]
    folders: list[str]  # paths below the base folder; no links
    graphs: list[str]  # names of files
    is_rank: bool  # of a dump, with steps
    has_other: bool


def find(base: str, other: str = "") -> Iterator[Found]:
    """The runs: folders that hold event files, and, as in MindInsight, the base folder and those in it that
    hold a graph `.pb` or a dump, unless event files make the base folder itself the run that these belong to.

    Folders that cannot be read are passed over. A folder that is met again through a link is met once, under
    the name without links if it has one. `other`: the name of a file whose folders are given, too.
    """
    known = dict(_walk(base, other))
    for name, folder in known.items():
        inside = [one for one in folder.folders if one in known and not known[one].files]
        dumps = [one for one in (name, *inside) if _is_dump(known, one)]
        graphs = folder.graphs or any(known[one].graphs for one in inside)
        written = 0.0
        if not folder.files and not folder.has_other:
            if known[""].files or os.path.dirname(name):
                continue
            makers = [os.path.join(name, one) for one in folder.graphs if _is_shown(one)]
            makers += [one for one in dumps if one != name]
            if not makers:
                continue
            written = max(_written(os.path.join(base, one)) for one in makers)
        files = tuple(sorted(_without_twins(folder.files)))
        yield Found(name, files, tuple(sorted(dumps)), bool(graphs), written)


def _walk(base: str, other: str) -> Iterator[tuple[str, _Folder]]:
    seen: set[tuple[int, int]] = set()
    stack, links = [""], []
    while stack or links:
        below = stack.pop() if stack else links.pop()
        found = _Folder([], [], [], False, False)
        try:
            here = os.stat(os.path.join(base, below))
            if (here.st_dev, here.st_ino) in seen:
                continue
            seen.add((here.st_dev, here.st_ino))
            linked = []
            with os.scandir(os.path.join(base, below)) as entries:
                for entry in entries:
                    if _is_folder(entry):
                        (linked if entry.is_symlink() else found.folders).append(
                            os.path.join(below, entry.name)
                        )
                        found.is_rank |= entry.name in RECORDED
                    elif file := event_file(entry.name):
                        found.files.append(file)
                    else:
                        found.has_other |= entry.name == other
                        if entry.name.endswith(GRAPHS) and not entry.is_symlink():
                            found.graphs.append(entry.name)
        except OSError:
            continue
        found.folders.sort()
        yield below, found
        stack += reversed(found.folders)
        links += sorted(linked, reverse=True)


def _is_dump(known: dict[str, _Folder], name: str) -> bool:
    ranks = (one for one in known[name].folders if RANK.fullmatch(os.path.basename(one)))
    return any(one in known and known[one].is_rank for one in ranks)


def _is_shown(graph: str) -> bool:
    """Whether a file makes its folder a run."""
    return graph.endswith(".pb") and not _MEMORY.fullmatch(graph)


def _written(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


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
