"""Statements of a captured function: those of control flow become local functions that helpers call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

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
from mycelia.engine.capture.rewrite_expressions import MARK, ExpressionRewriter
from mycelia.engine.capture.source import all_arguments


class FunctionRewriter(ExpressionRewriter):
    """Rewrites one function definition; nested functions get a rewriter of their own."""

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
        inner = FunctionRewriter(node, self.file, node.name, self.sites)
        inner.count = self.count
        result = inner.run()
        self.count = inner.count
        return result

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


def _is_private(name: str) -> bool:
    """Whether a class writes its own name in front of it."""
    return name.startswith("__") and not name.endswith("__")
