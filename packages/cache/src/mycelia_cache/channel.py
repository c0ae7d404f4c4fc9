"""Ways from a client to a server: a unix socket on the same host, gRPC to others."""

from __future__ import annotations

import os
import socket
import threading
import weakref
from pathlib import Path

from mycelia import config, errors
from mycelia_cache import daemon, owner, protocol
from mycelia_cache.proto import cache_pb2 as pb
from mycelia_cache.protocol import Closed, Refused, Unreachable

LOCAL = ("127.0.0.1", "localhost", "::1")
_CALL_TIMEOUT_S = 60.0

_open_sockets: weakref.WeakSet = weakref.WeakSet()


def _forget_sockets() -> None:
    """A forked child must not hold its parent's connections open: the server takes them for the parent."""
    for channel in list(_open_sockets):
        channel.close()


os.register_at_fork(after_in_child=_forget_sockets)


def _checked(reply):
    if reply.code:
        raise Refused(reply.code, reply.message)
    return reply


class SocketChannel:
    """Requests one after the other over a unix socket; descriptors come back with some replies."""

    local = True

    def __init__(self, directory: Path):
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_CALL_TIMEOUT_S)
        try:
            place = os.open(directory, os.O_PATH | os.O_DIRECTORY)
            try:
                self._socket.connect(f"/proc/self/fd/{place}/socket")
            finally:
                os.close(place)
        except OSError as e:
            self._socket.close()
            raise Unreachable(str(e)) from None
        self.server_pid, user = owner.of_peer(self._socket)
        if user != os.getuid():
            self._socket.close()
            raise errors.runtime_error(
                "mycelia-cache",
                f"the cache server in {directory} belongs to another user: to number {user}, and this is "
                f"{os.getuid()}",
            )
        _open_sockets.add(self)
        self.client = 0

    def call(self, request):
        """The reply to a request. Raises Refused, Unreachable."""
        return self.call_for_files(request)[0]

    def call_for_files(self, request):
        """The reply and the descriptors that came with it."""
        request.protocol = protocol.PROTOCOL
        try:
            with self._lock:
                protocol.send(self._socket, request.SerializeToString())
                payload, fds = protocol.receive(self._socket)
        except (OSError, Closed) as e:
            self.close()
            raise Unreachable(str(e)) from None
        return _checked(pb.Reply.FromString(payload)), fds

    def close(self) -> None:
        """End the connection, and with it what this client held."""
        self._socket.close()


class GrpcChannel:
    """Requests over gRPC. `token` shows who we are; certificates are in the directory `tls`, if named."""

    local = False

    def __init__(self, host: str, port: int, token: str, tls: str):
        import grpc

        self._errors, self._token, self.client = grpc.RpcError, token, 0
        address = f"{host}:{port}"
        options = [*protocol.GRPC_OPTIONS, ("grpc.enable_http_proxy", 0)]
        if tls:
            directory = Path(tls)
            try:
                ca, key, cert = ((directory / f"{n}.pem").read_bytes() for n in ("ca", "key", "cert"))
            except OSError as e:
                raise errors.runtime_error(
                    "mycelia-cache", f"a certificate of MYCELIA_CACHE_TLS cannot be read: {e}"
                ) from None
            self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(ca, key, cert), options)
        else:
            self._channel = grpc.insecure_channel(address, options)
        self._call = self._channel.unary_unary(
            protocol.METHOD,
            request_serializer=pb.Request.SerializeToString,
            response_deserializer=pb.Reply.FromString,
        )

    def _filled(self, request):
        request.protocol, request.token, request.client = protocol.PROTOCOL, self._token, self.client
        return request

    def call(self, request):
        """The reply to a request. Raises Refused, Unreachable."""
        return self.later(request)()

    def later(self, request):
        """Send a request; the function that is returned waits for the reply."""
        under_way = self._call.future(self._filled(request), timeout=_CALL_TIMEOUT_S)

        def reply():
            try:
                return _checked(under_way.result())
            except self._errors as e:
                raise Unreachable(f"{e.code().name}: {e.details()}") from None

        return reply

    def close(self) -> None:
        """End the connection."""
        self._channel.close()


def open_channel(host: str, port: int):
    """The way to a server. Raises Unreachable."""
    token, tls = config.get("cache_token"), config.get("cache_tls")
    if host in LOCAL:
        try:
            return SocketChannel(daemon.directory_of(port))
        except Unreachable:
            if not (token or tls):
                raise
    elif not (token or tls):
        raise errors.runtime_error(
            "DatasetCache",
            f"the cache server must be on the same host, but is to be on {host}",
            hint="a server on another host needs MYCELIA_CACHE_TOKEN or MYCELIA_CACHE_TLS",
        )
    return GrpcChannel(host, port, token, tls)


def hello(channel) -> str:
    """Introduce ourselves; the server's own name, which differs from one start to the next."""
    reply = channel.call(pb.Request(hello=pb.Hello(pid=os.getpid(), host=socket.gethostname())))
    channel.client = reply.welcome.client
    return reply.welcome.server


def unreachable(port: int) -> errors.MyceliaRuntimeError:
    """The error for a server that does not answer."""
    return errors.runtime_error(
        "",
        f"Network error. Cache server with port {port} is unreachable. Make sure the server is running or "
        "started under the same user as the client. GRPC Code 14",
        hint=f"mycelia-cache start --port {port}",
    )
