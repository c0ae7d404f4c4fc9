"""Removes `return`, `break` and `continue` from a function's syntax tree.

What follows an `if` that surely jumps moves into its other branch. Elsewhere a flag is set, and what
follows is guarded by it; loops stop on their flags. The returned value goes through a variable.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

HELPERS = "_mycelia"  # the variable that holds the module `capture.control`
RESULT = "_mycelia_result"
RETURNED = "_mycelia_returned"
GENERATED = "_mycelia_"


def name_node(id: str, store: bool = False) -> ast.Name:
    return ast.Name(id, ast.Store() if store else ast.Load())


def assign_node(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([name_node(name, True)], value), at))


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
    """True if a jump is anywhere in `node`, nested functions excepted, even one that does not leave it,
    or a loop with an `else`."""
    if isinstance(node, (ast.While, ast.For)) and node.orelse:
        return True  # what runs when the loop ends without a break is guarded, too
    if isinstance(node, ast.While) and _assigns(node.test):
        return True  # the test is evaluated elsewhere
    return bool(_jumps(node)) or any(
        _holds_jump(s) for block in _child_blocks(node) for s in block if isinstance(s, ast.stmt)
    )


def _assigns(test: ast.expr) -> bool:
    """Whether a condition sets variables, by `:=`."""
    return any(isinstance(n, ast.NamedExpr) for n in ast.walk(test))


def _child_blocks(node: ast.AST) -> list[list[ast.AST]]:
    """The statement lists inside a statement; a nested function's are its own affair."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or not isinstance(
        node, ast.stmt
    ):
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


class JumpRemover:
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
        undefined = ast.Call(
            ast.Attribute(name_node(HELPERS), "undefined", ast.Load()), [ast.Constant("the return value")], []
        )
        prologue = [assign_node(RETURNED, ast.Constant(False), start), assign_node(RESULT, undefined, start)]
        lowered = prologue + lowered
        result = ast.Call(ast.Attribute(name_node(HELPERS), "result", ast.Load()), [name_node(RESULT)], [])
        lowered.append(ast.fix_missing_locations(ast.copy_location(ast.Return(result), definition.body[-1])))
        return self.without_unused_flags(lowered)

    def without_unused_flags(self, block: list[ast.stmt]) -> list[ast.stmt]:
        """Drops assignments to flags that nothing reads: they would only travel through the graph."""
        used = self.used

        class Drop(ast.NodeTransformer):
            def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
                target = node.targets[0]
                unused = (
                    isinstance(target, ast.Name) and target.id.startswith(GENERATED) and target.id not in used
                )
                return ast.copy_location(ast.Pass(), node) if unused and target.id != RESULT else node

            def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
                return node

        return [Drop().visit(s) for s in block]

    def guard(self, flags: Sequence[str], rest: list[ast.stmt], at: ast.AST) -> ast.stmt:
        """`if not (flag or ...): rest`"""
        self.used.update(flags)
        tests = [ast.UnaryOp(ast.Not(), name_node(f)) for f in flags]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return ast.fix_missing_locations(ast.copy_location(ast.If(test, rest, []), at))

    def block(self, statements: Sequence[ast.stmt], flags: dict[str, str]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for position, statement in enumerate(statements):
            rest = list(statements[position + 1 :])
            if isinstance(statement, ast.Return):
                value = statement.value or ast.copy_location(ast.Constant(None), statement)
                out += [
                    assign_node(RESULT, value, statement),
                    assign_node(RETURNED, ast.Constant(True), statement),
                ]
                return out
            if isinstance(statement, (ast.Break, ast.Continue)):
                kind = "break" if isinstance(statement, ast.Break) else "continue"
                out.append(assign_node(flags[kind], ast.Constant(True), statement))
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
                out.append(
                    self.guard(
                        [flags[k] for k in sorted(kinds)], self.block(rest, flags) or [ast.Pass()], rest[0]
                    )
                )
                return out
        return out

    def loop(self, statement: ast.While | ast.For, flags: dict[str, str]) -> list[ast.stmt]:
        kinds = _jumps(statement.body)
        self.count += 1
        inner = {
            **flags,
            "break": f"{GENERATED}break{self.count}",
            "continue": f"{GENERATED}continue{self.count}",
        }
        body = self.block(statement.body, inner)
        if "continue" in kinds:
            body.insert(0, assign_node(inner["continue"], ast.Constant(False), statement.body[0]))
        stops = [inner[k] for k in ("break", "return") if k in kinds]
        out: list[ast.stmt] = []
        if "break" in kinds:
            out.append(assign_node(inner["break"], ast.Constant(False), statement))
        loop = ast.copy_location(
            type(statement)(**{f: getattr(statement, f) for f in statement._fields}), statement
        )
        loop.body, loop.orelse = body, []
        loop.stops = stops  # read by _FunctionRewriter
        if isinstance(statement, ast.While) and _assigns(statement.test):
            # What a test sets is for the rounds: it is evaluated before the loop and at the end of each.
            going = f"{GENERATED}going{self.count}"
            self.used.add(going)
            again = assign_node(going, statement.test, statement.test)
            out.append(again)
            body.append(self.guard(stops, [again], statement) if stops else again)
            loop.test = ast.copy_location(name_node(going), statement.test)
        self.used.update(stops)
        out.append(loop)
        if statement.orelse:
            orelse = self.block(statement.orelse, flags) or [ast.Pass()]
            out += [self.guard(stops, orelse, statement.orelse[0])] if stops else orelse
        return out
