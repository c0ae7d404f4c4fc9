"""The statements of a network, and how they are changed."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType

from mycelia.engine.base import errors
from mycelia.faces.rewrite import source, static
from mycelia.faces.rewrite.flatten import unique
from mycelia.faces.rewrite.handlers import TreeHandler
from mycelia.faces.rewrite.nodes import Block, Node, NodeType, check_type, statements
from mycelia.faces.rewrite.scopes import Function, definition_of, is_ours, is_users, method
from mycelia.faces.rewrite.values import expression_of
from mycelia.io.files import write_text
from mycelia.nn import Cell


@dataclass(frozen=True, slots=True)
class Position:
    """A place before or after a node."""

    tree: SymbolTree
    node: Node
    after: bool


@dataclass(slots=True)
class Container:
    """Cells that a network holds together: where, those of the beginning, and what became of them."""

    path: str
    cells: Block
    first: list[Node]
    edits: list[str] = field(default_factory=list)


class SymbolTree:
    """The statements of a network's `construct` as nodes, in order; see `create`."""

    def __new__(cls, network, trees=None):
        found = getattr(network, "tree", None)  # SymbolTree(tree.get_handler()) is the tree
        return found if isinstance(found, SymbolTree) else super().__new__(cls)

    def __init__(self, network: Cell, trees: dict[int, SymbolTree] | None = None):
        if not isinstance(network, Cell):
            return
        self._network = network
        self._trees = {} if trees is None else trees  # of all networks below the first, by the network
        self._trees[id(network)] = self
        self._names: set[str] = set()
        self._functions: dict[int, Function] = {}
        self._file = f"{type(network).__name__.lower()}.py"
        self.added: dict[str, Node] = {}  # nodes that brought Cells
        self.containers: dict[int, Container] = {}
        plain, owner = method(network, network.construct) or (type(network).construct, type(network))
        definition = definition_of(plain, nested=True)
        if definition is None:
            raise errors.type_error("SymbolTree", f"the source of {type(network).__name__} is not there")
        self.main = Function(self, plain, definition, owner).parse()
        self._sync()

    @classmethod
    def create(cls, network: Cell) -> SymbolTree:
        """The tree of a network: nested expressions become statements of one operation each.

        A Cell of the user's own that is called gets a tree of its own, and functions that are called have
        their statements too. Errors: TypeError unless a Cell whose source is there.
        """
        check_type("SymbolTree", "network", network, Cell)
        return cls(network)

    # -- what scopes ask while nodes are made

    def enter(self, node: Node) -> Node:
        """Take in a node under a name of its own."""
        node.name = unique(node.name, self._names)
        node.tree = self
        return node

    def know(self, node: Node) -> None:
        """Whether the node of a Cell is one of the package's or a network of the user's."""
        cell = node.instance
        node.kind = NodeType.CallCell
        if not is_ours(type(cell)) and hasattr(type(cell), "construct"):
            try:
                inspect.getsource(type(cell).construct)
            except (OSError, TypeError):
                return  # made without a file
            node.kind, node.sub_tree = (
                NodeType.Tree,
                self._trees.get(id(cell)) or SymbolTree(cell, self._trees),
            )

    def function(self, called) -> Function | None:
        """The statements of a function or method that is called, if it is the user's."""
        if called is None:
            return None
        found = method(self._network, called)
        plain, owner = found or (called, None)
        if id(plain) in self._functions:
            return self._functions[id(plain)]
        known = isinstance(plain, FunctionType) and is_users(plain)
        definition = definition_of(plain) if known else None
        if definition is None or (definition.decorator_list and owner is None):
            return None
        self._functions[id(plain)] = made = Function(self, plain, definition, owner)
        return made.parse()

    def keep_cells(self, node: Node) -> None:
        """Remember a container; a second use of it has the same nodes."""
        known = self.containers.get(id(node.instance))
        if known is not None:
            node.cells = known.cells
            return
        value = node.statement.value
        path = ast.unparse(value.func if isinstance(value, ast.Call) else value)
        kept = Container(path, node.cells, list(node.cells))
        self.containers[id(node.instance)] = kept
        for place, cell in enumerate(node.cells):
            if cell.cells is not None:
                self.containers[id(cell.instance)].path = f"{path}[{place}]"

    def methods(self) -> list[Function]:
        """The methods that are called."""
        return [f for f in self._functions.values() if f.owner is not None]

    # -- looking

    def get_handler(self):
        """What scripts use that go below this interface; see `handlers`."""
        return TreeHandler(self)

    def get_origin_network(self) -> Cell:
        """The network that the tree was made of."""
        return self._network

    def nodes(self, all_nodes: bool = False) -> Iterator[Node]:
        """The inputs and statements in order; with `all_nodes` also those of bodies, functions and trees."""
        check_type("SymbolTree", "all_nodes", all_nodes, bool)
        own = [*self.main.inputs, *self.main.body]
        yield from own
        if all_nodes:
            seen: set[int] = set()
            for node in own:
                yield from _within(node, seen)

    def all_nodes(self, subtree_nodes: bool = True) -> Iterator[Node]:
        """The nodes of `construct`, of bodies, containers and functions, and of trees if these are wanted."""
        found = self.nodes(True)
        return found if subtree_nodes else (n for n in found if n.tree is self)

    def get_inputs(self) -> list[Node]:
        """The nodes of the network's arguments."""
        return list(self.main.inputs)

    def get_node(self, node_name: str) -> Node | None:
        """The node of this name, None if there is none."""
        check_type("SymbolTree", "node_name", node_name, str)
        functions = [self.main, *self._functions.values()]
        return next((n for f in functions for n in [*f.inputs, *f.body.flat()] if n.name == node_name), None)

    def print_node_tabulate(self, all_nodes: bool = False) -> None:
        """Print a table: type, name and code of each node, where arguments come from and targets go to."""
        rows = [("node type", "name", "codes", "arg providers", "target users")]
        for node in self.nodes(all_nodes):
            sources = [[i, (n.name, k)] for i, (n, k) in node.providers().items()]
            users = [[k, [(n.name, i) for n, i in found]] for k, found in node.get_target_users().items()]
            rows.append((str(node.kind), node.name, node.code().splitlines()[0], str(sources), str(users)))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))
        for row in rows:
            print("  ".join(text.ljust(w) for text, w in zip(row, widths)).rstrip())

    def dump(self) -> None:
        """Print the nodes, see `print_node_tabulate`."""
        self.print_node_tabulate(True)

    def unique_name(self, name: str = "output") -> str:
        """A name for a variable that no statement uses: `name`, or `name_1` and so on."""
        check_type("SymbolTree", "name", name, str)
        return unique(name, self.main.variables)

    # -- changing

    def _own(self, node: Node | str) -> Node:
        check_type("SymbolTree", "node", node, Node, str)
        found = self.get_node(node) if isinstance(node, str) else node
        tree = None if found is None else found.tree
        if tree is None or found.block is None or self._trees.get(id(tree._network)) is not tree:
            name = node if isinstance(node, str) else node.name
            raise errors.runtime_error("SymbolTree", f"there is no node '{name}' in this tree")
        return found

    def before(self, node: Node | str) -> Position:
        """The place before a node, for `insert`.

        Errors: TypeError, RuntimeError for a node that is not here.
        """
        found = self._own(node)
        return Position(found.tree, found, False)

    def after(self, node: Node | str) -> Position:
        """The place after a node, for `insert`.

        Errors: TypeError, RuntimeError for a node that is not here.
        """
        found = self._own(node)
        return Position(found.tree, found, True)

    def insert(self, position: Position, node: Node) -> Node:
        """Insert a node; its Cell becomes one of the network's.

        Errors: TypeError for arguments of other types, and for a Cell in a function that has no `self`;
        ValueError for a place in another tree; RuntimeError for a statement before an argument.
        """
        check_type("SymbolTree", "position", position, Position)
        check_type("SymbolTree", "node", node, Node)
        if position.tree is not self:
            raise errors.value_error(
                "SymbolTree", f"the place at node '{position.node.name}' is in another tree"
            )
        block, place = self._place(position, node)
        function = position.node.scope()
        brings_cell = node.kind in (NodeType.CallCell, NodeType.CallPrimitive, NodeType.Tree)
        if brings_cell and (function.owner is None or function.is_static):
            raise errors.type_error(
                "SymbolTree",
                f"Cannot insert {node.kind} node '{node.name}' into no-method function "
                f"'{function.definition.name}'.",
            )
        name = node.name
        self.enter(node)
        if brings_cell:
            node.statement.value.func.attr = node.name
            self.added[node.name] = node
            setattr(self._network, node.name, node.instance)
        elif node.kind is NodeType.CallFunction:
            function.added[name] = node.instance
        elif node.kind is NodeType.Input:
            _add_argument(function.definition.args, node, place)
        kept = self._container(block)
        if kept is not None:
            kept.edits.append(f"{kept.path}.insert({place}, self.{node.name})")
        function.variables.update(str(target) for target in node.get_targets())
        node.block = block
        block.insert(place, node)
        node.mark()
        self._sync()
        return node

    def _place(self, position: Position, node: Node) -> tuple[Block, int]:
        block, beside = position.node.block, position.node
        is_input = node.kind is NodeType.Input
        if is_input is (beside.kind is NodeType.Input):
            place = next(i for i, n in enumerate(block) if n is beside)
            if position.after and beside.partner is not None:
                place += 1  # not between `if` and `else`
            return block, place + position.after
        if is_input or not position.after:
            raise errors.runtime_error(
                "SymbolTree",
                f"arguments stand before statements: '{node.name}' can not be at '{beside.name}'",
            )
        return block.owner.body, 0

    def _container(self, block: Block) -> Container | None:
        return next((kept for kept in self.containers.values() if kept.cells is block), None)

    def erase(self, node: Node | str) -> Node:
        """Take a node out and return it. Errors: TypeError, RuntimeError for a node that is not here."""
        found = self._own(node)
        tree, block = found.tree, found.block
        place = next(i for i, n in enumerate(block) if n is found)
        kept = tree._container(block)
        if kept is not None:
            kept.edits.append(f"del {kept.path}[{place}]")
        if found.kind is NodeType.Input:
            _remove_argument(found.scope().definition.args, found)
        found.mark()
        del block[place]
        found.block = found.tree = None
        tree._names.discard(found.name)
        tree._sync()
        return found

    def replace(self, old_node: Node, new_nodes: list[Node]) -> Node:
        """Put nodes, in this order, where `old_node` is; returns the last. Errors: TypeError."""
        check_type("SymbolTree", "old_node", old_node, Node)
        check_type("SymbolTree", "new_nodes", new_nodes, list)
        for node in new_nodes:
            check_type("SymbolTree", "node in new_nodes", node, Node)
        place = self.after(old_node)
        for node in reversed(new_nodes):
            place.tree.insert(place, node)
        self.erase(old_node)
        return new_nodes[-1]

    def set_output(self, index: int, return_value: str) -> Node:
        """Let the network return another variable as its `index`-th output.

        Errors: TypeError, RuntimeError if there is no such output.
        """
        check_type("SymbolTree", "index", index, int)
        check_type("SymbolTree", "return_value", return_value, str)
        node = next((n for n in self.main.body if n.kind is NodeType.Output), None)
        if node is None or not 0 <= index < len(node.get_args()):
            raise errors.runtime_error("SymbolTree", f"the network has no output {index}")
        node.set_arg(index, return_value)
        return node

    def flatten_static_if_control_flow(self) -> None:
        """Put one branch in place of each `if` whose test is known before the network runs."""
        for tree in list(self._trees.values()):
            for function in (tree.main, *tree._functions.values()):
                static.flatten(function)
            tree._sync()

    def _sync(self) -> None:
        self.main.definition.body = statements(self.main.body) or [ast.Pass()]

    # -- writing

    def get_code(self) -> str:
        """The source of the network as it is now: a class for each tree, made from the network it was."""
        return source.Writer(self).text()

    def get_network(self) -> Cell:
        """A network that runs the statements as they are now; the one before should not be used any more.

        Its source is kept in the folder `rewritten_network` of the current one.
        """
        return source.Writer(self).network()

    def set_saved_file_name(self, file_name: str) -> None:
        """Where `save_network_to_file` writes; .py is added. Errors: TypeError."""
        check_type("SymbolTree", "file_name", file_name, str)
        self._file = file_name.removesuffix(".py") + ".py"

    def get_saved_file_name(self) -> str:
        """Where `save_network_to_file` writes."""
        return self._file

    def save_network_to_file(self) -> None:
        """Write the source of the network as it is now to a file."""
        write_text(self._file, self.get_code())


