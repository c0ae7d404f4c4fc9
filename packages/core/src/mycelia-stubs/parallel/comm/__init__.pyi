# Written by tools/gen_stubs.py.
from mycelia.engine.communication.communicator import Communicator as Communicator, Pending as Pending
from mycelia.engine.communication.launch import (
    LaunchConfig as LaunchConfig, from_environment as from_environment,
)
from mycelia.engine.communication.messages import MessageCommunicator as MessageCommunicator
from mycelia.engine.communication.reductions import combine as combine, name_of as name_of
from mycelia.engine.communication.transport import (
    Message as Message, Transport as Transport, as_bytes as as_bytes, fresh as fresh,
    from_bytes as from_bytes, from_wire as from_wire, wire_name as wire_name,
)

__all__ = [
    "REDUCTIONS", "Communicator", "LaunchConfig", "Message", "MessageCommunicator", "Pending", "Transport",
    "as_bytes", "combine", "fresh", "from_bytes", "from_environment", "from_wire", "name_of", "wire_name",
]

REDUCTIONS: tuple
