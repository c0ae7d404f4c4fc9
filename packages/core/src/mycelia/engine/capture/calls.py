"""Calls inside captured code: user functions are rewritten in turn, some builtins know tensors."""

from __future__ import annotations

import builtins
import collections.abc
import functools
import math
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.engine.base import config, dtypes, errors
from mycelia.engine.capture import jumps, outside, rewrite, sequences, source, text
from mycelia.engine.capture.conditions import and_, or_, predicate
from mycelia.engine.capture.numbers import is_number, kind_of, marked
from mycelia.engine.capture.trace import active, is_traced, type_of
from mycelia.engine.capture.values import Undefined
from mycelia.engine.ir import types as ir_types
from mycelia.engine.ir.sizes import is_open
from mycelia.engine.ir.symint import SymInt, applied
from mycelia.engine.ops.control_flow.variable import is_variable, of_variable_length


def callee(function: Any) -> Any:
    """The callable to use in the place of `function`: user code with its control flow rewritten."""
    kind = type(function)
    if kind is types.FunctionType:
        if source.is_user_function(function) or getattr(function, "captured_call", False):
            return _rewritten(function)
        if not function.__code__.co_filename.startswith(errors.PACKAGE_ROOT):
            return function
        return functools.partial(_call_with_rewritten_arguments, _with_rewritten_closure(function))
    if kind is types.MethodType:
        inner = callee(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if kind is types.BuiltinFunctionType:
        return _BUILTINS.get(function) or _method(function)
    if kind is type:
        return _BUILTINS.get(function, function)
    if kind is functools.partial:
        return functools.partial(callee(function.func), *function.args, **function.keywords)
    if kind is Undefined:
        raise function.complain()
    call = getattr(kind, "__call__", None)  # noqa: B004  (what a user's class defines, not whether it is callable)
    if source.is_user_function(call) or getattr(kind, "captured_call", False):  # `ops.composite`
        return types.MethodType(_rewritten(call), function)
    return function


def _rewritten(function: types.FunctionType) -> types.FunctionType:
    _check_depth(function)
    if jumps.HELPERS in function.__code__.co_freevars:  # it is already
        return function
    trace = active()
    if trace is not None:
        outside.note_variables(trace, function)
    try:
        return rewrite.rewrite_function(function)
    except source.CannotRewrite:
        return function  # traced as it is; `capture/unsupported.py` explains a tensor condition in it


def _check_depth(function: types.FunctionType) -> None:
    """Errors: RuntimeError if as many calls are under way as the setting `max_call_depth` allows."""
    depth, limit, frame = 0, config.get("max_call_depth"), sys._getframe()
    while frame is not None:
        depth += jumps.HELPERS in frame.f_code.co_freevars
        frame = frame.f_back
    if depth >= limit:
        raise errors.error(
            errors.MyceliaRuntimeError, "jit",
            f"Exceed function call depth limit {limit}: the call of {function.__qualname__} is nested deeper",
            hint="is the recursion endless? mycelia.set_recursion_limit(n) allows deeper calls",
        )  # fmt: skip


def _call_with_rewritten_arguments(function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """A call of a function of ours, a gradient transform say: user functions given to it are rewritten."""

    def rewritten(value: Any) -> Any:
        return callee(value) if type(value) in (types.FunctionType, types.MethodType) else value

    return function(*map(rewritten, args), **{k: rewritten(v) for k, v in kwargs.items()})


_in_progress: set[int] = set()


def _with_rewritten_closure(function: types.FunctionType) -> types.FunctionType:
    """A function of ours that calls user functions it has closed over (a gradient transform)
    calls the rewritten ones.
    """
    cells = function.__closure__
    if not cells or id(function) in _in_progress:
        return function
    _in_progress.add(id(function))
    try:
        changed = False
        fresh = []
        for cell in cells:
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                fresh.append(cell)
                continue
            other = (
                callee(content)
                if type(content) in (types.FunctionType, types.MethodType, functools.partial)
                else content
            )
            changed |= other is not content
            fresh.append(cell if other is content else types.CellType(other))
    finally:
        _in_progress.discard(id(function))
    if not changed:
        return function
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(fresh)
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


# ---- builtins with tensors ---------------------------------------------------------------------------------


class TensorRange:
    """`range` with traced limits."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        if is_traced(step):
            raise errors.error(
                errors.CaptureError, "jit", "the step of range() must be a Python int, not a tensor"
            )
        if step == 0:
            raise errors.value_error("range", "the step must not be zero")
        self.start, self.stop, self.step = start, stop, step

    def complain(self) -> None:
        """Raises: it is no tuple."""
        raise errors.type_error(
            "range",
            "outside of a for statement an input should be a int scalar but got "
            + ", ".join(str(type_of(v)) for v in (self.start, self.stop) if is_traced(v)),
        )


def _range(*limits: Any) -> Any:
    trace = active()
    limits = tuple(trace.number(v, dtypes.int64) if trace and is_open(v) else v for v in limits)
    if not any(is_traced(limit) for limit in limits):
        made = range(*limits)
        return made if active() is None or not any(map(is_variable, limits)) else of_variable_length(made)
    for number, limit in enumerate(limits):
        if is_traced(limit) and (not limit.dtype.is_integer or limit.size not in (1, ir_types.UNKNOWN)):
            raise errors.type_error(
                "range", f"the {number}th input should be a int scalar, but got {type_of(limit)}"
            )
    start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    return TensorRange(start, stop, step)


def _convert(kind: type, dtype: Any) -> Callable:
    def convert(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or not is_traced(args[0]):
            if len(args) == 1 and type(args[0]) is SymInt:
                return args[0].converted(kind)
            if len(args) == 1 and isinstance(args[0], np.ndarray) and args[0].size == 1:
                return kind(args[0].item())
            return kind(*args, **kwargs)
        from mycelia.engine.ops.elementwise.cast import cast

        value = predicate(args[0], f"the argument of {kind.__name__}()")
        number = cast(value if value.ndim == 0 else value.reshape(()), dtype=dtype)
        return marked(number if number.traced is not value.traced else number.copy())

    return convert


def _of_size(function: Callable) -> Callable:
    """A function of the `math` module; of a size that may change it is one, too."""

    def apply(*args: Any) -> Any:
        if len(args) == 1 and type(args[0]) is SymInt:
            return args[0].table.combined(function, args[0])
        return function(*args)

    return apply


def _isinstance(value: Any, classes: Any) -> bool:
    if is_traced(value) and is_number(value):
        return isinstance(kind_of(value.dtype)(), classes)
    return isinstance(value, classes)


def _extreme(kind: Callable, op: str) -> Callable:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        items = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        if not kwargs and len(items) > 1 and any(map(is_open, items)) and not any(map(is_traced, items)):
            return functools.reduce(functools.partial(applied, kind), items)
        if kwargs or len(items) < 2 or not any(is_traced(i) for i in items):
            return kind(*args, **kwargs)
        from mycelia.engine.ops.elementwise import clipping

        return functools.reduce(getattr(clipping, op), items)

    return extreme


def _every(kind: Callable, combine: Callable) -> Callable:
    def every(items: Any) -> Any:
        values = list(items)
        if not any(is_traced(v) for v in values):
            return kind(values)
        return combine(*(functools.partial(lambda v: v, v) for v in values))

    return every


def _sequence(kind: Callable, result: type) -> Callable:
    """`zip`, `map` and the like give a tuple or list at once: it can be returned, indexed and used twice."""

    def sequence(*args: Any, **kwargs: Any) -> Any:
        sequences.require_known_length(kind.__name__, args)
        made = kind(*args, **kwargs)
        endless = any(isinstance(a, collections.abc.Iterator) for a in args)
        return made if endless or active() is None else result(made)

    return sequence


def _mapped(function: Callable, *of: Any) -> Any:
    """`map` at once: a list for lists, else a tuple."""
    kind = list if of and all(isinstance(items, list) for items in of) else tuple
    return _sequence(map, kind)(function, *of)


_VIEWS: dict[str, Callable] = {
    "keys": lambda view: tuple(view),
    "values": lambda view: tuple(view),
    "items": lambda view: list(view),
}


def _method(function: Any) -> Any:
    """A method of a builtin object: views of a dict are sequences, a formatted text may show tensors."""
    owner, name = getattr(function, "__self__", None), function.__name__
    if type(owner) is str and name == "format":
        return text.formatted(owner)
    if name == "count" and type(owner) in (list, tuple) and active() is not None:
        return functools.partial(sequences.count, owner)
    if type(owner) is dict and name in _VIEWS and active() is not None:
        return lambda: _VIEWS[name](function())
    return function


_BUILTINS: dict[Any, Callable] = {
    builtins.print: text.print_,
    builtins.str: text.text,
    builtins.zip: _sequence(zip, tuple),
    builtins.enumerate: _sequence(enumerate, tuple),
    builtins.map: _mapped,
    builtins.filter: _sequence(filter, list),
    builtins.range: _range,
    builtins.len: sequences.length,
    builtins.list: sequences.converted(list),
    builtins.tuple: sequences.converted(tuple),
    builtins.isinstance: _isinstance,
    builtins.int: _convert(int, dtypes.int64),
    builtins.float: _convert(float, dtypes.float32),
    builtins.bool: _convert(bool, dtypes.bool_),
    builtins.max: _extreme(max, "maximum"),
    builtins.min: _extreme(min, "minimum"),
    builtins.all: _every(all, and_),
    builtins.any: _every(any, or_),
    **{function: _of_size(function) for function in (math.sqrt, math.exp, math.log, math.log2, math.log10)},
}
