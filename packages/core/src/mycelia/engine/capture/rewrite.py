"""Rewrites a Python function so that its control flow goes through helpers (`capture.control`).

`if`, `while`, `for`, `break`, `continue`, `return`, `and`, `or`, `not`, conditional expressions, `assert`,
`raise` and calls become helper calls. A helper looks at the condition: a Python value runs as Python, a
traced Tensor becomes a region of the graph. The code keeps its file name and line numbers, its globals and
its closure cells.

Jumps are removed first: what follows an `if` that surely jumps moves into the other branch; elsewhere a flag
is set and what follows is guarded by it. Then the remaining structured statements become local functions over
shared variables:

    if test:            def f·then1(): nonlocal y; y = a
        y = a      ->   def f·else1(): nonlocal y; y = b
    else:               _m.if_(test, f·then1, f·else1, f·get1, f·set1, _sites[0])
        y = b
"""

from __future__ import annotations

import ast
import inspect
import types
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mycelia.engine.base import config, log
from mycelia.engine.capture.jumps import (
    GENERATED,
    HELPERS,
    RESULT,
    RETURNED,
    JumpRemover,
    assign_node,
    name_node,
)
from mycelia.engine.capture.names import Assigned, names_in
from mycelia.engine.capture.source import CannotRewrite, Mangle, all_arguments, find_definition

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


_helpers: types.ModuleType | None = None  # the module whose functions rewritten code calls


def use_helpers(module: types.ModuleType) -> None:
    """Rewritten code calls the functions of this module; `control` gives itself."""
    global _helpers
    _helpers = module


def rewrite_function(fn: types.FunctionType) -> types.FunctionType:
    """`fn` with its control flow going through helpers;
    CannotRewrite if its source cannot be had or taken.
    """
    code, sites = _rewritten_code(fn)
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
    cells[HELPERS] = types.CellType(_helpers)
    cells[SITES] = types.CellType(sites)
    closure = tuple(cells[name] for name in code.co_freevars)
    result = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    result.__kwdefaults__ = fn.__kwdefaults__
    result.__qualname__ = fn.__qualname__
    result.__module__ = fn.__module__
    return result


_code_cache: weakref.WeakKeyDictionary[types.CodeType, Any] = weakref.WeakKeyDictionary()


def _rewritten_code(fn: types.FunctionType) -> tuple[types.CodeType, tuple[Site, ...]]:
    found = _code_cache.get(fn.__code__)
    if found is None or config.get("debug") >= 4:  # which shows the code
        try:
            found = _rewrite_code(fn)
        except CannotRewrite as error:
            found = error.with_traceback(None)
        _code_cache[fn.__code__] = found
    if isinstance(found, CannotRewrite):
        # A fresh one: the traceback of the one kept would grow with each use.
        raise CannotRewrite(*found.args)
    return found


def failure(code: types.CodeType) -> CannotRewrite | None:
    """Why a function with this code was not rewritten, if that was tried."""
    found = _code_cache.get(code)
    return found if isinstance(found, CannotRewrite) else None


def _rewrite_code(fn: types.FunctionType) -> tuple[types.CodeType, tuple[Site, ...]]:
    code = fn.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise CannotRewrite(f"{fn.__qualname__} is a generator or coroutine")
    definition = find_definition(fn)
    if isinstance(definition, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(definition.body), definition.body)]
        definition = ast.copy_location(
            ast.FunctionDef("_lambda_", definition.args, body, [], None), definition
        )
    definition.decorator_list = []
    definition.name = fn.__name__ + MARK  # inside the factory it must not hide the global of that name
    owner = fn.__qualname__.rpartition(".")[0].rpartition(".")[2]
    if owner and owner != "<locals>":
        Mangle(owner.lstrip("_")).visit(definition)
    rewriter = _FunctionRewriter(definition, code.co_filename, fn.__name__)
    definition = rewriter.run()
    factory = ast.FunctionDef(
        "_factory_",
        ast.arguments([], [ast.arg(n) for n in (*code.co_freevars, HELPERS, SITES)], None, [], [], None, []),
        [definition],
        [],
        None,
    )
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(factory, definition)], []))
    if config.get("debug") >= 4:
        log.show(__name__, f"{fn.__qualname__} as it is captured:\n{ast.unparse(definition)}")
    compiled = compile(
        module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE_FLAGS
    )
    outer = next(c for c in compiled.co_consts if isinstance(c, types.CodeType))
    inner = next(c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == definition.name)
    return _renamed(inner, fn.__name__, fn.__qualname__), tuple(rewriter.sites)


