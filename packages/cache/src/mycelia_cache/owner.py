"""Whose a file, a directory or the other end of a socket is: nothing of another user is taken for ours.

Root is no exception: what others may write they may make point anywhere.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from pathlib import Path

from mycelia import errors


def require(path: Path, what: str = "", *, private: bool = False) -> None:
    """Errors: RuntimeError unless `path` is a directory of this user's, no link to one, and with `private`
    one that nobody else may write into.
    """
    found = os.lstat(path)
    what = f"{what} {path}".strip()
    if stat.S_ISLNK(found.st_mode) or not stat.S_ISDIR(found.st_mode):
        raise errors.runtime_error("mycelia-cache", f"{what} is no directory, or a link to one")
    if found.st_uid != os.getuid():
        raise errors.runtime_error(
            "mycelia-cache",
            f"{what} belongs to another user: to number {found.st_uid}, and this is {os.getuid()}",
            hint="MYCELIA_CACHE_DIR and --spilldir name directories of your own",
        )
    if private and found.st_mode & 0o022:
        raise errors.runtime_error("mycelia-cache", f"others may write into {what}", hint=f"chmod 700 {path}")


def of_peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end of a unix socket; process 0 if it is none that we see."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    process, user, _ = struct.unpack("3i", credentials)
    return process, user
