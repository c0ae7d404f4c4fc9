"""One statement of a network."""

from __future__ import annotations

import ast
import copy
import enum
import itertools
import textwrap
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, NoneType

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.faces.rewrite.handlers import NodeHandler
from mycelia.faces.rewrite.values import ScopedValue, expression_of, value_of
from mycelia.nn import Cell
from mycelia.ops.primitive import Primitive


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


class Block(list):
    """Nodes in order: inputs, a body, or the cells of a container; `owner` is what they belong to."""

    def __init__(self, owner):
        super().__init__()
        self.owner = owner

    def flat(self) -> Iterator[Node]:
        """The nodes, and those of the bodies and containers in them."""
        for node in self:
            yield node
            for inner in (node.body, node.cells):
                if inner is not None:
                    yield from inner.flat()


class Node:
    """A statement of a network's `construct`: what it calls, with which arguments, and what it sets.

    Nodes come from `SymbolTree.create`, or from `create_call_cell` and `create_call_function`.
    """

    #: `SymbolTree.create`. Trees are made of nodes, so their module sets it.
    tree_of: Callable[[Cell], object]

    def __new__(cls, kind, *arguments, **options):
        found = getattr(kind, "node", kind)  # Node(node.get_handler()) is node
        return found if isinstance(found, Node) else super().__new__(cls)

    def __init__(self, kind, name: str = "", statement: ast.stmt | ast.arg | None = None, instance=None):
        if not isinstance(kind, NodeType):
            return
        self.kind, self.name, self.statement, self.instance = kind, name, statement, instance
        self.tree = None  # the SymbolTree that it is in
        self.block: Block | None = None  # its place there
        self.sub_tree = None
        self.function = None  # the scopes.Function that is called, where its statements are known
        self.body: Block | None = None  # of control flow
        self.cells: Block | None = None  # of a container
        self.default: ScopedValue | None = None  # of an input
        self.attributes: dict[str, object] = {}

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
        name = name or type(cell).__name__
        kind = NodeType.CallCell if isinstance(cell, Cell) else NodeType.CallPrimitive
        function = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
        node = Node(kind, name, _call(function, targets, args, kwargs), cell)
        if is_sub_net and isinstance(cell, Cell):
            node.kind, node.sub_tree = NodeType.Tree, Node.tree_of(cell)
        return node

    @staticmethod
    def create_call_function(function, targets, args=None, kwargs=None) -> Node:
        """A node ``targets = function(*args, **kwargs)``. Errors: TypeError for arguments of other types."""
        if not isinstance(function, (FunctionType, BuiltinFunctionType, _C.Op, type)):
            check_type("Node", "function", function, FunctionType)
        name = getattr(function, "__name__", None) or function.name
        called = ast.Name(name, ast.Load())
        return Node(NodeType.CallFunction, name, _call(called, targets, args, kwargs), function)

    @staticmethod
    def create_input(param_name: str, default: ScopedValue | None = None) -> Node:
        """A node for a further argument of the network, with a default (None if it is not given)."""
        check_type("Node", "param_name", param_name, str)
        check_type("Node", "default", default, ScopedValue, NoneType)
        node = Node(NodeType.Input, f"input_{param_name}", ast.arg(param_name))
        node.default = ScopedValue.create_variable_value(None) if default is None else default
        return node

    # -- what it is

    def get_handler(self):
        """What scripts use that go below this interface; see `handlers`."""
        return NodeHandler(self)

    def set_attribute(self, key: str, value) -> None:
        """Keep something with the node. Errors: TypeError for a key that is no text."""
        check_type("Node", "key", key, str)
        self.attributes[key] = value

    def get_attribute(self, key: str):
        """What was kept under this key, or None."""
        check_type("Node", "key", key, str)
        return self.attributes.get(key)

    def get_attributes(self) -> dict[str, object]:
        """All that was kept."""
        return self.attributes

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
        if self.kind is NodeType.CallFunction:
            return NoneType
        return getattr(self.instance, "made_class", None) or type(self.instance)

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
        if isinstance(self.statement, Else):
            inside = ast.unparse(ast.fix_missing_locations(ast.Module(statements(self.body), [])))
            return "else:\n" + textwrap.indent(inside or "pass", "    ")
        return ast.unparse(ast.fix_missing_locations(self.whole()))

    def whole(self) -> ast.stmt:
        """The statement with its bodies as they are now."""
        if self.body is not None:
            self.statement.body = statements(self.body) or [ast.Pass()]
            self.statement.orelse = [] if self.partner is None else statements(self.partner.body)
        return self.statement

    @property
    def partner(self) -> Node | None:
        """The node of the `else` that belongs to this `if` or loop."""
        if self.body is None or self.block is None or isinstance(self.statement, Else):
            return None
        place = self.block.index(self) + 1
        other = self.block[place] if place < len(self.block) else None
        is_mine = (
            other is not None and isinstance(other.statement, Else) and other.statement.head is self.statement
        )
        return other if is_mine else None

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
        self.mark()

    def set_kwarg(self, name: str, value: ScopedValue) -> None:
        """Give an argument by keyword, instead of one of this name. Errors: TypeError unless it is a call."""
        check_type("Node", "value", value, ScopedValue)
        call = getattr(self.statement, "value", None)
        if not isinstance(call, ast.Call):
            raise errors.type_error("Node", f"'{self.name}' calls nothing, so it has no arguments by keyword")
        call.keywords = [k for k in call.keywords if k.arg != name] + [
            ast.keyword(name, expression_of(value))
        ]
        self.mark()

    def mark(self) -> None:
        """The function that it is in is not as it was."""
        function = self.scope()
        if function is not None:
            function.changed = True

    def scope(self):
        """The function that it is in."""
        owner = None if self.block is None else self.block.owner
        return owner.scope() if isinstance(owner, Node) else owner

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
        if self.kind is NodeType.Python:
            return []
        statement = self.statement.head if isinstance(self.statement, Else) else self.statement
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
        if self.block is None:
            return {}
        last: dict[str, tuple[Node, int]] = {}
        owner = self.block.owner
        for other in itertools.chain(getattr(owner, "inputs", ()), self.block):
            if other is self:
                break
            for i, target in enumerate(other.get_targets()):
                last[str(target)] = (other, i)
        values = [*self.get_args(), *self.get_kwargs().values()]
        return {i: last[str(v)] for i, v in enumerate(values) if str(v) in last}

    get_arg_providers = providers

    def get_target_users(self, index: int = -1) -> dict | list:
        """Where its targets go: place of the target -> [(node, place of the argument), ...], or one list."""
        check_type("Node", "index", index, int)
        users: dict[int, list[tuple[Node, int]]] = {}
        for other in self._followers():
            for place, (source, target) in other.providers().items():
                if source is self:
                    users.setdefault(target, []).append((other, place))
        return users if index == -1 else users.get(index, [])

    def _followers(self) -> list[Node]:
        if self.block is None:
            return []
        return list(getattr(self.block.owner, "body", None) or self.block) if self._is_input() else self.block

    def _is_input(self) -> bool:
        return self.kind is NodeType.Input

    def get_inputs(self) -> list[Node]:
        """The nodes whose targets are its arguments."""
        return [node for node, _ in self.providers().values()]

    def get_users(self) -> list[Node]:
        """The nodes that have its targets as arguments."""
        return [n for n in self._followers() if any(given is self for given, _ in n.providers().values())]


class Else(ast.stmt):
    """The `else` of the `if` or loop before it, its `head`; a body without statement of its own."""

    _fields = ("head",)


def statements(block: Block) -> list[ast.stmt]:
    """The nodes of a body as statements."""
    made: list[ast.stmt] = []
    before = None
    for node in block:
        if isinstance(node.statement, Else):
            if before is None or before.partner is not node:  # its `if` was erased
                head = copy.copy(node.statement.head)
                head.body, head.orelse = [ast.Pass()], statements(node.body)
                made.append(head)
        else:
            made.append(node.whole())
        before = node
    return made


def _call(function: ast.expr, targets, args, kwargs) -> ast.Assign:
    """``targets = function(*args, **kwargs)``."""
    check_type("Node", "targets", targets, list, tuple)
    check_type("Node", "args", [] if args is None else args, list, tuple)
    check_type("Node", "kwargs", {} if kwargs is None else kwargs, dict)
    for target in targets:
        check_type("Node", "targets", target, ScopedValue, str)
    for key in kwargs or ():
        check_type("Node", "a key of kwargs", key, str)
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
