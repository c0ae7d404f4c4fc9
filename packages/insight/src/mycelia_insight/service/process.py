"""The service as a process in the background: starting, finding, ending it.

A file for each port in the user's state folder says who serves: `stop` and `status` need no workspace.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from mycelia_insight.service.logs import path_of
from mycelia_insight.service.settings import Settings

_PATIENCE = 60.0  # seconds in which a service must answer; one that fails is told at once
_LAST_PATIENCE = 3.0  # seconds after which a service that does not end is killed
_LISTENS = "0A"  # a socket's state in /proc/net/tcp
MODULE = "mycelia_insight.service"


@dataclass(frozen=True)
class Service:
    """A running service of this user."""

    pid: int
    port: int
    host: str
    address: str
    summary_base_dir: str
    workspace: str


def _registry() -> Path:
    return Path.home() / ".local" / "state" / "mycelia-insight"


def running() -> list[Service]:
    """Services of this user, by their ports; what is left of dead ones is removed."""
    found = []
    for path in sorted(_registry().glob("*.json")):
        try:
            service = Service(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue
        if _is_ours(service.pid):
            found.append(service)
        else:
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda service: service.port)


def at(port: int) -> Service | None:
    """The service of this user at a port."""
    return next((service for service in running() if service.port == port), None)


def _is_ours(pid: int) -> bool:
    """Whether a process of this user runs the service."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return False
        return MODULE.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def register(settings: Settings) -> Path:
    """Write down that this process serves; the path of what was written."""
    service = Service(
        os.getpid(),
        settings.port,
        settings.host,
        settings.address,
        settings.summary_base_dir,
        settings.workspace,
    )
    folder = _registry()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{settings.port}.json"
    half = path.with_suffix(f".{os.getpid()}.tmp")
    half.write_text(json.dumps(asdict(service)))
    half.replace(path)
    return path


def port_error(settings: Settings) -> str:
    """Why the port cannot be had, and which process has it, if that can be told; "" if it can be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return f"could not bind to port {settings.port}: {error.strerror}"
            holder = _holder(settings.port)
            return f"could not bind to port {settings.port}, it was already in use" + (
                f" (pid {holder})" if holder else ""
            )
    return ""


def _holder(port: int) -> int | None:
    """The process that listens at a port; None if it is another user's, or the system has no /proc."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{rest[5]}]")
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            for link in folder.iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(link) in inodes:
                        return int(folder.parent.name)
    return None


def start(settings: Settings) -> tuple[str, str]:
    """Start a service: ("success" | "failed" | "unknown", path of its log)."""
    log = path_of(settings.workspace, "server", settings.port, "error")
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", MODULE], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            env={**os.environ, **environment(settings)}, start_new_session=True, cwd="/",
        )  # fmt: skip
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if child.poll() is not None:
            return "failed", str(log)
        if (service := at(settings.port)) and service.pid == child.pid:
            return "success", str(log)
        time.sleep(0.02)
    return "unknown", str(log)


def replace(settings: Settings) -> NoReturn:
    """This process becomes the service: found and ended as one in the background, with no memory of more."""
    sys.stdout.flush()
    os.execve(
        sys.executable, [sys.executable, "-m", MODULE], {**os.environ, **environment(settings)}
    )  # fmt: skip


def environment(settings: Settings) -> dict[str, str]:
    """The settings as the service's own variables."""
    return {f"MYCELIA_INSIGHT_{name.upper()}": str(value) for name, value in asdict(settings).items()}


def stop(service: Service) -> None:
    """End a service: asked first, killed when it does not listen."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(service.pid, signal.SIGINT)
        end = time.monotonic() + _LAST_PATIENCE
        while time.monotonic() < end:
            if not _is_ours(service.pid):
                return
            time.sleep(0.02)
        os.kill(service.pid, signal.SIGKILL)
