# Written by tools/gen_stubs.py.
from mycelia.debug.online.observer import Debugged as Debugged, Terminated as Terminated

__all__ = [
    "Debugged", "Terminated", "start",
]


def start(compiling: bool) -> None:
    """Connect at the first compiled function or eager operator; processes that this one starts do not."""
