"""`mycelia msrun`: starts the processes of a job on this machine, keeps their logs, ends all when one fails,
and starts them anew if it was asked to.

The launcher is also where the processes meet (MindSpore starts a scheduler process for that).
"""

from __future__ import annotations

import errno
import os
import queue
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from mycelia.engine.base import errors
from mycelia.engine.communication.launch import LONGEST_S
from mycelia.parallel.engines import rendezvous
from mycelia.parallel.workers import Guard, Worker, end

DEFAULT_PORT = 8118  # MindSpore's
PATIENCE_S = 3.0  # from asking a process to end to ending it: all are gone within 5 s
FROZEN = 128 + getattr(signal, "SIGSTOP", 19)  # the exit code where a rank stands still
FROZEN_S = 3.0  # a signal may stop a process for a moment
MISSED = re.compile(r"rank (\d+) takes no part in")  # what a rank says that fails because another has gone
_MOST_LINES = 60  # of a failed rank's log that are shown at the end


@dataclass(slots=True)
class Job:
    """What is to run. Below 0, and None: as the launcher finds best.

    `command`: script and arguments; `tail`: local ranks whose output is shown as well, None: all;
    `restarts`: how often all are started anew after one has failed; `min_worker_num`: if below `worker_num`,
    each time with one process fewer, down to that many.
    """

    command: Sequence[str]
    worker_num: int
    local_worker_num: int = -1
    master_addr: str = "127.0.0.1"
    master_port: int | None = None
    node_rank: int = -1
    log_dir: Path = Path()
    cluster_time_out: int = 600
    bind_core: bool = False
    worker_log_name: str = "worker_[rankid]"
    tail: Sequence[int] | None = None
    restarts: int = 0
    min_worker_num: int = -1
    program: str = "msrun"  # who tells of it

    def __post_init__(self) -> None:
        """Errors: ValueError names the option."""
        if self.worker_num < 1:
            raise errors.value_error(
                self.program, f"--worker_num must be positive, but got {self.worker_num}"
            )
        if self.local_worker_num < 0:
            self.local_worker_num = self.worker_num
        if not 0 < self.local_worker_num <= self.worker_num:
            raise errors.value_error(
                self.program,
                f"--local_worker_num must be in [1, {self.worker_num}], but got {self.local_worker_num}",
            )
        if self.master_port is not None and not 1024 <= self.master_port <= 65535:
            raise errors.value_error(
                self.program, f"--master_port must be in [1024, 65535], but got {self.master_port}"
            )
        if not 0 < self.cluster_time_out <= LONGEST_S:
            raise errors.value_error(
                self.program,
                f"--cluster_time_out must be in [1, {LONGEST_S:.0f}], but got {self.cluster_time_out}",
            )
        if self.node_rank >= 0 and (self.node_rank + 1) * self.local_worker_num > self.worker_num:
            raise errors.value_error(
                self.program, f"node {self.node_rank} of {self.local_worker_num} processes each does not fit "
                f"--worker_num {self.worker_num}",
            )  # fmt: skip
        if self.restarts < 0:
            raise errors.value_error(self.program, f"--restarts must be at least 0, but got {self.restarts}")
        if self.min_worker_num < 0:
            self.min_worker_num = self.worker_num
        if not 0 < self.min_worker_num <= self.worker_num:
            raise errors.value_error(
                self.program,
                f"--min_worker_num must be in [1, {self.worker_num}], but got {self.min_worker_num}",
            )
        if self.min_worker_num < self.worker_num and not self.is_local:
            raise errors.value_error(self.program, "--min_worker_num needs all processes on this machine")

    @property
    def is_local(self) -> bool:
        return self.local_worker_num == self.worker_num

    def rank(self, local: int) -> int:
        """The rank of a local process; -1 where the meeting place gives it."""
        if self.is_local:
            return local
        return self.node_rank * self.local_worker_num + local if self.node_rank >= 0 else -1


@dataclass(slots=True)
class Failure:
    """What is told of a rank that has failed."""

    headline: str
    log: Path
    end: list[str]  # of the log


#: Starts a job, for the n-th time anew, with its token, and waits for its end or a signal: the exit code,
#: and what has failed.
Once = Callable[[Job, int, str, "queue.SimpleQueue[Worker | int]"], "tuple[int, Failure | None]"]


