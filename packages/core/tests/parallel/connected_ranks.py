"""Ranks that are threads of this process, but are connected as processes are."""

from __future__ import annotations

import threading

from mycelia.engine.communication import LaunchConfig, world
from mycelia.parallel.engines import connect, rendezvous


def over_sockets(size, function, timeout_s=60.0, **changes):
    """`threads.run`, but with a connection between each two ranks, which close it when they end."""
    listener = rendezvous.listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    rendezvous.Rendezvous(listener, size, "secret", 60.0).start()
    results, failed = [None] * size, []

    def work(rank):
        try:
            given = dict(rank=rank, size=size, port=port, token="secret", local=(rank, size))
            communicator = connect(LaunchConfig(engine="socket", launcher="msrun", **{**given, **changes}))
            communicator._transport.timeout_s = timeout_s  # of collectives: those that meet have all the time
            try:
                with world.in_thread(communicator):
                    results[communicator.rank] = function(communicator.rank)
            finally:
                communicator.close()
        except BaseException as cause:
            failed.append(cause)

    workers = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed:
        raise failed[0]
    return results
