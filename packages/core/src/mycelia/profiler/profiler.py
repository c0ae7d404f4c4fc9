"""The profiler: times eager ops on their way through the dispatcher, programs by instruction."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.base import errors, ignored, log
from mycelia.engine.compile import clock, executable
from mycelia.engine.compile.timing import Timing
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.cost import Cost, cost
from mycelia.io.files import write_text
from mycelia.profiler.peaks import peaks
from mycelia.profiler.report import Row, table, write_trace

MAX_EVENTS = 200_000  # eager calls that are kept one by one for the trace


class _Calls:
    """Eager calls of one op at one signature."""

    __slots__ = ("attrs", "count", "inputs", "nanoseconds", "op", "outputs")

    def __init__(self, op: _C.Op, inputs: tuple, outputs: tuple, attrs: tuple) -> None:
        self.op, self.inputs, self.outputs, self.attrs = op, inputs, outputs, attrs
        self.count = self.nanoseconds = 0


class _Thread:
    """What one thread ran eagerly."""

    __slots__ = ("events", "inside", "mode", "name", "profiler", "totals")

    def __init__(self, profiler: Profiler, name: str) -> None:
        self.profiler, self.name = profiler, name
        self.totals: dict[Any, _Calls] = {}
        self.events: list[tuple[str, int, int]] = []
        self.inside: list[int] = []  # nanoseconds of ops inside those that run now
        self.mode = dispatch.push_interceptor(self.intercept, dispatch.OBSERVING)

    def intercept(self, op: _C.Op, inputs: tuple, attrs: tuple) -> Any:
        if not self.profiler._running:  # a thread that outlives the measurement
            dispatch.pop_interceptor(self.mode)
            return op._execute(inputs, attrs)
        self.inside.append(0)
        start = time.perf_counter_ns()
        try:
            result = op._execute(inputs, attrs)
        finally:
            end = time.perf_counter_ns()
            inside = self.inside.pop()
            if self.inside:
                self.inside[-1] += end - start
        in_types, out_types = _types(inputs), _types(result if isinstance(result, tuple) else (result,))
        key = op.name, in_types, out_types, repr(attrs)
        calls = self.totals.get(key)
        if calls is None:
            calls = self.totals[key] = _Calls(op, in_types, out_types, attrs)
        calls.count += 1
        calls.nanoseconds += end - start - inside
        if len(self.events) < MAX_EVENTS:
            self.events.append((op.name, start, end - start))
        return result


class Profiler:
    """Measures every op that runs between `start` and `stop`: eager ones on the thread that called `start`
    and on threads that begin later, compiled programs on all. `seconds` and `compile_seconds` tell, once it
    stopped, the whole time and that of capturing and compiling, in seconds of the wall clock.

    `start_profile`: begin at once; `output_path`: directory that `analyse` writes to; `on_trace_ready`:
    called with the profiler when a `with` block ends. A warning names other options of MindSpore's Profiler:
    ops are measured, always, on the host.
    Errors: RuntimeError if it is started while it runs, stopped while it does not, or read before `stop`.
    """

    @ignored.arguments(options="every op is measured on the host, always")
    def __init__(
        self,
        *,
        start_profile: bool = True,
        output_path: str = "./data",
        on_trace_ready: Callable[[Profiler], Any] | None = None,
        **options: Any,
    ) -> None:
        self.output_path = output_path
        self.on_trace_ready = on_trace_ready
        self.metadata: dict[str, Any] = {}
        self.seconds = self.compile_seconds = 0.0  # from start to stop
        self._running = False
        self._threads: list[_Thread] = []
        self._steps: list[int] = []
        self._timings: list[Timing] = []
        self._compiled: list[tuple[_C.Program, list[tuple[int, int]]]] = []
        if start_profile:
            self.start()

    # ---- measuring

    def start(self) -> None:
        """Begin to measure; adds to what was measured before.  Errors: RuntimeError while it runs."""
        if self._running:
            raise errors.error(errors.MyceliaRuntimeError, "Profiler", "start() was called twice")
        self._running = True
        for program in executable.live_programs():
            self._watch(program)
        executable.built_listeners.append(self._watch)
        self._started, self._compiled_before = time.perf_counter_ns(), clock.spent()
        self._main = _Thread(self, threading.current_thread().name)
        self._threads.append(self._main)
        self._at_begin = threading.getprofile()
        threading.setprofile(self._follow_thread)

    def stop(self) -> None:
        """Stop measuring.  Errors: RuntimeError unless it runs."""
        if not self._running:
            raise errors.error(errors.MyceliaRuntimeError, "Profiler", "stop() was called before start()")
        self._running = False
        threading.setprofile(self._at_begin)
        dispatch.pop_interceptor(self._main.mode)
        self.seconds += (time.perf_counter_ns() - self._started) / 1e9
        self.compile_seconds += clock.spent() - self._compiled_before
        executable.built_listeners.remove(self._watch)
        self._compiled += [(timing.program, timing.stop()) for timing in self._timings]
        self._timings = []

    def step(self) -> None:
        """Mark the end of a step: a line in the trace."""
        self._steps.append(time.perf_counter_ns())

    def __enter__(self) -> Profiler:
        if not self._running:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._running:
            self.stop()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _watch(self, program: _C.Program) -> None:
        self._timings.append(Timing(program))

    def _follow_thread(self, *event: Any) -> None:
        """Called by a thread that begins: the one place where Python lets others join in."""
        sys.setprofile(self._at_begin)
        if self._running:
            self._threads.append(_Thread(self, threading.current_thread().name))

    # ---- reading

    def rows(self, by_signature: bool = False) -> list[Row]:
        """What was measured, an op a row, or an op at one signature a row; the slowest first.

        Errors: RuntimeError while it runs.
        """
        if self._running:
            raise errors.error(errors.MyceliaRuntimeError, "Profiler", "read it after stop()")
        limits = peaks()
        found: dict[Any, Row] = {}

        def add(name, where, inputs, outputs, calls, seconds, price):
            types = f"({_shapes(inputs)}) -> {_shapes(outputs)}" if by_signature else ""
            row = found.setdefault((name, where, types), Row(name, where, types))
            row.add(calls, seconds, price, limits)

        for c in (c for thread in self._threads for c in list(thread.totals.values())):
            price = _price(c.op, c.inputs, c.outputs, c.attrs)
            add(c.op.name, "eager", c.inputs, c.outputs, c.count, c.nanoseconds / 1e9, price)
        for program, timings in self._compiled:
            for node, (calls, spent) in zip(program.nodes, timings):
                if not calls or _runs_others(node):
                    continue
                inputs, outputs = (tuple(v and v.type for v in vs) for vs in (node.inputs, node.outputs))
                price = cost(node.op.definition, inputs, outputs, node.attrs)
                add(node.op.name, "compiled", inputs, outputs, calls, spent / 1e9, price)
        return sorted(found.values(), key=lambda row: row.seconds, reverse=True)

    def table(self, limit: int | None = 30, by_signature: bool = False) -> str:
        """The rows as text, the `limit` slowest, all with None.  Errors: RuntimeError while it runs."""
        return table(self.rows(by_signature), peaks(), limit, self.seconds, self.compile_seconds)

    def export_chrome_tracing(self, path: str | os.PathLike) -> None:
        """Write a trace for chrome://tracing or Perfetto.

        Eager calls stand where they were, the first `MAX_EVENTS` of each thread; of a compiled program one
        run is shown, with the mean time of each instruction.  Errors: OSError if `path` cannot be written.
        """
        write_trace(path, [*self._eager_events(), *self._compiled_events()])

    def _eager_events(self) -> list[dict]:
        marks = [
            {"name": "step", "ph": "i", "ts": at / 1e3, "pid": 0, "tid": 0, "s": "p"} for at in self._steps
        ]
        names = [
            {"name": "thread_name", "ph": "M", "pid": 0, "tid": number, "args": {"name": thread.name}}
            for number, thread in enumerate(self._threads)
        ]
        return (
            marks
            + names
            + [
                {"name": name, "ph": "X", "ts": start / 1e3, "dur": spent / 1e3, "pid": 0, "tid": number}
                for number, thread in enumerate(self._threads)
                for name, start, spent in list(thread.events)
            ]
        )

    def _compiled_events(self) -> list[dict]:
        events = []
        for number, (program, timings) in enumerate(self._compiled, 1):
            runs = max((calls for calls, _ in timings), default=0)
            if not runs:
                continue
            title = f"program {number}, mean of {runs} runs"
            events.append({"name": "process_name", "ph": "M", "pid": number, "args": {"name": title}})
            at = 0.0
            for node, (calls, spent) in zip(program.nodes, timings):
                mean = spent / runs / 1e3
                outputs = _shapes(tuple(v.type for v in node.outputs))
                events.append({
                    "name": node.op.name, "ph": "X", "ts": at, "dur": mean, "pid": number, "tid": 0,
                    "args": {"outputs": outputs, "calls": calls},
                })  # fmt: skip
                at += mean
        return events

    # ---- MindSpore's names

    def add_metadata(self, key: str, value: str) -> None:
        """Keep a note that `analyse` writes into the summary."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Keep a note in JSON that `analyse` writes into the summary; other text gives a warning."""
        try:
            self.metadata[key] = json.loads(value)
        except ValueError:
            log.logger(__name__).warning("add_metadata_json: the value of %r is no JSON", key)

    @classmethod
    def offline_analyse(cls, path: str, pretty=False, step_list=None, data_simplification=True) -> None:
        """`analyse` for what was measured before, below `path`."""
        analyse(path, pretty=pretty, step_list=step_list, data_simplification=data_simplification)

    @ignored.arguments(
        offline_path="what this object measured is written",
        step_list="all steps are written",
        mode="the files are written before the call returns",
    )
    def analyse(
        self, offline_path: str | None = None, pretty: bool = False, step_list=None, mode: str = "sync"
    ) -> None:
        """Stop if needed and write `output_path`/profile.txt, profile.json and trace.json.

        Times in profile.json are seconds. `pretty` also prints the table. The other arguments are
        MindSpore's, without effect.  Errors: OSError if the directory cannot be written.
        """
        if self._running:
            self.stop()
        folder = Path(self.output_path)
        folder.mkdir(parents=True, exist_ok=True)
        text = self.table(None)
        write_text(folder / "profile.txt", text + "\n")
        rows = [{name: getattr(row, name) for name in Row.__slots__} for row in self.rows(True)]
        times = {"seconds": self.seconds, "compile_seconds": self.compile_seconds}
        summary = {**times, "metadata": self.metadata, "rows": rows}
        write_text(folder / "profile.json", json.dumps(summary, indent=1) + "\n")
        self.export_chrome_tracing(folder / "trace.json")
        if pretty:
            print(text)

    @ignored.arguments(device_id="devices other than the host are not measured")
    def op_analyse(self, op_name: str | Sequence[str], device_id: int | None = None) -> str:
        """What was measured of one op or of several, as JSON: a list of rows, one a signature, with the
        fields of `Row`.  Errors: RuntimeError while it runs.
        """
        names = {op_name} if isinstance(op_name, str) else set(op_name)
        rows = [r for r in self.rows(True) if r.name in names]
        return json.dumps([{name: getattr(row, name) for name in Row.__slots__} for row in rows])


