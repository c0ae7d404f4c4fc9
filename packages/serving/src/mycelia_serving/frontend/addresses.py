"""Addresses and limits that the start functions of the protocols take."""

from __future__ import annotations

import contextlib
import os
import socket
import stat

from mycelia_serving.errors import clip
from mycelia_serving.frontend.tls import SSLConfig

_BACKLOG = 1024


def check_address(address: str, *, unix: bool = True) -> None:
    """Errors: RuntimeError for what is no listening address."""
    wanted = "'ip:port' or 'unix:path'" if unix else "'ip:port'"
    if not isinstance(address, str):
        raise RuntimeError(f"Parameter 'address' should be str of form {wanted}, but got {type(address)}")
    if unix and address.startswith("unix:"):
        folder = os.path.dirname(os.path.abspath(unix_path(address)))
        if not unix_path(address) or not os.path.isdir(folder):
            raise RuntimeError(f"Parameter 'address': {clip(address)!r} is in a directory that is not there")
        return
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise RuntimeError(f"Parameter 'address' should be of form {wanted}, but got {clip(address)!r}")


def check_port(
    address: str, max_msg_mb_size: int, ssl_config: SSLConfig | None, *, unix: bool = True
) -> None:
    """What gRPC and REST ask of a port. Errors: RuntimeError that names the parameter."""
    check_address(address, unix=unix)
    if not isinstance(max_msg_mb_size, int) or isinstance(max_msg_mb_size, bool):
        raise RuntimeError(f"Parameter 'max_msg_mb_size' should be int, but got {type(max_msg_mb_size)}")
    if not 1 <= max_msg_mb_size <= 512:
        raise RuntimeError(f"Parameter 'max_msg_mb_size' should be 1 to 512, but got {max_msg_mb_size}")
    if ssl_config is not None and not isinstance(ssl_config, SSLConfig):
        raise RuntimeError(f"Parameter 'ssl_config' should be an SSLConfig, but got {type(ssl_config)}")


def unix_path(address: str) -> str:
    """The path of "unix:path" or "unix:///path"."""
    path = address.removeprefix("unix:")
    return path.removeprefix("//") if path.startswith("///") else path


def listening_socket(address: str) -> socket.socket:
    """A listening socket for "ip:port" (port 0: any that is free), "[ip]:port" or "unix:path".

    Errors: RuntimeError that names the address: malformed, in use, not of this host.
    """
    check_address(address)
    if address.startswith("unix:"):
        place = unix_path(address)
        _remove_stale(place)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        host, _, port = address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        place = host, int(port)
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        # This only skips the wait for old connections to be forgotten: a port in use stays an error.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(place)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise RuntimeError(f"cannot listen on {clip(address)}: {error.strerror or error}") from None
    return sock


def _remove_stale(path: str) -> None:
    """Remove the socket file of a server that has died; one that is answered stays, and is in use."""
    with contextlib.suppress(OSError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
