"""What the tasks of a run would take on the chip, by the model of `cycles`: tables and files.

The files have the names and columns of the device's profiler, so that what reads those reads these;
`model.txt` beside them says that the figures are computed and by which table.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from mycelia.io.files import write_text
from mycelia_backend_ascend_sim import chip as chips
from mycelia_backend_ascend_sim import cycles, options
from mycelia_backend_ascend_sim.backend import device
from mycelia_backend_ascend_sim.cycles import PIPES, Cycles
from mycelia_backend_ascend_sim.tasks import Task

_NOTE = (
    "These times are computed by a model of Ascend {name}, not measured on a device:\n"
    "{cores} cores at {mhz:.0f} MHz, by the table chips/{name}.toml of mycelia-backend-ascend-sim.\n"
)


@dataclass(frozen=True, slots=True)
class TaskTime:
    """One task and what it takes."""

    task_id: int
    stream_id: int
    name: str
    kind: str
    cycles: Cycles


@dataclass
class Profile:
    """The tasks of a block, in order. Times are of the model."""

    chip: chips.Chip
    tasks: list[TaskTime] = field(default_factory=list)

    def add(self, task: Task) -> None:
        """Take in a task that ended."""
        kind = task.fusion or task.op
        name = f"{kind}({','.join(task.parts)})" if task.parts else kind
        found = cycles.of_task(task, self.chip)
        self.tasks.append(TaskTime(task.task_id, task.stream_id, name, kind, found))

    def microseconds(self, time: TaskTime) -> float:
        """What a task takes."""
        return time.cycles.total / self.chip.frequency_hz * 1e6

    @property
    def total_us(self) -> float:
        """What all tasks take one after the other."""
        return sum(map(self.microseconds, self.tasks))

    def note(self) -> str:
        """That this is a model, and of what."""
        return _NOTE.format(name=self.chip.name, cores=self.chip.cores, mhz=self.chip.frequency_hz / 1e6)

    def by_kind(self) -> list[tuple[str, float, int, dict[str, float]]]:
        """(kind, us in all, tasks, share of each pipe), the longest first."""
        groups: dict[str, list[TaskTime]] = {}
        for time in self.tasks:
            groups.setdefault(time.kind, []).append(time)
        rows = []
        for kind, times in groups.items():
            total = sum(t.cycles.total for t in times)
            shares = {p: sum(t.cycles.busy[p] for t in times) / total if total else 0.0 for p in PIPES}
            rows.append((kind, sum(map(self.microseconds, times)), len(times), shares))
        return sorted(rows, key=lambda row: -row[1])

    def table(self, rows: int = 30) -> str:
        """The kinds of tasks that take longest, as text."""
        lines = [
            self.note(),
            f"{'kind':32}{'us':>12}{'tasks':>8}" + "".join(f"{p + '_ratio':>14}" for p in PIPES),
        ]
        for kind, time, count, shares in self.by_kind()[:rows]:
            lines.append(f"{kind:32}{time:12.2f}{count:8}" + "".join(f"{shares[p]:14.3f}" for p in PIPES))
        lines.append(f"{'all':32}{self.total_us:12.2f}{len(self.tasks):8}")
        return "\n".join(lines)

    def write(self, folder: str | os.PathLike, device_id: int = 0) -> list[str]:
        """Write `aicore_intermediate_{id}_type.csv`, `..._detail.csv`, `aicore_{id}_pipes.csv` and
        `model.txt` below `folder`, which is made; their paths. Times in files are milliseconds.

        Errors: OSError.
        """
        os.makedirs(folder, exist_ok=True)
        total = self.total_us
        kinds = [
            (kind, _ms(time), count, f"{100 * time / total if total else 0:.2f}")
            for kind, time, count, _ in self.by_kind()
        ]
        detail = [(t.name, _ms(self.microseconds(t)), 1, "AI_CORE") for t in self.tasks]
        pipes = [
            (t.task_id, t.stream_id, t.name, t.cycles.cores, t.cycles.total, *_tile(t.cycles))
            + tuple(f"{t.cycles.ratio(p):.4f}" for p in PIPES)
            for t in self.tasks
        ]
        files = {
            f"aicore_intermediate_{device_id}_type.csv": [
                ("kernel_type", "task_time", "execution_frequency", "percent"), *kinds,
            ],
            f"aicore_intermediate_{device_id}_detail.csv": [
                ("full_kernel_name", "task_duration", "execution_frequency", "task_type"), *detail,
            ],
            f"aicore_{device_id}_pipes.csv": [
                ("task_id", "stream_id", "full_kernel_name", "block_dim", "cycles", "base_m", "base_n",
                 "base_k", *(f"{p}_ratio" for p in PIPES)), *pipes,
            ],
        }  # fmt: skip
        paths = [os.path.join(folder, name) for name in (*files, "model.txt")]
        for path, text in zip(paths, [*map(_csv, files.values()), self.note()], strict=True):
            write_text(path, text)
        return paths


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1e3:.6f}"


def _tile(found: Cycles) -> tuple:
    return ("", "", "") if found.tile is None else (found.tile.base_m, found.tile.base_n, found.tile.base_k)


def _csv(rows: list[tuple]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@contextlib.contextmanager
def collect(chip: str | None = None) -> Iterator[Profile]:
    """The tasks that run within the block; `chip`: of another table than the options'.

    Errors: ValueError for an unknown chip.
    """
    profile = Profile(chips.load(chip or options.present().chip))
    listeners = device().listeners
    listeners.append(profile.add)
    try:
        yield profile
    finally:
        listeners.remove(profile.add)
