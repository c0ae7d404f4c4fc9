"""`jit` and graph mode: a Python function becomes a graph at its first call and a program
of the native core runs it.

A compiled function is kept per signature: types of the tensors, values of the Python arguments, Parameters
and Cells by identity, training flags of the Cells that took part. Parameters that the code reads are
inputs of the graph, those that it changes are written back after each run.
"""

from __future__ import annotations

import functools
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycelia import _C, config, dtypes, errors
from mycelia.capture import control, unsupported
from mycelia.capture.effects import collect
from mycelia.capture.trace import Trace, UnknownSize, traces, type_of
from mycelia.compile.compiled import Compiled
from mycelia.compile.passes import SETTINGS, choice, optimize
from mycelia.ir.graph import Value
from mycelia.tensor import Parameter, Tensor

capture_lock = threading.RLock()  # a capture lends Parameters to the graph: one at a time


class _Setting:
    """Settings as plain attributes: they are read at every call."""

    disabled = bool(config.get("disable_jit"))
    target: tuple = ()  # what compiled forms are for


def _follow(_: Any) -> None:
    _Setting.target = config.get("device_target"), choice()


config.on_change("disable_jit", lambda value: setattr(_Setting, "disabled", bool(value)))
for _name in ("device_target", *SETTINGS):
    config.on_change(_name, _follow)


# ---- signatures --------------------------------------------------------------------------------------------

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def _signature(value: Any, tensors: list[Tensor], kept: list[Any]) -> Any:
    """A hashable key for an argument; collects its tensors and the objects that the key names by identity."""
    kind = type(value)
    if kind is Tensor:
        tensors.append(value)
        return value.dtype, value.shape
    if kind in _PLAIN:
        return kind, repr(value) if kind in (
            float,
            complex,
        ) else value  # -0.0 and nan are values of their own
    if kind is tuple or kind is list:
        return (kind, *(_signature(v, tensors, kept) for v in value))
    if kind is dict:
        return (kind, *((k, _signature(v, tensors, kept)) for k, v in value.items()))
    if isinstance(value, tuple):
        return (kind, *(_signature(v, tensors, kept) for v in value))
    if isinstance(value, np.ndarray):
        return kind, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (dtypes.DType, np.generic)):
        return kind, value
    kept.append(value)
    return kind, id(value)


def _call_key(args: tuple, kwargs: dict, tensors: list[Tensor]) -> Any:
    """The key of a call; the common case, tensors by position only, without a call per argument."""
    key = [_Setting.target]
    for value in args:
        if type(value) is Tensor:
            tensors.append(value)
            key += (value.dtype, value.shape)
        else:
            key.append(_signature(value, tensors, []))
    if kwargs:
        key.append(_signature(kwargs, tensors, []))
    return tuple(key)


def _replaced(value: Any, tensors: Any) -> Any:
    """The argument with its tensors taken from an iterator, in the order of `_signature`."""
    kind = type(value)
    if kind is Tensor:
        return next(tensors)
    if kind is list or kind is tuple:
        return kind(_replaced(v, tensors) for v in value)
    if kind is dict:
        return {k: _replaced(v, tensors) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(_replaced(v, tensors) for v in value))
    return value


# ---- compiled functions ------------------------------------------------------------------------------------


def _result(value: Any, trace: Trace, outputs: list[Value]) -> Callable[[Sequence[Tensor]], Any]:
    """Collects the tensors of a returned structure as outputs;
    the result builds the structure from a run's results.
    """
    if isinstance(value, Tensor):
        position = len(outputs)
        outputs.append(trace.value_of(value))
        return lambda results: results[position]
    if isinstance(value, (tuple, list)):
        kind = type(value)
        parts = [_result(v, trace, outputs) for v in value]
        if hasattr(value, "_fields"):
            return lambda results: kind(*(p(results) for p in parts))
        return lambda results: kind([p(results) for p in parts])
    if isinstance(value, dict):
        named = {k: _result(v, trace, outputs) for k, v in value.items()}
        return lambda results: {k: p(results) for k, p in named.items()}
    return lambda results: value


