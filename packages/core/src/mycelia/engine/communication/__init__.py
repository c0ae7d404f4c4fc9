"""Processes that train together: what each of them can ask of the others.

`Communicator` is the interface that engines implement (hook `mycelia_communicator`); `world` knows the one
that is in force and its groups by name. Arrays go in and come out as NumPy's; the ops on tensors are in
`engine/ops/communication`.
"""

from __future__ import annotations

from mycelia.engine.communication.communicator import Communicator, Pending
from mycelia.engine.communication.launch import LaunchConfig, from_environment
from mycelia.engine.communication.messages import MessageCommunicator
from mycelia.engine.communication.reductions import REDUCTIONS, combine, name_of
from mycelia.engine.communication.transport import (
    Message,
    Transport,
    as_bytes,
    fresh,
    from_bytes,
    from_wire,
    wire_name,
)

__all__ = [
    "REDUCTIONS", "Communicator", "LaunchConfig", "Message", "MessageCommunicator", "Pending", "Transport",
    "as_bytes", "combine", "fresh", "from_bytes", "from_environment",
    "from_wire", "name_of", "wire_name",
]  # fmt: skip
