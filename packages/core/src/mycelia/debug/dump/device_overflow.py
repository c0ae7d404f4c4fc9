"""What a device that numbers its tasks says of overflow: its status tells of results that saturated, too,
which look finite.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mycelia.engine.backends import TaskInfo, registry
from mycelia.engine.observing import Operator

_PREFIX = "Opdebug.Node_OpDebug."  # of names of the files


def latest() -> int | None:
    """The number of the task that ran last; None if the device has none."""
    task = registry.target().backend.last_task()
    return None if task is None else task.task_id


def task_after(before: int | None) -> TaskInfo | None:
    """The task that ran last, if it is another than `before`; None where the host computed."""
    task = registry.target().backend.last_task()
    return None if task is None or task.task_id == before else task


def record_of(task: TaskInfo, operator: Operator) -> dict[str, Any]:
    """What the device keeps of a task that overflowed, and which operator it was."""
    _, records = registry.target().backend.read_overflow(False)
    known = next((dict(r) for r in records if r["task_id"] == task.task_id), {"task_id": task.task_id})
    return {"name": operator.name, "type": operator.type, **known}


def file_name(task_id: int, stream_id: int, stamp: int) -> str:
    """Of the record of a task."""
    return f"{_PREFIX}{task_id}.{stream_id}.{stamp:016d}.output.0.json"


def overflow_records(dump: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """(file, record) of each task in a dump that overflowed, in order; what is damaged is left out."""
    found = sorted(dump.glob(f"rank_*/*/*/*/{_PREFIX}*.json"), key=_order)
    for path in found:
        try:
            record = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(record, dict):
            yield path, record


def _order(path: Path) -> tuple[str, int, str]:
    """By rank, iteration and stamp."""
    iteration, stamp = path.parent.name, path.name.split(".")[-4]
    return os.fspath(path.parents[2]), int(iteration) if iteration.isdecimal() else -1, stamp
