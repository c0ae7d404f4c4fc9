"""rewrite: the statements of a Cell's `construct` as nodes that can be inserted, erased and replaced."""

from mycelia.rewrite.nodes import Node, NodeType
from mycelia.rewrite.patterns import PatternEngine, PatternNode, Replacement, VarNode
from mycelia.rewrite.symbol_tree import SymbolTree
from mycelia.rewrite.values import ScopedValue, ValueType

__all__ = [
    "Node", "NodeType", "PatternEngine", "PatternNode", "Replacement", "ScopedValue", "SymbolTree",
    "ValueType", "VarNode",
]  # fmt: skip
