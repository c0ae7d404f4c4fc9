"""Functions made of functions: gradients as objects, maps over nested tuples, overloads by type, loops.

They are ordinary Python. A class whose calls are captured like user code says so with `captured_call`: in a
graph its `__call__` and the functions that it calls are rewritten, so that conditions on tensors work.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.engine import _C, dispatch
from mycelia.engine.base import config, dtypes, errors

Tensor = _C.Tensor
_MISSING: Any = object()

__all__ = [
    "ForiLoop", "GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "Partial", "Scan", "WhileLoop",
    "add_flags", "core", "env_get", "hyper_add", "partial", "tail", "zip_operation",
]  # fmt: skip


# ---- gradients ---------------------------------------------------------------------------------------------


class GradOperation:
    """``GradOperation(...)(fn, weights)`` is a function that returns gradients of `fn`.

    `get_all`: of all Tensor arguments instead of the first; `get_by_list`: of `weights` (without them: of
    the trainable Parameters of `fn`), together with `get_all` a pair of both; `sens_param`: the last
    argument, or the keyword `sens`, is the cotangent of the output. Errors: TypeError for flags that are no
    bool.
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False):
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise errors.type_error(
                    f"For 'GradOperation', the '{name}' should be bool, but got {type(value).__name__}"
                )
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Callable = _MISSING, weights=None) -> Callable:
        if fn is _MISSING:
            raise errors.type_error(
                "'GradOperation' requires a forward network or function as an input, "
                "while the input is empty."
            )
        get_all, get_by_list, sens_param = self.get_all, self.get_by_list, self.sens_param
        if not callable(fn):
            raise errors.type_error(
                "For 'GradOperation', the first argument must be a 'Function' or 'Cell', but got "
                f"{type(fn).__name__}"
            )

        def gradient(*args, **kwargs):
            return _gradients(fn, weights, args, kwargs, get_all, get_by_list, sens_param)

        return gradient


def _gradients(fn, weights, args: tuple, kwargs: dict, get_all: bool, get_by_list: bool, sens_param: bool):
    from mycelia.engine.autodiff import transforms

    cotangent = None
    if sens_param:
        args, kwargs, cotangent = transforms.split_cotangent(args, kwargs)
    called = transforms._by_position(fn, len(args), tuple(kwargs)) if kwargs else fn
    args = (*args, *kwargs.values())
    in_graph = bool(_C.mode() & dispatch.TRACING)  # there a tuple, list or dict of Tensors is a variable too

    def is_variable(arg) -> bool:
        known = isinstance(arg, Tensor) or bool(getattr(arg, "_members", None))
        return known or in_graph and transforms._holds_tensor(arg)

    if get_all:
        positions = [i for i, a in enumerate(args) if is_variable(a)]
    elif get_by_list:
        positions = []
    else:
        in_graph = in_graph or config.get("mode") == config.GRAPH_MODE
        positions = [0] if args and (isinstance(args[0], Tensor) or in_graph and is_variable(args[0])) else []
    parameters: list = []
    if get_by_list:
        chosen = _trainable(fn) if weights is None else weights
        parameters = transforms.weights_of(chosen, "GradOperation")
    _, of_args, of_weights = transforms.differentiate(called, args, positions, parameters, False, cotangent)
    if get_by_list:
        listed = of_weights[0] if isinstance(weights, Tensor) else tuple(of_weights)
        return (tuple(of_args), listed) if get_all else listed
    if get_all:
        return tuple(of_args)
    return of_args[0] if of_args else ()


def _trainable(fn) -> list:
    """The trainable Parameters of a Cell, or of the Cell that a method belongs to."""
    owner = fn if hasattr(fn, "trainable_params") else getattr(fn, "__self__", None)
    return owner.trainable_params() if hasattr(owner, "trainable_params") else []


# ---- overloads by type -------------------------------------------------------------------------------------


def _is_number(value) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, Tensor)


def _is_int(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _never(value) -> bool:
    return False


def _class_named(name: str) -> Callable[[Any], bool]:
    return lambda value: type(value).__name__ == name


#: Type name -> whether a value is of that type.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: isinstance(v, Tensor),
    "Number": _is_number,
    "Int": _is_int,
    "Int64": _is_int,
    "Float": lambda v: isinstance(v, float),
    "Float64": lambda v: isinstance(v, float),
    "Float32": lambda v: isinstance(v, float) and bool(_C.mode() & dispatch.TRACING),  # as graphs see them
    "Complex": lambda v: isinstance(v, complex),
    "Bool": lambda v: isinstance(v, bool),
    "bool": lambda v: isinstance(v, bool),
    "String": lambda v: isinstance(v, str),
    "Tuple": lambda v: isinstance(v, tuple),
    "List": lambda v: isinstance(v, list),
    "Dictionary": lambda v: isinstance(v, dict),
    "None": lambda v: v is None,
    "Slice": lambda v: isinstance(v, slice),
    "Ellipsis": lambda v: v is Ellipsis,
    "Function": callable,
    **{name: _class_named(name) for name in ("RowTensor", "CSRTensor", "COOTensor", "MapTensor")},
    **dict.fromkeys(("UInt", "RefKeyType", "EnvType", "Keyword", "Problem", "Type", "Anything"), _never),
}  # fmt: skip


