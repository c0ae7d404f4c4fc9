"""One statement of a network."""

from __future__ import annotations

import ast
import enum
from types import BuiltinFunctionType, FunctionType, NoneType

from mycelia import _C, errors
from mycelia.nn import Cell
from mycelia.ops.primitive import Primitive
from mycelia.rewrite.values import ScopedValue, expression_of, value_of


class NodeType(enum.Enum):
    """What the statement of a node does; `Tree` calls a network of the user's."""

    Unknown = 0
    CallCell = 1
    CallPrimitive = 2
    CallModule = 3
    CallFunction = 4
    CallMethod = 5
    Python = 6
    Input = 7
    Output = 8
    Tree = 9
    CellContainer = 10
    MathOps = 11
    ControlFlow = 12


def check_type(owner: str, name: str, value, *kinds: type) -> None:
    """TypeError unless `value` is of one of the kinds."""
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds:
        wanted = [k.__name__ for k in kinds]
        text = " or ".join(f"'{w}'" for w in wanted)
        raise errors.type_error(owner, f"{name} must be {text}, but is '{type(value).__name__}'")


def _targets_of(statement) -> list[ast.expr]:
    if not isinstance(statement, ast.Assign):
        return []
    first = statement.targets[0]
    return list(first.elts) if isinstance(first, (ast.Tuple, ast.List)) else [first]


