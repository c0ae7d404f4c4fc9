"""The queue in which instances of a method wait until a worker can take them."""

from __future__ import annotations

import heapq

from mycelia_serving.cluster.calls import Item
from mycelia_serving.measures import MethodTimes
from mycelia_serving.request import MethodInfo


class MethodQueue:
    """By priority, then clients in turn, then by arrival. It changes under the master's lock.

    A call's turn comes when its client has had as many instances as every other one that has any here.
    """

    __slots__ = (
        "_turn",
        "_turns",
        "cancelled",
        "chunk",
        "heap",
        "info",
        "inputs",
        "needs_models",
        "served",
        "times",
        "usual_s",
    )

    def __init__(self, info: MethodInfo, *, needs_models: bool = False) -> None:
        self.info = info
        self.needs_models = needs_models  # a stage for workers that have the models, not a method
        self.times = MethodTimes()
        self.inputs = frozenset(i.name for i in info.inputs)
        self.chunk = max(info.batch_size, 1)  # instances for one worker before the next one is looked for
        self.heap: list[tuple[int, int, int, Item]] = []  # priority, turn, order
        self._turn = 0  # of the latest that was popped
        self._turns: dict[str, int] = {}  # client -> turn of its next call
        self.cancelled = 0  # items in the heap whose call is closed, about
        self.served = 0  # when it had its last turn among the methods
        self.usual_s = 0.0  # time between sending and answer, a running mean

    def push(self, items: list[Item]) -> None:
        """Instances of one call."""
        request = items[0].call.request
        turn = max(self._turn, self._turns.get(request.peer, 0))
        if len(self._turns) > 2 * len(self.heap) + 64:  # of those whose turn is over nothing need be known
            self._turns = {peer: its for peer, its in self._turns.items() if its > self._turn}
        self._turns[request.peer] = turn + len(items)
        for item in items:
            heapq.heappush(self.heap, (-request.priority, turn, item.order, item))

    def pop(self, count: int) -> list[Item]:
        """The next ones that somebody waits for, at most `count`."""
        heap = self.heap
        found: list[Item] = []
        while heap and len(found) < count:
            _, turn, _, item = heapq.heappop(heap)
            if item.call.closed:
                self.cancelled -= 1
                continue
            if turn > self._turn:
                self._turn = turn
            found.append(item)
        return found

    def head(self) -> int | None:
        """Priority of the next one, the smaller the sooner."""
        heap = self.heap
        while heap and heap[0][-1].call.closed:
            heapq.heappop(heap)
            self.cancelled -= 1
        return heap[0][0] if heap else None

    def clear(self) -> None:
        """Forget all."""
        self.heap.clear()
        self._turns.clear()
        self.cancelled = 0

    def forget(self, count: int) -> None:
        """So many in here are not waited for any more; they go when they are many."""
        self.cancelled += count
        if self.cancelled > 64 and self.cancelled * 2 > len(self.heap):
            self.heap = [entry for entry in self.heap if not entry[-1].call.closed]
            heapq.heapify(self.heap)
            self.cancelled = 0

    def waiting(self) -> int:
        """How many wait in here."""
        return max(len(self.heap) - self.cancelled, 0)
