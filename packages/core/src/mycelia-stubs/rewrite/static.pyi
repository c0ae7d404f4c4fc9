# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.nodes import Block as Block, Else as Else, Node as Node
from mycelia.faces.rewrite.static import flatten as flatten
from mycelia.nn.cell import Cell as Cell

__all__ = [
    "Block", "Cell", "Else", "Node", "flatten",
]
