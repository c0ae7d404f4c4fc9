"""What a Python function of the package returns, read from its source, for stubs of those that do not say.

A small abstract run of the body: every expression has a type as an annotation says it, or None where that is
not known. Names are resolved in the function's module, calls of other functions are followed. What is not
the same on all ways, or not known, has no type: a stub leaves it open rather than wrong.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import textwrap
import types

from mycelia.engine import _C
from mycelia.engine.ops.late import Functions

TENSOR = "Tensor"
_INPUTS = {"input", "x", "tensor", "self"}  # parameters of these names are tensors in functions of tensors
# Annotations of ops: the kinds of their parameters and attributes.
KINDS = {
    "tensor": "TensorLike", "tensor?": "TensorLike | None", "tensors": "Sequence[Tensor]", "any": "Any",
    "int?": "int | None", "ints": "int | Sequence[int]", "ints?": "int | Sequence[int] | None",
    "float?": "float | None", "bool?": "bool | None", "str?": "str | None", "dtype": "DTypeLike",
    "dtype?": "DTypeLike | None",
}  # fmt: skip
_PLAIN = {bool: "bool", int: "int", float: "float", str: "str"}
_NATIVE = {"empty": TENSOR, "make_traced": TENSOR, "from_array": TENSOR}  # of _C
_METHODS = {"shape": "tuple[int, ...]", "ndim": "int", "size": "int", "_assign": TENSOR, "_detach": TENSOR}
_PENDING = "pending"  # what a function that calls itself returns adds nothing
_known: dict[tuple, str | None] = {}


class _Object:
    """A value that is known before the run: a function handed on, say."""

    def __init__(self, value) -> None:
        self.value = value


def of(function, arguments: tuple = ()) -> str | None:
    """The annotation of what `function` returns; None if it cannot be told.

    `arguments`: the types, or `_Object`s, of the positional arguments of a call, as far as they are known.
    """
    if isinstance(function, _C.Op):
        return str(inspect.signature(function).return_annotation)
    if isinstance(function, type):
        return TENSOR if function is _C.Tensor else None
    if isinstance(function, _Inner):
        return function.result(arguments)
    if not isinstance(function, types.FunctionType):
        return None
    told = function.__annotations__.get("return")
    if told is not None:
        return told if told in (TENSOR, "bool", "int", "float", "str", "None") else None
    key = (function, *(id(a.value) if isinstance(a, _Object) else a for a in arguments))
    if key not in _known:
        _known[key] = _PENDING
        _known[key] = _read(function, arguments)
    return _known[key]


def of_method(name: str) -> str | None:
    """The same of a method or property of Tensor."""
    found = inspect.getattr_static(_C.Tensor, name, None)
    if isinstance(found, property):
        return of(found.fget)
    if isinstance(found, (types.FunctionType, _C.Op)):
        return of(found)
    return _METHODS.get(name)


def _read(function: types.FunctionType, arguments: tuple) -> str | None:
    target = function.__globals__.get("_target")  # faces: one call of another function
    if target is not None and function.__code__.co_filename == "<string>":
        return of(target)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function.__code__))).body[0]
    except (OSError, SyntaxError, TypeError):
        return None
    if not isinstance(tree, ast.FunctionDef) or tree.name != function.__code__.co_name:
        return None
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(tree)):
        return None
    outside = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
    return _Reader({**vars(builtins), **function.__globals__, **outside}).result(tree, arguments, {})


def _same(found) -> str | None:
    """The one type in `found`; None if there are several, or one is not known."""
    kinds = {kind for kind in found if kind != _PENDING}
    only = kinds.pop() if len(kinds) == 1 else None
    return only if isinstance(only, str) else None


class _Inner:
    """A function defined in the one that is read."""

    def __init__(self, tree: ast.FunctionDef, reader: _Reader, known: dict) -> None:
        self.tree, self.reader, self.known = tree, reader, known
        self.is_read = False

    def result(self, arguments: tuple) -> str | None:
        if self.is_read:
            return _PENDING
        self.is_read = True
        try:
            return _Reader(self.reader.space).result(self.tree, arguments, self.known)
        finally:
            self.is_read = False


class _Reader:
    """Runs over the statements of one function; `found` are the types of its return statements."""

    def __init__(self, space: dict) -> None:
        self.space = space
        self.found: list[str | None] = []

    def result(self, tree: ast.FunctionDef, arguments: tuple, outer: dict) -> str | None:
        names = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args)]
        known = outer | {name: TENSOR if name in _INPUTS else None for name in names}
        known |= {a.arg: None for a in (*tree.args.kwonlyargs, tree.args.vararg, tree.args.kwarg) if a}
        known |= {name: given for name, given in zip(names, arguments) if given is not None}
        if self.block(tree.body, known):
            self.found.append("None")
        return _same(self.found)

    def block(self, statements: list[ast.stmt], known: dict) -> bool:
        """Run them, with `known` types of variables; whether what follows is reached."""
        return all(self.statement(s, known) for s in statements)

    def statement(self, node: ast.stmt, known: dict) -> bool:
        if isinstance(node, ast.Return):
            self.found.append("None" if node.value is None else self.type(node.value, known))
            return False
        if isinstance(node, ast.Raise):
            return False
        if isinstance(node, ast.Assign):
            found = self.value(node.value, known)
            for target in node.targets:
                self.bind(target, found, known)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            value = (
                node.value if isinstance(node, ast.AnnAssign) else ast.BinOp(node.target, node.op, node.value)
            )
            self.bind(node.target, value and self.type(value, known), known)
        elif isinstance(node, ast.If):
            return self.ways([node.body, node.orelse], known)
        elif isinstance(node, (ast.For, ast.While)):
            if isinstance(node, ast.For):
                self.bind(node.target, None, known)
            self.ways([node.body, []], known)
            self.ways([node.body, []], known)  # types that a round changes
        elif isinstance(node, ast.With):
            return self.block(node.body, known)
        elif isinstance(node, ast.Try):
            bodies = [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)]
            return self.ways(bodies, known) and self.block(node.finalbody, known)
        elif isinstance(node, ast.FunctionDef):
            known[node.name] = _Object(_Inner(node, self, known))
        elif isinstance(node, ast.Match):
            self.found.append(None)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            for alias in node.names:
                found = getattr(module, alias.name, None)
                known[alias.asname or alias.name] = None if found is None else _Object(found)
        return True

    def ways(self, bodies: list[list[ast.stmt]], known: dict) -> bool:
        """Run each from the same state; after them holds what all that go on agree on."""
        ends = []
        for body in bodies:
            own = dict(known)
            if self.block(body, own):
                ends.append(own)
        names = set(known).union(*ends)
        for name in names:
            found = {end.get(name) for end in ends}
            known[name] = found.pop() if len(found) == 1 else _same(found)
        return bool(ends)

    def value(self, node: ast.expr, known: dict) -> str | _Object | None:
        """The type of an expression, or what it is if that is known."""
        found = self.object(node, known) if isinstance(node, (ast.Name, ast.Attribute)) else None
        return self.type(node, known) if found is None else _Object(found)

    def bind(self, target: ast.expr, found: str | _Object | None, known: dict) -> None:
        if isinstance(target, ast.Name):
            known[target.id] = found
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = _parts(found) or [None] * len(target.elts)
            for part, element in zip([*parts, *[None] * len(target.elts)], target.elts):
                self.bind(element, part, known)

    def object(self, node: ast.expr, known: dict):
        """What a name or `module.name` stands for; None if that is not known before the run."""
        if isinstance(node, ast.Name):
            own = known.get(node.id) if node.id in known else _Object(self.space.get(node.id))
            return own.value if isinstance(own, _Object) else None
        if isinstance(node, ast.Attribute):
            holder = self.object(node.value, known)
            if isinstance(holder, (types.ModuleType, Functions)) or holder is _C.Tensor:
                return getattr(holder, node.attr, None)
        return None

    def type(self, node: ast.expr, known: dict) -> str | None:
        if isinstance(node, ast.Name):
            found = known.get(node.id)
            return found if isinstance(found, str) else None
        if isinstance(node, ast.Constant):
            return "None" if node.value is None else _PLAIN.get(type(node.value))
        if isinstance(node, ast.Tuple):
            parts = [self.type(element, known) for element in node.elts]
            if not parts or None in parts:
                return None
            return _PENDING if _PENDING in parts else f"tuple[{', '.join(parts)}]"
        if isinstance(node, ast.IfExp):
            return _same([self.type(node.body, known), self.type(node.orelse, known)])
        if isinstance(node, ast.BinOp):
            return TENSOR if TENSOR in (self.type(node.left, known), self.type(node.right, known)) else None
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return self.type(node.operand, known)
        if isinstance(node, ast.Compare):
            sides = {self.type(n, known) for n in (node.left, *node.comparators)}
            kept = all(not isinstance(o, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for o in node.ops)
            return TENSOR if TENSOR in sides and kept else None
        if isinstance(node, ast.ListComp):
            return self.gathered(list, node, known)
        if isinstance(node, ast.Subscript):
            return self.item(self.type(node.value, known), node.slice)
        if isinstance(node, ast.Attribute) and self.type(node.value, known) == TENSOR:
            return of_method(node.attr)
        return self.call(node, known) if isinstance(node, ast.Call) else None

    def item(self, found: str | None, index: ast.expr) -> str | None:
        if found == TENSOR:
            return TENSOR
        parts = _parts(found)
        if parts and parts[-1] == "...":
            return parts[0] if not isinstance(index, ast.Slice) else found
        if parts and isinstance(index, ast.Constant) and index.value in range(len(parts)):
            return parts[index.value]
        return None

    def call(self, node: ast.Call, known: dict) -> str | None:
        called = self.object(node.func, known)
        if called is not None:
            if getattr(called, "__self__", None) is _C and called.__name__ in _NATIVE:
                return _NATIVE[called.__name__]
            if called in _PLAIN:
                return _PLAIN[called]
            if called in (tuple, list) and len(node.args) == 1:
                return self.gathered(called, node.args[0], known)
            arguments = () if any(isinstance(a, ast.Starred) for a in node.args) else node.args
            return of(called, tuple(self.value(a, known) for a in arguments))
        if isinstance(node.func, ast.Attribute) and self.type(node.func.value, known) == TENSOR:
            return of_method(node.func.attr)
        return None

    def gathered(self, kind: type, node: ast.expr, known: dict) -> str | None:
        """`tuple(f(x) for x in ...)`, `list(...)`."""
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            inside = dict(known)
            for loop in node.generators:
                self.bind(loop.target, None, inside)
            element = self.type(node.elt, inside)
        else:
            parts = _parts(self.type(node, known)) or []
            element = _same([part for part in parts if part != "..."])
        if element in (None, _PENDING):
            return None
        return f"tuple[{element}, ...]" if kind is tuple else f"list[{element}]"


def _parts(found: str | None) -> list[str] | None:
    """The types inside `tuple[...]`; None if it is no tuple."""
    if not isinstance(found, str) or not found.startswith("tuple["):
        return None
    elements = ast.parse(found, mode="eval").body.slice
    listed = elements.elts if isinstance(elements, ast.Tuple) else [elements]
    return ["..." if isinstance(e, ast.Constant) else ast.unparse(e) for e in listed]
