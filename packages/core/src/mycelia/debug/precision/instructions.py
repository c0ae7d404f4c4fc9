"""What the instructions of compiled programs make, with all that the compiler joined: recorded in the first
run of each program, and compared with those of another process by the user's lines.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from mycelia.debug.precision.comparison import alike
from mycelia.debug.statistics import array_of
from mycelia.engine.base.origins import Origin
from mycelia.engine.ops.type_names import type_name

_INDEX = "instructions.json"


class Recorder:
    """An observer of compiled programs (`mycelia_observers`) that keeps the first run of each in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict[str, Any]] = []
        self.seen: set[int] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def after(self, node: Any, outputs: tuple) -> None:
        """Called with a node of the program that ran, and what it made."""
        if id(node) in self.seen:
            return
        self.seen.add(id(node))
        place = node.location
        scope = place.scope if isinstance(place, Origin) else "Default"
        rank = len(node.inputs[0].type.shape) if node.inputs and node.inputs[0] is not None else 0
        for slot, tensor in enumerate(outputs):
            if tensor is None:
                continue
            file = f"{len(self.rows):06d}.npy"
            np.save(self.folder / file, array_of(tensor))
            where = "" if place is None else f"{place.file}:{place.line}"
            self.rows.append({
                "file": file, "op": node.op.name, "name": f"{scope}/{type_name(node.op, rank)}", "slot": slot,
                "where": where, "shape": list(tensor.shape), "dtype": tensor.dtype.name,
            })  # fmt: skip
        self.node = node  # its id is its own as long as it lives
        self.write()

    def write(self) -> None:
        partial = self.folder / f".{_INDEX}"
        partial.write_text(json.dumps(self.rows), encoding="utf-8")
        os.replace(partial, self.folder / _INDEX)


def first_difference(left: Path, right: Path, threshold: float = 1 - 1e-9) -> str | None:
    """The first instruction recorded in `left` that makes what none of `right` from the same line makes, as
    ``NAME (file:line)``; None if there is none.
    """
    rows, others = (json.loads((folder / _INDEX).read_bytes()) for folder in (left, right))
    known: dict[tuple, list[str]] = defaultdict(list)
    for row in others:
        known[_key(row)].append(row["file"])
    for row in rows:
        candidates = known.get(_key(row))
        if not candidates:
            continue
        array = np.load(left / row["file"], allow_pickle=False)
        if not any(alike(array, np.load(right / f, allow_pickle=False), threshold) for f in candidates):
            return f"{row['name']} ({row['where']})" if row["where"] else row["name"]
    return None


def _key(row: dict[str, Any]) -> tuple:
    """Equal for values that may be the same: of a line, a number of elements and a type. Layouts differ."""
    return row["where"], int(np.prod(row["shape"])), row["dtype"]