class Node:
    """A statement of a network's `construct`: what it calls, with which arguments, and what it sets.

    Nodes come from `SymbolTree.create`, or from `create_call_cell` and `create_call_function`.
    """

    def __init__(self, kind: NodeType, name: str, statement: ast.stmt | ast.arg, instance=None):
        self.kind, self.name, self.statement, self.instance = kind, name, statement, instance
        self.tree = None  # the SymbolTree that it is in
        self.block: list[Node] | None = None  # its place there: the nodes of one body
        self.sub_tree = None
        self.blocks: list[list[Node]] = []  # bodies of control flow
        self.cells: list[Node] = []  # of a container

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {self.code()}>"

    # -- making

    @staticmethod
    def create_call_cell(
        cell, targets, args=None, kwargs=None, name: str = "", is_sub_net: bool = False
    ) -> Node:
        """A node ``targets = self.name(*args, **kwargs)`` that calls a new Cell or primitive.

        With `is_sub_net` the statements of `cell` become a tree of their own. `name` is made from the class
        if it is empty, and unique when the node is inserted. Errors: TypeError for arguments of other types.
        """
        check_type("Node", "cell", cell, Cell, Primitive)
        check_type("Node", "name", name, str)
        check_type("Node", "is_sub_net", is_sub_net, bool)
        name = name or type(cell).__name__.lower()
        kind = NodeType.CallCell if isinstance(cell, Cell) else NodeType.CallPrimitive
        function = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
        node = Node(kind, name, _call(function, targets, args, kwargs), cell)
        if is_sub_net and isinstance(cell, Cell):
            from mycelia.rewrite.symbol_tree import SymbolTree

            node.kind, node.sub_tree = NodeType.Tree, SymbolTree.create(cell)
        return node

    @staticmethod
    def create_call_function(function, targets, args=None, kwargs=None) -> Node:
        """A node ``targets = function(*args, **kwargs)``. Errors: TypeError for arguments of other types."""
        if not isinstance(function, (FunctionType, BuiltinFunctionType, _C.Op)):
            check_type("Node", "function", function, FunctionType)
        name = getattr(function, "__name__", None) or function.name
        called = ast.Name(name, ast.Load())
        return Node(NodeType.CallFunction, name, _call(called, targets, args, kwargs), function)

    # -- what it is

    def get_name(self) -> str:
        """Its name, unique in the tree."""
        return self.name

    def get_node_type(self) -> NodeType:
        """What its statement does."""
        return self.kind

    def get_instance_type(self) -> type:
        """The class of the Cell or primitive that is called, the function, or NoneType."""
        if self.kind is NodeType.CallFunction and self.instance is not None:
            return self.instance
        return type(self.instance) if self.kind is not NodeType.CallFunction else NoneType

    def get_instance(self):
        """The Cell, primitive or function that is called."""
        return self.instance

    def get_symbol_tree(self):
        """The SymbolTree that it is in, None before it is inserted."""
        return self.tree

    def get_sub_tree(self):
        """The SymbolTree of the network that is called. Errors: TypeError for a node of another type."""
        if self.kind is not NodeType.Tree:
            raise errors.type_error("Node", f"a node of type {self.kind} has no tree of its own")
        if self.sub_tree is None:
            raise errors.error(errors.MyceliaAttributeError, "Node", "no tree is stored in this node")
        return self.sub_tree

    def code(self) -> str:
        """The statement as text."""
        if isinstance(self.statement, ast.arg):
            return self.statement.arg
        return ast.unparse(ast.fix_missing_locations(self.whole()))

    def whole(self) -> ast.stmt:
        """The statement with the bodies as they are now."""
        if self.blocks:
            bodies = [[n.whole() for n in block] for block in self.blocks]
            self.statement.body = bodies[0] or [ast.Pass()]
            self.statement.orelse = bodies[1] if len(bodies) > 1 else []
        return self.statement

    # -- arguments and targets

    def get_args(self) -> list[ScopedValue]:
        """Its positional arguments; operands, elements, the test of an `if`, what a `for` runs over."""
        return [value_of(getattr(o, f) if i is None else getattr(o, f)[i]) for o, f, i in self._slots()]

    def get_kwargs(self) -> dict[str, ScopedValue]:
        """Its arguments by keyword."""
        value = getattr(self.statement, "value", None)
        if not isinstance(value, ast.Call):
            return {}
        return {k.arg: value_of(k.value) for k in value.keywords if k.arg}

    def get_targets(self) -> list[ScopedValue]:
        """The variables that it sets."""
        if isinstance(self.statement, ast.arg):
            return [ScopedValue.create_naming_value(self.statement.arg)]
        return [value_of(t) for t in _targets_of(self.statement)]

    def set_arg(self, index: int, arg: ScopedValue | str) -> None:
        """Give another positional argument. Errors: TypeError, ValueError if there are fewer arguments."""
        check_type("Node", "index", index, int)
        check_type("Node", "arg", arg, ScopedValue, str)
        slots = self._slots()
        if not 0 <= index < len(slots):
            raise errors.value_error(
                "Node", f"'{self.name}' has {len(slots)} arguments, but index is {index}"
            )
        owner, name, i = slots[index]
        if i is None:
            setattr(owner, name, expression_of(arg))
        else:
            getattr(owner, name)[i] = expression_of(arg)

    def set_arg_by_node(self, arg_idx: int, src_node: Node, out_idx: int | None = None) -> None:
        """Let an argument be the `out_idx`-th target of another node; by default its only one."""
        check_type("Node", "arg_idx", arg_idx, int)
        check_type("Node", "src_node", src_node, Node)
        targets = src_node.get_targets()
        if out_idx is None:
            if len(targets) != 1:
                raise errors.value_error(
                    "Node", f"out_idx is needed, as '{src_node.name}' has {len(targets)} targets"
                )
            out_idx = 0
        check_type("Node", "out_idx", out_idx, int)
        if not 0 <= out_idx < len(targets):
            raise errors.value_error(
                "Node", f"'{src_node.name}' has {len(targets)} targets, but out_idx is {out_idx}"
            )
        self.set_arg(arg_idx, targets[out_idx])

    def _slots(self) -> list[tuple[ast.AST, str, int | None]]:
        """Where the arguments stand in the statement: an object, its field, and a place in it."""
        statement = self.statement
        match statement:
            case ast.Return(value=value):
                return [] if value is None else [(statement, "value", None)]
            case ast.If() | ast.While():
                return [(statement, "test", None)]
            case ast.For():
                return [(statement, "iter", None)]
        value = getattr(statement, "value", None)
        match value:
            case ast.Call(args=args):
                return [(value, "args", i) for i in range(len(args))]
            case ast.BinOp():
                return [(value, "left", None), (value, "right", None)]
            case ast.UnaryOp():
                return [(value, "operand", None)]
            case ast.Compare(comparators=others):
                return [(value, "left", None), *((value, "comparators", i) for i in range(len(others)))]
            case ast.BoolOp(values=values) | ast.Dict(values=values):
                return [(value, "values", i) for i in range(len(values))]
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return [(value, "elts", i) for i in range(len(elements))]
            case ast.Subscript():
                return [(value, "value", None)]
            case ast.Name() | ast.Attribute() | ast.Constant():
                return [(statement, "value", None)]
        return []

    # -- neighbours

    def providers(self) -> dict[int, tuple[Node, int]]:
        """Which node, and which of its targets, gives each argument (keywords follow the others)."""
        return self.tree.providers(self) if self.tree is not None else {}

    def get_inputs(self) -> list[Node]:
        """The nodes whose targets are its arguments."""
        return [node for node, _ in self.providers().values()]

    def get_users(self) -> list[Node]:
        """The nodes that have its targets as arguments."""
        if self.tree is None:
            return []
        return [n for n in self.tree.nodes() if any(given is self for given, _ in n.providers().values())]


def _call(function: ast.expr, targets, args, kwargs) -> ast.Assign:
    """``targets = function(*args, **kwargs)``."""
    check_type("Node", "targets", targets, list, tuple)
    check_type("Node", "args", [] if args is None else args, list, tuple)
    check_type("Node", "kwargs", {} if kwargs is None else kwargs, dict)
    for target in targets:
        check_type("Node", "targets", target, ScopedValue, str)
    for name, given in (("args", args or ()), ("kwargs", (kwargs or {}).values())):
        for value in given:
            check_type("Node", f"an element of {name}", value, ScopedValue)
    called = ast.Call(
        function,
        [expression_of(a) for a in args or ()],
        [ast.keyword(name, expression_of(value)) for name, value in (kwargs or {}).items()],
    )
    left = [expression_of(t) for t in targets]
    return ast.Assign([left[0] if len(left) == 1 else ast.Tuple(left, ast.Store())], called)
