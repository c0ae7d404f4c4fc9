"""A command in a process whose files have little room, as on a full disk."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys

_MOST_BYTES = 65536


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`mycelia-insight` with these arguments."""

    def little_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_BYTES, _MOST_BYTES))

    return subprocess.run(
        [sys.executable, "-c", "from mycelia_insight.cli import app; app()", *map(str, arguments)],
        preexec_fn=little_room, text=True, capture_output=True, timeout=60,
    )  # fmt: skip
