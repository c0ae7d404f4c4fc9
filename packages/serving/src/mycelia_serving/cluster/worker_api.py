"""What the master knows of a worker, wherever it runs: one copy of one version of a servable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mycelia_serving.request import Instance, MethodInfo, Result


@dataclass(slots=True, frozen=True)
class WorkerLost:
    """Given instead of results: the worker is gone, and nobody knows how far it came with the instances."""

    reason: str


@dataclass(slots=True)
class Work:
    """Instances of one request for one worker.

    `done` is called once, from any thread, perhaps before `Worker.submit` returns: with one result per
    instance in their order, or with why the worker is gone.
    """

    method: str
    instances: list[Instance]
    done: Callable[[list[Result] | WorkerLost], None]
    deadline: float | None = None  # time.monotonic(): what has not started by then is not started
    priority: int = 0
    traceparent: str | None = None
    keys: tuple[int, ...] = ()  # a number per instance that stays the same when it is sent again
    since: float = 0.0  # time.monotonic() when the request came


class Worker(Protocol):
    """One copy of one version of a servable."""

    servable: str
    version: int
    infos: tuple[MethodInfo, ...]
    capacity: int  # its credit: instances it takes at once, two batches; the master keeps to it
    address: str  # for `status`: "local", "unix:..." or "ip:port"
    pid: int
    device: str  # for `status`: "CPU", "GPU:1"; "" without a device
    has_models: bool  # False: its model stages come to others, through the master
    deduplicates: bool  # it remembers what it has run by the keys of its work
    pulls: frozenset[str]  # methods whose instances it takes from the queue itself: see `LocalWorker`

    def submit(self, work: list[Work]) -> None:
        """Take work of one method of several requests at once. Never blocks, never raises."""

    def close(self, drain_seconds: float = 0.0) -> None:
        """End: what it has is answered up to `drain_seconds`, the rest is lost. Blocks until it has ended."""
