# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.nodes import Node as Node, NodeType as NodeType, check_type as check_type
from mycelia.faces.rewrite.patterns import (
    PatternEngine as PatternEngine, PatternNode as PatternNode, Replacement as Replacement,
    VarNode as VarNode,
)
from mycelia.faces.rewrite.symbol_tree import SymbolTree as SymbolTree
from mycelia.rewrite.nodes import NoneType as NoneType

__all__ = [
    "Node", "NodeType", "NoneType", "PatternEngine", "PatternNode", "Replacement", "SymbolTree", "VarNode",
    "check_type",
]
