"""`jit` and graph mode: a Python function becomes a graph at its first call and a program
of the native core runs it.

A compiled function is kept per signature: types of the tensors, values of the Python arguments, Parameters
and Cells by identity, training flags and hooks of the Cells that took part (`compile/cache.py`). Parameters
that the code reads are inputs of the graph, those that it changes are written back after each run.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.base import errors
from mycelia.engine.capture import control, unsupported
from mycelia.engine.capture.trace import traces
from mycelia.engine.compile.cache import LIMIT, Cache, CacheInfo, _Setting
from mycelia.engine.compile.compiled import Compiled
from mycelia.engine.compile.memory import MemoryReport
from mycelia.engine.compile.options import DEFAULT, UNSET_LEVEL, Options, jit_options
from mycelia.engine.tensors.tensor import Tensor

# ---- jit ---------------------------------------------------------------------------------------------------


def jit(
    function: Callable | None = None,
    *,
    capture_mode: str = "ast",
    jit_level: str = UNSET_LEVEL,
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    accuracy: str = "",
    **options: Any,
) -> Callable:
    """Compile a function, method, Cell or Cell class: it is captured as a graph at the
    first call with new types.

    `if`, `while` and `for` on tensors become part of the graph; Python values are constants of it.
    One way of capturing serves all values of `capture_mode` ("ast", "bytecode", "trace") and `dynamic`
    (0, 1): sizes that change are found. `jit_level` "O0", if given, runs the ops of the code as they are;
    "O1" and the default fuse them and choose layouts and algorithms. With `fullgraph` nothing may be left to
    Python; the option `disable_format_transform` keeps channels first. `accuracy` ("strict", "normal",
    "fast") chooses the algorithms of this function in place of the setting of that name; within another
    compiled function that one's choices hold. `backend` ("ms_backend", "GE") and further options are
    MindSpore's: a warning names those that nothing follows. The result has `cache_info()`, `graph()` and
    `memory_report()`, which tell what was compiled.

    Errors: ValueError for an option's value out of its choices, RuntimeError for an unknown backend;
    TypeError for values of other types and for what cannot be compiled. At a call CaptureError, with the
    line, for code without a graph form.
    """
    for name, value, choices in (
        ("capture_mode", capture_mode, ("ast", "bytecode", "trace")),
        ("jit_level", jit_level, ("O0", "O1")),
        ("dynamic", dynamic, (0, 1)),
        ("accuracy", accuracy, ("", "strict", "normal", "fast")),
    ):
        if value not in choices or isinstance(value, bool):
            raise errors.one_of(value, choices, subject="jit", what=f"the argument '{name}'")
    if not isinstance(fullgraph, bool):
        raise errors.type_error(
            "jit", f"the argument 'fullgraph' must be a bool, but got {type(fullgraph).__name__}"
        )
    chosen = jit_options(fullgraph, accuracy, jit_level, backend, options)

    def compiled(function: Any) -> Any:
        return _compiled(function, chosen)

    return compiled if function is None else compiled(function)


def _compiled(function: Any, options: Options) -> Any:
    if isinstance(function, type) and hasattr(function, "construct"):
        function.construct = _compiled(function.construct, options)
        return function
    if hasattr(function, "construct"):
        return _of_cell(function, options)
    if isinstance(function, types.MethodType):
        return types.MethodType(_compiled(function.__func__, options), function.__self__)
    if not isinstance(function, types.FunctionType):
        raise errors.type_error(
            "jit", f"expected a function, method, Cell or Cell class, but got {type(function).__name__}"
        )
    return _wrapped(function, function, options)


def _of_cell(cell: Any, options: Options) -> Callable:
    """A call of one Cell, compiled with its hooks and casts."""
    method = _wrapped(_run_cell, type(cell).construct, options)
    fast, call_key = _cache_of(cell, method, _run_cell, type(cell).__qualname__, options).fast, _C.call_key

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and not traces:
            tensors: list[Tensor] = []
            found = fast.get(call_key(args, tensors))
            if found is not None:
                return found(tensors)
        return method(cell, *args, **kwargs)

    return run


def _wrapped(function: Callable, like: Callable, options: Options) -> Callable:
    """The compiled form of `function`, which looks like `like`."""
    name = like.__qualname__
    shared = Cache(function, name, options)
    fast, call_key = shared.fast, _C.call_key
    caches = weakref.WeakSet([shared])

    @functools.wraps(like)
    def run(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else None
        if type(first) is Tensor or not hasattr(first, "construct"):
            if not kwargs and not traces:  # the usual call, known already
                tensors: list[Tensor] = []
                found = fast.get(call_key(args, tensors))
                if found is not None:
                    return found(tensors)
            cache, rest = shared, args
        else:  # a method of a Cell: what was compiled for it lives as long as the Cell
            cache, rest = _cache_of(first, run, function, name, options), args[1:]
            if not kwargs and not traces:
                tensors = []
                found = cache.fast.get(call_key(rest, tensors))
                if found is not None:
                    return found(tensors)
            caches.add(cache)
        if traces and _C.mode():  # part of a graph that this thread captures
            return control.callee(function)(*args, **kwargs)
        if _Setting.disabled or _C.mode() & dispatch.BATCHING:
            return function(*args, **kwargs)
        return cache.call(rest, kwargs)

    def cache_info() -> CacheInfo:
        counts = [cache.info() for cache in caches]
        return CacheInfo(*(sum(column) for column in list(zip(*counts))[:-1]), LIMIT)

    def latest() -> Compiled | None:
        return next((c for c in (cache.latest() for cache in caches) if c is not None), None)

    def graph() -> str:
        found = latest()
        return "" if found is None else str(found.graph)

    def memory_report() -> MemoryReport | None:
        found = latest()
        return None if found is None else found.memory_report()

    cache_info.__doc__ = (
        "Counts of captures and of compiled forms kept, as `mycelia.compile.cache.CacheInfo`."
    )
    graph.__doc__ = "The text of the graph that was compiled or used last; empty before the first call."
    memory_report.__doc__ = "How the program that was compiled or used last uses its memory, or None."
    run.cache_info, run.graph, run.memory_report = cache_info, graph, memory_report
    return run


class _Caches(dict):
    """What was compiled for one Cell, by function; a copy of the Cell starts anew."""

    def __reduce__(self) -> Any:
        return _Caches, ()

    def __deepcopy__(self, memo: dict) -> _Caches:
        return _Caches()


def _cache_of(owner: Any, key: Any, function: Callable, name: str, options: Options = DEFAULT) -> Cache:
    state = owner.__dict__
    if "_compiled" not in state:
        state["_compiled"] = _Caches()
    cache = state["_compiled"].get(key)
    if cache is None:
        cache = state["_compiled"][key] = Cache(function, name, options, owner)
    return cache


# ---- graph mode --------------------------------------------------------------------------------------------


def _run_cell(cell: Any, *args: Any, **kwargs: Any) -> Any:
    """`construct` with the cell's hooks and casts around it."""
    return cell._run(args, kwargs)


def _cache_of_cell(cell: Any) -> Cache:
    return _cache_of(cell, None, _run_cell, type(cell).__qualname__ + ".construct")


def call_cell(cell: Any, args: tuple, kwargs: dict) -> Any:
    """A call of a Cell in graph mode."""
    table = cell.__dict__.get("_compiled")
    cache = None if table is None else table.get(None)
    if cache is not None and not kwargs and not traces:
        tensors: list[Tensor] = []
        found = cache.fast.get(_C.call_key(args, tensors))
        if found is not None:
            return found(tensors)
    if _Setting.disabled:
        return cell._run_marked(args, kwargs)
    return _cache_of_cell(cell).call(args, kwargs)


def compile_cell(cell: Any, args: tuple, kwargs: dict) -> None:
    """Compiles a Cell for arguments like these, without running it."""
    _cache_of_cell(cell).prepare(args, kwargs)


unsupported.install()
