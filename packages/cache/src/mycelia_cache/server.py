"""The cache server: answers requests over gRPC and over a unix socket."""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from mycelia import log
from mycelia_cache import owner, protocol
from mycelia_cache.memory import Budget, system_memory
from mycelia_cache.proto import cache_pb2 as pb
from mycelia_cache.protocol import Code, Refused, State
from mycelia_cache.session import Cache, Registry
from mycelia_cache.settings import Settings, without_password
from mycelia_cache.spill import Quota

_REAP_EVERY_S = 1.0


class PortTaken(Exception):
    """Another program listens on the port."""


class Server:
    """Serves until `stop` is asked for. `directory` is the runtime directory of the port, ours alone."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.directory = Path(settings.directory)
        cap = int(system_memory() * settings.memory_cap_ratio)
        self._budget = Budget(min(cap, settings.memory) if settings.memory else cap)
        spill = settings.spill_place()
        if spill is not None:
            spill.mkdir(mode=0o700, exist_ok=True)
            owner.require(spill, "the spill directory", private=True)
        self.registry = Registry(self._budget, spill, Quota(settings.spill_limit), settings.keep)
        self._shared = None
        if settings.backend:
            from mycelia_cache.shared import RedisStore

            self._shared = RedisStore(settings.backend)
        self._busy = threading.BoundedSemaphore(settings.workers)
        self._ended = threading.Event()
        self._started = time.monotonic()
        self._id = os.urandom(8).hex()
        self._log = log.logger(__name__)
        self._sockets: set[socket.socket] = set()

    # ---- life --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen. Raises PortTaken."""
        self._listen_grpc()
        self._listen_socket()
        threading.Thread(target=self._reap, name="reaper", daemon=True).start()

    def _listen_grpc(self) -> None:
        import grpc

        handler = grpc.unary_unary_rpc_method_handler(
            self._called,
            request_deserializer=pb.Request.FromString,
            response_serializer=pb.Reply.SerializeToString,
        )
        # Without so_reuseport=0 a second server would share the port instead of being refused it.
        options = [*protocol.GRPC_OPTIONS, ("grpc.so_reuseport", 0)]
        self._grpc = grpc.server(ThreadPoolExecutor(self.settings.workers + 2), options=options)
        self._grpc.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(protocol.SERVICE, {"Call": handler}),)
        )
        address = f"{self.settings.bind}:{self.settings.port}"
        try:
            if self.settings.tls:
                bound = self._grpc.add_secure_port(address, self._credentials(grpc))
            else:
                bound = self._grpc.add_insecure_port(address)
        except RuntimeError:
            bound = 0
        if bound != self.settings.port:
            raise PortTaken
        self._grpc.start()

    def _credentials(self, grpc):
        tls = Path(self.settings.tls)
        pair = ((tls / "key.pem").read_bytes(), (tls / "cert.pem").read_bytes())
        return grpc.ssl_server_credentials([pair], (tls / "ca.pem").read_bytes(), require_client_auth=True)

    def _listen_socket(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        # The path may be longer than a socket address: the directory's descriptor is a short name for it.
        place = os.open(self.directory, os.O_PATH | os.O_DIRECTORY)
        self._listener.bind(f"/proc/self/fd/{place}/socket")
        os.close(place)
        self._listener.listen(128)
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def run(self) -> None:
        """Wait until somebody stops the server, then leave nothing behind."""
        self._ended.wait()
        self._log.info("stopping")
        self._grpc.stop(grace=1.0).wait(2.0)
        self._listener.close()
        self.registry.close()

    def hang_up(self) -> None:
        """End the connections: who waits for the end of the server finds nothing left of it."""
        for sock in list(self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """End `run`."""
        self._ended.set()

    def _reap(self) -> None:
        while not self._ended.wait(_REAP_EVERY_S):
            self.registry.reap(self.settings.idle_s)

    # ---- the two ways in ---------------------------------------------------------------------------------

    def _called(self, request, _context):
        if not hmac.compare_digest(request.token.encode(), self.settings.token.encode()):
            return pb.Reply(code=Code.NOT_ALLOWED, message="the token is not this server's")
        return self.answer(request, request.client, over_socket=False)[0]

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if owner.of_peer(sock)[1] != os.getuid():
                sock.close()
                continue
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        """One client on this host; when its socket ends, so does what it held."""
        self._sockets.add(sock)
        number = 0
        try:
            while True:
                payload, fds = protocol.receive(sock)
                for fd in fds:  # nobody needs to send us any
                    os.close(fd)
                request = pb.Request.FromString(payload)
                reply, fds = self.answer(request, number, over_socket=True)
                if reply.WhichOneof("body") == "welcome":
                    number = reply.welcome.client
                protocol.send(sock, reply.SerializeToString(), fds)
                if request.WhichOneof("body") == "stop":
                    self.stop()
        except (protocol.Closed, OSError, ValueError, RecursionError):
            pass
        except Exception as e:  # what is no message of ours ends its connection, never the server
            self._log.warning("a connection ends: %s: %s", type(e).__name__, e)
        finally:
            self._sockets.discard(sock)
            sock.close()
            if number:
                self.registry.client_gone(number)

    # ---- requests ----------------------------------------------------------------------------------------

    def answer(self, request, client: int, *, over_socket: bool):
        """(reply, descriptors to send along)."""
        body = request.WhichOneof("body")
        with self._busy:
            try:
                if request.protocol != protocol.PROTOCOL:
                    raise Refused(
                        Code.WRONG_VERSION,
                        f"the client speaks protocol {request.protocol} of the cache, the server "
                        f"{protocol.PROTOCOL}: both need the same version of mycelia-cache",
                    )
                if body is None:
                    raise Refused(Code.BAD_REQUEST, "the request is empty")
                if client:
                    self.registry.client(client)
                fds: list[int] = []
                reply = getattr(self, f"_on_{body}")(getattr(request, body), client, over_socket, fds)
                if body == "stop" and not over_socket:
                    threading.Timer(0.1, self.stop).start()  # the reply goes out first
                return reply, fds
            except Refused as e:
                return pb.Reply(code=e.code, message=str(e)), []
            except Exception as e:
                self._log.exception("request %s failed", body)
                return pb.Reply(code=Code.INTERNAL, message=f"{type(e).__name__}: {e}"), []

    def _on_hello(self, hello, _client, over_socket, _fds):
        client = self.registry.new_client(hello.pid, hello.host, socket=over_socket)
        return pb.Reply(welcome=pb.Welcome(client=client.number, server=self._id))

    def _on_new_session(self, wish, client, *_):
        if wish.private and not client:
            raise Refused(Code.NO_CLIENT, "a private session needs a client to end with")
        number = self.registry.new_session(client if wish.private else 0)
        self._log.info("session %d created", number)
        return pb.Reply(session=pb.Session(session=number))

    def _on_drop_session(self, wish, *_):
        self.registry.drop(wish.session)
        self._log.info("session %d dropped", wish.session)
        return pb.Reply()

    def _on_stop(self, *_):
        return pb.Reply()

    def _on_overview(self, *_):
        registry, settings = self.registry, self.settings
        caches = sorted(registry.caches.values(), key=lambda c: (c.session, c.crc))
        return pb.Reply(
            info=pb.ServerInfo(
                hostname=settings.bind,
                port=settings.port,
                workers=settings.workers,
                log_level=settings.log_level,
                spill_dir=settings.spill_dir,
                sessions=sorted(registry.sessions),
                caches=[self._info(c) for c in caches],
                memory_cap=self._budget.cap,
                memory_used=self._budget.used,
                pid=os.getpid(),
                uptime_s=time.monotonic() - self._started,
                clients=len(registry.clients),
                backend=without_password(settings.backend),
            )
        )

    @staticmethod
    def _info(cache: Cache):
        store = cache.store
        return pb.CacheInfo(
            session=cache.session,
            crc=cache.crc,
            state=cache.shown_state(),
            rows_in_memory=store.rows_in_memory,
            rows_on_disk=store.rows_on_disk,
            bytes_in_memory=0 if store.closed else store.bytes_in_memory,
            bytes_on_disk=0 if store.closed else store.bytes_on_disk,
            hits=cache.hits,
            misses=cache.misses,
            min_row=store.min_row,
            max_row=store.max_row,
            row_bytes=store.row_bytes,
            clients=len(cache.members),
            pipeline=cache.pipeline,
            size_limit=cache.size,
        )

    def _on_join(self, wish, client, over_socket, fds):
        if not client:
            raise Refused(Code.NO_CLIENT, "say hello first")
        cache, warning = self.registry.join(client, wish)
        store = cache.store
        if self._shared is not None and not cache.numbered and cache.state == State.NONE:
            count = self._shared.count(cache.digest)
            if count is not None:
                cache.state, cache.rows = State.FETCH, count
        if over_socket:
            fds += [store.index.fd, store.data_fd]
        return pb.Reply(
            joined=pb.Joined(
                cache=cache.number,
                warning=warning,
                data_bytes=store.data_bytes,
                spill_file=str(store.spill.path) if over_socket and store.spill is not None else "",
                shared_store=self._shared is not None,
                room=store.room,
            )
        )

    def _on_reserve(self, wish, client, *_):
        store = self.registry.cache(wish.cache).store
        ticket, places, offsets = store.reserve(client, _rows(wish.rows), np.frombuffer(wish.lengths, "<u8"))
        return pb.Reply(
            reserved=pb.Reserved(
                ticket=ticket, places=places.tobytes(), offsets=offsets.tobytes(), room=store.room
            )
        )

    def _on_commit(self, wish, client, *_):
        cache = self.registry.cache(wish.cache)
        done = cache.store.commit(
            client, wish.ticket, np.frombuffer(wish.written, np.uint8), np.frombuffer(wish.checksums, "<u4")
        )
        if self._shared is not None:
            lengths, data = cache.store.get(done)
            self._share(cache, done, lengths, data)
        return pb.Reply()

    def _share(self, cache: Cache, rows: np.ndarray, lengths: np.ndarray, data) -> None:
        self._shared.put(cache.digest, list(_cut(rows, lengths, data)))

    def _on_put(self, wish, client, *_):
        cache = self.registry.cache(wish.cache)
        rows, lengths = _rows(wish.rows), np.frombuffer(wish.lengths, "<u8")
        cache.store.put(client, rows, lengths, wish.data)
        if self._shared is not None:
            self._share(cache, rows, lengths, wish.data)
        return pb.Reply(reserved=pb.Reserved(room=cache.store.room))

    def _on_get(self, wish, client, *_):
        cache = self.registry.cache(wish.cache)
        rows = _rows(wish.rows)
        lengths, data = cache.store.get(rows)
        if self._shared is not None and (lengths == 0).any():
            lengths, data = self._with_shared(cache, client, rows, lengths, data)
        return pb.Reply(rows=pb.Rows(lengths=lengths.tobytes(), data=data))

    def _with_shared(self, cache: Cache, client: int, rows, lengths, data):
        """Fill what is missing here from the store beyond, and keep it here as far as there is room."""
        own = dict(_cut(rows, lengths, data))
        missing = rows[lengths == 0]
        found = {
            row: value
            for row, value in zip(missing.tolist(), self._shared.get(cache.digest, missing.tolist()))
            if value is not None
        }
        if found:
            sizes = np.array([len(v) for v in found.values()], np.uint64)
            cache.store.put(client, np.array(list(found), np.int64), sizes, b"".join(found.values()))
        pieces = [own.get(row) or found.get(row, b"") for row in rows.tolist()]
        return np.array([len(p) for p in pieces], np.uint64), b"".join(pieces)

    def _on_present(self, wish, *_):
        cache = self.registry.cache(wish.cache)
        rows = _rows(wish.rows)
        there = cache.store.present(rows)
        if self._shared is not None and not there.all():
            there |= self._shared.present(cache.digest, rows)
        return pb.Reply(mask=pb.Mask(present=there.tobytes()))

    def _on_forget(self, wish, *_):
        rows = _rows(wish.rows)
        self._log.warning("%d damaged rows on disk are dropped", len(rows))
        self.registry.cache(wish.cache).store.forget(rows)
        return pb.Reply()

    def _on_report(self, wish, *_):
        cache = self.registry.cache(wish.cache)
        cache.hits += wish.hits
        cache.misses += wish.misses
        return pb.Reply()

    def _on_lease(self, wish, client, *_):
        state, mine, rows = self.registry.lease(client, wish)
        if wish.done and self._shared is not None:
            self._shared.set_count(self.registry.cache(wish.cache).digest, rows)
        return pb.Reply(lease=pb.LeaseState(state=state, mine=mine, rows=rows))

    def _on_stat(self, wish, *_):
        return pb.Reply(stat=self._info(self.registry.cache(wish.cache)))


def _rows(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<i8")


def _cut(rows, lengths, data):
    """(number, bytes) of each row that is there."""
    at = 0
    for row, length in zip(rows.tolist(), lengths.tolist()):
        if length:
            yield row, data[at : at + length]
            at += length
