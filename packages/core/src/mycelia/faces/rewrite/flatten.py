"""Nested expressions become statements of one operation each, with names for what lies between.

As in MindSpore the statements of a later operand stand before those of an earlier one, which has its name
first. What is evaluated only sometimes or again and again (later operands of `and` and `or`, conditional
expressions, comprehensions, tests of `while`) stays as it is, and so do augmented assignments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mult", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmult", ast.BitAnd: "bitand", ast.BitOr: "bitor",
    ast.BitXor: "bitxor",
    ast.LShift: "lshift", ast.RShift: "rshift", ast.Not: "not", ast.USub: "usub", ast.UAdd: "uadd",
    ast.Invert: "invert", ast.And: "and", ast.Or: "or", ast.Eq: "eq", ast.NotEq: "noteq", ast.Lt: "lt",
    ast.LtE: "lte", ast.Gt: "gt", ast.GtE: "gte", ast.Is: "is", ast.IsNot: "isnot", ast.In: "in",
    ast.NotIn: "notin",
}  # fmt: skip


def operator_name(expression: ast.expr) -> str:
    """`add` of ``a + b``, `not` of ``not a``."""
    signs = expression.ops if isinstance(expression, ast.Compare) else [expression.op]
    return "_".join(_OPERATORS[type(sign)] for sign in signs)


class Flattener:
    """Rewrites the statements of one function; `names` are taken and grow.

    `is_container(expression)`: whether a loop runs over cells; such a container gets a name of its own.
    """

    def __init__(self, names: set[str], is_container: Callable[[ast.expr], bool]):
        self.names, self.is_container = names, is_container

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [flat for statement in body for flat in self._statement(statement)]

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case ast.Expr(value=ast.Constant()):
                return []  # a docstring
            case ast.Assign(value=value) | ast.Expr(value=value):
                before, statement.value = self._parts(value)
                return [*before, statement]
            case ast.Return(value=value) if value is not None:
                before, statement.value = self._atom(value)
                return [*before, statement]
            case ast.If():
                before, statement.test = self._atom(statement.test)
                statement.body = self.statements(statement.body)
                statement.orelse = self.statements(statement.orelse)
                return [*before, statement]
            case ast.For():
                if isinstance(statement.iter, ast.Attribute) and self.is_container(statement.iter):
                    name = unique(ast.unparse(statement.iter).replace(".", "_"), self.names)
                    before = [ast.Assign([ast.Name(name, ast.Store())], statement.iter)]
                    statement.iter = ast.Name(name, ast.Load())
                else:
                    before, statement.iter = self._atom(statement.iter)
                statement.body = self.statements(statement.body)
                return [*before, statement]
            case ast.While():
                statement.body = self.statements(statement.body)
        return [statement]

    def _parts(self, expression: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        """The expression with simple parts, and the statements that compute them."""
        match expression:
            case ast.Call():
                before, expression.args = self._atoms(expression.args)
                for keyword in expression.keywords:
                    more, keyword.value = self._atom(keyword.value)
                    before = more + before
                if isinstance(expression.func, ast.Attribute):
                    more, expression.func.value = self._owner(expression.func.value)
                    before = more + before
                elif isinstance(expression.func, ast.Subscript):
                    more, expression.func = self._atom(expression.func)
                    before = more + before
                return before, expression
            case ast.BinOp():
                before, (expression.left, expression.right) = self._atoms([expression.left, expression.right])
                return before, expression
            case ast.BoolOp():  # the others are computed only if they are needed
                before, expression.values[0] = self._atom(expression.values[0])
                return before, expression
            case ast.UnaryOp():
                before, expression.operand = self._atom(expression.operand)
                return before, expression
            case ast.Compare(ops=[_]):
                before, (expression.left, expression.comparators[0]) = self._atoms(
                    [expression.left, expression.comparators[0]]
                )
                return before, expression
            case ast.Tuple() | ast.List():
                before, expression.elts = self._atoms(expression.elts)
                return before, expression
            case ast.Dict(keys=keys) if None not in keys:
                before, expression.values = self._atoms(expression.values)
                return before, expression
            case ast.Subscript():
                if isinstance(expression.value, ast.Call):
                    before, expression.value = self._atom(expression.value)
                    return before, expression
        return [], expression

    def _owner(self, expression: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        """What stands before a dot or bracket: names and attributes stay."""
        return (
            self._atom(expression) if isinstance(expression, (ast.Call, ast.Subscript)) else ([], expression)
        )

    def _atoms(self, expressions: list[ast.expr]) -> tuple[list[ast.stmt], list[ast.expr]]:
        before, simple = [], []
        for expression in expressions:
            more, atom = self._atom(expression)
            before = more + before
            simple.append(atom)
        return before, simple

    def _atom(self, expression: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        """A name or constant for the expression, and the statements before."""
        stem = _stem(expression)
        if stem is None:
            return [], expression
        name = unique(f"{stem}_var", self.names)
        before, expression = self._parts(expression)
        made = ast.Assign([ast.Name(name, ast.Store())], expression)
        return [*before, made], ast.Name(name, ast.Load())


def _stem(expression: ast.expr) -> str | None:
    """From what the name of an intermediate value is made; None: it needs none."""
    match expression:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
        case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare(ops=[_]):
            if isinstance(expression, ast.UnaryOp) and isinstance(expression.operand, ast.Constant):
                return None  # -1
            return operator_name(expression)
        case ast.Tuple():
            return "tuple"
        case ast.List():
            return "list"
        case ast.Dict():
            return "dict"
        case ast.Subscript():
            return "subscript"
    return None


def unique(name: str, taken: set[str]) -> str:
    """`name`, or `name_1`, `name_2`, ...; it is taken then."""
    found, i = name, 0
    while found in taken:
        i += 1
        found = f"{name}_{i}"
    taken.add(found)
    return found