def _renamed(code: types.CodeType, name: str, qualname: str) -> types.CodeType:
    """The code under the user's names, the local functions of its branches and loops too:
    tracebacks show them.
    """
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner, mark, _ = constant.co_name.partition(MARK)
            constant = _renamed(constant, inner, qualname if mark else f"{qualname}.<locals>.{inner}")
        constants.append(constant)
    return code.replace(co_name=name, co_qualname=qualname, co_consts=tuple(constants))


_FUTURE_FLAGS = 0x1000000  # from __future__ import annotations


class _FunctionRewriter(ast.NodeTransformer):
    """Rewrites one function definition; nested functions get a rewriter of their own."""

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

    def run(self) -> ast.FunctionDef:
        definition = self.definition
        self.strip_annotations(definition.args)
        definition.returns = None
        arguments = all_arguments(definition.args)
        self.first_argument = arguments[0].arg if arguments else ""
        for node in ast.walk(definition):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                kind = "global" if isinstance(node, ast.Global) else "nonlocal"
                self.outer.update(dict.fromkeys(node.names, kind))
        definition.body = JumpRemover().function(definition)
        names = names_in(definition.body)
        parameters = {a.arg for a in arguments}
        self.locals = (set(names.names) | parameters) - set(self.outer)
        self.find_state(definition.body)
        body = self.visit_block(definition.body)
        module = ast.Call(ast.Name("globals", ast.Load()), [], [])
        undefined = sorted(self.state - parameters - set(self.outer) - {RESULT, RETURNED})
        prologue = [
            assign_node(n, self.helper("undefined", [ast.Constant(n), module]), definition.body[0])
            for n in undefined
        ]
        at = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        declared = [s for s in body if isinstance(s, (ast.Global, ast.Nonlocal))]
        definition.body = body[:at] + declared + prologue + [s for s in body[at:] if s not in declared]
        return definition

    @staticmethod
    def strip_annotations(args: ast.arguments) -> None:
        for argument in all_arguments(args):
            argument.annotation = None

    # -- pieces

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

    def find_state(self, statements: Iterable[ast.AST]) -> None:
        for statement in statements:
            for node in ast.walk(statement):
                if isinstance(node, (ast.If, ast.While, ast.For)):
                    assigned = names_in(
                        [*node.body, *node.orelse, *([node.target] if isinstance(node, ast.For) else [])]
                    )
                    self.state |= {n for n in (*assigned.names, *assigned.changed) if self.is_variable(n)}

    def visit_block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            result = self.visit(statement)
            out += result if isinstance(result, list) else [result]
        return out or [ast.Pass()]

    def symbols(self, *blocks: Sequence[ast.AST]) -> tuple[list[str], list[tuple[str, str]], list[Assigned]]:
        """Local names and attributes of local names that the blocks assign or change."""
        per_block = [names_in(b) for b in blocks]
        names: dict[str, None] = {}
        attributes: dict[tuple[str, str], None] = {}
        replaced = {n for assigned in per_block for n in assigned.names}
        for assigned in per_block:
            names.update(
                dict.fromkeys(n for n in (*assigned.names, *assigned.changed) if self.is_variable(n))
            )
            attributes.update(
                dict.fromkeys(k for k in assigned.attributes if k[0] in self.locals and k[0] not in replaced)
            )
        return list(names), list(attributes), per_block

    def site(self, node: ast.AST, kind: str, names: Sequence[str], per_block: Sequence[Assigned]) -> ast.expr:
        lines = tuple(
            {**b.changed, **b.names, **{f"{o}.{a}": line for (o, a), line in b.attributes.items()}}
            for b in per_block
        )
        self.sites.append(Site(kind, self.file, node.lineno, self.function, tuple(names), lines))
        return ast.Subscript(name_node(SITES), ast.Constant(len(self.sites) - 1), ast.Load())

    def local_function(
        self, name: str, body: list[ast.stmt], names: Sequence[str], at: ast.AST, argument: str | None = None
    ) -> ast.FunctionDef:
        own = [n for n in names if n not in self.outer]
        declared: list[ast.stmt] = [ast.Nonlocal(own)] if own else []
        for kind, cls in (("global", ast.Global), ("nonlocal", ast.Nonlocal)):
            outer = [n for n, k in self.outer.items() if k == kind]
            if outer:
                declared.append(cls(outer))
        arguments = ast.arguments([], [ast.arg(argument)] if argument else [], None, [], [], None, [])
        body = [s for s in body if not isinstance(s, (ast.Global, ast.Nonlocal))] or [ast.Pass()]
        return ast.copy_location(ast.FunctionDef(name, arguments, declared + body, [], None), at)

    def state_functions(
        self, suffix: str, names: Sequence[str], attributes: Sequence[tuple[str, str]], at: ast.AST
    ) -> tuple[list[ast.stmt], list[ast.expr]]:
        """Definitions of get and set over the carried symbols, and references to them."""
        values: list[ast.expr] = [name_node(n) for n in names]
        values += [self.helper("get_attribute", [name_node(o), ast.Constant(a)]) for o, a in attributes]
        get = self.local_function(
            f"{self.function}{MARK}get{suffix}", [ast.Return(ast.Tuple(values, ast.Load()))], [], at
        )
        argument = f"{GENERATED}values"

        def item(i: int) -> ast.expr:
            return ast.Subscript(name_node(argument), ast.Constant(i), ast.Load())

        body: list[ast.stmt] = [ast.Assign([name_node(n, True)], item(i)) for i, n in enumerate(names)]
        body += [
            ast.Expr(self.helper("set_attribute", [name_node(o), ast.Constant(a), item(len(names) + i)]))
            for i, (o, a) in enumerate(attributes)
        ]
        set_ = self.local_function(f"{self.function}{MARK}set{suffix}", body, names, at, argument)
        return [get, set_], [name_node(get.name), name_node(set_.name)]

    def number(self) -> str:
        self.count += 1
        return str(self.count)

    # -- statements

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        names, attributes, per_block = self.symbols(node.body, node.orelse)
        site = self.site(node, "if", [*names, *(f"{o}.{a}" for o, a in attributes)], per_block)
        suffix = self.number()
        test = self.visit(node.test)
        then = self.local_function(
            f"{self.function}{MARK}then{suffix}", self.visit_block(node.body), names, node
        )
        orelse = self.local_function(
            f"{self.function}{MARK}else{suffix}", self.visit_block(node.orelse), names, node
        )
        definitions, state = self.state_functions(suffix, names, attributes, node)
        call = self.helper("if_", [test, name_node(then.name), name_node(orelse.name), *state, site], node)
        return self.located([then, orelse, *definitions, ast.Expr(call)], node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        stops = getattr(node, "stops", [])
        names, attributes, per_block = self.symbols(node.body, [node.test])
        site = self.site(node, "while", [*names, *(f"{o}.{a}" for o, a in attributes)], per_block)
        suffix = self.number()
        test: ast.expr = node.test
        if stops:
            running = [ast.UnaryOp(ast.Not(), name_node(s)) for s in stops]
            test = ast.fix_missing_locations(
                ast.copy_location(ast.BoolOp(ast.And(), [*running, test]), node.test)
            )
        value = ast.copy_location(ast.Return(self.visit(test)), node.test)
        test_function = self.local_function(f"{self.function}{MARK}test{suffix}", [value], names, node)
        body = self.local_function(
            f"{self.function}{MARK}body{suffix}", self.visit_block(node.body), names, node
        )
        definitions, state = self.state_functions(suffix, names, attributes, node)
        call = self.helper(
            "while_", [name_node(test_function.name), name_node(body.name), *state, site], node
        )
        return self.located([test_function, body, *definitions, ast.Expr(call)], node)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        stops = getattr(node, "stops", [])
        item = f"{GENERATED}item"
        unpack = ast.copy_location(ast.Assign([node.target], name_node(item)), node.target)
        names, attributes, per_block = self.symbols([unpack, *node.body])
        site = self.site(node, "for", [*names, *(f"{o}.{a}" for o, a in attributes)], per_block)
        suffix = self.number()
        iterable = self.visit(node.iter)
        name = f"{self.function}{MARK}body{suffix}"
        body = self.local_function(
            name, [self.visit(unpack), *self.visit_block(node.body)], names, node, item
        )
        stop: ast.expr = ast.Constant(None)
        if stops:
            flags: list[ast.expr] = [name_node(s) for s in stops]
            stop = self.thunk(
                self.visit(
                    ast.copy_location(flags[0] if len(flags) == 1 else ast.BoolOp(ast.Or(), flags), node)
                )
            )
        definitions, state = self.state_functions(suffix, names, attributes, node)
        call = self.helper("for_", [iterable, name_node(body.name), stop, *state, site], node)
        return self.located([body, *definitions, ast.Expr(call)], node)

    @staticmethod
    def located(statements: list[ast.stmt], at: ast.AST) -> list[ast.stmt]:
        return [ast.fix_missing_locations(ast.copy_location(s, at)) for s in statements]

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        site = self.site(node, "assert", (), ())
        message = self.visit(node.msg) if node.msg else ast.Constant(None)
        call = self.helper("assert_", [self.visit(node.test), self.thunk(message), site], node)
        return self.located([ast.Expr(call)], node)[0]

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        site = self.site(node, "raise", (), ())
        error = self.helper("current_error", [], node) if node.exc is None else self.visit(node.exc)
        if node.cause is not None:
            error = self.helper("caused", [error, self.visit(node.cause)], node)
        # Under a tensor condition the exception becomes part of the graph and the trace goes on: hence no
        # `raise` then.
        test = ast.NamedExpr(name_node(f"{GENERATED}error", True), self.helper("raise_", [error, site], node))
        raising = ast.Raise(name_node(f"{GENERATED}error"), None)
        statement = ast.If(ast.Compare(test, [ast.IsNot()], [ast.Constant(None)]), [raising], [])
        return self.located([statement], node)[0]

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        guard = ast.withitem(self.helper("guard", [self.site(node, "try", (), ())], node))
        node.body = self.located([ast.With([guard], self.visit_block(node.body))], node)
        for handler in node.handlers:
            if handler.type is not None:
                handler.type = self.visit(handler.type)
            handler.body = self.visit_block(handler.body)
        if node.handlers:  # what stops the capture is not the user's to catch
            stop = ast.Attribute(name_node(HELPERS), "CaptureError", ast.Load())
            first = ast.ExceptHandler(stop, None, [ast.Raise()])
            node.handlers.insert(0, ast.fix_missing_locations(ast.copy_location(first, node)))
        node.orelse = [s for s in self.visit_block(node.orelse) if node.orelse]
        node.finalbody = [s for s in self.visit_block(node.finalbody) if node.finalbody]
        return node

    def visit_With(self, node: ast.With) -> ast.stmt:
        site = self.site(node, "with", (), ())
        node.items = [self.visit(item) for item in node.items]
        for item in node.items:
            item.context_expr = self.helper("Context", [item.context_expr], node)
        node.items.append(ast.withitem(self.helper("guard", [site], node)))
        node.body = self.visit_block(node.body)
        return ast.fix_missing_locations(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node = self.generic_visit(node)
        target = node.targets[0]
        if (
            len(node.targets) == 1
            and isinstance(target, ast.Subscript)
            and not isinstance(target.slice, ast.Tuple)
        ):
            call = self.helper("put_item", [node.value, target.value, self.key(target.slice)], node)
            return self.located([ast.Expr(call)], node)[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Attribute) or _is_private(target.attr):
            return node
        call = self.helper("set_attribute", [target.value, ast.Constant(target.attr), node.value], node)
        return self.located([ast.Expr(call)], node)[0]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        node.value = self.visit(node.value)
        if isinstance(node.target, ast.Attribute) and not _is_private(node.target.attr):
            args = [self.visit(node.target.value), ast.Constant(node.target.attr)]
            args += [ast.Constant(type(node.op).__name__), node.value]
            return self.located([ast.Expr(self.helper("update_attribute", args, node))], node)[0]
        if isinstance(node.target, ast.Name) and node.target.id in self.state:
            found = self.helper("load", [name_node(node.target.id)], node)
            node.value = self.helper(
                "in_place", [found, ast.Constant(type(node.op).__name__), node.value], node
            )
            return self.located([assign_node(node.target.id, node.value, node)], node)[0]
        if isinstance(node.target, (ast.Attribute, ast.Subscript)):
            node.target.value = self.visit(node.target.value)
            if isinstance(node.target, ast.Subscript):
                node.target.slice = self.visit(node.target.slice)
        return node

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.state:
                out.append(assign_node(target.id, self.helper("undefined", [ast.Constant(target.id)]), node))
            else:
                out.append(ast.Delete([self.visit(target)]))
        return self.located(out, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([self.visit(node.target)], self.visit(node.value)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)):
            return node
        inner = _FunctionRewriter(node, self.file, node.name, self.sites)
        inner.count = self.count
        result = inner.run()
        self.count = inner.count
        return result

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    # -- expressions

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


def _is_private(name: str) -> bool:
    """Whether a class writes its own name in front of it."""
    return name.startswith("__") and not name.endswith("__")