def _kind(type_name) -> Callable[[Any], bool]:
    """Whether a value is of the type that `type_name` names: a text, or a dtype object."""
    of_dtypes = type(type_name).__module__ == dtypes.DType.__module__
    if not of_dtypes and not isinstance(type_name, str):
        raise errors.type_error(
            "MultitypeFuncGraph", f"a type is registered by its name or dtype, but got {type_name!r}"
        )
    name = str(type_name)
    if name in _KINDS:
        return _KINDS[name]
    of_tensor = name.startswith("Tensor[") and name.endswith("]")
    try:
        dtype = dtypes.as_dtype(name[7:-1] if of_tensor else name)
    except TypeError:
        raise errors.error(
            errors.MyceliaRuntimeError, "MultitypeFuncGraph", f"there is no type named {name!r}"
        ) from None
    if of_tensor:
        return lambda v: isinstance(v, Tensor) and v.dtype is dtype
    return _never  # scalars are Python numbers: 64 bits wide


class MultitypeFuncGraph:
    """A function whose body depends on the types of its arguments; `register` adds bodies.

    The first body whose types fit is called; a single body always fits. `read_value` is accepted for
    compatibility. Errors: ValueError if none fits, TypeError for NumPy arrays.
    """

    captured_call = True

    def __init__(self, name: str, read_value: bool = False):
        del read_value  # Parameters are given as they are
        self.name = name
        self.entries: list[tuple[tuple, Callable]] = []
        self._kinds: list[tuple[Callable, ...]] = []

    def register(self, *type_names) -> Callable:
        """A decorator that adds a body for arguments of these types: texts such as "Tensor", "Number",
        "Tuple", "Tensor[Float32]", or dtypes.

        Errors: TypeError for anything else, RuntimeError for an unknown name.
        """
        kinds = tuple(_kind(name) for name in type_names)

        def add(fn: Callable) -> Callable:
            self.entries.append((type_names, fn))
            self._kinds.append(kinds)
            return fn

        return add

    def __call__(self, *args):
        body = self._body(args)
        return body(*args)

    def _body(self, args: tuple) -> Callable:
        for arg in args:
            if isinstance(arg, np.ndarray):
                raise errors.type_error("MultitypeFuncGraph", "an argument must not be a numpy.ndarray")
        if len(self.entries) == 1:
            return self.entries[0][1]
        for kinds, (_, fn) in zip(self._kinds, self.entries):
            if len(kinds) == len(args) and all(fits(a) for fits, a in zip(kinds, args)):
                return fn
        known = ", ".join(f"({', '.join(map(str, names))})" for names, _ in self.entries)
        raise errors.value_error(
            "MultitypeFuncGraph",
            f"'{self.name}' has no body for ({', '.join(type(a).__name__ for a in args)}); it has {known}",
        )

    def __repr__(self) -> str:
        return f"MultitypeFuncGraph[{self.name}]"


# ---- maps --------------------------------------------------------------------------------------------------


class HyperMap:
    """Applies `ops` to the members of nested tuples and lists of equal structure; returns nested tuples.

    Without `ops` the function is the first argument of a call. Lists and tuples are descended, all else is
    a leaf. `reverse`: from the last member to the first, which shows only in side effects.
    """

    captured_call = True

    def __init__(self, ops: Callable | None = None, reverse: bool = False):
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args):
        function = self.ops
        if function is None:
            function = args[0]
            args = args[1:]
        if not isinstance(args[0], (tuple, list)):
            return function(*args)
        inner = HyperMap(None, self.reverse)
        rows = _rows("HyperMap", args, self.reverse)
        made = [inner(function, *row) for row in rows]
        return tuple(made[::-1] if self.reverse else made)


class Map:
    """Applies `ops` to the members of tuples or lists; returns a tuple.

    Without `ops` the function is the first argument of a call. `reverse` as in `HyperMap`.
    """

    captured_call = True

    def __init__(self, ops: Callable | None = None, reverse: bool = False):
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args):
        function = self.ops
        if function is None:
            function = args[0]
            args = args[1:]
        rows = _rows("Map", args, self.reverse)
        made = [function(*row) for row in rows]
        return tuple(made[::-1] if self.reverse else made)


def _rows(where: str, columns: tuple, reverse: bool) -> list[tuple]:
    for column in columns:
        if not isinstance(column, (tuple, list)):
            raise errors.type_error(
                where, f"all arguments must be tuples or lists, but one is {type(column).__name__}"
            )
    rows = list(zip(*columns))  # as far as the shortest goes
    return rows[::-1] if reverse else rows


