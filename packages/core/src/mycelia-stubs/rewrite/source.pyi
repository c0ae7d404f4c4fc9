# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.flatten import unique as unique
from mycelia.faces.rewrite.nodes import NodeType as NodeType, statements as statements
from mycelia.faces.rewrite.scopes import Function as Function, is_users as is_users
from mycelia.faces.rewrite.source import Writer as Writer, copied as copied
from mycelia.nn.cell import Cell as Cell
from mycelia.ops import ModuleType as ModuleType

__all__ = [
    "Cell", "FOLDER", "Function", "ModuleType", "NodeType", "Writer", "copied", "is_users", "statements",
    "unique",
]

FOLDER: str
