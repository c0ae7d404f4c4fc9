"""Which names a piece of code assigns."""

from __future__ import annotations

import ast
from collections.abc import Iterable


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
        if isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name):
                self.changed[node.value.id] = node.lineno
            elif isinstance(node.value, ast.Attribute) and isinstance(node.value.value, ast.Name):
                self.attributes[node.value.value.id, node.value.attr] = node.lineno
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
        ):
            self.changed[call.func.value.id] = node.lineno
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.names[node.name] = node.lineno

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_comprehension_scope(self, node: ast.AST) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.names[inner.target.id] = inner.lineno

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
