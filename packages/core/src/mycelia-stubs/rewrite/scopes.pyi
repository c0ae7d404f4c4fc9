# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.flatten import Flattener as Flattener, operator_name as operator_name
from mycelia.faces.rewrite.nodes import Block as Block, Else as Else, Node as Node, NodeType as NodeType
from mycelia.faces.rewrite.scopes import (
    Function as Function, LocalPrim as LocalPrim, definition_of as definition_of, is_ours as is_ours,
    is_users as is_users, method as method,
)
from mycelia.nn.cell import Cell as Cell
from mycelia.nn.container import CellList as CellList, SequentialCell as SequentialCell
from mycelia.ops.primitive import Primitive as Primitive
from mycelia.rewrite.nodes import FunctionType as FunctionType

__all__ = [
    "Block", "Cell", "CellList", "Else", "Flattener", "Function", "FunctionType", "LocalPrim", "Node",
    "NodeType", "Primitive", "SequentialCell", "definition_of", "is_ours", "is_users", "method",
    "operator_name",
]
