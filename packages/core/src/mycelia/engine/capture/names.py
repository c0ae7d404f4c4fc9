"""Which names a piece of code assigns, and which of its names nothing has."""

from __future__ import annotations

import ast
import dis
import types
from collections.abc import Callable, Iterable

from mycelia.engine.base import errors

_CHANGES_AND_RETURNS = ("pop", "popitem", "setdefault")  # methods of lists and dicts


def container(node: ast.expr) -> ast.expr:
    """What holds, directly or deeper, the item that `node` picks: `x` of ``x[0]["key"]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


class Assigned(ast.NodeVisitor):
    """Names and `name.attribute`s that statements assign or may change in place,
    with the line of the last time.
    """

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.changed: dict[str, int] = {}  # x[...] = v, x.append(v): x stays, its content changes
        self.attributes: dict[tuple[str, str], int] = {}
        self.outer: set[str] = set()  # declared global or nonlocal

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.names[node.id] = node.lineno

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            self.attributes[node.value.id, node.attr] = node.lineno
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            owner = container(node)
            if isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name):
                self.attributes[owner.value.id, owner.attr] = node.lineno
            else:
                self.change(owner)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        # A call whose result nobody takes is there for what it changes: its object or its arguments.
        call = node.value
        if isinstance(call, ast.Call):
            if isinstance(call.func, ast.Attribute):
                self.change(call.func.value)
            for argument in (*call.args, *(k.value for k in call.keywords)):
                self.change(argument)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES_AND_RETURNS:
            self.change(node.func.value)
        self.generic_visit(node)

    def change(self, node: ast.expr) -> None:
        """Notes that what `node` stands for, a variable or something inside one, may get other content."""
        owner = container(node)
        if isinstance(owner, ast.Name):
            self.changed[owner.id] = node.lineno

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.names[node.name] = node.lineno

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_comprehension_scope(self, node: ast.AST) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.names[inner.target.id] = inner.lineno
            elif isinstance(inner, ast.Call):
                self.visit_Call(inner)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_scope

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names[node.name] = node.lineno
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.names[(node.asname or node.name).partition(".")[0]] = getattr(node, "lineno", 0)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.names[node.name] = node.lineno
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.names[node.name] = node.lineno

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.outer.update(node.names)

    visit_Nonlocal = visit_Global


def names_in(statements: Iterable[ast.AST]) -> Assigned:
    visitor = Assigned()
    for statement in statements:
        visitor.visit(statement)
    return visitor


# ---- names that nothing has --------------------------------------------------------------------------------


class UndefinedName(errors.CaptureError, NameError):
    """The captured code has a name that stands for nothing."""


def undefined_name(name: str, file: str, line: int, function: str) -> UndefinedName:
    """The error for a name on a line of the user's."""
    error = UndefinedName(
        f"The name '{name}' is not defined at {file}:{line}",
        subject="jit",
        place=errors.Place(file, line, function),
    )
    error.name = name
    return error


def require_names(*functions: Callable) -> None:
    """Raises UndefinedName for a global name in the functions' code that neither module nor builtins have."""
    for function in functions:
        if isinstance(function, types.FunctionType):
            _require_names(function.__code__, {**function.__builtins__, **function.__globals__})


def _require_names(code: types.CodeType, known: dict) -> None:
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL" and instruction.argval not in known:
            line = instruction.positions.lineno if instruction.positions else None
            raise undefined_name(
                instruction.argval, code.co_filename, line or code.co_firstlineno, code.co_qualname
            )
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _require_names(constant, known)
