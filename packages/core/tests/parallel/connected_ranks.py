"""Ranks that are threads of this process, but are connected as processes are."""

from __future__ import annotations

from mycelia.engine.communication import LaunchConfig, world
from mycelia.parallel.engines import connect, rendezvous, threads


def over_sockets(size, function, timeout_s=60.0, **changes):
    """`threads.run`, but with a connection between each two ranks, which close it when they end."""
    listener = rendezvous.listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    rendezvous.Rendezvous(listener, size, "secret", 60.0).start()

    def work(rank):
        given = dict(rank=rank, size=size, port=port, token="secret", local=(rank, size))
        communicator = connect(LaunchConfig(engine="socket", launcher="msrun", **{**given, **changes}))
        communicator._transport.timeout_s = timeout_s  # of collectives: those that meet have all the time
        try:
            with world.in_thread(communicator):
                return communicator.rank, function(communicator.rank)
        finally:
            communicator.close()

    return [found for _, found in sorted(threads.in_threads(size, work), key=lambda pair: pair[0])]
