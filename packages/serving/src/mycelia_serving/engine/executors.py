"""What runs stages: one executor per model and per function, with the instances of its next runs.

An executor has no lock of its own: it changes under the lock of the scheduler. `execute` runs without it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from mycelia_serving.clock import NEVER
from mycelia_serving.engine import calls
from mycelia_serving.engine.models import BatchModel
from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import Result
from mycelia_serving.servable.declaration import Function

log = logging.getLogger("mycelia_serving")

QUICK_S = 0.002  # a function that takes less is better off in one thread than in several that share the GIL


class Intake(Protocol):
    """Where an engine takes instances from when it can run them: the queues of a master in its process."""

    def queues(self, methods: tuple[str, ...]) -> tuple:
        """One for each method; instances wait in it while its `heap` is not empty."""

    def is_open(self) -> bool:
        """Whether anything may be taken now. Takes no lock."""

    def take(self, queues: tuple, count: int) -> list:
        """At most `count` instances, as calls: what `Engine.submit` takes, and `since` when they waited."""


@dataclass(slots=True, eq=False)
class Step:
    """A stage of a method, ready to run: its executor, and which values of an instance go in and come out."""

    executor: Executor
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    method: str
    number: int
    made: bool = False  # whether an input is the result of a stage
    next: Step | None = None


@dataclass(slots=True, eq=False)
class Plan:
    """A method, ready to run."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    results: tuple[int, ...]
    room: int  # values of an instance beside its inputs
    first: Step | None = None


class Job:
    """A call of the engine: its results, as they come."""

    __slots__ = ("deadline", "done", "left", "priority", "results")

    def __init__(self, count: int, done: Callable, deadline: float | None, priority: int) -> None:
        self.results: list[Result | None] = [None] * count
        self.left = count
        self.done = done
        self.deadline = deadline
        self.priority = priority


class Task:
    """An instance on its way through a method. `given` and `key`: what its executor gets of it."""

    __slots__ = ("arrived", "given", "index", "job", "key", "plan", "step", "values")

    def __init__(self, job: Job, index: int, plan: Plan, values: list) -> None:
        self.job = job
        self.index = index
        self.plan = plan
        self.values = values
        self.step: Step | None = None
        self.given: tuple = ()
        self.key: Any = None
        self.arrived = 0.0

    def enter(self, step: Step) -> ServingError | None:
        """Gets ready for a step; the error if an input does not fit it."""
        values = self.values
        self.step = step
        self.given = tuple([values[i] for i in step.inputs])
        try:
            self.given, self.key = step.executor.check(self.given, step.made)
        except ServingError as error:
            return error
        return None

    def result(self) -> Result:
        values, plan = self.values, self.plan
        if not plan.outputs:
            return tuple([values[i] for i in plan.results])  # of a model that another engine asked for
        return {name: values[i] for name, i in zip(plan.outputs, plan.results)}


