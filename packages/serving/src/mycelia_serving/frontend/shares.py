"""What one client may hold of what a port has.

A client is all that comes from one IPv4 address, from one IPv6 network of 64 bits, or from one process of
this host. The native front end keeps the same accounts in C++ (native/src/shares.h).
"""

from __future__ import annotations

import ipaddress
import os
import resource
from collections import Counter

PEER = ":peer"  # the client among a call's headers: no header that is sent can have this name
CALLS = 32_768  # open calls of a port
STREAMS = 1000  # of a connection
HANDSHAKE_S = 20.0  # until a client of gRPC has sent its settings
IDLE_S = 7200.0  # of a gRPC connection without a call
STALL_S = 60.0  # without a byte of a request that is under way, or of an answer;
SLOWEST = 16 << 10  # bytes a second that keep a client's time from running out


class Share:
    """A limit that nobody can use up for the others; for one thread.

    A half is divided among the connections that there may be: each has its own part for sure. Of the other
    half nobody gets more than he leaves: a connection as much as its client could still get, and a client so
    as much as is free.
    """

    def __init__(self, limit: int, connections: int) -> None:
        self.own = max(limit // 2 // connections, 1)
        self.common = limit - limit // 2
        self.used = 0  # of what is common
        self._all: Counter = Counter()  # connection -> what it holds
        self._beyond: Counter = Counter()  # client or connection -> of it what is more than its own

    def take(self, client: str, connection: object, more: int = 1) -> bool:
        """Whether so much more may be held; then it is."""
        held = self._all[connection]
        extra = max(held + more, self.own) - max(held, self.own)
        if extra and extra + self._beyond[connection] + self._beyond[client] + self.used > self.common:
            return False
        self._change(client, connection, more, extra)
        return True

    def give_back(self, client: str, connection: object, less: int = 1) -> None:
        """What was taken is not held any more."""
        held = self._all[connection]
        self._change(client, connection, -less, max(held - less, self.own) - max(held, self.own))

    def _change(self, client: str, connection: object, amount: int, extra: int) -> None:
        self.used += extra
        for counter, who, change in (
            (self._all, connection, amount),
            (self._beyond, connection, extra),
            (self._beyond, client, extra),
        ):
            counter[who] += change
            if not counter[who]:
                del counter[who]


def client_of(host: str) -> str:
    """The client behind an address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


def most_connections() -> int:
    """Connections of a port: each takes a file descriptor, and others need some too."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 4096 if files == resource.RLIM_INFINITY else max(min(4096, files // 3), 16)


def most_bytes(max_message: int) -> int:
    """Bytes of requests of a port that are not answered yet: an eighth of the memory, room for large ones."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1 << 30, 16 * max_message, memory // 8)
