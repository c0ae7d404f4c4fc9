"""Requests that are not answered yet: how many of them wait, whose they are, and until when."""

from __future__ import annotations

import itertools
import secrets

from mycelia_serving.clock import NEVER
from mycelia_serving.cluster.calls import Item, PendingCall
from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import Reply

Answers = list[tuple[PendingCall, Reply]]  # given to callers when the lock is free


class OpenCalls:
    """The open calls of a master; they change under the master's lock.

    A call is *waiting* while an instance of it is in a queue, and *closed* once it is answered or cancelled.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._waiting_of: dict[str, int] = {}  # client -> how many of those that wait are its own
        self._timed: set[PendingCall] = set()  # with a deadline
        self.next_deadline = NEVER  # none of those is earlier
        # Places in the queue. Workers elsewhere know instances again by them: never those of a master before.
        self.order = itertools.count((secrets.randbits(30) << 32) + 1)

    def waiting_of(self, client: str) -> int:
        """How many calls of a client wait."""
        return self._waiting_of.get(client, 0)

    def queued(self, call: PendingCall, count: int) -> None:
        """So many instances of a call have come into a queue."""
        if not call.queued:
            self.waiting += 1
            client = call.request.peer
            if client:
                self._waiting_of[client] = self._waiting_of.get(client, 0) + 1
        call.queued += count

    def taken(self, call: PendingCall, count: int) -> None:
        """So many instances of a call have left their queue."""
        call.queued -= count
        if not call.queued:
            self.waiting -= 1
            client = call.request.peer
            if client:
                left = self._waiting_of[client] - 1
                if left:
                    self._waiting_of[client] = left
                else:
                    del self._waiting_of[client]

    def watch(self, call: PendingCall) -> None:
        """Answer a call at its deadline: see `expire`."""
        if call.deadline is not None:
            self._timed.add(call)
            if call.deadline < self.next_deadline:
                self.next_deadline = call.deadline

    def settle(self, call: PendingCall, count: int) -> PendingCall | None:
        """So many instances of a call have got their result; the call if it was the last."""
        call.left -= count
        if call.left:
            return None
        call.closed = True
        if call.deadline is not None:
            self._timed.discard(call)
        return call

    def close(self, call: PendingCall) -> None:
        """Nobody waits for this call any more."""
        call.closed = True
        self._timed.discard(call)
        if call.queued:
            call.group.method_queues[call.request.method].forget(call.queued)
            self.taken(call, call.queued)

    def fail(self, call: PendingCall, code: Code, text: str, answers: Answers) -> None:
        """Close a call with an error for what is not answered."""
        error = ServingError(code, text)
        self.close(call)
        if call.left == len(call.results):
            answers.append((call, Reply(version=call.group.version, error=error)))
            return
        call.results = [error if r is None else r for r in call.results]
        answers.append((call, call.reply()))

    def give_up(self, items: list[Item], error: ServingError, answers: Answers) -> None:
        """Answer instances of one call with an error."""
        call = items[0].call
        for item in items:
            call.results[item.index] = error
        if self.settle(call, len(items)) is not None:
            answers.append((call, call.reply()))

    def expire(self, now: float, answers: Answers) -> None:
        """Answer the calls whose deadline has passed."""
        if now < self.next_deadline:
            return
        for call in [call for call in self._timed if call.deadline <= now]:
            self.fail(call, Code.DEADLINE, "the deadline has passed", answers)
        self.next_deadline = min((call.deadline for call in self._timed), default=NEVER)
