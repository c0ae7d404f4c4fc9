"""Streams and events of the CPU: one stream of work, which is done when a call returns.

So waiting never waits, and a query is always true; events tell the time at which they were recorded.
"""

from __future__ import annotations

import os
import time

from mycelia.engine.base import config, errors, ignored


class Stream:
    """The stream of the device. All objects stand for the same one, as there is only one on the CPU.

    Errors: TypeError unless `priority` is an int.
    """

    @ignored.arguments(kwargs="the CPU has one stream")
    def __init__(self, priority: int = 0, **kwargs):
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise errors.type_error("Stream", f"priority must be an int, but got {type(priority).__name__}")
        self.device_name = str(config.get("device_target"))
        self.device_id = config.get("device_id")
        self.id = 0

    def stream_id(self) -> int:
        """Its number."""
        return self.id

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event now, a new one by default, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event: it is over."""
        if not isinstance(event, Event):
            raise errors.type_error(
                "Stream.wait_event", f"event must be an Event, but got {type(event).__name__}"
            )

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for what another stream does now: it is done."""
        _check_stream("Stream.wait_stream", stream)

    def synchronize(self) -> None:
        """Wait for the work of the stream: it is done."""

    def query(self) -> bool:
        """Whether all work is done."""
        return True

    def __eq__(self, other) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device_name, self.device_id) == (other.device_name, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_name, self.device_id))

    def __repr__(self) -> str:
        return f"Stream(device_name={self.device_name}, device_id:{self.device_id}, stream id:{self.id})"


class Event:
    """A point in the order of work.  Errors: TypeError unless the flags are bool."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False):
        for name, flag in (("enable_timing", enable_timing), ("blocking", blocking)):
            if not isinstance(flag, bool):
                raise errors.type_error("Event", f"{name} must be a bool, but got {type(flag).__name__}")
        self._timing, self._blocking = enable_timing, blocking
        self._time: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Make it the point that is reached now."""
        if stream is not None:
            _check_stream("Event.record", stream)
        self._time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait until the event is reached: it is."""
        del stream  # the event is reached

    def synchronize(self) -> None:
        """Wait until the event is reached: it is."""

    def query(self) -> bool:
        """Whether all work before the event is done."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another.

        Errors: RuntimeError unless both were recorded, with `enable_timing`.
        """
        for event in (self, end_event):
            if not event._timing or event._time is None:
                raise errors.error(
                    errors.MyceliaRuntimeError, "Event.elapsed_time",
                    "both events must be made with enable_timing=True and recorded",
                )  # fmt: skip
        return (end_event._time - self._time) * 1e3

    def __repr__(self) -> str:
        created = int(self._time is not None)
        return (
            f"Event(enable_timing={int(self._timing)}, blocking:{int(self._blocking)}, "
            f"is_created:{created}, event:{created})"
        )


_default: Stream | None = None


def default_stream() -> Stream:
    """The stream that work goes to."""
    global _default
    if _default is None:
        _default = Stream()
    return _default


def current_stream() -> Stream:
    """The stream that work goes to now."""
    return default_stream()


def communication_stream() -> Stream:
    """The stream of communication: on the CPU the only one."""
    return default_stream()


def set_cur_stream(stream: Stream | None) -> None:
    """Let later work go to `stream`."""
    if stream is not None:
        _check_stream("set_cur_stream", stream)


def synchronize() -> None:
    """Wait for all work: it is done."""


def _check_stream(owner: str, stream) -> None:
    if not isinstance(stream, Stream):
        raise errors.type_error(owner, f"a Stream is expected, but got {type(stream).__name__}")


class StreamCtx:
    """``with StreamCtx(stream):`` work within goes to `stream`."""

    def __init__(self, ctx_stream: Stream | None):
        if ctx_stream is not None:
            _check_stream("StreamCtx", ctx_stream)
        self.stream = ctx_stream

    def __enter__(self) -> StreamCtx:
        return self

    def __exit__(self, *exc) -> None:
        return None


def _core_limit(owner: str, cube_num, vector_num) -> None:
    for name, value in (("cube_num", cube_num), ("vector_num", vector_num)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise errors.type_error(owner, f"{name} must be an int, but got {type(value).__name__}")


@ignored.arguments(
    cube_num="the CPU has no cube and vector cores",
    vector_num="the CPU has no cube and vector cores",
)
def set_device_limit(device: int, cube_num: int = -1, vector_num: int = -1) -> None:
    """Limit the cores of a device: only Ascend has cube and vector cores, so nothing changes on the CPU."""
    del device  # there is one
    _core_limit("set_device_limit", cube_num, vector_num)


def get_device_limit(device: int) -> dict[str, int]:
    """How many cores of each kind work may use: no cube cores, and the cores of the CPU."""
    del device  # there is one
    return {"cube_core_num": 0, "vector_core_num": os.cpu_count() or 1}


@ignored.arguments(
    cube_num="the CPU has no cube and vector cores",
    vector_num="the CPU has no cube and vector cores",
)
def set_stream_limit(stream: Stream, cube_num: int = -1, vector_num: int = -1) -> None:
    """Limit the cores of a stream: nothing changes on the CPU."""
    _check_stream("set_stream_limit", stream)
    _core_limit("set_stream_limit", cube_num, vector_num)


def get_stream_limit(stream: Stream) -> dict[str, int]:
    """How many cores of each kind a stream may use."""
    _check_stream("get_stream_limit", stream)
    return get_device_limit(0)


def reset_stream_limit(stream: Stream) -> None:
    """Take the limits of a stream away: the CPU has none."""
    _check_stream("reset_stream_limit", stream)


class StreamLimitCtx(StreamCtx):
    """``with StreamLimitCtx(stream, cube_num, vector_num):`` limits within the block; none on the CPU."""

    @ignored.arguments(
        cube_num="the CPU has no cube and vector cores",
        vector_num="the CPU has no cube and vector cores",
    )
    def __init__(self, stream: Stream, cube_num: int = -1, vector_num: int = -1):
        _check_stream("StreamLimitCtx", stream)
        _core_limit("StreamLimitCtx", cube_num, vector_num)
        super().__init__(stream)
