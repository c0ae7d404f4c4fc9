"""Nodes and trees as scripts see them that go below the interface: lists instead of iterators."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mycelia.faces.rewrite.nodes import Node


class _Handler:
    """Stands for a node, tree or body; what it does not know itself it asks."""

    def __init__(self, target):
        self.target = target

    def __getattr__(self, name: str):
        return getattr(self.target, name)

    def __eq__(self, other) -> bool:
        return isinstance(other, _Handler) and self.target is other.target

    def __hash__(self) -> int:
        return id(self.target)


def _all(block) -> list[NodeHandler]:
    return [NodeHandler(node) for node in block]


class NodeHandler(_Handler):
    """A node. Its own nodes are those of a called function, of a body, or of a container."""

    @property
    def node(self) -> Node:
        """The node, also for ``Node(handler)``."""
        return self.target

    def nodes(self) -> list[NodeHandler]:
        """The nodes in it."""
        node = self.target
        if node.function is not None:
            return _all([*node.function.inputs, *node.function.body])
        return _all(node.body if node.body is not None else node.cells or ())

    node_list = property(nodes)

    def get_node(self, name: str) -> NodeHandler | None:
        """The node in it of this name."""
        return next((found for found in self.nodes() if found.name == name), None)

    @property
    def symbol_tree(self) -> TreeHandler:
        """The tree of the network that the node calls."""
        return TreeHandler(self.target.get_sub_tree())

    def get_node_manager(self):
        """The function, body, container or network that it is in."""
        block = self.target.block
        owner = None if block is None else block.owner
        if isinstance(owner, type(self.target)):
            return NodeHandler(owner)
        return TreeHandler(self.target.tree)

    def get_handler(self) -> NodeHandler:
        """Itself."""
        return self

    def append_kwarg(self, arguments: dict) -> None:
        """Give further arguments by keyword."""
        for name, value in arguments.items():
            self.target.set_kwarg(name, value)

    def set_arg(self, arg, index: int) -> None:
        """Give another positional argument."""
        self.target.set_arg(index, arg)

    def get_inputs(self) -> list[NodeHandler]:
        """The nodes whose targets are its arguments."""
        return _all(self.target.get_inputs())

    def get_users(self) -> list[NodeHandler]:
        """The nodes that have its targets as arguments."""
        return _all(self.target.get_users())

    def _beside(self, step: int) -> NodeHandler | None:
        block = self.target.block
        line = [*getattr(block.owner, "inputs", ()), *getattr(block.owner, "body", block)]
        place = next(i for i, node in enumerate(line) if node is self.target) + step
        return NodeHandler(line[place]) if 0 <= place < len(line) else None

    @property
    def _next(self) -> NodeHandler | None:
        return self._beside(1)

    @property
    def _prev(self) -> NodeHandler | None:
        return self._beside(-1)


class TreeHandler(_Handler):
    """A SymbolTree."""

    @property
    def tree(self):
        """The tree, also for ``SymbolTree(handler)``."""
        return self.target

    def nodes(self) -> list[NodeHandler]:
        """The inputs and statements of `construct`."""
        return _all(self.target.nodes())

    _nodes = property(nodes)

    @property
    def _root_ast(self):
        return self.target.main.definition

    def get_node(self, name: str) -> NodeHandler | None:
        """The node of this name."""
        node = self.target.get_node(name)
        return None if node is None else NodeHandler(node)

    def erase_node(self, node) -> NodeHandler:
        """Take a node out."""
        return NodeHandler(self.target.erase(getattr(node, "node", node)))

    def get_handler(self) -> TreeHandler:
        """Itself."""
        return self
