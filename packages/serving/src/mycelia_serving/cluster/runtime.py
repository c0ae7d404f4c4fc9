"""The directory in which servers of this user are found by `mycelia-serving status` and its like.

<serving_dir>/<pid>/socket        commands; whoever can open it may give them
                    server.json   pid, addresses, when it was started
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
from pathlib import Path

from mycelia import config
from mycelia_serving.rpc.calls import ask
from mycelia_serving.rpc.connection import Connection, Kind
from mycelia_serving.rpc.sockets import connect

_ANSWER_S = 600.0  # a model may take long to load


def base_directory() -> Path:
    """The directory, made at need. RuntimeError if it is not ours."""
    named = config.get("serving_dir")
    path = Path(named) if named else Path(tempfile.gettempdir()) / f"mycelia-serving-{os.getuid()}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.getuid() and (os.getuid() or not named):
        raise RuntimeError(f"{path} belongs to another user")
    return path


def own_directory() -> Path:
    """A new directory for the server in this process."""
    path = base_directory() / str(os.getpid())
    shutil.rmtree(path, ignore_errors=True)  # of a dead process that had this number
    path.mkdir(mode=0o700)
    return path


def _alive(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(5.0)
        try:
            probe.connect(str(path / "socket"))
        except OSError:
            return False
    return True


def servers() -> list[dict]:
    """What the running servers have written down, oldest first; what dead ones left is removed."""
    found = []
    for path in base_directory().iterdir():
        if not path.name.isdecimal():
            continue
        if not _alive(path):
            if not os.path.exists(f"/proc/{path.name}"):
                shutil.rmtree(path, ignore_errors=True)
            continue
        with contextlib.suppress(OSError, ValueError):
            found.append(json.loads((path / "server.json").read_text()))
    return sorted(found, key=lambda s: s["started"])


def choose(pid: int | None = None) -> int:
    """The server that is meant: the one of this pid, or the only one. Errors: RuntimeError."""
    running = servers()
    if pid is not None:
        if pid not in [s["pid"] for s in running]:
            raise RuntimeError(f"no server of this user has the pid {pid}")
        return pid
    if not running:
        raise RuntimeError("no server of this user is running")
    if len(running) > 1:
        raise RuntimeError(f"more than one server is running, choose by --pid: {[s['pid'] for s in running]}")
    return running[0]["pid"]


def command(pid: int, what: str, **arguments):
    """Give a server a command; its result. Errors: RuntimeError, also those of the server."""
    try:
        sock = connect(f"unix:{base_directory() / str(pid) / 'socket'}")
    except OSError as e:
        raise RuntimeError(f"the server {pid} does not answer: {e}") from None
    link = Connection(sock, timeout=_ANSWER_S)
    try:
        body = json.dumps({"command": what, **arguments}).encode()
        answer = ask(link, Kind.ADMIN, body, Kind.ADMIN_REPLY)
    finally:
        link.close()
    if answer is None:
        raise RuntimeError(f"the server {pid} ended the connection")
    answer = json.loads(answer)
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["result"]
