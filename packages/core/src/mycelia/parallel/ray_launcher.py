"""`mycelia launch --engine ray`: the processes of a job on the machines of a Ray cluster, which Ray chooses;
they meet, fail and start anew as those of `mycelia msrun` do.

Each rank is a process that an actor of Ray starts and looks after, so that a killed rank leaves the actor to
tell of it, and a killed actor takes its rank along.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mycelia.engine.base import errors
from mycelia.parallel import launcher
from mycelia.parallel.engines import rendezvous
from mycelia.parallel.launcher import FROZEN, FROZEN_S, MISSED, PATIENCE_S, Failure, Job, exit_code
from mycelia.parallel.workers import Guard, Worker, end

_OWNER = "launch"
_LOOK_S = 0.2  # how long Ray is asked for news before signals are looked at
_KILLED = 137  # the exit code where nothing is left to tell one


def run(job: Job, address: str | None = None, cpus: float = 1.0) -> int:
    """Runs the job to its end on a cluster; the exit code, as `launcher.run`.

    `address`: of the cluster, None: that of RAY_ADDRESS, or one of this machine alone that ends with the job;
    `cpus`: of each process. Errors: RuntimeError without Ray, for a cluster that is not there or too small.
    """
    ray = _ray()
    try:
        ray.init(address=address, log_to_driver=True, configure_logging=False, include_dashboard=False)
    except (ConnectionError, RuntimeError, ValueError) as cause:
        raise errors.runtime_error(_OWNER, f"there is no Ray cluster at {address}: {cause}") from cause
    try:
        job = replace(job, master_addr=ray.util.get_node_ip_address())
        return launcher.run(job, lambda *start: _run_once(ray, cpus, *start))
    finally:
        ray.shutdown()


def _ray() -> Any:
    try:
        import ray
    except ImportError as cause:
        raise errors.runtime_error(
            _OWNER, "Ray is not installed", hint="pip install 'mycelia-core[ray]'"
        ) from cause
    return ray


class _Rank:
    """The actor of one rank, on the machine where that runs."""

    def __init__(self) -> None:
        self._guard = Guard()
        self._worker: Worker | None = None
        self._ends = threading.Event()

    def machine(self) -> str:
        """Which one it is."""
        return _ray().get_runtime_context().get_node_id()

    def run(
        self, command: Sequence[str], told: dict[str, str], place: tuple[int, int], log: str, folder: str,
        ends_frozen: bool,
    ) -> tuple[int, str]:  # fmt: skip
        """Starts the process and waits for its end; its exit code and its log. With `ends_frozen` one that a
        signal has stopped for long has ended, too.
        """
        path = Path(log)
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # another machine may not have it
            os.chdir(folder)
        local, rank = place
        self._worker = worker = launcher.started(
            command, {**os.environ, **told}, self._guard, local, rank, path, threading.Lock()
        )
        worker.watch(lambda _: None)
        while worker.wait(_LOOK_S) is None and not self._ends.is_set():
            since = worker.stopped_at
            if ends_frozen and since is not None and time.monotonic() - since > FROZEN_S:
                return FROZEN, path.read_text(errors="replace")
        for reader in worker.readers:
            reader.join(1.0)
        return exit_code(worker.status or 0), path.read_text(errors="replace")

    def end(self) -> None:
        """Ends the process and what it has started."""
        self._ends.set()
        if self._worker is not None:
            end([self._worker], PATIENCE_S)
        self._guard.dismiss()


def _run_once(
    ray: Any, cpus: float, job: Job, restart: int, token: str, changes: queue.SimpleQueue
) -> tuple[int, Failure | None]:
    """As `launcher.Once`."""
    listener = rendezvous.listen(job.master_addr, 0)
    port = listener.getsockname()[1]
    place = rendezvous.Rendezvous(listener, job.worker_num, token, float(job.cluster_time_out))
    place.start()
    group = ray.util.placement_group([{"CPU": cpus}] * job.worker_num, strategy="PACK")
    actors: list[Any] = []
    try:
        _await_room(ray, group, job, cpus)
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        kind = ray.remote(_Rank)
        for rank in range(job.worker_num):
            at = strategy(placement_group=group, placement_group_bundle_index=rank)
            options = dict(num_cpus=cpus, max_restarts=0, max_concurrency=3, scheduling_strategy=at)
            actors.append(kind.options(**options).remote())
        machines = ray.get([actor.machine.remote() for actor in actors])
        runs: dict[Any, int] = {}
        seen: Counter[str] = Counter()
        for rank, (actor, machine) in enumerate(zip(actors, machines)):
            local = seen[machine], machines.count(machine)
            seen[machine] += 1
            told = launcher.told_to(job, rank, local, port, token, restart)
            told.setdefault("MYCELIA_THREADS", os.environ.get("MYCELIA_THREADS", str(max(1, int(cpus)))))
            log = str(launcher.log_of(job, rank, restart).absolute())
            run = actor.run.remote(
                list(job.command), told, (local[0], rank), log, os.getcwd(), job.restarts > 0
            )
            runs[run] = rank
        return _supervise(ray, job, restart, runs, changes)
    finally:
        _end(ray, actors)
        ray.util.remove_placement_group(group)
        place.stop()


def _await_room(ray: Any, group: Any, job: Job, cpus: float) -> None:
    """Errors: RuntimeError if the cluster has no room for all processes in time."""
    if not group.wait(job.cluster_time_out):
        there = ray.cluster_resources().get("CPU", 0)
        raise errors.runtime_error(
            _OWNER, f"the Ray cluster has no room for {job.worker_num} processes of {cpus:g} CPUs within "
            f"{job.cluster_time_out} s: it has {there:g} CPUs, and others may use them",
        )  # fmt: skip


def _supervise(
    ray: Any, job: Job, restart: int, runs: dict[Any, int], changes: queue.SimpleQueue
) -> tuple[int, Failure | None]:
    """Waits until all have ended well, or one has not; the exit code, and what is told of the guilty one: the
    rank that the first one missed, if that has failed as well.
    """
    ended: dict[int, tuple[int, str]] = {}
    guilty, until = -1, 0.0
    while runs:
        with contextlib.suppress(queue.Empty):
            return 128 + changes.get_nowait(), None  # the launcher itself was asked to end
        ready, _ = ray.wait(list(runs), num_returns=1, timeout=_LOOK_S)
        for run in ready:
            rank = runs.pop(run)
            ended[rank] = _result(ray, run)
            if ended[rank][0] and guilty < 0:
                guilty, until = rank, time.monotonic() + PATIENCE_S
        if guilty < 0:
            continue
        missed = MISSED.findall(ended[guilty][1])
        other = int(missed[-1]) if missed else guilty
        if other != guilty and ended.get(other, (0, ""))[0]:
            guilty = other
        elif other == guilty or time.monotonic() > until:
            break
    if guilty < 0:
        return 0, None
    code, text = ended[guilty]
    log = launcher.log_of(job, guilty, restart)
    return code, launcher.failure_of(f"rank {guilty}", code, log, text)


def _result(ray: Any, run: Any) -> tuple[int, str]:
    """The exit code and the log of a rank, or those of one whose actor is gone."""
    try:
        return ray.get(run)
    except ray.exceptions.RayError as cause:
        return _KILLED, f"Ray has lost the process: {cause}"


def _end(ray: Any, actors: Sequence[Any]) -> None:
    """Ends all ranks, with their actors."""
    with contextlib.suppress(ray.exceptions.RayError):
        ray.wait([actor.end.remote() for actor in actors], num_returns=len(actors), timeout=PATIENCE_S + 2)
    for actor in actors:
        ray.kill(actor)
    sys.stdout.flush()
