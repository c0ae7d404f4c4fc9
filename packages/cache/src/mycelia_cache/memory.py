"""How much memory there is for all caches, and who has which part of it."""

from __future__ import annotations

import threading
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


class Budget:
    """Bytes for all caches of a server together."""

    def __init__(self, cap: int):
        self.cap = cap
        self.used = 0
        self._lock = threading.Lock()

    @property
    def free(self) -> int:
        """Bytes that nobody has."""
        return max(0, self.cap - self.used)

    def take(self, size: int) -> bool:
        """Whether there was room for `size` more bytes; they are the caller's then."""
        with self._lock:
            if self.used + size > self.cap:
                return False
            self.used += size
            return True

    def give_back(self, size: int) -> None:
        """The caller needs `size` bytes no longer."""
        with self._lock:
            self.used -= size


def system_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or less where a container's limit says so."""
    total = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    return min([total, *_container_limits()])


def _container_limits(root: Path = _CGROUP, own: Path = Path("/proc/self/cgroup")) -> list[int]:
    """Limits of the control groups, version 1 and 2, that this process is in: each, and those around it."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    limits = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            base, name = root / "memory", "memory.limit_in_bytes"
        elif controllers == "":
            base, name = root, "memory.max"
        else:
            continue
        parts = [p for p in path.split("/") if p and p != ".."]
        for depth in range(
            len(parts) + 1
        ):  # inside a container the path may be the host's: the root counts too
            try:
                text = (base.joinpath(*parts[:depth]) / name).read_text().strip()
            except OSError:
                continue
            if text.isdigit():
                limits.append(int(text))
    return limits
