"""Rewrites a Python function so that its control flow goes through helpers (`capture.control`).

`if`, `while`, `for`, `break`, `continue`, `return`, `and`, `or`, `not`, conditional expressions, `assert`, `raise` and
calls become helper calls. A helper looks at the condition: a Python value runs as Python, a traced Tensor becomes a
region of the graph. The code keeps its file name and line numbers, its globals and its closure cells.

Jumps are removed first: what follows an `if` that surely jumps moves into the other branch; elsewhere a flag is set and
what follows is guarded by it. Then the remaining structured statements become local functions over shared variables:

    if test:            def f·then1(): nonlocal y; y = a
        y = a      ->   def f·else1(): nonlocal y; y = b
    else:               _m.if_(test, f·then1, f·else1, f·get1, f·set1, _sites[0])
        y = b
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

HELPERS = "_mycelia"
SITES = "_mycelia_sites"
RESULT = "_mycelia_result"
RETURNED = "_mycelia_returned"
_GENERATED = "_mycelia_"
MARK = "·"  # legal inside identifiers, never written by people: separates the user's function name from our suffix


class CannotRewrite(Exception):
    """Why a function is traced without rewriting."""


@dataclass(slots=True)
class Site:
    """A control flow statement in the user's source, for messages."""

    kind: str
    file: str
    line: int
    function: str
    names: tuple[str, ...] = ()
    lines: tuple[dict[str, int], ...] = field(default=())  # per branch: name -> line of its last assignment


def rewrite_function(fn: types.FunctionType) -> types.FunctionType:
    """`fn` with its control flow going through helpers; CannotRewrite if its source cannot be had or taken."""
    from mycelia.capture import control

    code, sites = _rewritten_code(fn)
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
    cells[HELPERS] = types.CellType(control)
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
    if found is None:
        try:
            found = _rewrite_code(fn)
        except CannotRewrite as error:
            found = error.with_traceback(None)
        _code_cache[fn.__code__] = found
    if isinstance(found, CannotRewrite):
        raise found
    return found


def failure(code: types.CodeType) -> CannotRewrite | None:
    """Why a function with this code was not rewritten, if that was tried."""
    found = _code_cache.get(code)
    return found if isinstance(found, CannotRewrite) else None


def _rewrite_code(fn: types.FunctionType) -> tuple[types.CodeType, tuple[Site, ...]]:
    code = fn.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise CannotRewrite(f"{fn.__qualname__} is a generator or coroutine")
    definition = _find_definition(fn)
    if isinstance(definition, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(definition.body), definition.body)]
        definition = ast.copy_location(ast.FunctionDef("_lambda_", definition.args, body, [], None), definition)
    definition.decorator_list = []
    owner = fn.__qualname__.rpartition(".")[0].rpartition(".")[2]
    if owner and owner != "<locals>":
        _Mangle(owner.lstrip("_")).visit(definition)
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
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE_FLAGS)
    outer = next(c for c in compiled.co_consts if isinstance(c, types.CodeType))
    inner = next(c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == definition.name)
    return inner.replace(co_name=fn.__name__, co_qualname=fn.__qualname__), tuple(rewriter.sites)


_FUTURE_FLAGS = 0x1000000  # from __future__ import annotations


