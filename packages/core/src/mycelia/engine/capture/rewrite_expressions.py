"""Expressions of a captured function as calls of helpers: conditions, calls, subscripts, texts."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from mycelia.engine.capture.jumps import HELPERS, name_node
from mycelia.engine.capture.names import Assigned, names_in
from mycelia.engine.capture.source import all_arguments

SITES = "_mycelia_sites"
# legal inside identifiers, never written by people: separates the user's function name from our suffix
MARK = "·"


@dataclass(slots=True)
class Site:
    """A control flow statement in the user's source, for messages."""

    kind: str
    file: str
    line: int
    function: str
    names: tuple[str, ...] = ()
    lines: tuple[dict[str, int], ...] = field(default=())  # per branch: name -> line of its last assignment


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites the expressions of one function definition."""

    def __init__(
        self,
        definition: ast.FunctionDef,
        file: str,
        function: str,
        sites: list[Site] | None = None,
        owner: bool = True,
    ) -> None:
        self.definition, self.file, self.function = definition, file, function
        self.sites: list[Site] = [] if sites is None else sites
        self.count = len(self.sites)
        self.locals: set[str] = set()
        self.outer: dict[str, str] = {}  # name -> "global" | "nonlocal" as the user declared it
        self.state: set[str] = set()  # names that control flow statements carry
        self.first_argument = ""

    @staticmethod
    def helper(name: str, args: list[ast.expr], at: ast.AST | None = None) -> ast.Call:
        call = ast.Call(ast.Attribute(name_node(HELPERS), name, ast.Load()), args, [])
        return ast.copy_location(call, at) if at is not None else call

    @staticmethod
    def thunk(body: ast.expr) -> ast.Lambda:
        return ast.copy_location(ast.Lambda(ast.arguments([], [], None, [], [], None, []), body), body)

    def is_variable(self, name: str) -> bool:
        """True for names that this function can assign, its own or an outer one's that it has declared."""
        return name in self.locals or name in self.outer

    def site(self, node: ast.AST, kind: str, names: Sequence[str], per_block: Sequence[Assigned]) -> ast.expr:
        lines = tuple(
            {**b.changed, **b.names, **{f"{o}.{a}": line for (o, a), line in b.attributes.items()}}
            for b in per_block
        )
        self.sites.append(Site(kind, self.file, node.lineno, self.function, tuple(names), lines))
        return ast.Subscript(name_node(SITES), ast.Constant(len(self.sites) - 1), ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self.state:
            return self.helper("load", [node], node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        hidden = {a.arg for a in all_arguments(node.args)} & self.state
        self.state -= hidden
        node.body = self.visit(node.body)
        self.state |= hidden
        return node

    def visit_comprehension_scope(self, node: ast.AST) -> ast.AST:
        stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        hidden = stored & self.state
        self.state -= hidden
        self.generic_visit(node)
        self.state |= hidden
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_comprehension_scope

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        # a list, so that it can be returned and used twice; `next` and `iter` want the generator
        if not getattr(node, "stays", False):
            return self.visit_comprehension_scope(
                ast.copy_location(ast.ListComp(node.elt, node.generators), node)
            )
        return self.visit_comprehension_scope(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        parts: list[ast.expr] = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                how = self.visit(value.format_spec) if value.format_spec else ast.Constant("")
                field = [self.visit(value.value), ast.Constant(value.conversion), how]
                parts.append(ast.Tuple(field, ast.Load()))
            else:
                parts.append(value)
        return ast.fix_missing_locations(self.helper("joined", parts, node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        left = node.left
        is_text = isinstance(left, ast.JoinedStr) or isinstance(getattr(left, "value", None), str)
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and is_text:
            return self.helper("percent", [node.left, node.right], node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.helper(name, [self.thunk(self.visit(v)) for v in node.values], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self.helper("not_", [node.operand], node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            if isinstance(node.ops[0], (ast.In, ast.NotIn)):
                contains = self.helper("in_", [node.left, node.comparators[0]], node)
                return contains if isinstance(node.ops[0], ast.In) else self.helper("not_", [contains], node)
            return node
        # a < b < c evaluates b once: ((t := b) is evaluated by the first comparison)
        parts: list[ast.expr] = []
        left = node.left
        for index, (op, right) in enumerate(zip(node.ops, node.comparators)):
            if index < len(node.ops) - 1 and not isinstance(right, (ast.Name, ast.Constant)):
                return node  # Python's own evaluation; a tensor condition inside explains itself
            parts.append(ast.copy_location(ast.Compare(left, [op], [right]), node))
            left = right
        return self.helper("and_", [self.thunk(p) for p in parts], node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        site = self.site(node, "conditional expression", (), ())
        changed = [n for n in names_in([node.body, node.orelse]).changed if self.is_variable(n)]
        args = [
            self.visit(node.test),
            self.thunk(self.visit(node.body)),
            self.thunk(self.visit(node.orelse)),
            site,
        ]
        if changed:
            args.append(ast.Tuple([name_node(n) for n in changed], ast.Load()))
        return ast.fix_missing_locations(self.helper("if_else", args, node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        if is_super and not node.args:  # in a local function there is no first argument to find
            node.args = [name_node("__class__"), name_node(self.first_argument)]
            return ast.fix_missing_locations(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("next", "iter"):
            for argument in node.args:
                argument.stays = True  # type: ignore[attr-defined]
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        if isinstance(node.func, ast.Name) and node.func.id in (
            "super",
            "locals",
            "globals",
            "eval",
            "exec",
            "vars",
        ):
            return node
        node.func = self.helper("callee", [self.visit(node.func)], node.func)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and not _is_static(node.slice):
            return ast.fix_missing_locations(
                self.helper("get_item", [node.value, self.key(node.slice)], node)
            )
        return node

    def key(self, node: ast.expr) -> ast.expr:
        """What stands in the brackets of a subscript, as an expression."""
        if not isinstance(node, ast.Slice):
            return node
        limits = [limit or ast.Constant(None) for limit in (node.lower, node.upper, node.step)]
        return self.helper("slice_", limits, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.value = self.visit(node.value)
        if node.attr == "has_key" and isinstance(node.ctx, ast.Load):
            return self.helper("has_key", [node.value], node)
        return node


def _is_static(key: ast.expr) -> bool:
    """Whether what stands in the brackets is a constant, or of several axes, which lists do not have."""
    if isinstance(key, ast.Slice):
        return all(limit is None or _is_static(limit) for limit in (key.lower, key.upper, key.step))
    return isinstance(key, (ast.Constant, ast.Tuple)) or (
        isinstance(key, ast.UnaryOp) and _is_static(key.operand)
    )
