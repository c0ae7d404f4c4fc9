"""The statements of a network, and the network that the changed ones make."""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from mycelia import errors
from mycelia.nn import Cell, SequentialCell
from mycelia.ops.primitive import Primitive
from mycelia.rewrite.flatten import Flattener, operator_name, unique
from mycelia.rewrite.nodes import Node, NodeType, check_type

FOLDER = "rewritten_network"  # where the source of a network is kept, for those who read or debug it
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Position:
    """A place before or after a node."""

    tree: SymbolTree
    node: Node
    after: bool


class SymbolTree:
    """The statements of a network's `construct` as nodes, in order; see `create`."""

    def __init__(self, network: Cell):
        self._network = network
        function = type(network).construct
        source = textwrap.dedent(inspect.getsource(function))
        self._function: ast.FunctionDef = ast.parse(source).body[0]
        self._globals = inspect.unwrap(function).__globals__
        self._closure = inspect.getclosurevars(inspect.unwrap(function)).nonlocals
        arguments = self._function.args
        self._variables = {n.id for n in ast.walk(self._function) if isinstance(n, ast.Name)}
        self._names: set[str] = set()
        self._functions: dict[str, object] = {}  # that inserted nodes call
        self._added: dict[str, object] = {}  # Cells of inserted nodes
        body = Flattener(self._variables).statements(self._function.body)
        inputs = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs]
        self._inputs = [
            self._enter(Node(NodeType.Input, f"input_{a.arg}", a))
            for a in [*inputs, arguments.kwarg]
            if a is not None and a.arg != "self"
        ]
        self._body: list[Node] = []
        self._parse(body, self._body)

    @classmethod
    def create(cls, network: Cell) -> SymbolTree:
        """The tree of a network: nested expressions become statements of one operation each.

        A Cell of the user's own that is called gets a tree of its own. Errors: TypeError unless a Cell.
        """
        check_type("SymbolTree", "network", network, Cell)
        return cls(network)

    # -- reading

    def _enter(self, node: Node) -> Node:
        node.name = unique(node.name, self._names)
        node.tree = self
        return node

    def _parse(self, statements: list[ast.stmt], block: list[Node]) -> None:
        for statement in statements:
            node = self._node(statement)
            node.block = block
            block.append(node)

    def _node(self, statement: ast.stmt) -> Node:
        match statement:
            case ast.Return():
                return self._enter(Node(NodeType.Output, "return", statement))
            case ast.If() | ast.For() | ast.While():
                node = Node(NodeType.ControlFlow, f"{type(statement).__name__.lower()}_node", statement)
                self._enter(node)
                for body in [statement.body, *([statement.orelse] if statement.orelse else [])]:
                    node.blocks.append([])
                    self._parse(body, node.blocks[-1])
                return node
            case ast.Assign(value=value) | ast.Expr(value=value):
                return self._enter(self._assignment(statement, value))
        return self._enter(Node(NodeType.Python, type(statement).__name__.lower(), statement))

    def _assignment(self, statement, value: ast.expr) -> Node:
        match value:
            case ast.Call(func=function):
                return self._called(statement, function)
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare():
                name = f"{type(value).__name__.lower()}_{operator_name(value)}"
                return Node(NodeType.MathOps, name, statement)
            case ast.Tuple() | ast.List() | ast.Dict():
                return Node(NodeType.CallMethod, type(value).__name__.lower(), statement)
            case ast.Name() | ast.Constant():
                return Node(NodeType.CallMethod, "pass_through", statement)
            case ast.Attribute():
                return Node(NodeType.CallMethod, "attribute_assign", statement)
            case ast.Subscript():
                return Node(NodeType.CallMethod, "getitem", statement)
        return Node(NodeType.Python, "python", statement)

    def _called(self, statement, function: ast.expr) -> Node:
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "call")
        instance = self._value(function)
        node = Node(NodeType.CallFunction, name, statement, instance)
        if isinstance(instance, SequentialCell):
            node.kind = NodeType.CellContainer
            node.cells = [self._member(cell) for cell in instance]
        elif isinstance(instance, Cell):
            node.kind = NodeType.CallCell
            if not type(instance).__module__.startswith("mycelia."):
                node.kind, node.sub_tree = NodeType.Tree, SymbolTree.create(instance)
        elif isinstance(instance, Primitive):
            node.kind = NodeType.CallPrimitive
        return node

    def _member(self, cell: Cell) -> Node:
        node = Node(NodeType.CallCell, type(cell).__name__, ast.Pass(), cell)
        node.tree = self
        return node

    def _value(self, expression: ast.expr):
        """What a name in the source means, if that is known without running it."""
        match expression:
            case ast.Name(id="self"):
                return self._network
            case ast.Name(id=name) if name in self._closure:
                return self._closure[name]
            case ast.Name(id=name):
                return self._globals.get(name)
            case ast.Attribute(value=owner, attr=name):
                found = self._value(owner)
                return None if found is None else getattr(found, name, None)
        return None

    # -- looking

    def nodes(self, all_nodes: bool = False) -> Iterator[Node]:
        """The inputs and statements in order; with `all_nodes` also those of bodies, containers and trees."""
        check_type("SymbolTree", "all_nodes", all_nodes, bool)
        own = [*self._inputs, *self._body]
        yield from own
        if all_nodes:
            for node in own:
                yield from _within(node)

    def get_node(self, node_name: str) -> Node | None:
        """The node of this name, None if there is none."""
        check_type("SymbolTree", "node_name", node_name, str)
        own = [*self._inputs, *self._body]
        inside = (n for node in own for n in _within(node) if n.tree is self and n.block is not None)
        return next((n for n in itertools.chain(own, inside) if n.name == node_name), None)

    def providers(self, node: Node) -> dict[int, tuple[Node, int]]:
        """Which node, and which of its targets, gives each argument of `node`."""
        last: dict[str, tuple[Node, int]] = {}
        for other in self.nodes():
            if other is node:
                break
            for i, target in enumerate(other.get_targets()):
                last[str(target)] = (other, i)
        values = [*node.get_args(), *node.get_kwargs().values()]
        return {i: last[str(v)] for i, v in enumerate(values) if str(v) in last}

    def print_node_tabulate(self, all_nodes: bool = False) -> None:
        """Print a table: type, name and code of each node, where arguments come from and targets go to."""
        rows = [("node type", "name", "codes", "arg providers", "target users")]
        nodes = list(self.nodes(all_nodes))
        given = {id(n): n.providers() for n in nodes}
        for node in nodes:
            sources = {i: (source.name, k) for i, (source, k) in given[id(node)].items()}
            users: dict[int, list] = {}
            for other in nodes:
                for i, (source, k) in given[id(other)].items():
                    if source is node:
                        users.setdefault(k, []).append((other.name, i))
            code = node.code().splitlines()[0]
            rows.append((str(node.kind), node.name, code, str(sources), str(users)))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))
        for row in rows:
            print("  ".join(text.ljust(w) for text, w in zip(row, widths)).rstrip())

    def unique_name(self, name: str = "output") -> str:
        """A name for a variable that no statement uses: `name`, or `name_1` and so on."""
        check_type("SymbolTree", "name", name, str)
        return unique(name, self._variables)

    # -- changing

    def _own(self, node: Node | str) -> Node:
        check_type("SymbolTree", "node", node, Node, str)
        found = self.get_node(node) if isinstance(node, str) else node
        if found is None or found.tree is not self or found.block is None and found not in self._inputs:
            name = node if isinstance(node, str) else node.name
            raise errors.runtime_error("SymbolTree", f"there is no node '{name}' in this tree")
        return found

    def before(self, node: Node | str) -> Position:
        """The place before a node, for `insert`.

        Errors: TypeError, RuntimeError for a node that is not here.
        """
        return Position(self, self._own(node), False)

    def after(self, node: Node | str) -> Position:
        """The place after a node, for `insert`.

        Errors: TypeError, RuntimeError for a node that is not here.
        """
        return Position(self, self._own(node), True)

    def insert(self, position: Position, node: Node) -> Node:
        """Insert a node; its Cell becomes one of the network's.

        Errors: TypeError for arguments of other types, ValueError for a place in another tree.
        """
        check_type("SymbolTree", "position", position, Position)
        check_type("SymbolTree", "node", node, Node)
        if position.tree is not self:
            raise errors.value_error(
                "SymbolTree", f"the place at node '{position.node.name}' is in another tree"
            )
        block = position.node.block
        place = 0 if block is None else block.index(position.node) + position.after
        block = self._body if block is None else block
        name = node.name
        self._enter(node)
        if node.kind in (NodeType.CallCell, NodeType.CallPrimitive, NodeType.Tree):
            if name != node.name:
                node.statement.value.func.attr = node.name
            self._added[node.name] = node.instance
            setattr(self._network, node.name, node.instance)
        elif node.kind is NodeType.CallFunction:
            self._functions[name] = node.instance
        node.block = block
        block.insert(place, node)
        return node

    def erase(self, node: Node | str) -> Node:
        """Take a node out and return it. Errors: TypeError, RuntimeError for a node that is not here."""
        found = self._own(node)
        (self._inputs if found.block is None else found.block).remove(found)
        found.block = found.tree = None
        self._names.discard(found.name)
        return found

    def replace(self, old_node: Node, new_nodes: list[Node]) -> Node:
        """Put nodes, in this order, where `old_node` is; returns the last. Errors: TypeError."""
        check_type("SymbolTree", "old_node", old_node, Node)
        check_type("SymbolTree", "new_nodes", new_nodes, list)
        for node in new_nodes:
            check_type("SymbolTree", "node in new_nodes", node, Node)
        place = self.after(old_node)
        for node in reversed(new_nodes):
            self.insert(place, node)
        self.erase(old_node)
        return new_nodes[-1]

    # -- writing

    def get_code(self) -> str:
        """The source of the network as it is now: a class for each tree, made from the network it was."""
        return self._code()[0]

    def _code(self) -> tuple[str, dict, str]:
        """The source, what the names in it mean, and the name of the class."""
        classes: dict[str, str] = {}
        meanings: dict[str, object] = {}
        name = self._class(classes, meanings)
        lines = ["import sys", "from mycelia import nn"]
        lines += [_import(n, value) for n, value in sorted(meanings.items())]
        return "\n".join(lines) + "\n\n\n" + "\n\n".join(classes.values()), meanings, name

    def _class(self, classes: dict[str, str], meanings: dict[str, object]) -> str:
        made = []
        for node in _statements(self._body):
            if node.kind is NodeType.Tree and node.sub_tree is not None:
                field = node.statement.value.func
                if isinstance(field, ast.Attribute):
                    owner = ast.unparse(field)
                    made.append(f"{owner} = {node.sub_tree._class(classes, meanings)}({owner})")
        base = type(self._network)
        own = {"super", base.__name__} | set(meanings)
        function = self._definition()
        for name in sorted({n.id for n in ast.walk(function) if isinstance(n, ast.Name)} - own):
            if name in self._functions:
                meanings[name] = self._functions[name]
            elif name != "self" and not hasattr(builtins, name):
                found = self._value(ast.Name(name, ast.Load()))
                meanings.update({} if found is None else {name: found})
        meanings[base.__name__] = base
        added = [f"self.{name} = obj.{name}" for name in self._added]
        body = [
            "def __init__(self, obj):",
            "    nn.Cell.__init__(self)",
            "    for key, value in obj.__getstate__().items():",
            "        self.__dict__[key] = dict(value) if key in ('_cells', '_params') else value",
            *(f"    {line}" for line in [*dict.fromkeys(made), *added]),
            "",
            *ast.unparse(function).splitlines(),
        ]
        text = "".join(f"    {line}\n" if line else "\n" for line in body)
        bases = base.__name__ if base is Cell else f"{base.__name__}, nn.Cell"
        taken: set[str] = set()
        while True:
            name = unique(f"{base.__name__}Opt", taken)
            whole = f"class {name}({bases}):\n\n{text}"
            if classes.setdefault(name, whole) == whole:
                return name

    def _definition(self) -> ast.FunctionDef:
        function = self._function
        function.body = [n.whole() for n in self._body] or [ast.Pass()]
        function.decorator_list = []
        return ast.fix_missing_locations(function)

    def get_network(self) -> Cell:
        """A network that runs the statements as they are now; the one before should not be used any more.

        Its source is kept in the folder `rewritten_network` of the current one.
        """
        code, meanings, name = self._code()
        module = ModuleType(f"{name}_{next(_numbers)}")
        path = Path(FOLDER, f"{module.__name__}.py").absolute()
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, encoding="utf-8")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # the source of its functions is looked for there
        local = {n: v for n, v in meanings.items() if _import(n, v).startswith("#")}
        vars(module).update(local)
        exec(compile(code, str(path), "exec"), vars(module))
        return getattr(module, name)(self._network)


def _within(node: Node) -> Iterator[Node]:
    """The nodes inside a node."""
    for inner in itertools.chain(*node.blocks, node.cells):
        yield inner
        yield from _within(inner)
    if node.sub_tree is not None:
        yield from node.sub_tree.nodes(True)


def _statements(block: list[Node]) -> Iterator[Node]:
    for node in block:
        yield node
        for inner in node.blocks:
            yield from _statements(inner)


def _import(name: str, value) -> str:
    """The line that makes `name` mean `value`; a comment if no module has it."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    module = getattr(value, "__module__", None) or getattr(getattr(value, "definition", None), "module", None)
    home = sys.modules.get(module)
    if home is None or getattr(home, name, None) is not value:
        return f"# {name}: {type(value).__name__}, defined where the network is made"
    return f"{name} = getattr(sys.modules['{module}'], '{name}')"
