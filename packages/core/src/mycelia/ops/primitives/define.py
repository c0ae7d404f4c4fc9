"""How the classes of `mycelia.ops.primitives` are made: a function each, or a line in a table."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.ops.define import registry as ops_by_name
from mycelia.ops.primitive import Primitive, registry
from mycelia.ops.primitives.checks import Misfit, anything

absent: dict[str, str] = {}  # lines of tables whose function does not exist


def _known(value: Any) -> Any:
    """A constant as a Python value, where a graph has it as a number that changes from call to call."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_known, value)) if type(value) in (tuple, list) else value
    if not isinstance(value, _C.Tensor) or value.traced is None or value.ndim:
        return value
    kind = value.dtype
    return bool(value) if kind.is_bool else operator.index(value) if kind.is_integer else float(value)


class Operation(Primitive):
    """A primitive made by `primitive`: the constants are checked once, the function gets them by name."""

    arity: int | None = None
    _body: Callable
    _constants: inspect.Signature
    _checks: dict[str, Callable]
    _shown: dict[str, Callable]
    _extra: dict[str, Any]
    _check_all: Callable | None = None
    _make_state: Callable | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        kind = type(self)
        Primitive.__init__(self, kind.__name__)
        self.__dict__["constants"] = constants = {}
        if args or kwargs or kind._checks:
            given = kind._constants.bind(*args, **kwargs)
            given.apply_defaults()
            self.init_attrs = dict(given.arguments)
            for name, check in kind._checks.items():
                value = given.arguments[name]
                value = _known(value) if _C.mode() else value
                try:
                    constants[name] = check(value)
                except Misfit as misfit:
                    got = value if misfit.kind is ValueError else f"{value!r} of type {type(value).__name__}"
                    raise errors.error(
                        errors.MyceliaValueError if misfit.kind is ValueError else errors.MyceliaTypeError,
                        kind.__name__,
                        f"the argument '{name}' must be {misfit}, but got {got}",
                    ) from None
            if kind._check_all is not None:
                kind._check_all(constants)
            for name, value in constants.items():
                shown = kind._shown[name](value) if name in kind._shown else value
                self.__dict__[name] = self.attrs[name] = shown
            if kind._make_state is not None:
                constants["state"] = kind._make_state(constants)
        else:
            self.init_attrs = {}
        for name, value in kind._extra.items():
            self.add_prim_attr(name, value)

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        if name in self.constants:
            self.constants[name] = value
        return Primitive.add_prim_attr(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return type(self)._body(*args, **kwargs, **self.constants)


def primitive(
    function: Callable | None = None, *, name: str | None = None, shows: dict[str, Callable] | None = None,
    extra: dict[str, Any] | None = None, check: Callable | None = None, state: Callable | None = None,
) -> Any:  # fmt: skip
    """Make a primitive class of a function.

    Positional parameters are the inputs of a call; keyword-only parameters are the constants given at
    construction, in the order in which the class takes them; the annotation of one is its check
    (`operations.checks`). `shows`: how constants are printed where that is not their value; `extra`: further
    attributes; `check`: gets all constants as a dict, for what holds between them, and may change them;
    `state`: makes from them what an object keeps for its calls: they get it as the keyword `state`.
    """
    if function is None:
        settings = dict(name=name, shows=shows, extra=extra, check=check, state=state)
        return lambda function: primitive(function, **settings)
    called = name or function.__name__
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    inputs = [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    constants = [p for p in parameters if p.kind is p.KEYWORD_ONLY and not (state and p.name == "state")]
    listed = any(p.kind is p.VAR_POSITIONAL for p in inputs)
    signature = inspect.Signature(
        [p.replace(kind=p.POSITIONAL_OR_KEYWORD, annotation=p.empty) for p in constants]
    )
    members = {
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__signature__": signature,
        "arity": None if listed else len(inputs),
        "_body": staticmethod(function),
        "_constants": signature,
        "_checks": {p.name: anything if p.annotation is p.empty else p.annotation for p in constants},
        "_shown": shows or {},
        "_extra": extra or {},
        "_check_all": staticmethod(check) if check else None,
        "_make_state": staticmethod(state) if state else None,
    }
    if not constants:
        members["__call__"] = staticmethod(function)
    return register(type(called, (Operation,), members))


def derive() -> None:
    """Make the classes that blocks of ops name: those without constants that call the op."""
    for op in list(ops_by_name.values()):
        if op.definition.primitive:
            _without_constants(op.definition.primitive, op, {})


def table(source: Any, names: dict[str, str], *, extra: dict[str, Any] | None = None) -> None:
    """Make a class for each `{"ClassName": "function"}`: one without constants that calls that function.

    `source` is the module, or the namespace, that has the functions.
    """
    for called, function in names.items():
        found = getattr(source, function, None)
        if found is None:
            absent[called] = function
            continue
        _without_constants(called, found, extra or {})


def _without_constants(name: str, function: Callable, extra: dict[str, Any]) -> None:
    members = {
        "__doc__": (getattr(function, "__doc__", None) or "").strip().partition("\n")[0],
        "__module__": __name__, "__signature__": inspect.Signature(), "arity": None,
        "_body": staticmethod(function), "_constants": inspect.Signature(), "_checks": {}, "_shown": {},
        "_extra": extra, "__call__": staticmethod(function),
    }  # fmt: skip
    register(type(name, (Operation,), members))


def register(kind: type[Primitive]) -> type[Primitive]:
    """Make a class of primitives known by its name; also a decorator of classes that are written out."""
    if registry.setdefault(kind.__name__, kind) is not kind:
        raise ValueError(f"the primitive {kind.__name__} is defined twice")
    return kind


def renamed(names: dict[str, str]) -> None:
    """Names of older versions: `{"TensorAdd": "Add"}`."""
    for old, new in names.items():
        registry[old] = registry[new]
