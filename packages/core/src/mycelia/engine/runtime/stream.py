"""Streams and events of the device target, as its backend has them.

On the host there is one stream, and its work is done when a call returns: waiting never waits, a query is
always true, and events tell the time at which they were recorded.
"""

from __future__ import annotations

import os

from mycelia.engine import backends
from mycelia.engine.backends import Backend, registry
from mycelia.engine.base import config, errors, ignored


class Stream:
    """A queue of work of the device target. On the host there is one: all objects stand for it.

    Errors: TypeError unless `priority` is an int.
    """

    @ignored.arguments(kwargs="streams differ in their priority only")
    def __init__(self, priority: int = 0, **kwargs):
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise errors.type_error("Stream", f"priority must be an int, but got {type(priority).__name__}")
        backend = registry.target().backend
        self._set(backend, backend.stream(priority))

    def _set(self, backend: Backend, queue: backends.Stream) -> None:
        self._backend, self._queue = backend, queue
        self.device_name = str(config.get("device_target"))
        self.device_id = config.get("device_id")
        self.id = _number_of(backend, queue)

    @classmethod
    def _of(cls, backend: Backend, queue: backends.Stream) -> Stream:
        made = cls.__new__(cls)
        made._set(backend, queue)
        return made

    def stream_id(self) -> int:
        """Its number."""
        return self.id

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event now, a new one by default, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event; one that was not recorded is reached."""
        if not isinstance(event, Event):
            raise errors.type_error(
                "Stream.wait_event", f"event must be an Event, but got {type(event).__name__}"
            )
        if event._point is not None:
            self._queue.wait(event._point)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for what another stream was given so far."""
        _check_stream("Stream.wait_stream", stream)
        self.wait_event(stream.record_event())

    def synchronize(self) -> None:
        """Wait until the work of the stream is done."""
        self._queue.synchronize()

    def query(self) -> bool:
        """Whether all work is done."""
        return self._queue.query()

    def __eq__(self, other) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self._queue is other._queue and self.device_id == other.device_id

    def __hash__(self) -> int:
        return hash((id(self._queue), self.device_id))

    def __repr__(self) -> str:
        return f"Stream(device_name={self.device_name}, device_id:{self.device_id}, stream id:{self.id})"


_numbers: dict[int, tuple[backends.Stream, int]] = {}  # by id of the queue, which is kept: ids come again


def _number_of(backend: Backend, queue: backends.Stream) -> int:
    """0 for the default queue, for others a number of their own."""
    if queue is backend.default_stream():
        return 0
    return _numbers.setdefault(id(queue), (queue, len(_numbers) + 1))[1]


class Event:
    """A point in the order of work.  Errors: TypeError unless the flags are bool."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False):
        for name, flag in (("enable_timing", enable_timing), ("blocking", blocking)):
            if not isinstance(flag, bool):
                raise errors.type_error("Event", f"{name} must be a bool, but got {type(flag).__name__}")
        self._timing, self._blocking = enable_timing, blocking
        self._point: backends.Event | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Make it the point behind the work that `stream`, by default the present one, was given so far."""
        if stream is not None:
            _check_stream("Event.record", stream)
        stream = current_stream() if stream is None else stream
        point = stream._backend.event()
        point.record(stream._queue)
        self._point = point

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream, by default the present one, wait until the event is reached."""
        if stream is not None:
            _check_stream("Event.wait", stream)
        (current_stream() if stream is None else stream).wait_event(self)

    def synchronize(self) -> None:
        """Wait until the event is reached."""
        if self._point is not None:
            self._point.synchronize()

    def query(self) -> bool:
        """Whether all work before the event is done."""
        return self._point is None or self._point.query()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another.

        Errors: RuntimeError unless both were recorded, with `enable_timing`.
        """
        for event in (self, end_event):
            if not event._timing or event._point is None:
                raise errors.error(
                    errors.MyceliaRuntimeError, "Event.elapsed_time",
                    "both events must be made with enable_timing=True and recorded",
                )  # fmt: skip
        return (end_event._point.seconds() - self._point.seconds()) * 1e3

    def __repr__(self) -> str:
        created = int(self._point is not None)
        return (
            f"Event(enable_timing={int(self._timing)}, blocking:{int(self._blocking)}, "
            f"is_created:{created}, event:{created})"
        )


def default_stream() -> Stream:
    """The stream that work goes to unless another is chosen."""
    backend = registry.target().backend
    return Stream._of(backend, backend.default_stream())


def current_stream() -> Stream:
    """The stream that work goes to now."""
    backend = registry.target().backend
    return Stream._of(backend, backend.current_stream())


def communication_stream() -> Stream:
    """The stream of communication: one process has nobody to talk to, so it is the default one."""
    return default_stream()


def set_cur_stream(stream: Stream | None) -> None:
    """Let later work of this thread go to `stream`; None: to the default one."""
    if stream is not None:
        _check_stream("set_cur_stream", stream)
    stream = default_stream() if stream is None else stream
    stream._backend.set_stream(stream._queue)


def synchronize() -> None:
    """Wait until all work is done."""
    registry.target().backend.synchronize()


def _check_stream(owner: str, stream) -> None:
    if not isinstance(stream, Stream):
        raise errors.type_error(owner, f"a Stream is expected, but got {type(stream).__name__}")


class StreamCtx:
    """``with StreamCtx(stream):`` work within goes to `stream`; None changes nothing."""

    def __init__(self, ctx_stream: Stream | None):
        if ctx_stream is not None:
            _check_stream("StreamCtx", ctx_stream)
        self.stream = ctx_stream
        self.before: list[Stream] = []

    def __enter__(self) -> StreamCtx:
        self.before.append(current_stream())
        if self.stream is not None:
            set_cur_stream(self.stream)
        return self

    def __exit__(self, *exc) -> None:
        set_cur_stream(self.before.pop())


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
