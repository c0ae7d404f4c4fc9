"""Which folders below the base are dumps: those with `rank_N/.dump_metadata`, or a `rank_N` with steps."""

from __future__ import annotations

import os

from mycelia_insight.runs.discovery import RANK, RECORDED, event_file

_MOST_ENTRIES = 20_000  # that are looked at, as MindInsight has it
_DEEPEST = 8


def find_dumps(base: str) -> list[tuple[str, list[int]]]:
    """(`./path` below `base`, ranks) of each dump, by name; links are not followed."""
    found = []
    looked = 0
    stack = [("", 0)]
    while stack and looked < _MOST_ENTRIES:
        below, depth = stack.pop()
        try:
            with os.scandir(os.path.join(base, below)) as entries:
                folders = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        looked += len(folders) + 1
        ranks = [n for n in folders if RANK.fullmatch(n) and _is_dumped(os.path.join(base, below, n))]
        if ranks:
            numbers = sorted(int(RANK.fullmatch(name)[1]) for name in ranks)
            found.append((dump_name(below), numbers))
        if depth < _DEEPEST:
            stack += [(os.path.join(below, name), depth + 1) for name in folders if name not in ranks]
    return sorted(found)


def dump_name(below: str) -> str:
    """How a dump is called, by its path below the base folder. Names that are no text are shown, and refused
    when they are opened.
    """
    return f"./{os.fsencode(below).decode('utf-8', 'backslashreplace')}"


def _is_dumped(rank: str) -> bool:
    return any(os.path.isdir(os.path.join(rank, name)) for name in RECORDED)


def dumps_of(folder: str) -> list[str]:
    """Dumps of one run: its folder, and folders in it that are no runs themselves; paths, by name."""
    found = [folder] if _has_ranks(folder) else []
    try:
        with os.scandir(folder) as entries:
            below = sorted(one.path for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return found
    return found + [path for path in below[:_MOST_ENTRIES] if _has_ranks(path) and not _is_run(path)]


def _has_ranks(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            ranks = [
                one.path for one in entries if RANK.fullmatch(one.name) and one.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return False
    return any(map(_is_dumped, ranks))


def _is_run(folder: str) -> bool:
    try:
        return any(map(event_file, os.listdir(folder)))
    except OSError:
        return False
