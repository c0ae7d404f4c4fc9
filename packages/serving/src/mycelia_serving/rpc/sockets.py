"""Sockets at addresses as all commands take them: `ip:port` or `unix:path`."""

from __future__ import annotations

import contextlib
import os
import socket

CONNECT_S = 5.0


def split(address: str) -> tuple[str, int]:
    """Host and port. ValueError if there is no port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def bind(address: str) -> socket.socket:
    """A socket that listens at an address (port 0: any). Errors: RuntimeError."""
    try:
        if address.startswith("unix:"):
            sock = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(address[5:])
            sock.bind(address[5:])
        else:
            host, port = split(address)
            sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not both at once: see bind(2)
            sock.bind((host, port))
        sock.listen(128)
    except (OSError, ValueError, OverflowError) as e:
        raise RuntimeError(f"cannot listen on {address}: {getattr(e, 'strerror', None) or e}") from None
    return sock


def connect(
    address: str, timeout: float | None = CONNECT_S, source: tuple[str, int] | None = None
) -> socket.socket:
    """A connection to an address. source: host and port of this end. OSError if nobody is there."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        sock.connect(address[5:])
        return sock
    return socket.create_connection(split(address), timeout, source)
