# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.flatten import unique as unique
from mycelia.faces.rewrite.handlers import TreeHandler as TreeHandler
from mycelia.faces.rewrite.nodes import (
    Block as Block, Node as Node, NodeType as NodeType, check_type as check_type, statements as statements,
)
from mycelia.faces.rewrite.scopes import (
    Function as Function, definition_of as definition_of, is_ours as is_ours, is_users as is_users,
    method as method,
)
from mycelia.faces.rewrite.symbol_tree import (
    Container as Container, Position as Position, SymbolTree as SymbolTree,
)
from mycelia.faces.rewrite.values import expression_of as expression_of
from mycelia.io.files import write_text as write_text
from mycelia.nn.cell import Cell as Cell
from mycelia.rewrite.nodes import FunctionType as FunctionType

__all__ = [
    "Block", "Cell", "Container", "Function", "FunctionType", "Node", "NodeType", "Position", "SymbolTree",
    "TreeHandler", "check_type", "definition_of", "expression_of", "is_ours", "is_users", "method",
    "statements", "unique", "write_text",
]
