"""Branches that are decided before a network runs."""

from __future__ import annotations

import ast
import builtins

from mycelia.faces.rewrite.nodes import Block, Else, Node
from mycelia.nn import Cell


def flatten(function) -> None:
    """Put the branch that is taken in place of each `if` of a scopes.Function whose test is known."""
    _flatten(function, function.body)


def _flatten(function, block: Block) -> None:
    place = 0
    while place < len(block):
        node = block[place]
        known = _test(function, block, node) if isinstance(node.statement, ast.If) else None
        if known is None:
            if node.body is not None:
                _flatten(function, node.body)
            place += 1
            continue
        other = node.partner
        taken = node.body if known[0] else getattr(other, "body", None)
        chosen = list(taken or ())
        block[place : place + 1 + (other is not None)] = chosen
        for inner in chosen:
            inner.block = block
        for gone in (node, other):
            if gone is not None:
                gone.block = gone.tree = None
        function.changed = True


def _test(function, block: Block, node: Node) -> tuple[bool] | None:
    """The value of the test of an `if` in a tuple; None if it is known only when the network runs."""
    expression = node.statement.test
    for other in reversed(block[: block.index(node)]):
        if isinstance(other.statement, Else) or not isinstance(expression, ast.Name):
            break
        if expression.id in [str(target) for target in other.get_targets()]:
            expression = other.statement.value  # it was computed right before
    # What one statement of an `and` or comparison was made of stands before it too.
    names = {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}
    meanings = {name: _meaning(function, block, node, name) for name in names}
    if any(value is None for value in meanings.values()):
        return None
    for call in (n for n in ast.walk(expression) if isinstance(n, ast.Call)):
        if isinstance(function.resolve(call.func), Cell):
            return None
    try:
        code = compile(ast.fix_missing_locations(ast.Expression(expression)), "<test>", "eval")
        return (bool(eval(code, {name: value[0] for name, value in meanings.items()})),)
    except Exception:  # whatever a test may raise, the network will raise it
        return None


def _meaning(function, block: Block, node: Node, name: str) -> tuple | None:
    """What a name means, in a tuple; None for arguments and variables of the network."""
    if name == "self" and function.owner is not None and not function.is_static:
        return (function.tree.get_origin_network(),)
    for other in reversed(block[: block.index(node)]):
        if name in [str(target) for target in other.get_targets()]:
            value = getattr(other.statement, "value", None)
            if value is None:
                return None
            inner = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
            found = {i: _meaning(function, block, other, i) for i in inner}
            if any(v is None for v in found.values()):
                return None
            code = compile(ast.fix_missing_locations(ast.Expression(value)), "<value>", "eval")
            try:
                return (eval(code, {i: v[0] for i, v in found.items()}),)
            except Exception:  # as above
                return None
    if name in function.variables and any(name in map(str, n.get_targets()) for n in function.body.flat()):
        return None
    if any(name == n.statement.arg for n in function.inputs):
        return None
    for names in (function.closure, function.globals, vars(builtins)):
        if name in names:
            return (names[name],)
    return None