def run(job: Job, once: Once | None = None) -> int:
    """Runs the job to its end, on this machine or as `once` does; the exit code: 0, or that of the rank that
    failed first (128 + number of a signal) in the last start.

    Errors: RuntimeError if the port is taken, OSError if logs cannot be written.
    """
    job.log_dir.mkdir(parents=True, exist_ok=True)
    token = os.environ.get("MYCELIA_JOB_TOKEN") or (secrets.token_hex(16) if job.is_local else "")
    # A handler of a signal may put while the same thread gets, which a Queue does not survive.
    changes: queue.SimpleQueue[Worker | int] = queue.SimpleQueue()  # a number: of a signal
    before = {
        s: signal.signal(s, lambda number, frame: changes.put(number))
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(s) is not signal.SIG_IGN  # nohup
    }
    failures: list[Failure] = []
    try:
        while True:
            code, failure = (once or _run_once)(job, len(failures), token, changes)
            if failure is None:
                return code
            failures.append(failure)
            if len(failures) > job.restarts:
                break
            job = _with_fewer(job)
            print(
                f"{job.program}: {failure.headline}; {job.worker_num} processes are started anew "
                f"({len(failures)} of {job.restarts})", flush=True,
            )  # fmt: skip
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    _tell(job.program, failures)
    return code


def _with_fewer(job: Job) -> Job:
    """The job after a failure: with a process less if that was asked for."""
    if job.worker_num == job.min_worker_num:
        return job
    count = job.worker_num - 1
    return replace(job, worker_num=count, local_worker_num=count)


def _run_once(
    job: Job, restart: int, token: str, changes: queue.SimpleQueue[Worker | int]
) -> tuple[int, Failure | None]:
    """Starts all and waits for their end; the exit code, and what has failed."""
    meeting = _meeting_place(job)
    port = meeting.getsockname()[1] if meeting is not None else (job.master_port or DEFAULT_PORT)
    place = None
    if meeting is not None:
        place = rendezvous.Rendezvous(meeting, job.worker_num, token, float(job.cluster_time_out))
        place.start()
    shown = threading.Lock()
    workers: list[Worker] = []
    guard = Guard()
    try:
        for local in range(job.local_worker_num):
            workers.append(_start(job, restart, local, port, token, guard, shown))
            workers[-1].watch(changes.put)
        code, guilty = _supervise(workers, changes, job.restarts > 0, job.is_local)
    finally:
        end(workers, PATIENCE_S)
        guard.dismiss()
        if place is not None:
            place.stop()
    return code, None if guilty is None else _failure(guilty, code)


def _meeting_place(job: Job):
    """The socket at which the processes meet; None if that is on another machine."""
    if job.is_local and job.master_port is None:
        return rendezvous.listen(job.master_addr, 0)
    try:
        return rendezvous.listen(job.master_addr, job.master_port or DEFAULT_PORT)
    except errors.MyceliaRuntimeError as cause:
        elsewhere = isinstance(cause.__cause__, OSError) and cause.__cause__.errno == errno.EADDRNOTAVAIL
        if elsewhere and not job.is_local:
            return None
        raise


