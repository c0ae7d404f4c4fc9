# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.nodes import Node as Node, NodeType as NodeType
from mycelia.faces.rewrite.patterns import (
    PatternEngine as PatternEngine, PatternNode as PatternNode, Replacement as Replacement,
    VarNode as VarNode,
)
from mycelia.faces.rewrite.symbol_tree import SymbolTree as SymbolTree
from mycelia.faces.rewrite.values import ScopedValue as ScopedValue, ValueType as ValueType

__all__ = [
    "Node", "NodeType", "PatternEngine", "PatternNode", "Replacement", "ScopedValue", "SymbolTree",
    "ValueType", "VarNode",
]