def _find_definition(fn: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax tree of `fn`, with line numbers of its file."""
    code = fn.__code__
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError) as error:
        raise CannotRewrite(f"the source of {fn.__qualname__} is not available") from error
    source = textwrap.dedent("".join(lines))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        tree = _parse_fragment(source)
        if tree is None:
            raise CannotRewrite(f"the source of {fn.__qualname__} cannot be isolated") from None
    ast.increment_lineno(tree, max(first, 1) - 1)
    is_lambda = code.co_name == "<lambda>"
    kind = ast.Lambda if is_lambda else ast.FunctionDef
    found = [n for n in ast.walk(tree) if isinstance(n, kind) and (is_lambda or n.name == code.co_name)]
    if is_lambda:
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        found = [n for n in found if tuple(a.arg for a in _all_arguments(n.args)[: len(arguments)]) == arguments]
        if len(found) > 1:
            indent = len(lines[0]) - len(lines[0].lstrip())
            spots = {(p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None}
            found = [n for n in found if (n.body.lineno, n.body.col_offset + indent) in spots]
    elif len(found) > 1:
        found = [n for n in found if min([n.lineno, *(d.lineno for d in n.decorator_list)]) == code.co_firstlineno]
    if len(found) != 1:
        raise CannotRewrite(f"the source of {fn.__qualname__} is ambiguous")
    return found[0]


def _parse_fragment(source: str) -> ast.Module | None:
    """A lambda's source lines may be part of a larger expression; try the usual shapes."""
    text = source.strip()
    for candidate in (text.rstrip(","), f"({text.rstrip(',')})", f"_({text}", f"_({text.rstrip(',')})", text.rstrip(",)]}")):
        try:
            return ast.parse(candidate)
        except SyntaxError:
            continue
    return None


def _all_arguments(args: ast.arguments) -> list[ast.arg]:
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, [args.vararg, args.kwarg])]


class _Mangle(ast.NodeTransformer):
    """Private names (`self.__x`) as the compiler spells them inside a class body."""

    def __init__(self, owner: str) -> None:
        self.prefix = f"_{owner}"

    def mangled(self, name: str) -> str:
        return self.prefix + name if name.startswith("__") and not name.endswith("__") else name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self.mangled(node.attr)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.mangled(node.id)
        return node


# ---- what a piece of code assigns ----------------------------------------------------------------------------------


class _Assigned(ast.NodeVisitor):
    """Names and `name.attribute`s that statements assign or may change in place, with the line of the last time."""

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
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
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


def _assigned(statements: Iterable[ast.AST]) -> _Assigned:
    visitor = _Assigned()
    for statement in statements:
        visitor.visit(statement)
    return visitor


# ---- jumps ---------------------------------------------------------------------------------------------------------

_BLOCKS = ("body", "orelse", "finalbody")


def _jumps(node: ast.AST | Sequence[ast.AST]) -> set[str]:
    """Which of return, break, continue (of the surrounding loop) may leave `node`."""
    if isinstance(node, list):
        return set().union(*map(_jumps, node)) if node else set()
    if isinstance(node, ast.Return):
        return {"return"}
    if isinstance(node, ast.Break):
        return {"break"}
    if isinstance(node, ast.Continue):
        return {"continue"}
    found: set[str] = set()
    for child in _child_blocks(node):
        found |= _jumps(child)
    if isinstance(node, (ast.While, ast.For)):
        found = (found & {"return"}) | _jumps(node.orelse)
    return found


def _holds_jump(node: ast.AST) -> bool:
    """True if a jump is anywhere in `node`, nested functions excepted, even one that does not leave it."""
    return bool(_jumps(node)) or any(_holds_jump(s) for block in _child_blocks(node) for s in block if isinstance(s, ast.stmt))