hyper_add = HyperMap(lambda x, y: x + y)


def zip_operation(*sequences) -> tuple:
    """The members of the sequences side by side: a tuple of tuples."""
    return tuple(zip(*sequences))


def tail(x: tuple) -> tuple:
    """All but the first member."""
    return x[1:]


# ---- partial calls and flags -------------------------------------------------------------------------------


def partial(fn: Callable, *args, **kwargs) -> functools.partial:
    """`fn` with its first arguments fixed. Errors: TypeError for what cannot be called."""
    if not callable(fn):
        raise errors.type_error("Partial", f"the function must be callable, but got {type(fn).__name__}")
    return functools.partial(fn, *args, **kwargs)


class Partial:
    """``Partial()(fn, *args)`` is `fn` with its first arguments fixed."""

    def __call__(self, fn: Callable, *args, **kwargs) -> functools.partial:
        return partial(fn, *args, **kwargs)


def add_flags(fn: Callable | None = None, **flags) -> Callable:
    """Attach flags to a function (as `_func_graph_flags`) or Cell; without `fn` a decorator that does."""

    def attach(function):
        if hasattr(function, "add_flags"):
            return function.add_flags(**flags)
        function._func_graph_flags = {**getattr(function, "_func_graph_flags", {}), **flags}
        return function

    return attach if fn is None else attach(fn)


def core(fn: Callable | None = None, **flags) -> Callable:
    """`add_flags` with the flag `core` set."""
    return add_flags(fn, **{"core": True, **flags})


# ---- environments of gradients -----------------------------------------------------------------------------

env_get = MultitypeFuncGraph("env_get")


@env_get.register("EnvType", "Tensor")
def _env_get(env, parameter):
    raise errors.error(
        errors.NotSupportedError,
        "env_get",
        "gradients are not kept in environments: use ops.grad with weights",
    )


# ---- loops -------------------------------------------------------------------------------------------------


class WhileLoop:
    """``WhileLoop()(cond_func, loop_func, init_val)``: `loop_func` is applied to the value while `cond_func`
    of it is true.

    Errors: TypeError for functions that cannot be called.
    """

    captured_call = True

    def __call__(self, cond_func: Callable, loop_func: Callable, init_val):
        _require_callable("WhileLoop", cond_func=cond_func, loop_func=loop_func)
        value = init_val
        while cond_func(value):
            value = loop_func(value)
        return value


class ForiLoop:
    """``ForiLoop()(lower, upper, loop_func, init_val)``: ``value = loop_func(i, value)`` for i from `lower`
    to `upper` - 1.

    `unroll` is accepted for compatibility. Errors: TypeError for a function that cannot be called or limits
    that are neither int nor Tensor.
    """

    captured_call = True

    def __call__(self, lower, upper, loop_func: Callable, init_val, unroll: bool = True):
        _require_callable("ForiLoop", loop_func=loop_func)
        for name, limit in (("lower", lower), ("upper", upper)):
            if isinstance(limit, bool) or not isinstance(limit, (int, Tensor)):
                raise errors.type_error(
                    "ForiLoop", f"{name} must be an int or a Tensor, but got {type(limit).__name__}"
                )
        value = init_val
        for i in range(lower, upper):
            value = loop_func(i, value)
        return value


class Scan:
    """``Scan()(loop_func, init, xs, length=None)``: ``value, y = loop_func(value, x)`` for each member x.

    `xs`: a tuple, list or Tensor, or None with `length` rounds, in which x is None. Returns the last value
    and the list of all y. `unroll` is accepted for compatibility.
    Errors: TypeError or ValueError for arguments that do not fit.
    """

    captured_call = True

    def __call__(self, loop_func: Callable, init, xs, length: int | None = None, unroll: bool = True):
        _require_callable("Scan", loop_func=loop_func)
        items = _scanned(xs, length)
        value = init
        made = []
        for item in items:
            value, y = loop_func(value, item)
            made.append(y)
        return value, made


def _scanned(xs, length):
    if xs is None:
        if isinstance(length, bool) or not isinstance(length, int):
            raise errors.value_error("Scan", f"without xs, length must be an int, but got {length!r}")
        return [None] * length
    if not isinstance(xs, (tuple, list, Tensor)):
        raise errors.type_error("Scan", f"xs must be a tuple, list or None, but got {type(xs).__name__}")
    if length is not None and length != len(xs):
        raise errors.value_error("Scan", f"length is {length}, but xs has {len(xs)} members")
    return xs


def _require_callable(where: str, **functions) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise errors.type_error(where, f"{name} must be callable, but got {type(function).__name__}")


def __getattr__(name: str):
    """Ops that MindSpore's composite module also names."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mycelia import ops

    return getattr(ops, name)
