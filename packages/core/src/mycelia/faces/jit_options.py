"""Names around compiling that scripts use: options as an object, marks of classes and functions, symbols
of sizes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import config, errors, ignored, log
from mycelia.engine.compile.options import LEVELS, MISSING, SYNTAX


class JitConfig:
    """Options of compiling, for `Cell.set_jit_config` and `jit`; a warning names those that nothing follows.

    `jit_level`: "O0" runs the ops of the code as they are, "O1" and "O2" fuse them and choose layouts and
    algorithms, as the default does; `jit_syntax_level`: as the setting; `debug_level`: "DEBUG" verifies
    graphs after each pass.  Errors: ValueError for a value that is none.
    """

    def __init__(
        self,
        jit_level="",
        exc_mode="auto",
        jit_syntax_level="",
        debug_level="RELEASE",
        infer_boost="off",
        **kwargs,
    ):
        for name, value, choices in (
            ("jit_level", jit_level, ("", *LEVELS)),
            ("exc_mode", exc_mode, ("auto", "sink", "no_sink")),
            ("jit_syntax_level", jit_syntax_level, ("", *SYNTAX)),
            ("debug_level", debug_level, ("RELEASE", "DEBUG")),
            ("infer_boost", infer_boost, ("on", "off")),
        ):
            if value not in choices:
                raise errors.one_of(value, choices, subject="JitConfig", what=name)
        if exc_mode != "auto":
            ignored.tell("JitConfig", "exc_mode", exc_mode, "a program runs as one list of kernels anyway")
        if infer_boost != "off":
            ignored.tell("JitConfig", "infer_boost", infer_boost, MISSING["infer_boost"])
        for name, value in kwargs.items():
            ignored.tell("JitConfig", name, value, "there is no such option")
        self.jit_config_dict: dict[str, Any] = {
            **kwargs, "jit_level": jit_level, "exc_mode": exc_mode, "jit_syntax_level": jit_syntax_level,
            "debug_level": debug_level, "infer_boost": infer_boost,
        }  # fmt: skip
        if jit_level in ("O0", "O1"):
            self.jit_config_dict["backend"] = "ms_backend"


def jit_class(cls: type) -> type:
    """Mark a class whose objects compiled functions may make and use; they may use those of any class here.

    Errors: TypeError unless a class, and for a Cell.
    """
    from mycelia.nn.cell import Cell

    if not isinstance(cls, type):
        raise errors.type_error("jit_class", f"a class is expected, but got {cls!r}")
    if issubclass(cls, Cell):
        raise errors.type_error("jit_class", f"{cls.__name__} is a Cell: compile it by jit or GRAPH_MODE")
    cls.__ms_class__ = True
    return cls


def no_inline(fn: Callable | None = None) -> Callable:
    """Mark a function that should stay a graph of its own; graphs of functions are joined here all the
    same."""
    return no_inline if fn is None else fn


def lazy_inline(fn: Callable | None = None, attrs=None, policy=None) -> Callable:
    """Mark the `__init__` of a Cell whose graph is to be made once; equal calls share what was captured
    anyway.

    Errors: ValueError for another function.
    """
    if fn is None:
        return functools.partial(lazy_inline, attrs=attrs, policy=policy)
    if getattr(fn, "__name__", "") != "__init__":
        name = getattr(fn, "__name__", repr(fn))
        raise errors.value_error("lazy_inline", f"it decorates the __init__ of a Cell, but got {name}")
    return fn


def enable_dynamic(**kwargs) -> Callable:
    """A decorator: the named arguments of a compiled function change their sizes from call to call.

    Sizes that were seen to change are compiled as such anyway; the types are checked when the function is
    called.
    Errors: ValueError without a name, TypeError unless Tensors without data; of a call ValueError, TypeError.
    """
    if not kwargs:
        raise errors.value_error("enable_dynamic", "at least one argument must be named")
    for name, type_ in kwargs.items():
        for one in type_ if isinstance(type_, (list, tuple)) else (type_,):
            if not isinstance(one, _C.Tensor):
                raise errors.type_error(
                    "enable_dynamic", f"{name} must be a Tensor, but got {type(one).__name__}"
                )

    def decorate(function: Callable) -> Callable:
        import inspect

        signature = inspect.signature(getattr(function, "__wrapped__", function))
        for name in kwargs:
            if name not in signature.parameters:
                raise errors.one_of(
                    name, list(signature.parameters), subject="enable_dynamic", what="argument"
                )

        @functools.wraps(function)
        def run(*args, **given):
            values = signature.bind(*args, **given).arguments
            for name, type_ in kwargs.items():
                if isinstance(type_, _C.Tensor) and name in values:
                    _check_declared(name, type_, values[name])
            return function(*args, **given)

        return run

    return decorate


def _check_declared(name: str, type_, value) -> None:
    if not isinstance(value, _C.Tensor) or value.dtype is not type_.dtype:
        got = value.dtype if isinstance(value, _C.Tensor) else type(value).__name__
        raise errors.type_error("enable_dynamic", f"{name} must be a Tensor of {type_.dtype}, but is {got}")
    fits = type_.shape == (-2,) or (
        type_.ndim == value.ndim and all(m < 0 or m == n for m, n in zip(type_.shape, value.shape))
    )
    if not fits:
        raise errors.value_error(
            "enable_dynamic",
            f"{name} was declared as {list(type_.shape)}, but its shape is {list(value.shape)}",
        )


class Symbol:
    """What is known about a size that changes: bounds, ``size % divisor == remainder``, equal to others if
    `unique`.

    Errors: TypeError for values of other types, ValueError for such that no size meets.
    """

    @ignored.arguments(kwargs="Symbol has no such option")
    def __init__(self, max=0, min=1, divisor=1, remainder=0, unique=False, **kwargs):
        for name, value in (("max", max), ("min", min), ("divisor", divisor), ("remainder", remainder)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise errors.type_error("Symbol", f"{name} must be an int, but got {type(value).__name__}")
        if not isinstance(unique, bool):
            raise errors.type_error("Symbol", f"unique must be a bool, but got {type(unique).__name__}")
        for name, value in (("min", min), ("divisor", divisor)):
            if value <= 0:
                raise errors.value_error("Symbol", f"{name} must be positive, but got {value}")
        if not 0 <= remainder < divisor:
            raise errors.value_error("Symbol", f"remainder must be in [0, {divisor}), but got {remainder}")
        self.max, self.min, self.divisor, self.remainder, self.unique = max, min, divisor, remainder, unique

    def to_dict(self) -> dict[str, int]:
        """What was said, other than the defaults."""
        found = {"max": self.max} if self.max > self.min else {}
        if self.min > self.divisor:
            found["min"] = self.min
        if self.divisor != 1:
            found["divisor"] = self.divisor
        if self.remainder:
            found["remainder"] = self.remainder
        if self.unique:
            found["id"] = id(self)
        return found

    def __str__(self) -> str:
        return str(self.to_dict())


def set_dump(target, enabled: bool = True) -> None:
    """Mark a Cell, with all that it holds, or a Primitive whose inputs and outputs the data dump writes.

    Errors: ValueError for another target or flag.
    """
    from mycelia.nn.cell import Cell
    from mycelia.ops.primitive import Primitive

    if not isinstance(target, (Cell, Primitive)):
        raise errors.value_error(
            "set_dump", f"target must be a Cell or Primitive, but got {type(target).__name__}"
        )
    if not isinstance(enabled, bool):
        raise errors.value_error("set_dump", f"enabled must be a bool, but got {type(enabled).__name__}")
    if not config.get("dump_config"):
        log.warning("set_dump: no data dump is switched on; see the setting dump_config")
    cells = [cell for _, cell in target.cells_and_names()] if isinstance(target, Cell) else []
    for cell in cells:
        cell.add_flags(dump=enabled)
    for found in [target, *(value for cell in cells for value in vars(cell).values())]:
        if isinstance(found, Primitive):
            found.add_prim_attr("dump", str(enabled).lower())


def ms_memory_recycle() -> None:
    """Free what functions were compiled for that are gone, and give unused memory back to the system."""
    import gc

    gc.collect()
    _C.empty_cache()
