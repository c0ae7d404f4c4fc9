"""Whether the process that writes a run is still there: what the locked file says that core leaves beside it.

`.mycelia-alive.HOST.PID`, see `mycelia/train/summary/alive.py`. Nothing is written, no lock is kept.
"""

from __future__ import annotations

import errno
import os
import socket
import stat

import orjson

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = ".mycelia-alive."
ALIVE, DEAD, BROKEN_OFF = "alive", "dead", "broken off"
_MOST = 4096  # bytes of such a file


def life_of(folder: str) -> str | None:
    """ALIVE: a process writes the run. DEAD: it is gone without closing it. BROKEN_OFF: an error ended it.

    None: nothing is known, as of files of others, on a disk without locks, or of another machine's process
    that holds no lock, since locks do not reach from there on every disk.
    """
    if fcntl is None:
        return None
    try:
        names = [name for name in os.listdir(folder) if name.startswith(PREFIX)]
    except OSError:
        return None
    found = {_life(folder, name) for name in names}
    return next((one for one in (ALIVE, BROKEN_OFF, DEAD) if one in found), None)


def _life(folder: str, name: str) -> str | None:
    host, _, process = name.removeprefix(PREFIX).rpartition(".")
    is_here = host == socket.gethostname()
    if is_here and process == str(os.getpid()):
        return ALIVE  # to close the file would give the lock of this process back
    try:
        file = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return ALIVE if error.errno in (errno.EAGAIN, errno.EACCES) else None
        told = orjson.loads(os.read(file, _MOST))
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
    if not isinstance(told, dict):
        return None
    if told.get("ended"):
        return BROKEN_OFF
    return DEAD if is_here else None