@ignored.arguments(
    worker_name="the file is trace.json",
    analyse_flag="there is nothing else to analyse",
    async_mode="the file is written at once",
)
def tensorboard_trace_handler(
    dir_name: str | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[[Profiler], None]:
    """For `on_trace_ready`: writes trace.json into `dir_name`, or into the profiler's output path.

    The other arguments are MindSpore's, without effect.
    """

    def write(profiler: Profiler) -> None:
        folder = Path(dir_name or profiler.output_path)
        folder.mkdir(parents=True, exist_ok=True)
        profiler.export_chrome_tracing(folder / "trace.json")

    return write


def _types(values: Sequence[Any]) -> tuple:
    """Types of tensors, flat; None for what is none."""
    found: list = []
    for value in values:
        if isinstance(value, _C.Tensor):
            found.append(TensorType(value.dtype, value.shape))
        elif isinstance(value, (tuple, list)):
            found += _types(value)
        else:
            found.append(None)
    return tuple(found)


def _shapes(types: Sequence[TensorType | None]) -> str:
    return ", ".join("x".join(map(str, t.shape)) or "scalar" for t in types if t is not None)


def _price(op: _C.Op, inputs: tuple, outputs: tuple, attrs: tuple) -> Cost | None:
    return cost(op.definition, inputs, outputs, op.definition.canonical_attrs(attrs))


def _runs_others(node: Any) -> bool:
    """Whether the instruction runs programs or eager ops, which have rows of their own."""
    if any(isinstance(value, Graph) for value in node.attrs.values()):
        return True
    return not all(v is None or v.type.is_static for v in (*node.inputs, *node.outputs))


@ignored.arguments(
    max_process_number="reports are complete when they are written",
    step_list="all steps are in the reports",
    data_simplification="no raw data are kept",
)
def analyse(
    profiler_path: str,
    max_process_number: int = 1,
    pretty: bool = False,
    step_list=None,
    data_simplification=True,
) -> None:
    """Reports are written while measuring: with `pretty`, print those that lie below `profiler_path`."""
    reports = sorted(Path(profiler_path).rglob("profile.txt"))
    if not reports:
        log.logger(__name__).warning("analyse: there is no report below %s", profiler_path)
    for report in reports if pretty else ():
        print(report.read_text())
