# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.handlers import NodeHandler as NodeHandler, TreeHandler as TreeHandler
from mycelia.faces.rewrite.nodes import Node as Node

__all__ = [
    "Node", "NodeHandler", "TreeHandler",
]
