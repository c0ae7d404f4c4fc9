"""What stands behind a `DatasetCache`: the connection to its server and the caches it has joined."""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass

from mycelia import config, errors, log
from mycelia.dataset.cache import CONNECTIONS, PREFETCH
from mycelia_cache import channel as ways
from mycelia_cache.handle import Handle, LocalHandle, RemoteHandle
from mycelia_cache.identity import Identity, identify
from mycelia_cache.proto import cache_pb2 as pb
from mycelia_cache.protocol import Code, Refused, Unreachable


@dataclass(frozen=True, slots=True)
class CacheStat:
    """What a server tells of a cache; see `DatasetCache.get_stat`."""

    avg_cache_sz: int
    num_mem_cached: int
    num_disk_cached: int
    num_hit: int
    num_miss: int
    mem_bytes: int
    disk_bytes: int
    state: int
    min_row_id: int
    max_row_id: int


class CacheClient:
    """The client of one `DatasetCache`, `settings`. It connects when the first pipeline is read."""

    def __init__(self, settings):
        self.settings = settings
        self._lock = threading.RLock()
        self._earlier = (0, 0)  # hits and misses of connections that ended
        self._forget()
        self._tree: bytes | None = None
        self._private: int | None = None  # the session of this process, if none was given

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._channel = None
        self._handle: Handle | None = None
        self._identity: Identity | None = None
        self._told = False

    @property
    def port(self) -> int:
        """Of the server."""
        return self.settings.port or config.get("cache_port")

    def rewritten(self, node):
        """The node that serves the rows of a cached one. RuntimeError where no cache may be."""
        from mycelia_cache.rewrite import rewritten

        return rewritten(self, node)

    # ---- joining -----------------------------------------------------------------------------------------

    def identity(self, node) -> Identity:
        """The identity of a pipeline. RuntimeError if this cache belongs to another one."""
        identity = identify(node, check_content=self.settings.check_content)
        if self._tree is not None and self._tree != identity.tree:
            raise errors.runtime_error(
                "DatasetCache",
                "Cannot re-use a cache for a different tree!",
                hint="make one DatasetCache for each pipeline; they may have the same session_id",
            )
        self._tree = identity.tree
        return identity

    def joined(self, identity: Identity, *, numbered: bool, begun: bool) -> Handle | None:
        """The cache of a pipeline; None to go on without one. `begun`: an epoch was read already.

        Errors: RuntimeError as `on_failure` says, and for what the server refuses.
        """
        with self._lock:
            if self._pid != os.getpid():
                self._forget()  # a fork: the connection is the parent's
            handle = self._handle
            same = handle is not None and self._identity.digest == identity.digest
            if same and handle.alive and not handle.gone and handle.report(tell=False):
                return handle
            try:
                fresh = self._join(identity, numbered)
                self._earlier, self._handle = self.counts(), fresh
                self._identity, self._told = identity, False
                return self._handle
            except Refused as e:  # the session is gone, with the server that knew it or without
                if self.settings.on_failure != "bypass":
                    raise _refusal(e) from None
                self._tell(e)
                return None
            except Unreachable as e:
                self._channel = None
                if self.settings.on_failure == "bypass" or (begun and self.settings.on_failure is None):
                    self._tell(e)
                    return handle if same else None  # rows that are mapped can still be read
                raise ways.unreachable(self.port) from None

    def _join(self, identity: Identity, numbered: bool) -> Handle:
        settings = self.settings
        if self._channel is None:
            self._connect()
        wish = pb.Join(
            session=self._session(), crc=identity.crc, digest=identity.digest, size=settings.size << 20,
            spilling=settings.spilling, numbered=numbered, pipeline=identity.text,
        )  # fmt: skip
        try:
            return self._joined(wish)
        except Unreachable:  # the connection was of a server that is gone: there may be another one
            pass
        except Refused as e:
            if e.code != Code.NO_CLIENT:  # over gRPC another server answers on the same connection
                raise
        self._connect()
        wish.session = self._session()
        return self._joined(wish)

    def _connect(self) -> None:
        self._private = self._channel = None
        self._channel = ways.open_channel(self.settings.hostname or config.get("cache_host"), self.port)
        ways.hello(self._channel)

    def _session(self) -> int:
        if self.settings.session_id is not None:
            return self.settings.session_id
        if self._private is None:
            reply = self._channel.call(pb.Request(new_session=pb.NewSession(private=True)))
            self._private = reply.session.session
        return self._private

    def _joined(self, wish) -> Handle:
        request = pb.Request(join=wish)
        client = weakref.ref(self)  # in a circle the connection would outlive who needs it

        def lost(cause: Exception) -> None:
            if client() is not None:
                client()._lost(cause)

        if self._channel.local:
            reply, fds = self._channel.call_for_files(request)
            handle: Handle = LocalHandle(self._channel, reply.joined, fds, lost)
        else:
            reply = self._channel.call(request)
            settings = self.settings
            handle = RemoteHandle(
                self._channel, reply.joined, lost,
                settings.prefetch_size or PREFETCH, settings.num_connections or CONNECTIONS,
            )  # fmt: skip
        if reply.joined.warning:
            log.logger(__name__).warning("DatasetCache: %s", reply.joined.warning)
        return handle

    # ---- trouble -----------------------------------------------------------------------------------------

    def _lost(self, cause: Exception) -> None:
        """The server is gone, or the session, in the middle of a pipeline."""
        if self.settings.on_failure == "error":
            raise _refusal(cause) if isinstance(cause, Refused) else ways.unreachable(self.port)
        self._tell(cause)

    def _tell(self, cause: Exception) -> None:
        if self._told:
            return
        self._told = True
        what = str(cause) if isinstance(cause, Refused) else f"the server on port {self.port} is gone"
        log.logger(__name__).warning("DatasetCache: %s; rows come from the source", what)

    # ---- questions ---------------------------------------------------------------------------------------

    def counts(self) -> tuple[int, int]:
        """Hits and misses of this process."""
        hits, misses = (0, 0) if self._handle is None else self._handle.counts()
        return self._earlier[0] + hits, self._earlier[1] + misses

    def figures(self) -> dict[str, int]:
        """For a profile: hits and misses of this process, and the bytes in the cache while it is there."""
        hits, misses = self.counts()
        try:
            known = self.stat()
        except errors.MyceliaRuntimeError:
            return {"hits": hits, "misses": misses}
        return {"hits": hits, "misses": misses, "bytes": known.mem_bytes + known.disk_bytes}

    def stat(self) -> CacheStat:
        """What the server tells. RuntimeError before the first pipeline, and without the server."""
        handle = self._handle
        if handle is None:
            raise errors.runtime_error(
                "DatasetCache", "the cache is not in use yet: read a pipeline with it first"
            )
        handle.flush()
        handle.report()
        try:
            info = handle.channel.call(pb.Request(stat=pb.Stat(cache=handle.cache))).stat
        except Refused as e:
            raise _refusal(e) from None
        except Unreachable:
            raise ways.unreachable(self.port) from None
        rows = info.rows_in_memory + info.rows_on_disk
        return CacheStat(
            info.row_bytes // rows if rows else 0, info.rows_in_memory, info.rows_on_disk, info.hits,
            info.misses, info.bytes_in_memory, info.bytes_on_disk, info.state, info.min_row, info.max_row,
        )  # fmt: skip


def _refusal(e: Refused) -> errors.MyceliaRuntimeError:
    hint = ""
    if e.code == Code.NO_SESSION:
        hint = "mycelia-cache session makes one; they end with the server"
    elif e.code == Code.NO_SPILL:
        hint = "mycelia-cache start --spilldir DIRECTORY"
    return errors.runtime_error("DatasetCache", str(e), hint=hint)
