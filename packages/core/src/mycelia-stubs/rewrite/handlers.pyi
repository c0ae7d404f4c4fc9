# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.handlers import NodeHandler as NodeHandler, TreeHandler as TreeHandler

__all__ = [
    "NodeHandler", "TreeHandler",
]
