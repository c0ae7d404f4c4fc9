"""A file beside a run that tells whether the process that writes the run is still there, whatever ends it.

It is locked as long as the process lives: the system gives the lock back when the process is gone, however it
ended. It goes when the run is closed, and stays with the name of the error when one ended the training.
Mycelia Insight reads it (`runs/alive.py` there): `.mycelia-alive.HOST.PID`, JSON `{"ended": null or a text}`.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import IO

from mycelia.engine.base import log

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_PREFIX = ".mycelia-alive."


class AliveFile:
    """The locked file of this process in a folder; none where the disk has no room, rights or locks."""

    def __init__(self, folder: str):
        before = f"{_PREFIX}{socket.gethostname()}."
        self._path = os.path.join(folder, f"{before}{os.getpid()}")
        self._file: IO[str] | None = None
        if fcntl is None:
            return
        try:
            _remove_left(folder, before)
            self._file = open(self._path, "w", encoding="utf-8")
            # A lock of the process, which children that it forks do not have.
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            self._tell(None)
        except OSError as error:
            log.logger(__name__).info("%s: nothing tells whether the run goes on: %s", folder, error.strerror)
            self.close()

    def close(self, error: str | None = None) -> None:
        """End it. `error`: the class of what ended the training; the file stays and tells it."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            if error is None:
                os.unlink(self._path)
            else:
                self._tell(error)
        with contextlib.suppress(OSError):
            self._file.close()
        self._file = None

    def _tell(self, ended: str | None) -> None:
        self._file.seek(0)
        self._file.truncate()
        json.dump({"ended": ended}, self._file)
        self._file.flush()


def _remove_left(folder: str, before: str) -> None:
    """Files of processes of this machine that are gone: the run is taken up again."""
    for name in os.listdir(folder):
        if not name.startswith(before) or name == f"{before}{os.getpid()}":
            continue
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError), open(path, "r+", encoding="utf-8") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