def _reachable(values: Sequence[Any], found: dict[int, Parameter], seen: set[int]) -> None:
    """Collects the Parameters that arguments, closures and globals of functions lead to."""
    for value in values:
        if id(value) in seen:
            continue
        if isinstance(value, Tensor):
            if value._is_parameter:
                found[id(value)] = value
            continue
        if not isinstance(
            value, (tuple, list, dict, types.FunctionType, types.MethodType, functools.partial)
        ):
            parameters = getattr(value, "get_parameters", None)
            if parameters is not None and not isinstance(value, (type, types.ModuleType)):
                seen.add(id(value))
                found.update((id(p), p) for p in parameters())
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            _reachable(list(value.values()), found, seen)
        elif isinstance(value, types.MethodType):
            _reachable((value.__self__, value.__func__), found, seen)
        elif isinstance(value, functools.partial):
            _reachable((value.func, *value.args, *value.keywords.values()), found, seen)
        elif isinstance(value, types.FunctionType):
            inside = []
            for cell in value.__closure__ or ():
                try:
                    inside.append(cell.cell_contents)
                except ValueError:  # not assigned yet
                    continue
            inside += [value.__globals__[n] for n in value.__code__.co_names if n in value.__globals__]
            _reachable(inside, found, seen)
        else:
            _reachable(value, found, seen)


def _compile(fn: Callable, name: str, args: tuple, kwargs: dict) -> Compiled:
    """Captures `fn` for arguments like these and optimizes the graph."""
    tensors: list[Tensor] = []
    kept: list[Any] = []
    _signature((args, kwargs), tensors, kept)
    outside: dict[int, Parameter] = {}
    _reachable((fn, args, kwargs), outside, set())
    with capture_lock:
        trace = Trace(name, sizes_known=True)
        try:
            with trace:
                standing = [trace.parameter(type_of(t)) for t in tensors]
                arguments = [t.traced for t in standing]
                for parameter in outside.values():
                    if parameter.traced is None and parameter._has_value:
                        trace.lift(parameter, parameter.name)
                stand_ins = iter(standing)
                given, named = _replaced(args, stand_ins), _replaced(kwargs, stand_ins)
                del standing, stand_ins
                result = control.callee(fn)(*given, **named)
                outputs: list[Value] = []
                build = _result(result, trace, outputs)
                del result, given, named
            effects = collect(trace)
        finally:
            trace.close()
    graph = trace.graph
    graph.outputs = outputs + effects.results
    graph.parameters = arguments + [value for _, value in effects.inputs]
    optimize(graph)
    read = {v for node in graph.nodes for v in node.inputs} | set(graph.outputs)
    inputs = [(tensor, value) for tensor, value in effects.inputs if value in read]
    graph.parameters = arguments + [value for _, value in inputs]
    compiled = Compiled(graph, [t for t, _ in inputs], effects.targets, len(outputs), build)
    compiled.guards = [(cell.__dict__, cell.training) for cell in trace.cells.values()]
    compiled.kept = kept
    return compiled


class _Cache:
    """The compiled forms of one function. None: it runs as Python, since it has sizes that depend on data."""

    def __init__(self, fn: Callable, name: str, fullgraph: bool = False) -> None:
        self.fn, self.name, self.fullgraph = fn, name, fullgraph
        self.by_signature: dict[Any, list[Compiled | None]] = {}

    def call(self, owner: Any, args: tuple, kwargs: dict) -> Any:
        """`fn(*args)`; `owner` (the Cell whose method it is, or None) comes first."""
        tensors: list[Tensor] = []
        key = _call_key(args, kwargs, tensors)
        for compiled in self.by_signature.get(key, ()):
            if compiled is None or compiled.is_valid():
                break
        else:
            compiled = self.add(key, owner, args, kwargs)
        if compiled is None:
            return self.function(owner)(*args, **kwargs)
        return compiled(tensors)

    def function(self, owner: Any) -> Callable:
        return self.fn if owner is None else types.MethodType(self.fn, owner)

    def add(self, key: Any, owner: Any, args: tuple, kwargs: dict) -> Compiled | None:
        try:
            compiled = _compile(self.function(owner), self.name, args, kwargs)
            if owner is not None:
                compiled.guards.append((owner.__dict__, owner.training))
        except UnknownSize as error:
            if self.fullgraph or config.get("fallback") == "error":
                raise
            from mycelia import log

            log.logger(__name__).info("%s runs as Python instead of as a graph: %s", self.name, error)
            compiled = None
        self.by_signature.setdefault(key, []).append(compiled)
        return compiled


# ---- jit ---------------------------------------------------------------------------------------------------

_DEPRECATED = {
    "mode": "capture_mode",
    "input_signature": "dynamic",
    "hash_args": "",
    "jit_config": "jit_level, fullgraph or options",
    "compile_once": "",
}


