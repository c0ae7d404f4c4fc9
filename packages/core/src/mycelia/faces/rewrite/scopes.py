"""Functions of a network as nodes: its `construct`, its methods, and functions of its modules."""

from __future__ import annotations

import ast
import inspect
import sys
import sysconfig
import textwrap
from pathlib import Path
from types import FunctionType

from mycelia.faces.rewrite.flatten import Flattener, operator_name
from mycelia.faces.rewrite.nodes import Block, Else, Node, NodeType
from mycelia.nn import Cell, CellList, SequentialCell
from mycelia.ops.primitive import Primitive

_NESTED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
)
_STANDARD = sysconfig.get_path("stdlib")


def is_ours(value) -> bool:
    """Whether a class or function belongs to this package, so that its source is not rewritten."""
    return (getattr(value, "__module__", None) or "").split(".")[0] in ("mycelia", "mindspore")


def is_users(value) -> bool:
    """Whether a class or function is neither of this package nor of a library."""
    if is_ours(value):
        return False
    module = sys.modules.get(value.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return module is not None and module.__name__ not in sys.builtin_module_names
    return not Path(file).is_relative_to(_STANDARD) and "site-packages" not in file


def definition_of(function: FunctionType, nested: bool = False) -> ast.FunctionDef | None:
    """The source of a function; None if there is none, or it has functions or variables of others in it.

    `nested`: those are wanted too.
    """
    if function.__code__.co_freevars and not nested:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    inside = any(isinstance(n, _NESTED) for statement in tree.body for n in ast.walk(statement))
    return tree if nested or not inside else None


class LocalPrim(Primitive):
    """A primitive of class `made_class` that a network makes itself, when it runs."""

    def __init__(self, made_class: type[Primitive]):
        super().__init__(made_class.__name__)
        self.made_class = made_class


class Function:
    """The statements of one function as nodes.

    `value`: the function; `owner`: the class that defines it, None outside of classes; `tree`: the SymbolTree
    that it is called in.
    """

    def __init__(self, tree, value: FunctionType, definition: ast.FunctionDef, owner: type | None = None):
        self.tree, self.value, self.definition, self.owner = tree, value, definition, owner
        self.is_static = owner is not None and isinstance(
            inspect.getattr_static(owner, definition.name, None), staticmethod
        )
        self.changed = False
        self.added: dict[str, object] = {}  # what inserted nodes call, by name
        self.made: dict[str, LocalPrim] = {}  # primitives that its statements make
        plain = inspect.unwrap(value)
        self.globals, self.closure = plain.__globals__, inspect.getclosurevars(plain).nonlocals
        self.variables = {n.id for n in ast.walk(definition) if isinstance(n, ast.Name)}
        self.inputs, self.body = Block(self), Block(self)

    def parse(self) -> Function:
        """Make the nodes; what they call is made before them."""
        arguments = self.definition.args
        given = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs]
        for argument in [*given, arguments.kwarg]:
            if argument is not None and not (argument.arg == "self" and self.owner is not None):
                self._enter(Node(NodeType.Input, f"input_{argument.arg}", argument), self.inputs)
        flattener = Flattener(self.variables, lambda e: _is_container(self.resolve(e)))
        self._parse(flattener.statements(self.definition.body), self.body)
        return self

    def resolve(self, expression: ast.expr):
        """What a name in the source means, if that is known without running it."""
        match expression:
            case ast.Name(id="self") if self.owner is not None and not self.is_static:
                return self.tree.get_origin_network()
            case ast.Name(id=name):
                for names in (self.made, self.added, self.closure, self.globals):
                    if name in names:
                        return names[name]
            case ast.Attribute(value=owner, attr=name):
                found = self.resolve(owner)
                return None if found is None else getattr(found, name, None)
            case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
                found = self.resolve(owner)
                return found[key] if _is_container(found) and isinstance(key, int) else None
        return None

    def is_changed(self, seen: set[int] | None = None) -> bool:
        """Whether its nodes, or those of functions that it calls, were changed."""
        seen = set() if seen is None else seen
        if id(self) in seen:
            return False
        seen.add(id(self))
        called = (n.function for n in self.body.flat() if n.function is not None)
        return self.changed or any(f.is_changed(seen) for f in called)

    # -- nodes

    def _enter(self, node: Node, block: Block) -> Node:
        self.tree.enter(node)
        node.block = block
        block.append(node)
        return node

    def _parse(self, statements: list[ast.stmt], block: Block) -> None:
        for statement in statements:
            if not isinstance(statement, (ast.If, ast.For, ast.While)):
                self._enter(self._node(statement), block)
                continue
            kind = type(statement).__name__.lower()
            node = self._enter(Node(NodeType.ControlFlow, f"{kind}_node", statement), block)
            node.body = Block(node)
            self._parse(statement.body, node.body)
            if statement.orelse:
                name = "else_node" if isinstance(statement, ast.If) else f"{kind}_else_node"
                node = self._enter(Node(NodeType.ControlFlow, name, Else(statement)), block)
                node.body = Block(node)
                self._parse(statement.orelse, node.body)

    def _node(self, statement: ast.stmt) -> Node:
        if isinstance(statement, ast.Return):
            return Node(NodeType.Output, "return", statement)
        value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
        match value:
            case ast.Call(func=function):
                return self._called(statement, function)
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare():
                name = f"{type(value).__name__.lower()}_{operator_name(value)}"
                return Node(NodeType.MathOps, name, statement)
            case ast.Tuple() | ast.List() | ast.Dict():
                return Node(NodeType.CallMethod, type(value).__name__.lower(), statement)
            case ast.Attribute() if _is_container(cells := self.resolve(value)):
                return self.container(Node(NodeType.CellContainer, ast.unparse(value), statement, cells))
            case ast.Name() | ast.Constant() | ast.Attribute():
                return Node(NodeType.CallMethod, f"{type(value).__name__.lower()}_assign", statement)
            case ast.Subscript():
                return Node(NodeType.CallMethod, "subscript_var", statement)
        return Node(NodeType.Python, type(statement).__name__, statement)

    def _called(self, statement, function: ast.expr) -> Node:
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "call")
        instance = self.resolve(function)
        node = Node(NodeType.CallFunction, name, statement, instance)
        if isinstance(instance, SequentialCell):
            node.kind = NodeType.CellContainer
            self.container(node)
        elif isinstance(instance, Cell):
            self.tree.know(node)
        elif isinstance(instance, Primitive):
            node.kind = NodeType.CallPrimitive
        elif isinstance(instance, type) and issubclass(instance, Primitive):
            for target in node.get_targets():
                self.made[str(target)] = LocalPrim(instance)
        else:
            node.function = self.tree.function(instance)
        return node

    def container(self, node: Node) -> Node:
        """Make the nodes of a container's cells: each takes what the one before it gave."""
        node.cells = Block(node)
        for cell in node.instance:
            target, argument = ast.Name("x", ast.Store()), ast.Name("x", ast.Load())
            name = type(cell).__name__
            call = ast.Assign([target], ast.Call(ast.Name(name, ast.Load()), [argument], []))
            member = Node(NodeType.CallCell, name, call, cell)
            if _is_container(cell):
                member.kind = NodeType.CellContainer
                self.container(member)
            else:
                self.tree.know(member)
            self._enter(member, node.cells)
        self.tree.keep_cells(node)
        return node


def _is_container(value) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(cell, Cell) for cell in value)
    return isinstance(value, (SequentialCell, CellList))


def method(network: Cell, function) -> tuple[FunctionType, type] | None:
    """The plain function of a method of the user's, and the class that defines it; None for other things."""
    name = getattr(function, "__name__", "")
    for owner in type(network).__mro__:
        found = vars(owner).get(name)
        if found is None:
            continue
        plain = found.__func__ if isinstance(found, staticmethod) else found
        same = plain is getattr(function, "__func__", function)
        return (plain, owner) if same and isinstance(plain, FunctionType) and not is_ours(owner) else None
    return None
