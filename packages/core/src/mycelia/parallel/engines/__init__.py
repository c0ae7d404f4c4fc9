"""What carries messages between ranks: `threads` in one process (engine `local`), `sockets` between processes
that `mycelia msrun` or torchrun started, `mpi` between those that mpirun started.
"""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.communication import Communicator, LaunchConfig, MessageCommunicator, world

_NAMES = ("socket", "mpi")


def connect(config: LaunchConfig) -> Communicator | None:
    """The world of a process that was started as `config` says; None for an engine that is not of core.

    Errors: RuntimeError if the processes do not come together, ImportError without mpi4py.
    """
    if config.engine not in ("", *_NAMES):
        return None
    if config.engine == "mpi" or (config.engine != "socket" and config.launcher == "mpi"):
        from mycelia.parallel.engines.mpi import MpiTransport

        transport = MpiTransport(config)
    else:
        if config.launcher == "mpi":
            raise errors.runtime_error(
                "init", "mpirun does not say where sockets meet: the engine 'socket' needs `mycelia msrun`"
            )
        from mycelia.parallel.engines.sockets import SocketTransport

        transport = SocketTransport(config)
    return MessageCommunicator(transport, world.WORLDS[0], range(config.size))
