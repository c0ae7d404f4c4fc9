"""From a function to its syntax tree."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import re
import sysconfig
import textwrap
import types
from collections.abc import Callable

from mycelia.engine.base import errors


class CannotRewrite(Exception):
    """Why a function is traced without rewriting."""


def find_definition(fn: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax tree of `fn`, with line numbers of its file."""
    code = fn.__code__
    lines, first = _source_lines(fn)
    parsed = _parsed(code, lines, first)
    if parsed is None:
        raise CannotRewrite(f"the source of {fn.__qualname__} cannot be isolated")
    tree, lines = parsed
    ast.increment_lineno(tree, max(first, 1) - 1)
    is_lambda = code.co_name == "<lambda>"
    kind = ast.Lambda if is_lambda else ast.FunctionDef
    found = [n for n in ast.walk(tree) if isinstance(n, kind) and (is_lambda or n.name == code.co_name)]
    if is_lambda:
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        found = [
            n for n in found if tuple(a.arg for a in all_arguments(n.args)[: len(arguments)]) == arguments
        ]
        if len(found) > 1:
            indent = len(lines[0]) - len(lines[0].lstrip())
            spots = {(p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None}
            found = [n for n in found if (n.body.lineno, n.body.col_offset + indent) in spots]
    elif len(found) > 1:
        found = [
            n for n in found if min([n.lineno, *(d.lineno for d in n.decorator_list)]) == code.co_firstlineno
        ]
    if len(found) != 1:
        raise CannotRewrite(f"the source of {fn.__qualname__} is ambiguous")
    return found[0]


_BEGINNING = re.compile(r"\s*(async\s+)?def\s|.*(?<!\w)lambda(:|\s)|\s*@")


def _source_lines(fn: types.FunctionType) -> tuple[list[str], int]:
    """The lines of the file from the definition of `fn` on, and the number of the first.

    (inspect.getsourcelines looks through all modules to learn whose file it is, which takes longer than the
    rest of a small capture.)
    """
    code = fn.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    first = code.co_firstlineno - 1
    if not 0 <= first < len(lines):
        raise CannotRewrite(f"the source of {fn.__qualname__} is not available")
    while first > 0 and not _BEGINNING.match(lines[first]):
        first -= 1
    return lines[first:], first + 1


def _last_line(code: types.CodeType) -> int:
    """The last line that made code, or 0 if that is not known."""
    ends = [p[1] or 0 for p in code.co_positions()]
    return max([*ends, *(_last_line(c) for c in code.co_consts if isinstance(c, types.CodeType))], default=0)


def _parsed(code: types.CodeType, lines: list[str], first: int) -> tuple[ast.Module, list[str]] | None:
    """The tree of the definition that `lines` begin with, and its own lines."""
    if code.co_name != "<lambda>":
        own = lines[: _last_line(code) - first + 1]
        try:
            return ast.parse(textwrap.dedent("".join(own))), own
        except SyntaxError:  # code that is never reached stands behind the last line
            pass
    own = inspect.getblock(lines)
    source = textwrap.dedent("".join(own))
    try:
        return ast.parse(source), own
    except SyntaxError:
        tree = _parse_fragment(source)
        return None if tree is None else (tree, own)


def _parse_fragment(source: str) -> ast.Module | None:
    """A lambda's source lines may be part of a larger expression; try the usual shapes."""
    text = source.strip()
    for candidate in (
        text.rstrip(","),
        f"({text.rstrip(',')})",
        f"_({text}",
        f"_({text.rstrip(',')})",
        text.rstrip(",)]}"),
        f"{{{text.rstrip(',')}}}",
    ):
        try:
            return ast.parse(candidate)
        except SyntaxError:
            continue
    return None


def all_arguments(args: ast.arguments) -> list[ast.arg]:
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, [args.vararg, args.kwarg])]


class Mangle(ast.NodeTransformer):
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


@functools.cache
def _library_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(
        {
            os.path.realpath(p) + os.sep
            for p in (errors.PACKAGE_ROOT, paths["stdlib"], paths["purelib"], paths["platlib"])
        }
    )


@functools.cache
def is_library_file(filename: str) -> bool:
    """True for code of Mycelia, of Python and of installed packages: such code is never rewritten."""
    return filename.startswith("<frozen") or os.path.realpath(filename).startswith(_library_roots())


def is_user_function(fn: Callable) -> bool:
    return isinstance(fn, types.FunctionType) and not is_library_file(fn.__code__.co_filename)
