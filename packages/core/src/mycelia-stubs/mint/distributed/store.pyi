# Written by tools/gen_stubs.py.
from mycelia.faces.mint.distributed.store import TCPStore as TCPStore

__all__ = [
    "TCPStore",
]
