"""MindSpore's profiler for loops of steps: a schedule, and a profiler that follows it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any

from mycelia.engine.base import ignored, log
from mycelia.profiler.profiler import Profiler


class ProfilerLevel(enum.Enum):
    """How much MindSpore's profiler collects on an Ascend device."""

    LevelNone = "LevelNone"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class ProfilerActivity(enum.Enum):
    """What is measured. The host is, always."""

    CPU = "CPU"
    NPU = "NPU"
    GPU = "GPU"


class HostSystem(enum.Enum):
    """What of the host a profiler of a device watches beside it."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"


class EnvProfiler:
    """A profiler that the variable MS_PROFILER_OPTIONS starts on Ascend: here it measures nothing."""

    def init_profiler(self) -> None:
        """Begin, if the environment asks for it."""

    def analyse(self) -> None:
        """Write what was measured: nothing."""


class AicoreMetrics(enum.Enum):
    """Counters of an Ascend core."""

    AiCoreNone = "None"
    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"


class ExportType(enum.Enum):
    """Forms of MindSpore's reports."""

    Text = "text"
    Db = "db"


class ProfilerAction(enum.Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARM_UP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class schedule:
    """Rounds of steps: `wait` idle, `warmup`, `active` measured; first `skip_first`; `repeat` rounds or 0.

    Values out of range become the least possible, with a warning. Errors: TypeError without wait and active.
    """

    def __init__(
        self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0
    ) -> None:
        given = {"wait": wait, "active": active, "warmup": warmup, "repeat": repeat, "skip_first": skip_first}
        for name, value in given.items():
            least = 1 if name == "active" else 0
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                log.logger(__name__).warning("schedule: %s is %r and becomes %d", name, value, least)
                value = least
            setattr(self, name, value)

    def __call__(self, step: int) -> ProfilerAction:
        """What to do in this step, counted from 0."""
        step -= self.skip_first
        cycle = self.wait + self.warmup + self.active
        if step < 0 or (self.repeat and step >= self.repeat * cycle):
            return ProfilerAction.NONE
        place = step % cycle
        if place < self.wait:
            return ProfilerAction.NONE
        if place < self.wait + self.warmup:
            return ProfilerAction.WARM_UP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    def to_dict(self) -> dict[str, int]:
        """The numbers by name."""
        return {name: getattr(self, name) for name in ("wait", "active", "warmup", "repeat", "skip_first")}

    def __repr__(self) -> str:
        return f"Schedule({', '.join(f'{name}={value}' for name, value in self.to_dict().items())})"


class _ExperimentalConfig:
    """Options for Ascend devices: kept, without effect on what is measured here."""

    profiler_level = aic_metrics = l2_cache = mstx = data_simplification = export_type = host_sys = None

    @ignored.arguments(
        profiler_level="devices other than the host are not measured",
        aic_metrics="devices other than the host are not measured",
        l2_cache="devices other than the host are not measured",
        mstx="marks are not recorded",
        data_simplification="no raw data are kept",
        export_type="reports are text and JSON",
        mstx_domain_include="marks are not recorded",
        mstx_domain_exclude="marks are not recorded",
        sys_io="devices other than the host are not measured",
        sys_interconnection="devices other than the host are not measured",
        host_sys="only ops are measured",
    )
    def __init__(
        self,
        profiler_level=ProfilerLevel.Level0,
        aic_metrics=AicoreMetrics.AiCoreNone,
        l2_cache=False,
        mstx=False,
        data_simplification=True,
        export_type=None,
        mstx_domain_include=None,
        mstx_domain_exclude=None,
        sys_io=False,
        sys_interconnection=False,
        host_sys=None,
    ) -> None:
        vars(self).update({name: value for name, value in locals().items() if name != "self"})


class mstx:
    """Marks for the timeline of a device. Without one they leave no trace, as a warning says, and ranges have
    the number 0."""

    @staticmethod
    def mark(message: str, stream=None, domain: str = "default") -> None:
        """A moment."""
        ignored.tell("mstx.mark", "message", message, "marks are not recorded")
        del stream, domain

    @staticmethod
    def range_start(message: str, stream=None, domain: str = "default") -> int:
        """The begin of a range; returns its number."""
        ignored.tell("mstx.range_start", "message", message, "marks are not recorded")
        del stream, domain
        return 0

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        """The end of a range."""
        del range_id, domain  # its begin was told of


class profile(Profiler):
    """A profiler that measures the steps that `schedule` names, all without one.

    `step()` ends a step. After the last of a round, `on_trace_ready` is called with the profiler; without a
    schedule at `stop()`. `start_profile`: begin now, else by `start()` or with the `with` block. The other
    options are MindSpore's, for devices.
    """

    @ignored.arguments(
        activities="the host is measured",
        with_stack="lines of graphs are known, stacks of eager ops are not kept",
        profile_memory="`runtime.memory_stats` tells of memory",
        data_process="`Dataset.profile` measures pipelines",
        parallel_strategy="there are no strategies",
        hbm_ddr="devices other than the host are not measured",
        pcie="devices other than the host are not measured",
        sync_enable="ops are done when their call returns",
        record_shapes="shapes are recorded, always",
        experimental_config="devices other than the host are not measured",
    )
    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | None = None,
        with_stack: bool = False,
        profile_memory: bool = False,
        data_process: bool = False,
        parallel_strategy: bool = False,
        start_profile: bool = True,
        hbm_ddr: bool = False,
        pcie: bool = False,
        sync_enable: bool = True,
        record_shapes: bool = False,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        experimental_config: _ExperimentalConfig | None = None,
    ) -> None:
        super().__init__(start_profile=False, on_trace_ready=on_trace_ready)
        self._schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._number = 0  # of the present step
        self._on = self._unsaved = False
        if start_profile:
            self.start()

    def start(self) -> None:
        """Follow the schedule from here on."""
        self._on = True
        self._turn()

    def step(self) -> None:
        """End a step."""
        super().step()
        if self._running and self._schedule(self._number) is ProfilerAction.RECORD_AND_SAVE:
            self._save()
        self._number += 1
        self._turn()

    def stop(self) -> None:
        """Measure no longer, and hand over what was not handed over yet."""
        self._on = False
        self._save()

    def _turn(self) -> None:
        measured = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        wanted = self._on and self._schedule(self._number) in measured
        if wanted and not self._running:
            super().start()
            self._unsaved = True
        elif self._running and not wanted:
            super().stop()

    def _save(self) -> None:
        if self._running:
            super().stop()
        if self._unsaved and self.on_trace_ready is not None:
            self.on_trace_ready(self)
        self._unsaved = False

    def __enter__(self) -> profile:
        if not self._on:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._on:
            self.stop()
