"""Reading what the run recorder left behind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mycelia.debug.recorder.crash import Journal
from mycelia.engine.base import errors


@dataclass(frozen=True, slots=True)
class Record:
    """What one rank left: its `README.txt`, `first_bad.json`, what ran at last in processes that were killed,
    and stacks of faults of native code.
    """

    folder: Path
    rank: int
    readme: str
    first_bad: dict[str, Any] | None
    running: list[str]
    faults: list[str]

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "folder": str(self.folder), "rank": self.rank, "first_bad": self.first_bad, "readme": self.readme,
            "running": self.running, "faults": self.faults,
        }  # fmt: skip


def read_records(folder: Path) -> list[Record]:
    """The records below `folder`: the recorder's `path`, a `rank_N`, or its `rdr`; none if there are none.

    Errors: FileFormatError for a `first_bad.json` that is damaged.
    """
    places = [folder / "rdr", *sorted(folder.glob("rank_*/rdr"))]
    if folder.name == "rdr":
        places.append(folder)
    return [found for place in places if (found := _read(place)) is not None]


def _read(folder: Path) -> Record | None:
    readme, bad = folder / "README.txt", folder / "first_bad.json"
    running = [Journal.read(str(p)) for p in sorted(folder.parent.glob("DEBUG.running.*.txt"))]
    faults = [_text(p) for p in sorted(folder.parent.glob("DEBUG.fault.*.txt")) if p.stat().st_size]
    if not (readme.is_file() or running or faults):
        return None
    rank = folder.parent.name.removeprefix("rank_")
    return Record(
        folder, int(rank) if rank.isdecimal() else 0, _text(readme) if readme.is_file() else "",
        _first_bad(bad) if bad.is_file() else None, running, faults,
    )  # fmt: skip


def _first_bad(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as cause:
        raise errors.FileFormatError(f"{path} is damaged: {cause}") from None
    if not isinstance(found, dict):
        raise errors.FileFormatError(f"{path} is damaged: it holds no object")
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
