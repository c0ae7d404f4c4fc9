"""What a training takes of its machine: processors, memory, disk, network and NVIDIA's GPUs.

Read from Linux' /proc and from the driver's library; elsewhere there are the process's processor time and the
disk alone. Rates are means since the reading before, so that nothing is missed however far apart they are.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator

from mycelia.train.summary.nvml import Gpus

#: What the tags of all these values begin with.
NAMESPACE = "system/"
_INTERVAL_S = 5.0
_MIB = 1 << 20


class SystemMonitor:
    """Readings by tag, at most one in `interval_s` seconds.

    `folder`: whose disk is looked at; `proc`: where Linux tells of itself; `clock`: seconds.
    """

    def __init__(
        self,
        folder: str,
        interval_s: float = _INTERVAL_S,
        proc: str = "/proc",
        clock: Callable[[], float] = time.monotonic,
    ):
        self._folder, self._interval, self._proc, self._clock = folder, interval_s, proc, clock
        self._gpus: Gpus | None = None
        self.due = clock()  # when there are new readings
        self._before = self._counts()

    def read(self) -> dict[str, float]:
        """Values by tag; empty if the last reading is less than the interval ago."""
        if self._clock() < self.due:
            return {}
        self.due = self._clock() + self._interval
        if self._gpus is None:
            self._gpus = Gpus()
        before, self._before = self._before, self._counts()
        found = {**self._rates(before, self._before), **self._levels(), **self._gpus.read()}
        return {NAMESPACE + name: value for name, value in found.items()}

    def _counts(self) -> dict[str, float]:
        """Numbers that only grow."""
        found = {"time": self._clock(), "process": time.process_time()}
        for words in self._lines("stat"):
            if words[0] == "cpu":
                times = [int(word) for word in words[1:9]]  # guests are part of what stands before
                found["all"] = sum(times)
                found["busy"] = found["all"] - times[3] - times[4]  # idle, and idle while waiting for a disk
                break
        for words in self._lines("self/io"):
            if words[0] in ("read_bytes:", "write_bytes:"):
                found[words[0][:-1]] = int(words[1])
        received = sent = 0
        for words in self._lines("net/dev", ":"):
            if len(words) >= 10 and words[0] != "lo" and words[1].isdecimal():
                received, sent = received + int(words[1]), sent + int(words[9])
                found["received"], found["sent"] = received, sent
        return found

    def _rates(self, before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
        grown = {name: now[name] - before[name] for name in now.keys() & before.keys()}
        seconds = grown["time"]
        found = {}
        if grown.get("all", 0) > 0:
            found["cpu_percent"] = 100 * grown["busy"] / grown["all"]
        if seconds <= 0:
            return found
        found["process_cpu_percent"] = 100 * grown["process"] / seconds  # of one processor
        rates = {"read_bytes": "disk_read", "write_bytes": "disk_written",
                 "received": "network_received", "sent": "network_sent"}  # fmt: skip
        for count, name in rates.items():
            if count in grown:
                found[f"{name}_MiB_per_s"] = grown[count] / seconds / _MIB
        return found

    def _levels(self) -> dict[str, float]:
        found = {}
        memory = {words[0]: int(words[1]) for words in self._lines("meminfo") if len(words) > 1}  # in KiB
        if memory.get("MemTotal:") and "MemAvailable:" in memory:
            found["memory_percent"] = 100 * (1 - memory["MemAvailable:"] / memory["MemTotal:"])
        for words in self._lines("self/status"):
            if words[0] == "VmRSS:":
                found["process_memory_MiB"] = int(words[1]) / 1024
        try:
            disk = shutil.disk_usage(self._folder)
        except OSError:
            return found
        found["disk_percent"] = 100 * (1 - disk.free / disk.total) if disk.total else 0.0
        return found

    def _lines(self, name: str, mark: str = "") -> Iterator[list[str]]:
        """Words of each line of a file of /proc, `mark` being a blank; none if it cannot be read."""
        try:
            with open(os.path.join(self._proc, name), encoding="ascii", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return
        for line in lines:
            if words := (line.replace(mark, " ") if mark else line).split():
                yield words
