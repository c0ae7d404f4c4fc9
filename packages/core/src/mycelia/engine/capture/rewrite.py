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
from typing import Any

from mycelia.engine.base import log
from mycelia.engine.capture.jumps import HELPERS
from mycelia.engine.capture.rewrite_expressions import MARK, SITES, Site
from mycelia.engine.capture.rewrite_statements import FunctionRewriter
from mycelia.engine.capture.source import CannotRewrite, Mangle, find_definition

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
    if found is None or log.wants(11001, debug=4):  # which shows the code
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
    rewriter = FunctionRewriter(definition, code.co_filename, fn.__name__)
    definition = rewriter.run()
    factory = ast.FunctionDef(
        "_factory_",
        ast.arguments([], [ast.arg(n) for n in (*code.co_freevars, HELPERS, SITES)], None, [], [], None, []),
        [definition],
        [],
        None,
    )
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(factory, definition)], []))
    if log.wants(11001, debug=4):
        log.show(__name__, f"{fn.__qualname__} as it is captured:\n{ast.unparse(definition)}", 11001)
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
