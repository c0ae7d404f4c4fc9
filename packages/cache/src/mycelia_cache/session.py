"""Sessions, the caches in them, and the clients that use them."""

from __future__ import annotations

import itertools
import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mycelia import log
from mycelia_cache import index as table
from mycelia_cache.memory import Budget
from mycelia_cache.protocol import Code, Refused, State
from mycelia_cache.spill import Quota, SpillFile
from mycelia_cache.store import Store

_SILENT_S = 60.0  # a client without a socket that says nothing for so long is taken for gone


@dataclass(eq=False, slots=True)
class Client:
    """Someone who uses caches. `socket`: it is gone when its socket is; others when they fall silent."""

    number: int
    pid: int
    host: str
    socket: bool
    seen: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class Cache:
    """Rows of one pipeline in one session."""

    number: int
    session: int
    crc: int
    digest: bytes
    size: int
    spilling: bool
    numbered: bool
    pipeline: str
    store: Store
    state: State
    members: set[int] = field(default_factory=set)
    builder: int = 0
    rows: int = 0
    hits: int = 0
    misses: int = 0

    def shown_state(self) -> State:
        """The state, or that there is no room."""
        if self.state not in (State.NO_LOCKING, State.FETCH):
            return self.state
        if self.store.out_of_disk:
            return State.NO_SPACE
        if self.store.out_of_memory and self.store.spill is None:
            return State.OUT_OF_MEMORY
        return self.state


@dataclass(eq=False, slots=True)
class Session:
    """A number that owns caches. `owner`: the client that a private session ends with."""

    number: int
    owner: int = 0
    caches: dict[int, Cache] = field(default_factory=dict)
    used: float = field(default_factory=time.monotonic)


