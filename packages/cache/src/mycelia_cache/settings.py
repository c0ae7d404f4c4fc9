"""What a cache server is started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


def without_password(address: str) -> str:
    """``redis://user:secret@host`` as it may be shown."""
    head, at, host = address.rpartition("@")
    return f"{head.partition('://')[0]}://...@{host}" if at else address


@dataclass
class Settings:
    """What a server is started with. `spill_dir` is the user's; the server works in a directory inside."""

    port: int
    directory: str
    bind: str = "127.0.0.1"
    workers: int = 1
    log_level: int = 1
    spill_dir: str = ""
    spill_limit: int | None = None
    memory: int | None = None
    memory_cap_ratio: float = 0.8
    keep: bool = False
    idle_s: float | None = None
    backend: str = ""
    token: str = ""
    tls: str = ""

    def spill_place(self) -> Path | None:
        """The directory of this port's servers inside the user's."""
        return Path(self.spill_dir) / self.spill_name(self.port) if self.spill_dir else None

    @staticmethod
    def spill_name(port: int | str) -> str:
        """Of the directory of the servers on a port, in any `spill_dir`."""
        return f"mycelia-cache-{port}"
