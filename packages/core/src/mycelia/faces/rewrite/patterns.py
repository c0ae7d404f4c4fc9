"""Patterns of nodes, and what takes their place."""

from __future__ import annotations

from collections import OrderedDict
from types import NoneType

from mycelia.engine.base import errors
from mycelia.faces.rewrite.nodes import Node, NodeType, check_type
from mycelia.faces.rewrite.symbol_tree import SymbolTree


class PatternNode:
    """A node of a pattern: `match_type` is the class of what a node calls.

    Without inputs those of a node may be any; `inputs` are the patterns of a node's inputs, in order.
    """

    def __init__(self, pattern_node_name: str, match_type: type = NoneType, inputs: list | None = None):
        self._name, self._type = pattern_node_name, match_type
        self._inputs: list[PatternNode] = list(inputs or ())

    @staticmethod
    def from_node(node: Node) -> PatternNode:
        """The pattern of one node, without inputs."""
        return PatternNode(node.get_name(), node.get_instance_type())

    @staticmethod
    def create_pattern_from_node(node: Node) -> PatternNode:
        """The pattern of a node and all that it depends on; what calls nothing may be anything."""
        pattern = PatternNode.from_node(node)
        for given in node.get_inputs():
            plain = given.get_node_type() is NodeType.Input
            pattern.add_input(VarNode() if plain else PatternNode.create_pattern_from_node(given))
        return pattern

    @staticmethod
    def create_pattern_from_list(type_list: list) -> PatternNode:
        """The pattern of a chain: each type takes the one before it. Errors: TypeError, ValueError."""
        check_type("PatternNode", "type_list", type_list, list, tuple)
        if not type_list:
            raise errors.value_error("PatternNode", "type_list must have a type at least")
        last = None
        for place, kind in enumerate(type_list):
            name = f"{place}-{getattr(kind, '__name__', kind)}"
            last = PatternNode(name, kind, [] if last is None else [last])
        return last

    def add_input(self, node: PatternNode) -> None:
        """Add the pattern of a further input."""
        self._inputs.append(node)

    def set_inputs(self, inputs: list[PatternNode]) -> None:
        """Give other patterns for the inputs."""
        self._inputs = list(inputs)

    def match(self, node: Node) -> bool:
        """Whether a node, without its inputs, is such a one."""
        return self._type is node.get_instance_type()

    def get_inputs(self) -> list[PatternNode]:
        """The patterns of its inputs."""
        return self._inputs

    def name(self) -> str:
        """Its name, under which the node that matches is found."""
        return self._name

    def type(self) -> type:
        """The class of what is called."""
        return self._type


class VarNode(PatternNode):
    """The pattern of any node."""

    def __init__(self):
        super().__init__("placeholder")

    def match(self, node: Node) -> bool:
        """True."""
        return True


class Replacement:
    """Makes the nodes that take the place of a pattern's; `build` is to be written."""

    def build(self, pattern: PatternNode, is_chain_pattern: bool, matched: OrderedDict) -> list[Node]:
        """New nodes in order. `matched`: name of a pattern -> node. The last sets what the last one set."""
        raise NotImplementedError(f"{type(self).__name__} does not define build()")

    def __call__(self, pattern: PatternNode, is_chain_pattern: bool, matched: OrderedDict) -> list[Node]:
        return self.build(pattern, is_chain_pattern, matched)


class PatternEngine:
    """Finds a pattern in a network and puts the nodes of a replacement in its place.

    `pattern`: a PatternNode, or a list of types, each of which takes what the one before it gave. Nodes whose
    targets are used elsewhere too are left alone. Errors: TypeError.
    """

    def __init__(self, pattern: PatternNode | list, replacement: Replacement | None = None):
        check_type("PatternEngine", "pattern", pattern, PatternNode, list)
        check_type("PatternEngine", "replacement", replacement, Replacement, NoneType)
        self._is_chain = isinstance(pattern, list)
        self._pattern = PatternNode.create_pattern_from_list(pattern) if self._is_chain else pattern
        self._replacement = replacement

    def pattern(self) -> PatternNode:
        """The pattern that is looked for."""
        return self._pattern

    def apply(self, stree: SymbolTree) -> bool:
        """Replace the pattern wherever it is, also in trees and containers; whether it was anywhere."""
        check_type("PatternEngine", "stree", stree, SymbolTree)
        if self._replacement is None:
            return False
        changed = self._apply(stree, list(stree.nodes()))
        return changed

    def _apply(self, tree: SymbolTree, nodes: list[Node]) -> bool:
        changed = False
        for node in nodes:
            if node.block is None:
                continue  # replaced meanwhile
            if node.kind is NodeType.Tree:
                changed = self.apply(node.get_sub_tree()) or changed
            elif node.kind is NodeType.CellContainer:
                changed = self._apply(tree, list(node.cells)) or changed
            matched = self._match(self._pattern, node)
            if matched is not None and self._is_closed(node, matched):
                new = self._replacement(self._pattern, self._is_chain, OrderedDict(matched))
                changed = self._replace(tree, node, matched, new) or changed
        return changed

    def _match(self, pattern: PatternNode, node: Node) -> dict[str, Node] | None:
        """Name of a pattern -> node, the inputs first."""
        if not pattern.match(node):
            return None
        if isinstance(pattern, VarNode):
            return {}
        matched: dict[str, Node] = {}
        if pattern.get_inputs():
            inputs = node.get_inputs()
            if len(inputs) != len(pattern.get_inputs()):
                return None
            for wanted, given in zip(pattern.get_inputs(), inputs):
                found = self._match(wanted, given)
                if found is None or any(matched.get(name, n) is not n for name, n in found.items()):
                    return None
                matched |= found
        return {**matched, pattern.name(): node}

    @staticmethod
    def _is_closed(root: Node, matched: dict[str, Node]) -> bool:
        inside = list(matched.values())
        return all(user in inside for node in inside if node is not root for user in node.get_users())

    @staticmethod
    def _replace(tree: SymbolTree, root: Node, matched: dict[str, Node], new: list[Node]) -> bool:
        if not new:
            return False
        tree.replace(root, new)
        for node in matched.values():
            if node.block is not None:
                tree.erase(node)
        return True
