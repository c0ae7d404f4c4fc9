"""Which of several servers is the master, by leases in etcd; the others stand by.

Keys, all bound to leases, so they go a few seconds after their owner has:

    /mycelia-serving/CLUSTER/master          address at which workers join
    /mycelia-serving/CLUSTER/standby/NAME    a server that waits

It speaks etcd's JSON gateway (/v3), which every etcd since 3.4 has, and needs no package.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Callable

from mycelia import log

TTL_S = 5  # of a lease: so long after its end a master is replaced
_PAUSE_S = 1.0  # between looks, a fifth of that
_TIMEOUT_S = 3.0
_ROOT = "/mycelia-serving"


class EtcdError(RuntimeError):
    """etcd does not answer, or not as expected."""


class Etcd:
    """Calls of one etcd cluster. endpoints: "host:port", or several with commas. Errors: EtcdError."""

    def __init__(self, endpoints: str) -> None:
        self._endpoints = [e.removeprefix("http://").strip("/") for e in endpoints.split(",") if e]
        if not self._endpoints or not all(e.rpartition(":")[2].isdecimal() for e in self._endpoints):
            raise RuntimeError(f"the address of etcd is host:port, got {endpoints!r}")

    def call(self, path: str, message: dict) -> dict:
        """POST a message to `/v3/PATH`; an endpoint that does not answer is followed by the next."""
        problem = ""
        for endpoint in list(self._endpoints):
            connection = http.client.HTTPConnection(endpoint, timeout=_TIMEOUT_S)
            try:
                connection.request("POST", f"/v3/{path}", json.dumps(message))
                response = connection.getresponse()
                answer = json.loads(response.read())
                if response.status == 200 and "error" not in answer:
                    return answer.get("result", answer)  # calls that stream wrap their answers
                problem = str(answer.get("message") or answer.get("error"))
                break
            except (OSError, ValueError, http.client.HTTPException) as e:
                problem = f"{endpoint}: {e}"
                self._endpoints.append(self._endpoints.pop(0))
            finally:
                connection.close()
        raise EtcdError(f"etcd: {problem}")

    def grant(self, seconds: int) -> str:
        """A new lease."""
        return self.call("lease/grant", {"TTL": seconds})["ID"]

    def keep_alive(self, lease: str) -> bool:
        """Whether the lease lives on for its whole time."""
        return int(self.call("lease/keepalive", {"ID": lease}).get("TTL", 0)) > 0

    def revoke(self, lease: str) -> None:
        """End a lease; its keys go."""
        self.call("lease/revoke", {"ID": lease})

    def get(self, key: str) -> str | None:
        """The value of a key; None without one."""
        found = self.call("kv/range", {"key": _b64(key)}).get("kvs")
        return base64.b64decode(found[0].get("value", "")).decode() if found else None

    def put(self, key: str, value: str, lease: str) -> None:
        """Set a key for as long as the lease lives."""
        self.call("kv/put", {"key": _b64(key), "value": _b64(value), "lease": lease})

    def create(self, key: str, value: str, lease: str) -> bool:
        """Set a key that is not there; whether it was not."""
        message = {
            "compare": [{"key": _b64(key), "target": "CREATE", "create_revision": "0"}],
            "success": [{"request_put": {"key": _b64(key), "value": _b64(value), "lease": lease}}],
        }
        return bool(self.call("kv/txn", message).get("succeeded"))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def split_address(address: str) -> tuple[str, str]:
    """Endpoints and the name of the cluster from `host:port[,host:port]/CLUSTER`."""
    endpoints, _, cluster = address.removeprefix("http://").partition("/")
    return endpoints, cluster or "default"


class Mastership:
    """The right to be the master, kept by a thread. lost: called once if it cannot be kept."""

    def __init__(self, address: str, own_address: str) -> None:
        endpoints, cluster = split_address(address)
        self._etcd = Etcd(endpoints)
        self._key = f"{_ROOT}/{cluster}/master"
        self._standby = f"{_ROOT}/{cluster}/standby/{socket.gethostname()}:{os.getpid()}"
        self._own_address = own_address
        self._lease = ""
        self._renewed = 0.0
        self._given_up = threading.Event()
        self.lost: Callable[[], None] = lambda: None

    def wait(self, stop: threading.Event) -> bool:
        """Stand by until there is no master, and become it. False if `stop` was set first.

        Errors: EtcdError if etcd cannot be reached at the start; later on it is waited for.
        """
        self._lease = self._etcd.grant(TTL_S)
        told = False
        while not stop.is_set():
            try:
                if self._lease and not self._etcd.keep_alive(self._lease):
                    self._lease = ""
                if not self._lease:
                    self._lease = self._etcd.grant(TTL_S)
                self._renewed = time.monotonic()
                if self._etcd.create(self._key, self._own_address, self._lease):
                    threading.Thread(target=self._keep, name="serving-etcd", daemon=True).start()
                    return True
                self._etcd.put(self._standby, self._own_address, self._lease)
                if not told:
                    told = True
                    print(f"Serving stands by, the master is at {self._etcd.get(self._key)}", flush=True)
            except EtcdError as e:
                log.logger(__name__).warning("%s", e)
            stop.wait(_PAUSE_S)
        self._end_lease()
        return False

    def _keep(self) -> None:
        while not self._given_up.wait(_PAUSE_S):
            alive = True
            try:
                alive = self._etcd.keep_alive(self._lease)
                if alive:
                    self._renewed = time.monotonic()
            except EtcdError as e:
                log.logger(__name__).warning("%s", e)
            # Nobody else can be the master before the lease has run out, which began after `_renewed`.
            if not alive or time.monotonic() - self._renewed > TTL_S - _PAUSE_S:
                if not self._given_up.is_set():
                    self.lost()
                return

    def give_up(self) -> None:
        """Let another server be the master at once."""
        if not self._given_up.is_set():
            self._given_up.set()
            self._end_lease()

    def _end_lease(self) -> None:
        with contextlib.suppress(EtcdError):
            if self._lease:
                self._etcd.revoke(self._lease)


def become_master(server, address: str, own_address: str) -> Mastership | None:
    """Wait until this server, a `Node`, is the master; None if it was stopped first.

    address: `host:port[,host:port]/CLUSTER` of etcd. own_address: where others reach this one, `host:port`.
    A server that can no longer be sure to be the master stops at once. Errors: RuntimeError.
    """
    host = own_address.rpartition(":")[0]
    if not host or host in ("0.0.0.0", "[::]") or own_address.endswith(":0"):
        raise RuntimeError(
            f"with --etcd, --master is the address at which other hosts reach this one, got {own_address!r}"
        )
    mastership = Mastership(address, own_address)
    if not mastership.wait(server.stop_asked):
        return None

    def lost() -> None:
        log.logger(__name__).error("this server is no more the master: it stops")
        server.failed = "etcd: the lease of the master was lost"
        server.stop(0.0)

    mastership.lost = lost
    server.at_stop.append(mastership.give_up)
    return mastership


def find_masters(address: str) -> Callable[[], list[str]]:
    """What gives the address of the present master. Errors: RuntimeError for what is no address of etcd."""
    endpoints, cluster = split_address(address)
    etcd = Etcd(endpoints)

    def find() -> list[str]:
        try:
            found = etcd.get(f"{_ROOT}/{cluster}/master")
        except EtcdError as e:
            log.logger(__name__).warning("%s", e)
            return []
        return [found] if found else []

    return find