class Registry:
    """All sessions of a server. Every method may be called from any thread."""

    def __init__(self, budget: Budget, spill_dir: Path | None = None, quota: Quota | None = None, keep=False):
        self.budget, self.spill_dir, self.keep = budget, spill_dir, keep
        self._quota = quota or Quota(None)
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self.sessions: dict[int, Session] = {}
        self.caches: dict[int, Cache] = {}
        self.clients: dict[int, Client] = {}
        if keep:
            self._restore()

    # ---- clients -----------------------------------------------------------------------------------------

    def new_client(self, pid: int, host: str, *, socket: bool) -> Client:
        """Someone has come."""
        with self._lock:
            number = secrets.randbits(62) | 1
            client = self.clients[number] = Client(number, pid, host, socket)
            return client

    def client(self, number: int) -> Client:
        """The client of that number, who has just been heard."""
        client = self.clients.get(number)
        if client is None:
            raise Refused(Code.NO_CLIENT, "the server does not know this client (any more)")
        client.seen = time.monotonic()
        return client

    def client_gone(self, number: int) -> None:
        """Free what a client held: places for rows, a build, a private session."""
        with self._lock:
            if self.clients.pop(number, None) is None:
                return
            for cache in self.caches.values():
                if number not in cache.members:
                    continue
                cache.members.discard(number)
                cache.store.abandon(number)
                self._tell_members(cache)
                if cache.builder == number:
                    cache.builder, cache.state = 0, State.NONE
            for session in [s for s in self.sessions.values() if s.owner == number]:
                self.drop(session.number)

    def reap(self, idle_s: float | None) -> None:
        """Free clients that fell silent and sessions that nobody has used for `idle_s`."""
        now = time.monotonic()
        for client in list(self.clients.values()):
            if not client.socket and now - client.seen > _SILENT_S:
                self.client_gone(client.number)
        if idle_s is None:
            return
        with self._lock:
            for session in list(self.sessions.values()):
                if any(cache.members for cache in session.caches.values()):
                    session.used = now
                elif now - session.used > idle_s:
                    self.drop(session.number)

    # ---- sessions ----------------------------------------------------------------------------------------

    def new_session(self, owner: int = 0) -> int:
        """A number that no session has."""
        with self._lock:
            while True:
                number = secrets.randbelow(2**32 - 1) + 1
                if number not in self.sessions:
                    self.sessions[number] = Session(number, owner)
                    self._save()
                    return number

    def session(self, number: int) -> Session:
        """The session of that number."""
        session = self.sessions.get(number)
        if session is None:
            raise Refused(Code.NO_SESSION, f"the session was not found: there is no session {number}")
        session.used = time.monotonic()
        return session

    def drop(self, number: int) -> None:
        """End a session: its rows, memory and files go."""
        with self._lock:
            session = self.session(number)
            del self.sessions[number]
            for cache in session.caches.values():
                del self.caches[cache.number]
                cache.store.close()
            if self.spill_dir is not None:
                self._remove_empty(self.spill_dir / str(number))
            self._save()

    @staticmethod
    def _remove_empty(directory: Path) -> None:
        try:
            directory.rmdir()
        except OSError:
            pass

    # ---- caches ------------------------------------------------------------------------------------------

    def join(self, client: int, wish) -> tuple[Cache, str]:
        """The cache of a pipeline, made if nobody has yet, and what the client should be told about it."""
        with self._lock:
            self.client(client)
            session = self.session(wish.session)
            cache = session.caches.get(wish.crc)
            warning = ""
            if cache is None:
                cache = self._made(session, wish)
                self._save()
            elif cache.digest != wish.digest:
                raise Refused(
                    Code.OTHER_TREE,
                    f"two different pipelines have the same crc {wish.crc} in session {session.number}",
                )
            elif (cache.size, cache.spilling) != (wish.size, wish.spilling):
                warning = (
                    f"the cache was made with size={cache.size >> 20} and spilling={cache.spilling}, which "
                    f"stay in force; size={wish.size >> 20} and spilling={wish.spilling} change nothing"
                )
            cache.members.add(client)
            self._tell_members(cache)
            return cache, warning

    def _tell_members(self, cache: Cache) -> None:
        if not cache.store.closed:
            cache.store.index.head[table.W_CLIENTS] = len(cache.members)

    def _made(self, session: Session, wish) -> Cache:
        spill = None
        if wish.spilling:
            if self.spill_dir is None:
                raise Refused(Code.NO_SPILL, "Server is not set up with spill support")
            directory = self.spill_dir / str(session.number) / f"{wish.crc:08x}"
            spill = SpillFile(directory, self._quota, self.keep)
        store = Store(self.budget, wish.size, spill)
        cache = Cache(
            next(self._numbers), session.number, wish.crc, bytes(wish.digest), wish.size, wish.spilling,
            wish.numbered, wish.pipeline, store, State.NO_LOCKING if wish.numbered else State.NONE,
        )  # fmt: skip
        session.caches[wish.crc] = self.caches[cache.number] = cache
        return cache

    def cache(self, number: int) -> Cache:
        """The cache of that number."""
        cache = self.caches.get(number)
        if cache is None:
            raise Refused(Code.NO_SESSION, "the session was not found: it is destroyed")
        return cache

    def lease(self, client: int, wish) -> tuple[State, bool, int]:
        """The state of a build: (state, whether this client builds, rows)."""
        with self._lock:
            cache = self.cache(wish.cache)
            mine = cache.builder == client
            if wish.done and mine:
                cache.builder, cache.state, cache.rows = 0, State.FETCH, wish.rows
                self._save()
            elif wish.give_up and mine:
                cache.builder, cache.state = 0, State(wish.failure)
            elif wish.want and cache.state == State.NONE:
                cache.builder, cache.state = client, State.BUILD
            return cache.state, cache.builder == client, cache.rows

    # ---- kept from one start to the next -----------------------------------------------------------------

    def _save(self) -> None:
        if not self.keep:
            return
        data = [
            {
                "session": s.number,
                "caches": [
                    {"crc": c.crc, "digest": c.digest.hex(), "size": c.size, "numbered": c.numbered,
                     "pipeline": c.pipeline, "rows": c.rows if c.state == State.FETCH else None}
                    for c in s.caches.values() if c.spilling
                ],
            }
            for s in self.sessions.values() if not s.owner
        ]  # fmt: skip
        path = self.spill_dir / "sessions.json"
        path.with_suffix(".new").write_text(json.dumps(data))
        path.with_suffix(".new").replace(path)

    def _restore(self) -> None:
        path = self.spill_dir / "sessions.json"
        try:
            kept = _kept(json.loads(path.read_text()))
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError) as error:
            log.logger(__name__).warning("no session is taken up again: %s is damaged: %s", path, error)
            return
        for number, caches in kept.items():
            session = self.sessions[number] = Session(number)
            for wish, rows in caches:
                cache = self._made(session, wish)
                cache.store.restore()
                if rows is not None and rows <= cache.store.index.slots:
                    if cache.store.present(np.arange(rows)).all():
                        cache.state, cache.rows = State.FETCH, rows
        self._save()

    def close(self) -> None:
        """End all sessions; with `keep` their files stay."""
        with self._lock:
            for cache in self.caches.values():
                cache.store.close(keep=self.keep)
            if not self.keep and self.spill_dir is not None:
                for number in self.sessions:
                    self._remove_empty(self.spill_dir / str(number))
            self.sessions.clear()
            self.caches.clear()


@dataclass(slots=True)
class _Wish:
    """What a client once asked for when it joined."""

    crc: int
    digest: bytes
    size: int
    numbered: bool
    pipeline: str
    spilling: bool = True


_KEPT = {"crc": int, "digest": str, "size": int, "numbered": bool, "pipeline": str, "rows": (int, type(None))}


def _kept(data) -> dict[int, list[tuple[_Wish, int | None]]]:
    """The caches of each session, and how many rows those have that are built.

    Errors: ValueError for what `_save` does not write.
    """
    try:
        found: dict[int, list[tuple[_Wish, int | None]]] = {}
        for entry in data:
            number, caches = entry["session"], {c["crc"]: c for c in entry["caches"]}
            if type(number) is not int or number in found or len(caches) != len(entry["caches"]):
                raise ValueError(f"session {number!r} or one of its caches stands there twice")
            found[number] = [(_wish(c), c["rows"]) for c in caches.values()]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return found


def _wish(c: dict) -> _Wish:
    wrong = [name for name, kind in _KEPT.items() if not isinstance(c[name], kind)]
    if wrong or not (0 <= c["crc"] < 1 << 32 and 0 <= c["size"] < 1 << 63 and (c["rows"] or 0) >= 0):
        raise ValueError(f"a cache is {c}")
    return _Wish(c["crc"], bytes.fromhex(c["digest"]), c["size"], c["numbered"], c["pipeline"])
