"""What the commands do, for both command lines: `mycelia-cache` and `cache_admin`."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

from mycelia import config, errors
from mycelia_cache import channel, daemon
from mycelia_cache.proto import cache_pb2 as pb
from mycelia_cache.protocol import Code, Refused, State, Unreachable
from mycelia_cache.settings import Settings

GIGABYTE = 1 << 30
MEGABYTE = 1 << 20
_END_S = 30.0  # that a server may take to end


class Failed(Exception):
    """A command could not be carried out; the text is for the user."""


def in_one_line(error: Exception) -> str:
    """What an error says, for the user of a command line."""
    if not isinstance(error, errors.MyceliaError):
        return str(error)
    return f"{error.subject}: {error.message}" if error.subject else error.message


@contextlib.contextmanager
def connected(host: str, port: int):
    """A connection to the server. Raises Failed without one."""
    try:
        way = channel.open_channel(host, port)
    except Unreachable:
        raise Failed(channel.unreachable(port).message) from None
    except errors.MyceliaError as e:
        raise Failed(e.message) from None
    try:
        yield way
    except Unreachable:
        raise Failed(channel.unreachable(port).message) from None
    except Refused as e:
        raise Failed(f"The server on port {port} refuses: {e}") from None
    finally:
        way.close()


def default_workers() -> int:
    """Half the cores, at least 1."""
    return max(1, (os.cpu_count() or 1) // 2)


def settings(port: int, **given) -> Settings:
    """What to start a server with. Raises Failed for what cannot be."""
    try:
        directory = daemon.directory_of(port)
    except errors.MyceliaError as e:
        raise Failed(e.message) from None
    made = Settings(port, str(directory), **{"workers": default_workers(), **given})
    if not 1025 <= port <= 65535:
        raise Failed("Port must be in range (1025..65535).")
    most = max(os.cpu_count() or 1, 100)
    if not 1 <= made.workers <= most:
        raise Failed(f"Number of workers must be in range of 1 and {most}.")
    if not 0 <= made.log_level <= 4:
        raise Failed("Log level must be in range (0..4).")
    if made.memory is not None and made.memory <= 0:
        raise Failed("Shared memory size (in GB unit) must be positive")
    if not 0 < made.memory_cap_ratio <= 1:
        raise Failed("Memory cap ratio should be positive and no greater than 1")
    if made.spill_dir:
        made.spill_dir = os.path.abspath(made.spill_dir)
        if not os.path.isdir(made.spill_dir) or not os.access(made.spill_dir, os.W_OK | os.X_OK):
            raise Failed(f"Spilling directory is not writable: {made.spill_dir}")
    if (made.keep or made.spill_limit is not None) and not made.spill_dir:
        raise Failed("What is to be kept, or limited, on disk needs a spilling directory")
    made.tls = made.tls and os.path.abspath(made.tls)
    made.token = made.token or config.get("cache_token")
    if made.bind not in channel.LOCAL and not (made.token or made.tls):
        raise Failed(
            f"A server that others reach at {made.bind} needs MYCELIA_CACHE_TOKEN or a directory of "
            "certificates"
        )
    return made


def start(wish: Settings) -> int:
    """Start a server of its own process; its pid. Raises Failed."""
    try:
        return daemon.start(wish)
    except errors.MyceliaError as e:
        raise Failed(e.message) from None


def stop(host: str, port: int) -> None:
    """End the server, and wait until its process, port and memory are gone. Raises Failed if there is none,
    or if it does not end.
    """
    with _reached(host, port) as way:
        watched = way.local and way.server_pid  # not one of another container, whose number is not known
        with daemon.end_of(way.server_pid) if watched else contextlib.nullcontext() as ended:
            way.call(pb.Request(stop=pb.Stop()))
            if not (ended(_END_S) if watched else _refuses(host, port, _END_S)):
                raise Failed(f"The server on port {port} is still ending after {_END_S:.0f} s.")


@contextlib.contextmanager
def _reached(host: str, port: int):
    """`connected`, with the words of MindSpore's `--stop` if there is no server."""
    try:
        way = contextlib.ExitStack()
        found = way.enter_context(connected(host, port))
    except Failed as e:
        if str(e) != channel.unreachable(port).message:
            raise
        raise Failed(f"Server on port {port} is not reachable or has been shutdown already.") from None
    with way:
        yield found


def _refuses(host: str, port: int, wait_s: float) -> bool:
    """Whether nobody listens there any more, after `wait_s` seconds at most."""
    until = time.monotonic() + wait_s
    while time.monotonic() < until:
        try:
            socket.create_connection((host, port), timeout=1.0).close()
        except OSError:
            return True
        time.sleep(0.05)
    return False


def new_session(host: str, port: int) -> int:
    """The number of a new session. Raises Failed."""
    with connected(host, port) as way:
        return way.call(pb.Request(new_session=pb.NewSession())).session.session


def destroy(host: str, port: int, session: int) -> None:
    """End a session. Raises Failed if there is none of that number."""
    with connected(host, port) as way:
        try:
            way.call(pb.Request(drop_session=pb.DropSession(session=session)))
        except Refused as e:
            if e.code != Code.NO_SESSION:
                raise
            raise Failed(
                f"Unexpected error. Session id {session} not found in server on port {port}."
            ) from None


def overview(host: str, port: int):
    """All that the server tells of itself. Raises Failed."""
    with connected(host, port) as way:
        return way.call(pb.Request(overview=pb.Overview())).info


def as_table(info) -> dict:
    """The overview as a dict for JSON."""
    return {
        "hostname": info.hostname,
        "port": info.port,
        "pid": info.pid,
        "workers": info.workers,
        "log_level": info.log_level,
        "spill_dir": info.spill_dir or None,
        "backend": info.backend or None,
        "uptime_s": round(info.uptime_s, 3),
        "clients": info.clients,
        "memory_cap": info.memory_cap,
        "memory_used": info.memory_used,
        "sessions": [
            {"session": number, "caches": [_cache(c) for c in info.caches if c.session == number]}
            for number in info.sessions
        ],
    }


def _cache(c) -> dict:
    rows = c.rows_in_memory + c.rows_on_disk
    return {
        "cache_id": c.crc,
        "pipeline": c.pipeline,
        "state": State(c.state).name.lower(),
        "num_mem_cached": c.rows_in_memory,
        "num_disk_cached": c.rows_on_disk,
        "avg_cache_sz": c.row_bytes // rows if rows else 0,
        "mem_bytes": c.bytes_in_memory,
        "disk_bytes": c.bytes_on_disk,
        "size_limit": c.size_limit or None,
        "num_hit": c.hits,
        "num_miss": c.misses,
        "min_row_id": c.min_row,
        "max_row_id": c.max_row,
        "clients": c.clients,
    }


def log_directory(port: int) -> Path:
    """Where a server writes its log."""
    return daemon.log_file(port).parent
