"""TCPStore: keys and values that processes share; the master holds them and the others ask it over TCP."""

from __future__ import annotations

import datetime
import threading
import time
from multiprocessing.connection import Client, Connection, Listener

from mycelia.engine.base import errors, ignored

_KEY = b"mycelia-tcp-store"  # tells a store from other listeners; it keeps no secret


class _Server:
    """The table, and a thread for each process that asks."""

    def __init__(self, address: tuple[str, int]):
        self._table: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._joined = 0
        self._listener = Listener(address, authkey=_KEY)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection = self._listener.accept()
            with self._changed:
                self._joined += 1
                self._changed.notify_all()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        try:
            while True:
                method, *arguments = connection.recv()
                connection.send(getattr(self, method)(*arguments))
        except (EOFError, OSError):
            connection.close()

    def wait_for(self, count: int, timeout_s: float) -> bool:
        """Whether `count` processes have joined in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._joined >= count, timeout_s)

    def set(self, key: str, value: bytes) -> None:
        with self._changed:
            self._table[key] = value
            self._changed.notify_all()

    def get(self, key: str, timeout_s: float) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: key in self._table, timeout_s)
            return self._table.get(key)

    def add(self, key: str, amount: int) -> int | None:
        with self._changed:
            try:
                total = int(self._table.get(key, b"0")) + amount
            except ValueError:
                return None
            self._table[key] = str(total).encode()
            self._changed.notify_all()
            return total

    def delete_key(self, key: str) -> bool:
        with self._changed:
            return self._table.pop(key, None) is not None


class TCPStore:
    """Keys and values at `host_name`:`port`; `is_master` holds them, the others connect to it.

    `world_size`: how many processes there are, master and all; with `wait_for_workers` the master waits for
    them. `timeout`: how long is waited, for processes and for keys.
    Errors: TypeError and ValueError name the argument; RuntimeError if nobody answers in time.
    """

    @ignored.arguments(
        multi_tenant="a port has one store",
        master_listen_fd="the store opens its own socket",
        use_libuv="connections are served by threads",
    )
    def __init__(
        self,
        host_name,
        port,
        world_size=None,
        is_master=False,
        timeout=datetime.timedelta(seconds=300),
        wait_for_workers=True,
        multi_tenant=False,
        master_listen_fd=None,
        use_libuv=True,
    ):
        for name, value, kind in (
            ("host_name", host_name, str),
            ("port", port, int),
            ("is_master", is_master, bool),
            ("timeout", timeout, datetime.timedelta),
            ("wait_for_workers", wait_for_workers, bool),
        ):
            if not isinstance(value, kind):
                raise errors.type_error("TCPStore", f"{name} must be {kind.__name__}, but got {value!r}")
        if not 0 <= port <= 65535:
            raise errors.value_error("TCPStore", f"port must be in [0, 65535], but got {port}")
        self._timeout_s = timeout.total_seconds()
        self._lock = threading.Lock()
        self._server = self._connection = None
        if is_master:
            self._server = _Server((host_name, port))
            if wait_for_workers and world_size is not None:
                if not self._server.wait_for(world_size - 1, self._timeout_s):
                    raise self._late(f"{world_size} processes have not come together")
        else:
            self._connection = self._connect((host_name, port))

    def _late(self, what: str) -> Exception:
        return errors.error(errors.MyceliaRuntimeError, "TCPStore", f"{what} within {self._timeout_s:g} s")

    def _connect(self, address: tuple[str, int]) -> Connection:
        end = time.monotonic() + self._timeout_s
        while True:
            try:
                return Client(address, authkey=_KEY)
            except OSError as cause:
                if time.monotonic() > end:
                    raise self._late(f"no master has answered at {address}") from cause
                time.sleep(0.05)

    def _ask(self, method: str, key, *arguments):
        if not isinstance(key, str):
            raise errors.type_error(f"TCPStore.{method}", f"key must be a str, but got {key!r}")
        if self._server is not None:
            return getattr(self._server, method)(key, *arguments)
        with self._lock:
            self._connection.send((method, key, *arguments))
            return self._connection.recv()

    def set(self, key, value):
        """Store text or bytes under `key`."""
        if not isinstance(value, (str, bytes)):
            raise errors.type_error("TCPStore.set", f"value must be str or bytes, but got {value!r}")
        self._ask("set", key, value.encode() if isinstance(value, str) else value)

    def get(self, key):
        """The bytes under `key`; waits for it. Raises RuntimeError if it does not come in time."""
        value = self._ask("get", key, self._timeout_s)
        if value is None:
            raise self._late(f"key {key!r} has not been set")
        return value

    def add(self, key, amount):
        """Add to the number under `key`, 0 at first; the new number. RuntimeError if it is no number."""
        if isinstance(amount, bool) or not isinstance(amount, int):
            raise errors.type_error("TCPStore.add", f"amount must be an int, but got {amount!r}")
        total = self._ask("add", key, amount)
        if total is None:
            raise errors.error(
                errors.MyceliaRuntimeError, "TCPStore.add", f"the value of {key!r} is no number"
            )
        return total

    def delete_key(self, key):
        """Forget a key; whether there was one."""
        return self._ask("delete_key", key)