Node.tree_of = staticmethod(SymbolTree.create)


def _add_argument(arguments: ast.arguments, node: Node, place: int) -> None:
    first = arguments.args and arguments.args[0].arg == "self"
    places = [*arguments.posonlyargs, *arguments.args]
    at = min(place + bool(first), len(places)) - len(arguments.posonlyargs)
    arguments.args.insert(at, node.statement)
    behind = len(arguments.args) - at
    if len(arguments.defaults) >= behind - 1:
        arguments.defaults.insert(len(arguments.defaults) - behind + 1, expression_of(node.default))
    else:
        raise errors.value_error(
            "SymbolTree", f"'{node.name}' has a default, so arguments without one can not follow it"
        )


def _remove_argument(arguments: ast.arguments, node: Node) -> None:
    for given in (arguments.posonlyargs, arguments.args):
        if node.statement in given:
            behind = len(arguments.args) - given.index(node.statement) if given is arguments.args else 0
            if behind and behind <= len(arguments.defaults):
                del arguments.defaults[-behind]
            given.remove(node.statement)


def _within(node: Node, seen: set[int]) -> Iterator[Node]:
    """The nodes inside a node; those of a function or tree once."""
    for inner in itertools.chain(node.body or (), node.cells or ()):
        yield inner
        yield from _within(inner, seen)
    for part in (node.function, node.sub_tree):
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        main = getattr(part, "main", part)
        for inner in (*main.inputs, *main.body):
            yield inner
            yield from _within(inner, seen)
