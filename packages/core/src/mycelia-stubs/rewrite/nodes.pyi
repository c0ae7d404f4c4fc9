# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.handlers import NodeHandler as NodeHandler
from mycelia.faces.rewrite.nodes import (
    Block as Block, Else as Else, Node as Node, NodeType as NodeType, check_type as check_type,
    statements as statements,
)
from mycelia.faces.rewrite.values import (
    ScopedValue as ScopedValue, expression_of as expression_of, value_of as value_of,
)
from mycelia.nn.cell import Cell as Cell
from mycelia.ops.primitive import Primitive as Primitive

__all__ = [
    "Block", "BuiltinFunctionType", "Cell", "Else", "FunctionType", "Node", "NodeHandler", "NodeType",
    "NoneType", "Primitive", "ScopedValue", "check_type", "expression_of", "statements", "value_of",
]


class BuiltinFunctionType:
    def __init__(self) -> None: ...

class FunctionType:
    """Create a function object."""
    def __init__(self, code, globals, name=None, argdefs=None, closure=None) -> None: ...

class NoneType:
    def __init__(self, *args, **kwargs) -> None: ...