def _child_blocks(node: ast.AST) -> list[list[ast.AST]]:
    """The statement lists inside a statement; a nested function's are its own affair."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or not isinstance(node, ast.stmt):
        return []
    blocks = [getattr(node, name) for name in _BLOCKS if getattr(node, name, None)]
    blocks += [h.body for h in getattr(node, "handlers", ())]
    blocks += [c.body for c in getattr(node, "cases", ())]
    return blocks


def _falls_through(block: Sequence[ast.stmt]) -> bool:
    """False if the end of `block` is surely not reached."""
    for statement in block:
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return False
        if isinstance(statement, ast.If) and statement.orelse:
            if not _falls_through(statement.body) and not _falls_through(statement.orelse):
                return False
        if isinstance(statement, ast.With) and not _falls_through(statement.body):
            return False
    return True


def _name(id: str, store: bool = False) -> ast.Name:
    return ast.Name(id, ast.Store() if store else ast.Load())


def _assign(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([_name(name, True)], value), at))


class _JumpRemover:
    """Replaces return, break and continue by assignments, guards and moved code."""

    def __init__(self) -> None:
        self.count = 0
        self.used: set[str] = set()  # flags that something reads

    def function(self, definition: ast.FunctionDef) -> list[ast.stmt]:
        body = list(definition.body)
        nested = any(_holds_jump(s) for s in body if not isinstance(s, ast.Return))
        raising = any(isinstance(n, ast.Raise) for s in body for n in ast.walk(s))
        if not nested and not (raising and _jumps(body)):
            return body
        if _falls_through(body):
            body.append(ast.copy_location(ast.Return(None), body[-1]))
        lowered = self.block(body, {"return": RETURNED})
        start = definition.body[0]
        undefined = ast.Call(ast.Attribute(_name(HELPERS), "undefined", ast.Load()), [ast.Constant("the return value")], [])
        prologue = [_assign(RETURNED, ast.Constant(False), start), _assign(RESULT, undefined, start)]
        lowered = prologue + lowered
        result = ast.Call(ast.Attribute(_name(HELPERS), "result", ast.Load()), [_name(RESULT)], [])
        lowered.append(ast.fix_missing_locations(ast.copy_location(ast.Return(result), definition.body[-1])))
        return self.without_unused_flags(lowered)

    def without_unused_flags(self, block: list[ast.stmt]) -> list[ast.stmt]:
        """Drops assignments to flags that nothing reads: they would only travel through the graph."""
        used = self.used

        class Drop(ast.NodeTransformer):
            def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
                target = node.targets[0]
                unused = isinstance(target, ast.Name) and target.id.startswith(_GENERATED) and target.id not in used
                return ast.copy_location(ast.Pass(), node) if unused and target.id != RESULT else node

            def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
                return node

        return [Drop().visit(s) for s in block]

    def guard(self, flags: Sequence[str], rest: list[ast.stmt], at: ast.AST) -> ast.stmt:
        """`if not (flag or ...): rest`"""
        self.used.update(flags)
        tests = [ast.UnaryOp(ast.Not(), _name(f)) for f in flags]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return ast.fix_missing_locations(ast.copy_location(ast.If(test, rest, []), at))

    def block(self, statements: Sequence[ast.stmt], flags: dict[str, str]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for position, statement in enumerate(statements):
            rest = list(statements[position + 1 :])
            if isinstance(statement, ast.Return):
                value = statement.value or ast.copy_location(ast.Constant(None), statement)
                out += [_assign(RESULT, value, statement), _assign(RETURNED, ast.Constant(True), statement)]
                return out
            if isinstance(statement, (ast.Break, ast.Continue)):
                kind = "break" if isinstance(statement, ast.Break) else "continue"
                out.append(_assign(flags[kind], ast.Constant(True), statement))
                return out
            kinds = _jumps(statement)
            if isinstance(statement, ast.If):
                then_falls, else_falls = _falls_through(statement.body), _falls_through(statement.orelse)
                if kinds or not then_falls or not else_falls:
                    then, orelse = list(statement.body), list(statement.orelse)
                    moved = True
                    if not then_falls:
                        orelse += rest
                    elif not else_falls:
                        then += rest
                    else:
                        moved = False
                    then, orelse = self.block(then, flags) or [ast.Pass()], self.block(orelse, flags)
                    out.append(ast.copy_location(ast.If(statement.test, then, orelse), statement))
                    if moved:
                        return out
                else:
                    statement.body = self.block(statement.body, flags)
                    statement.orelse = self.block(statement.orelse, flags)
                    out.append(statement)
            elif isinstance(statement, (ast.While, ast.For)):
                out += self.loop(statement, flags)
            else:
                for name in _BLOCKS:
                    if isinstance(getattr(statement, name, None), list) and not isinstance(
                        statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
                    ):
                        setattr(statement, name, self.block(getattr(statement, name), flags))
                for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                    part.body = self.block(part.body, flags)
                out.append(statement)
            if kinds and rest:
                out.append(self.guard([flags[k] for k in sorted(kinds)], self.block(rest, flags) or [ast.Pass()], rest[0]))
                return out
        return out

    def loop(self, statement: ast.While | ast.For, flags: dict[str, str]) -> list[ast.stmt]:
        kinds = _jumps(statement.body)
        self.count += 1
        inner = {**flags, "break": f"{_GENERATED}break{self.count}", "continue": f"{_GENERATED}continue{self.count}"}
        body = self.block(statement.body, inner)
        if "continue" in kinds:
            body.insert(0, _assign(inner["continue"], ast.Constant(False), statement.body[0]))
        stops = [inner[k] for k in ("break", "return") if k in kinds]
        out: list[ast.stmt] = []
        if "break" in kinds:
            out.append(_assign(inner["break"], ast.Constant(False), statement))
        loop = ast.copy_location(type(statement)(**{f: getattr(statement, f) for f in statement._fields}), statement)
        loop.body, loop.orelse = body, []
        loop.stops = stops  # read by _FunctionRewriter
        self.used.update(stops)
        out.append(loop)
        if statement.orelse:
            orelse = self.block(statement.orelse, flags) or [ast.Pass()]
            out += [self.guard(stops, orelse, statement.orelse[0])] if stops else orelse
        return out


# ---- the rewriter --------------------------------------------------------------------------------------------------


class _FunctionRewriter(ast.NodeTransformer):
    """Rewrites one function definition; nested functions get a rewriter of their own."""

    def __init__(
        self, definition: ast.FunctionDef, file: str, function: str, sites: list[Site] | None = None, owner: bool = True
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
        arguments = _all_arguments(definition.args)
        self.first_argument = arguments[0].arg if arguments else ""
        for node in ast.walk(definition):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                kind = "global" if isinstance(node, ast.Global) else "nonlocal"
                self.outer.update(dict.fromkeys(node.names, kind))
        definition.body = _JumpRemover().function(definition)
        names = _assigned(definition.body)
        parameters = {a.arg for a in arguments}
        self.locals = (set(names.names) | parameters) - set(self.outer)
        self.find_state(definition.body)
        body = self.visit_block(definition.body)
        undefined = sorted(self.state - parameters - {RESULT, RETURNED})
        prologue = [
            _assign(n, self.helper("undefined", [ast.Constant(n)]), definition.body[0])
            for n in undefined
        ]
        at = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        declared = [s for s in body if isinstance(s, (ast.Global, ast.Nonlocal))]
        definition.body = body[:at] + declared + prologue + [s for s in body[at:] if s not in declared]
        return definition

    @staticmethod
    def strip_annotations(args: ast.arguments) -> None:
        for argument in _all_arguments(args):
            argument.annotation = None

    # -- pieces

    @staticmethod
    def helper(name: str, args: list[ast.expr], at: ast.AST | None = None) -> ast.Call:
        call = ast.Call(ast.Attribute(_name(HELPERS), name, ast.Load()), args, [])
        return ast.copy_location(call, at) if at is not None else call

    @staticmethod
    def thunk(body: ast.expr) -> ast.Lambda:
        return ast.copy_location(ast.Lambda(ast.arguments([], [], None, [], [], None, []), body), body)

    def find_state(self, statements: Iterable[ast.AST]) -> None:
        for statement in statements:
            for node in ast.walk(statement):
                if isinstance(node, (ast.If, ast.While, ast.For)):
                    assigned = _assigned([*node.body, *node.orelse, *([node.target] if isinstance(node, ast.For) else [])])
                    self.state |= (set(assigned.names) | set(assigned.changed)) & self.locals

    def visit_block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            result = self.visit(statement)
            out += result if isinstance(result, list) else [result]
        return out or [ast.Pass()]

    def symbols(self, *blocks: Sequence[ast.AST]) -> tuple[list[str], list[tuple[str, str]], list[_Assigned]]:
        """Local names and attributes of local names that the blocks assign or change."""
        per_block = [_assigned(b) for b in blocks]
        names: dict[str, None] = {}
        attributes: dict[tuple[str, str], None] = {}
        for assigned in per_block:
            names.update(dict.fromkeys(n for n in (*assigned.names, *assigned.changed) if n in self.locals))
            attributes.update(dict.fromkeys(k for k in assigned.attributes if k[0] in self.locals and k[0] not in names))
        return list(names), list(attributes), per_block

    def site(self, node: ast.AST, kind: str, names: Sequence[str], per_block: Sequence[_Assigned]) -> ast.expr:
        lines = tuple(
            {**b.changed, **b.names, **{f"{o}.{a}": line for (o, a), line in b.attributes.items()}} for b in per_block
        )
        self.sites.append(Site(kind, self.file, node.lineno, self.function, tuple(names), lines))
        return ast.Subscript(_name(SITES), ast.Constant(len(self.sites) - 1), ast.Load())

    def local_function(
        self, name: str, body: list[ast.stmt], names: Sequence[str], at: ast.AST, argument: str | None = None
    ) -> ast.FunctionDef:
        declared: list[ast.stmt] = [ast.Nonlocal(list(names))] if names else []
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
        values: list[ast.expr] = [_name(n) for n in names]
        values += [self.helper("get_attribute", [_name(o), ast.Constant(a)]) for o, a in attributes]
        get = self.local_function(f"{self.function}{MARK}get{suffix}", [ast.Return(ast.Tuple(values, ast.Load()))], [], at)
        argument = f"{_GENERATED}values"

        def item(i: int) -> ast.expr:
            return ast.Subscript(_name(argument), ast.Constant(i), ast.Load())

        body: list[ast.stmt] = [ast.Assign([_name(n, True)], item(i)) for i, n in enumerate(names)]
        body += [
            ast.Expr(self.helper("set_attribute", [_name(o), ast.Constant(a), item(len(names) + i)]))
            for i, (o, a) in enumerate(attributes)
        ]
        set_ = self.local_function(f"{self.function}{MARK}set{suffix}", body, names, at, argument)
        return [get, set_], [_name(get.name), _name(set_.name)]

    def number(self) -> str:
        self.count += 1
        return str(self.count)

    # -- statements

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        names, attributes, per_block = self.symbols(node.body, node.orelse)
        site = self.site(node, "if", [*names, *(f"{o}.{a}" for o, a in attributes)], per_block)
        suffix = self.number()
        test = self.visit(node.test)
        then = self.local_function(f"{self.function}{MARK}then{suffix}", self.visit_block(node.body), names, node)
        orelse = self.local_function(f"{self.function}{MARK}else{suffix}", self.visit_block(node.orelse), names, node)
        definitions, state = self.state_functions(suffix, names, attributes, node)
        call = self.helper("if_", [test, _name(then.name), _name(orelse.name), *state, site], node)
        return self.located([then, orelse, *definitions, ast.Expr(call)], node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        stops = getattr(node, "stops", [])
        names, attributes, per_block = self.symbols(node.body, [ast.Expr(node.test)])
        site = self.site(node, "while", [*names, *(f"{o}.{a}" for o, a in attributes)], per_block)
        suffix = self.number()
        test: ast.expr = node.test
        if stops:
            running = [ast.UnaryOp(ast.Not(), _name(s)) for s in stops]
            test = ast.fix_missing_locations(ast.copy_location(ast.BoolOp(ast.And(), [*running, test]), node.test))
        value = ast.copy_location(ast.Return(self.visit(test)), node.test)
        test_function = self.local_function(f"{self.function}{MARK}test{suffix}", [value], names, node)
        body = self.local_function(f"{self.function}{MARK}body{suffix}", self.visit_block(node.body), names, node)
        definitions, state = self.state_functions(suffix, names, attributes, node)
        call = self.helper("while_", [_name(test_function.name), _name(body.name), *state, site], node)
        return self.located([test_function, body, *definitions, ast.Expr(call)], node)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        stops = getattr(node, "stops", [])
        item = f"{_GENERATED}item"
        unpack = ast.copy_location(ast.Assign([node.target], _name(item)), node.target)
        names, attributes, per_block = self.symbols([unpack, *node.body])
        site = self.site(node, "for", [*names, *(f"{o}.{a}" for o, a in attributes)], per_block)
        suffix = self.number()
        iterable = self.visit(node.iter)
        name = f"{self.function}{MARK}body{suffix}"
        body = self.local_function(name, [self.visit(unpack), *self.visit_block(node.body)], names, node, item)
        stop: ast.expr = ast.Constant(None)
        if stops:
            flags: list[ast.expr] = [_name(s) for s in stops]
            stop = self.thunk(self.visit(ast.copy_location(flags[0] if len(flags) == 1 else ast.BoolOp(ast.Or(), flags), node)))
        definitions, state = self.state_functions(suffix, names, attributes, node)
        call = self.helper("for_", [iterable, _name(body.name), stop, *state, site], node)
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
        if node.exc is None:
            return node
        site = self.site(node, "raise", (), ())
        node.exc = self.helper("raise_", [self.visit(node.exc), site], node)
        if node.cause is not None:
            node.cause = self.visit(node.cause)
            return ast.fix_missing_locations(node)
        # Under a tensor condition the exception becomes part of the graph and the trace goes on: hence no `raise` then.
        test = ast.NamedExpr(_name(f"{_GENERATED}error", True), node.exc)
        raising = ast.Raise(_name(f"{_GENERATED}error"), None)
        statement = ast.If(ast.Compare(test, [ast.IsNot()], [ast.Constant(None)]), [raising], [])
        return self.located([statement], node)[0]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        node.value = self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id in self.state:
            check = ast.Expr(self.helper("load", [_name(node.target.id)], node))
            return self.located([check, node], node)
        if isinstance(node.target, (ast.Attribute, ast.Subscript)):
            node.target.value = self.visit(node.target.value)
            if isinstance(node.target, ast.Subscript):
                node.target.slice = self.visit(node.target.slice)
        return node

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.state:
                out.append(_assign(target.id, self.helper("undefined", [ast.Constant(target.id)]), node))
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
        hidden = {a.arg for a in _all_arguments(node.args)} & self.state
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

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_scope

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
        args = [self.visit(node.test), self.thunk(self.visit(node.body)), self.thunk(self.visit(node.orelse)), site]
        return ast.fix_missing_locations(self.helper("if_else", args, node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        if is_super and not node.args:  # in a local function there is no first argument to find
            node.args = [_name("__class__"), _name(self.first_argument)]
            return ast.fix_missing_locations(node)
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals", "eval", "exec", "vars"):
            return node
        node.func = self.helper("callee", [self.visit(node.func)], node.func)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.value = self.visit(node.value)
        return node


# ---- which callables are rewritten ---------------------------------------------------------------------------------


@functools.cache
def _library_roots() -> tuple[str, ...]:
    import os
    import sysconfig

    paths = sysconfig.get_paths()
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return tuple({os.path.realpath(p) + os.sep for p in (here, paths["stdlib"], paths["purelib"], paths["platlib"])})


@functools.cache
def is_library_file(filename: str) -> bool:
    """True for code of Mycelia, of Python and of installed packages: such code is never rewritten."""
    import os

    return filename.startswith("<frozen") or os.path.realpath(filename).startswith(_library_roots())


def is_user_function(fn: Callable) -> bool:
    return isinstance(fn, types.FunctionType) and not is_library_file(fn.__code__.co_filename)
