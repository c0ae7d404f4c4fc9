"""A request on its way through the master, and its instances."""

from __future__ import annotations

from collections.abc import Callable

from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import Instance, Reply, Request, Result


class Item:
    """One instance of a call."""

    __slots__ = ("alone", "call", "index", "instance", "losses", "order", "ready")

    def __init__(self, call: PendingCall, index: int, instance: Instance) -> None:
        self.call = call
        self.index = index
        self.instance = instance
        self.order = 0  # place in the queue; kept when it is sent again
        self.losses = 0  # workers that were lost while they had it
        self.ready = 0.0  # time.monotonic() before which it is not sent again
        self.alone = False  # whether those had other suspects: then the next one gets it alone


class PendingCall:
    """A request until it is answered. What it holds changes only under the master's lock."""

    __slots__ = (
        "closed",
        "deadline",
        "done",
        "group",
        "left",
        "master",
        "queued",
        "request",
        "results",
        "sent",
        "start",
    )

    def __init__(self, master, group, request: Request, done: Callable[[Reply], None], start: float) -> None:
        self.master = master
        self.group = group
        self.request = request
        self.done = done
        self.start = start
        self.deadline = request.deadline
        # None: not answered yet. What a protocol could not read is answered from the start.
        self.results: list[Result | None] = [None if type(i) is dict else i for i in request.instances]
        self.sent: float | None = None  # when a worker got its first instance
        self.left = 0  # instances without a result
        self.queued = 0  # of them those that wait for a worker
        self.closed = False  # answered or cancelled

    def cancel(self) -> None:
        """Nobody waits any more; see `request.Call`."""
        self.master.cancel(self)

    def reply(self) -> Reply:
        """The answer, once `left` is 0."""
        return Reply(results=self.results, version=self.group.version)


class Answered:
    """The call of a request that was answered at once."""

    __slots__ = ()

    def cancel(self) -> None:
        """Nothing is under way."""


ANSWERED = Answered()


def refused(code: Code, message: str, version: int = 0) -> Reply:
    """The reply to a request that failed as a whole."""
    return Reply(version=version, error=ServingError(code, message))
