# Written by tools/gen_stubs.py.
from mycelia.engine.communication.communicator import Communicator as Communicator
from mycelia.engine.communication.launch import LaunchConfig as LaunchConfig
from mycelia.engine.communication.messages import MessageCommunicator as MessageCommunicator
from typing import Any as Any

__all__ = [
    "Communicator", "LaunchConfig", "MessageCommunicator", "connect",
]


def connect(config) -> Any:
    """The world of a process that was started as `config` says; None for an engine that is not of core."""