def jit(
    function: Callable | None = None,
    *,
    capture_mode: str = "ast",
    jit_level: str = "O0",
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    **options: Any,
) -> Callable:
    """Compile a function, method, Cell or Cell class: it is captured as a graph at the
    first call with new types.

    `if`, `while` and `for` on tensors become part of the graph; Python values are constants of it.
    `capture_mode` ("ast", "bytecode", "trace"), `jit_level` ("O0", "O1"), `dynamic` (0, 1), `fullgraph`,
    `backend` and further options are MindSpore's; they are checked, and one way of compiling serves them
    all. Errors: ValueError or TypeError for options that are none; CaptureError, with the line, for code
    without a graph form.
    """
    for name, value, choices in (
        ("capture_mode", capture_mode, ("ast", "bytecode", "trace")),
        ("jit_level", jit_level, ("O0", "O1")),
        ("dynamic", dynamic, (0, 1)),
    ):
        if value not in choices or isinstance(value, bool):
            raise errors.one_of(value, choices, subject="jit", what=f"the argument '{name}'")
    if not isinstance(fullgraph, bool):
        raise errors.type_error(
            "jit", f"the argument 'fullgraph' must be a bool, but got {type(fullgraph).__name__}"
        )
    for name in options.keys() & _DEPRECATED.keys():
        from mycelia import log

        advice = f" Please use '{_DEPRECATED[name]}' instead." if _DEPRECATED[name] else ""
        log.logger(__name__).warning("For 'jit', the parameter '%s' has been deprecated.%s", name, advice)

    def compiled(function: Any) -> Any:
        return _compiled(function, fullgraph)

    return compiled if function is None else compiled(function)


def _compiled(function: Any, fullgraph: bool) -> Any:
    if isinstance(function, type) and hasattr(function, "construct"):
        function.construct = _compiled(function.construct, fullgraph)
        return function
    if hasattr(function, "construct"):
        return types.MethodType(_compiled(type(function).construct, fullgraph), function)
    if isinstance(function, types.MethodType):
        return types.MethodType(_compiled(function.__func__, fullgraph), function.__self__)
    if not isinstance(function, types.FunctionType):
        raise errors.type_error(
            "jit", f"expected a function, method, Cell or Cell class, but got {type(function).__name__}"
        )
    shared = _Cache(function, function.__qualname__, fullgraph)
    of_owner: weakref.WeakKeyDictionary[Any, _Cache] = weakref.WeakKeyDictionary()

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if traces and _C.mode():  # part of a graph that this thread captures
            return control.callee(function)(*args, **kwargs)
        if _Setting.disabled:
            return function(*args, **kwargs)
        if not args or type(args[0]) is Tensor or not hasattr(args[0], "construct"):
            return shared.call(None, args, kwargs)
        owner = args[0]  # a method of a Cell: what was compiled for it lives as long as the Cell
        cache = of_owner.get(owner)
        if cache is None:
            cache = of_owner[owner] = _Cache(function, function.__qualname__, fullgraph)
        return cache.call(owner, args[1:], kwargs)

    return run


# ---- graph mode --------------------------------------------------------------------------------------------

_of_cell: weakref.WeakKeyDictionary[Any, _Cache] = weakref.WeakKeyDictionary()


def _cache_of(cell: Any) -> _Cache:
    found = _of_cell.get(cell)
    if found is None:
        found = _of_cell[cell] = _Cache(_run_cell, f"{type(cell).__name__}.construct")
    return found


def _run_cell(cell: Any, *args: Any, **kwargs: Any) -> Any:
    """`construct` with the cell's hooks and casts around it."""
    return cell._run(args, kwargs)


def call_cell(cell: Any, args: tuple, kwargs: dict) -> Any:
    """A call of a Cell in graph mode."""
    if _Setting.disabled:
        return cell._run(args, kwargs)
    return _cache_of(cell).call(cell, args, kwargs)


def compile_cell(cell: Any, args: tuple, kwargs: dict) -> None:
    """Compiles a Cell for arguments like these, without running it."""
    tensors: list[Tensor] = []
    key = _call_key(args, kwargs, tensors)
    cache = _cache_of(cell)
    if not any(c is None or c.is_valid() for c in cache.by_signature.get(key, ())):
        cache.add(key, cell, args, kwargs)


unsupported.install()
