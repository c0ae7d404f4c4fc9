"""Processes that a launcher has started, each the leader of a process group of its own: when they end, and
how they and what they have started are ended, also after the launcher itself was killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from mycelia.engine.communication.launch import RANK_PIPE

# Reads numbers of process groups until the launcher says that it has ended them all, or until it is gone:
# then they are ended here, one by one, since `kill` may refuse all if one has ended. A shell, for it takes
# 1 ms and little memory.
_GUARD = """
trap '' INT TERM HUP
groups=
while read -r line; do
  if [ "$line" = done ]; then exit 0; fi
  groups="$groups $line"
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


class Guard:
    """A process that outlives the launcher if that is killed, and then ends its workers.

    Linux could send workers a signal at the death of their parent, but not to what they have started.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def watch(self, group: int) -> None:
        self._tell(f"{group}\n")

    def dismiss(self) -> None:
        """All groups were ended."""
        self._tell("done\n")
        self._input.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        try:
            self._input.write(line.encode())
            self._input.flush()
        except BrokenPipeError:
            pass  # somebody has ended it: the job goes on without

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin


class Worker:
    """A process of the job. `rank`: -1 as long as only the meeting place knows it; `status`: once it has
    ended, its exit code, or minus the number of the signal that ended it.

    Its number, and so that of its group, stays taken until `forget`: no other process is ever meant by it.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], guard: Guard, *, local: int, rank: int,
        log: Path,
    ) -> None:  # fmt: skip
        self.local, self.rank, self.log = local, rank, log
        self.status: int | None = None
        self.stopped_at: float | None = None  # by time.monotonic: since when it stands still by a signal
        self.readers: list[threading.Thread] = []
        self._ended = threading.Event()
        tell, self._told = self._rank_pipe() if rank < 0 else (None, None)
        given = {} if tell is None else {RANK_PIPE: f"{tell} {os.fstat(tell).st_ino}"}
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**environment, **given}, start_new_session=True,
                pass_fds=() if tell is None else (tell,),
            )  # fmt: skip
        except BaseException:
            self._close_pipe()
            raise
        finally:
            if tell is not None:
                os.close(tell)
        guard.watch(self.process.pid)

    @staticmethod
    def _rank_pipe() -> tuple[int, int]:
        told, tell = os.pipe()
        os.set_blocking(told, False)
        return tell, told

    @property
    def name(self) -> str:
        self._hear()
        return f"rank {self.rank}" if self.rank >= 0 else f"local rank {self.local}"

    def _hear(self) -> None:
        """Takes in the rank that the meeting place has given, if that is there."""
        if self._told is None:
            return
        try:
            said = os.read(self._told, 32)
        except BlockingIOError:
            return
        self._close_pipe()
        if said:
            self.rank = int(said)

    def _close_pipe(self) -> None:
        if self._told is not None:
            os.close(self._told)
            self._told = None

    def watch(self, changed: Callable[[Worker], object]) -> None:
        """Calls ``changed(self)``, in a thread, when the process has ended, and when it was stopped."""

        def stopped(is_so: bool) -> None:
            self.stopped_at = time.monotonic() if is_so else None
            changed(self)

        def wait() -> None:
            self.status = _await(self.process, stopped)
            self._ended.set()
            changed(self)

        threading.Thread(target=wait, daemon=True).start()

    def wait(self, timeout_s: float) -> int | None:
        """The status; None if the process has not ended by then."""
        self._ended.wait(timeout_s)
        return self.status

    def signal(self, number: int) -> None:
        """To the process and what it has started, which may live on without it."""
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # nobody of the group is left

    def forget(self) -> None:
        self._ended.wait()
        self.process.wait()
        self._hear()
        self._close_pipe()
        for reader in self.readers:
            reader.join(1.0)


def _await(process: subprocess.Popen, stopped: Callable[[bool], object]) -> int:
    """The status of a process that has ended, which keeps its number where the system can do that; until then
    ``stopped(True)`` when a signal has stopped it, and ``stopped(False)`` when it goes on.
    """
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return process.wait()
    change, is_stopped = os.WSTOPPED, False
    while True:
        found = os.waitid(os.P_PID, process.pid, os.WEXITED | change | os.WNOWAIT)
        assert found is not None  # as without WNOHANG
        if found.si_code == os.CLD_EXITED:
            return found.si_status
        if found.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
            return -found.si_status
        os.waitid(os.P_PID, process.pid, change | os.WNOHANG)  # this change is known
        is_stopped = not is_stopped
        change = os.WCONTINUED if is_stopped else os.WSTOPPED
        stopped(is_stopped)


def end(workers: Sequence[Worker], patience_s: float) -> None:
    """Ends all processes and what they have started; waits for the rest of their output."""
    for worker in workers:  # one that stands still would not hear that it is asked to end
        worker.signal(signal.SIGTERM if worker.stopped_at is None else signal.SIGKILL)
    until = time.monotonic() + patience_s
    for worker in workers:
        worker.wait(max(0.0, until - time.monotonic()))
    for worker in workers:
        worker.signal(signal.SIGKILL)
    for worker in workers:
        worker.forget()
