"""What every protocol turns a call into, and what it makes its answer of.

A value of an instance is a read-only, C-contiguous numpy array (numbers, also 0-d), a `str` or `bytes`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mycelia_serving.errors import ServingError

MOST_INSTANCES = 100_000  # of a request: each takes memory and time, however little it holds

Value = np.ndarray | str | bytes
Instance = dict[str, Value]  # input or output name -> value, without the batch dimension
Result = Instance | ServingError


@dataclass(slots=True)
class Request:
    """A call of a method with any number of instances.

    A protocol puts a `ServingError` in the place of an instance that it could not read: that one is answered
    with the error, the others are served.
    """

    servable: str
    method: str
    instances: list[Result]
    version: int = 0  # 0: the newest that runs
    deadline: float | None = None  # time.monotonic() after which nobody waits for the answer
    priority: int = 0  # higher goes first
    traceparent: str | None = None  # W3C trace context
    peer: str = ""  # the client, as `frontend.shares` names it; "": this process
    protocol: str = ""  # for the metrics: "grpc", "rest", "v2-grpc", "v2-rest"


@dataclass(slots=True)
class Reply:
    """The answer: one result per instance in the request's order, or one error for all of it."""

    results: list[Result] = field(default_factory=list)
    version: int = 0  # the one that answered
    error: ServingError | None = None


class Call(Protocol):
    """A request on its way."""

    def cancel(self) -> None:
        """Nobody waits any more: what has not started is dropped. `done` is not called after this."""


class Dispatcher(Protocol):
    """Takes requests from the protocols; implemented by `cluster.master.Master`."""

    def submit(self, request: Request, done: Callable[[Reply], None]) -> Call:
        """Answer `request` by calling `done` once, from any thread, perhaps at once. Never raises."""

    def describe(self) -> list[ServableInfo]:
        """What is served now, for metadata, `/model` and `status`."""

    def ready(self) -> bool:
        """Whether requests are taken: started, not stopping, each servable with a live worker."""


def burst(dispatcher: Dispatcher) -> contextlib.AbstractContextManager:
    """A context for requests that came together; dispatchers may have one, such as `Master.burst`."""
    own = getattr(dispatcher, "burst", None)
    return own() if own is not None else contextlib.nullcontext()


@dataclass(slots=True, frozen=True)
class TensorInfo:
    """An input or output: `shape` without the batch dimension, -1 where any size goes, None where unknown."""

    name: str
    dtype: str | None  # numpy's name, "str" or "bytes"; None: any
    shape: tuple[int, ...] | None
    batched: bool = True  # False: given whole to the model (`without_batch_dim_inputs`)


@dataclass(slots=True, frozen=True)
class MethodInfo:
    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    batch_size: int  # of the model behind it; 0: instances go one by one
    retry: bool = True  # False: an instance must not run twice when its worker is lost
    default: bool = False  # meant when a caller names the servable alone (KServe's model name)


@dataclass(slots=True, frozen=True)
class ServableInfo:
    name: str
    version: int
    methods: tuple[MethodInfo, ...]
    state: str  # "loading", "ready", "unavailable", "draining", "failed"
    workers: tuple[dict, ...] = ()  # per worker: address, pid, device, state, outstanding, restarts
    model_files: tuple[str, ...] = ()
    reason: str = ""  # why it is not ready