def told_to(
    job: Job, rank: int, local: tuple[int, int], port: int, token: str, restart: int
) -> dict[str, str]:
    """What a worker is told: MindSpore's variables, those of torchrun that say the same, the job's token,
    and how often the job was started anew. `local`: its number and how many there are on its machine.
    """
    told = {
        "MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": str(job.worker_num), "RANK_SIZE": str(job.worker_num),
        "MS_SCHED_HOST": job.master_addr, "MS_SCHED_PORT": str(port),
        "MS_TOPO_TIMEOUT": str(job.cluster_time_out),
        "DEVICE_ID": str(local[0]), "LOCAL_RANK": str(local[0]), "LOCAL_WORLD_SIZE": str(local[1]),
        "MYCELIA_JOB_TOKEN": token, "MYCELIA_RESTART": str(restart), "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    return told if rank < 0 else {**told, "RANK_ID": str(rank), "MS_NODE_ID": str(rank)}


def environment(job: Job, local: int, port: int, token: str, restart: int = 0) -> Mapping[str, str]:
    """That of a worker on this machine."""
    told = told_to(job, job.rank(local), (local, job.local_worker_num), port, token, restart)
    if "MYCELIA_THREADS" not in os.environ:
        told["MYCELIA_THREADS"] = str(max(1, len(_cores()) // job.local_worker_num))
    return {**os.environ, **told}


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _start(
    job: Job, restart: int, local: int, port: int, token: str, guard: Guard, shown: threading.Lock
) -> Worker:
    rank = job.rank(local)
    log = log_of(job, rank if rank >= 0 else local, restart)
    told = environment(job, local, port, token, restart)
    show = job.tail is None or local in job.tail
    worker = started(job.command, told, guard, local, rank, log, shown if show else None)
    process = worker.process
    if job.bind_core and hasattr(os, "sched_setaffinity"):
        cores = _cores()
        share = max(1, len(cores) // job.local_worker_num)
        first = local * share % len(cores)
        os.sched_setaffinity(process.pid, cores[first : first + share])
    return worker


def log_of(job: Job, number: int, restart: int) -> Path:
    """Where the output of a worker goes."""
    ending = f".restart_{restart}.log" if restart else ".log"
    return job.log_dir / (job.worker_log_name.replace("[rankid]", str(number)) + ending)


def started(
    command: Sequence[str], told: Mapping[str, str], guard: Guard, local: int, rank: int, log: Path,
    shown: threading.Lock | None,
) -> Worker:  # fmt: skip
    """A process whose lines go to `log`, and to the screen behind its name, one worker at a time, unless
    `shown` is None.
    """
    command = list(command)
    if command[0].endswith(".py"):  # as `mycelia run`: `import mindspore` means mycelia
        command = [sys.executable, "-m", "mycelia", "run", *command]
    out = log.open("wb")
    try:
        worker = Worker(command, told, guard, local=local, rank=rank, log=log)
    except BaseException:
        out.close()
        raise
    prefix = "" if shown is None else f"[{worker.name}] "
    reader = threading.Thread(
        target=_copy, args=(worker.process.stdout, out, prefix, shown or threading.Lock())
    )
    reader.daemon = True  # a grandchild may keep the pipe open
    reader.start()
    worker.readers.append(reader)
    return worker


def _copy(source: IO[bytes], log: IO[bytes], prefix: str, shown: threading.Lock) -> None:
    """Lines of a worker to its log, and to the screen behind a prefix, as long as that takes any."""
    with source, log:
        for line in iter(source.readline, b""):
            log.write(line)
            log.flush()
            if prefix:
                try:
                    with shown:
                        _show(prefix + line.decode(errors="replace"))
                except (OSError, ValueError):  # `msrun ... | head`, a screen that was closed
                    prefix = ""


def _show(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    if not text.endswith("\n"):
        sys.stdout.write("\n")
    sys.stdout.flush()


def exit_code(status: int) -> int:
    return 128 - status if status < 0 else status


def _supervise(
    workers: list[Worker], changes: queue.SimpleQueue, ends_frozen: bool, are_all: bool
) -> tuple[int, Worker | None]:
    """Waits until all have ended well, or one has not; the exit code, and who is guilty. `ends_frozen`: one
    that a signal has stopped is guilty, unless it goes on soon, or these are all of the job (`are_all`) and
    all stand still: then the job is suspended.
    """
    running = set(workers)
    while running:
        stopped = [worker for worker in running if worker.stopped_at is not None]
        left = None
        if ends_frozen and stopped and (len(stopped) < len(running) or not are_all):
            first = min(stopped, key=lambda w: w.stopped_at or 0.0)
            left = (first.stopped_at or 0.0) + FROZEN_S - time.monotonic()
            if left <= 0:
                return FROZEN, first
        try:
            found = changes.get(timeout=left)
        except queue.Empty:
            continue
        if not isinstance(found, Worker):
            return 128 + found, None  # the launcher itself was asked to end
        if found not in running or found.status is None:
            continue  # of a start before, or stopped, or going on
        running.remove(found)
        if found.status:
            guilty = _guilty(found, workers)
            return exit_code(guilty.status or 0), guilty
    return 0, None


def _guilty(worker: Worker, workers: list[Worker]) -> Worker:
    """Who made `worker` fail: the rank that it missed, if that has failed as well; else itself."""
    until = time.monotonic() + PATIENCE_S
    seen = {worker.local}
    while True:
        for reader in worker.readers:
            reader.join(1.0)  # what it said last is in its log
        missed = MISSED.findall(worker.log.read_text(errors="replace"))
        other = next((w for w in workers if missed and w.name == f"rank {missed[-1]}"), None)
        if other is None or other.local in seen or not other.wait(max(0.0, until - time.monotonic())):
            return worker
        seen.add(other.local)
        worker = other


def _failure(worker: Worker, code: int) -> Failure:
    return failure_of(worker.name, code, worker.log, worker.log.read_text(errors="replace"))


def failure_of(name: str, code: int, log: Path, text: str) -> Failure:
    """What is told of a rank that has failed: the end of its log, from its last traceback on."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    told = lines[starts[-1] :] if starts else lines
    how = "was frozen by a signal" if code == FROZEN else f"has failed with exit code {code}"
    return Failure(f"{name} {how}; all others were ended", log, told[-_MOST_LINES:])


def _tell(program: str, failures: list[Failure]) -> None:
    """The first failure, which others may only repeat, and the last if it ended otherwise."""
    first, last = failures[0], failures[-1]
    for failure in (first,) if last.end == first.end else (first, last):
        print(f"\n{program}: {failure.headline}. {failure.log} ends:", *failure.end, sep="\n", flush=True)


def leave_running(command: Sequence[str], log_dir: Path) -> int:
    """Starts the launcher anew, away from this terminal and joined to the job; its process number."""
    at = next(i for i, part in enumerate(command) if part.partition("=")[0] == "--join")
    joined = [*command[:at], *command[at + (1 if "=" in command[at] else 2) :]]
    with (log_dir / "msrun.log").open("wb") as log:
        return subprocess.Popen(
            joined, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        ).pid
