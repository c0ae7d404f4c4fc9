"""rewrite: the statements of a Cell's `construct` as nodes that can be inserted, erased and replaced."""

from mycelia.faces.rewrite.nodes import Node, NodeType
from mycelia.faces.rewrite.patterns import PatternEngine, PatternNode, Replacement, VarNode
from mycelia.faces.rewrite.symbol_tree import SymbolTree
from mycelia.faces.rewrite.values import ScopedValue, ValueType

__all__ = [
    "Node", "NodeType", "PatternEngine", "PatternNode", "Replacement", "ScopedValue", "SymbolTree",
    "ValueType", "VarNode",
]  # fmt: skip