class Executor(ABC):
    """A model or a function with the instances that wait for it.

    `limit`: most instances of a run. `delay`: how long a run that is not full waits for more.
    `depth`: the last stage that it is; later ones go first.
    """

    def __init__(self, name: str, limit: int, delay: float = 0.0) -> None:
        self.name = name
        self.limit = limit
        self.delay = delay
        self.depth = 0
        self.upstream: set[Executor] = set()
        self.waiting = 0
        self.intake: Intake | None = None  # where it takes instances from of the methods that begin with it,
        self.queues: tuple = ()  # out of these queues
        self.taking = False  # a thread takes some now
        self.active = 0  # runs under way
        self.began = 0.0  # when the last one began
        self.usual = 0.0  # seconds of a run, a running mean
        self.least = 0.0  # the same without what other processes took: the least of late
        self._levels: dict[int, dict[Any, deque[Task]]] = {}  # by priority and key
        self._order: list[int] = []  # priorities, highest first

    def check(self, given: tuple, made: bool) -> tuple[tuple, Any]:
        """The inputs as the executor takes them, and the key of those that may share a run.

        made: whether stages made some of them. Errors: ServingError.
        """
        return given, None

    @abstractmethod
    def execute(self, tasks: list[Task]) -> list:
        """For each task a tuple of results, or a ServingError."""

    @property
    def concurrency(self) -> int:
        """How many runs there may be at once."""
        return 1

    @property
    def is_quick(self) -> bool:
        """Whether a thread that has other things to do may run it."""
        return False

    # ---- the queue -----------------------------------------------------------------------------------------

    def push(self, task: Task, now: float) -> None:
        """A task that waits since `now`."""
        task.arrived = now
        priority = task.job.priority
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = {}
            self._order = sorted(self._levels, reverse=True)
        queue = level.get(task.key)
        if queue is None:
            queue = level[task.key] = deque()
        queue.append(task)
        self.waiting += 1

    @property
    def room(self) -> int:
        """How many instances more the next run may take."""
        if self.waiting < self.limit:
            return self.limit - self.waiting
        return self.limit - max(len(queue) for level in self._levels.values() for queue in level.values())

    def more(self) -> bool:
        """Whether its intake has instances for its next run."""
        for queue in self.queues:
            if queue.heap:
                return not self.taking and self.room > 0 and self.intake.is_open()
        return False

    def due(self, now: float, more: bool) -> float:
        """When a run may begin, or instances be taken in for one: `now` or before if it may at once.

        more: what `more` said a moment ago.
        """
        if self.active and (self.active >= self.concurrency or self.usual < QUICK_S):
            # One thread at a time while it is quick; if it hangs, another one comes in.
            return self.began + QUICK_S if self.active < self.concurrency else NEVER
        if more:
            return now
        if not self.waiting:
            return NEVER
        wait = self.delay
        if self.upstream and self.limit > 1 and self.is_fed():
            # Instances that arrive soon would share this run; it waits no longer than it takes itself.
            wait = max(wait, min(max(QUICK_S, self.usual), 0.1))
        if not wait:
            return now
        best = NEVER
        for level in self._levels.values():
            for queue in level.values():
                best = min(best, now if len(queue) >= self.limit else queue[0].arrived + wait)
        return best

    def is_fed(self) -> bool:
        """Whether instances wait in a stage before."""
        return any(executor.waiting or executor.more() for executor in self.upstream)

    def take(self) -> list[Task]:
        """The next run: at most `limit` instances of equal keys, by priority, then in turn."""
        tasks: list[Task] = []
        key = self._next_key()
        for priority in list(self._order):
            level = self._levels[priority]
            queue = level.get(key)
            if queue is None:
                continue
            while queue and len(tasks) < self.limit:
                tasks.append(queue.popleft())
            if not queue:
                del level[key]
                if not level:
                    del self._levels[priority]
                    self._order.remove(priority)
            elif len(level) > 1:
                level[key] = level.pop(key)  # behind the other keys
            if len(tasks) == self.limit:
                break
        self.waiting -= len(tasks)
        return tasks

    def _next_key(self) -> Any:
        """A key with a full run, by priority; else the one whose turn it is, or that waits longest."""
        first = self._levels[self._order[0]]
        if len(first) == 1 and len(self._order) == 1:
            return next(iter(first))
        if self.limit > 1:
            for priority in self._order:
                for key, queue in self._levels[priority].items():
                    if len(queue) >= self.limit:
                        return key
        if self.delay:
            queues = [
                (queue[0].arrived, key) for level in self._levels.values() for key, queue in level.items()
            ]
            return min(queues, key=lambda pair: pair[0])[1]
        return next(iter(first))

    def remove(self, unwanted: Callable[[Task], bool]) -> list[Task]:
        """Takes tasks out of the queue."""
        found: list[Task] = []
        for priority, level in list(self._levels.items()):
            for key, queue in list(level.items()):
                out = [t for t in queue if unwanted(t)]
                if not out:
                    continue
                found += out
                gone = set(map(id, out))
                level[key] = deque(t for t in queue if id(t) not in gone)
                if not level[key]:
                    del level[key]
            if not level:
                del self._levels[priority]
                self._order.remove(priority)
        self.waiting -= len(found)
        return found


class ModelExecutor(Executor):
    """A model of this process."""

    def __init__(self, model: BatchModel, delay: float) -> None:
        super().__init__(model.name, model.limit, delay)
        self.model = model
        self.check = model.check

    @property
    def concurrency(self) -> int:
        return self.model.runs

    @property
    def is_quick(self) -> bool:
        return 0.0 < self.least < QUICK_S

    def execute(self, tasks: list[Task]) -> list:
        try:
            return self.model.run([t.given for t in tasks])
        except Exception as error:
            log.error("the model %s failed", self.name, exc_info=error)
            failed = ServingError(Code.SYSTEM_ERROR, f"The model '{self.name}' failed: {error}")
            return [failed] * len(tasks)


class RemoteModelExecutor(Executor):
    """A model of another process. `call` waits for the results."""

    concurrency = 2  # one on its way while the other runs

    def __init__(self, name: str, limit: int, call: Callable[[list[tuple]], list]) -> None:
        super().__init__(name, limit)
        self.call = call

    def execute(self, tasks: list[Task]) -> list:
        try:
            return self.call([t.given for t in tasks])
        except Exception as error:
            log.error("the model %s of another worker failed", self.name, exc_info=error)
            return [ServingError(Code.SYSTEM_ERROR, f"The model '{self.name}' failed: {error}")] * len(tasks)


class FunctionExecutor(Executor):
    """A function of `servable_config.py`."""

    def __init__(self, function: Function, limit: int, threads: int) -> None:
        super().__init__(function.name, limit if function.batched else 1)
        self.function = function
        self.threads = 1 if function.one_at_a_time else threads

    @property
    def concurrency(self) -> int:
        return self.threads

    def check(self, given: tuple, made: bool) -> tuple[tuple, Any]:
        return calls.to_arguments(given), None

    def execute(self, tasks: list[Task]) -> list:
        step = tasks[0].step
        if self.function.batched:
            return calls.call_batch(self.function, [t.given for t in tasks], step.method, step.number)
        return [calls.call_one(self.function, t.given, t.step.method, t.step.number) for t in tasks]
