"""Text made of tensors: f-strings, `%`, `str.format` and `str()` inside captured code.

The value of a traced tensor shows only when the graph runs. Text that has one in it is therefore kept as a
recipe, which a printed line carries out; whatever else asks for its characters makes the function run as
Python.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mycelia.engine.base import errors
from mycelia.engine.capture.trace import UnknownValue, active, is_traced
from mycelia.engine.ir.sizes import is_open
from mycelia.engine.tensors.tensor import Tensor


class Slot:
    """Stands in a recipe for the tensor of that number."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Recipe:
    """How a text is made of the tensors that a node takes."""

    __slots__ = ("how", "arguments")

    def __init__(self, how: str, arguments: Any) -> None:
        self.how, self.arguments = how, arguments

    def shown(self, tensors: Sequence[Tensor]) -> str:
        """The text for these values."""

        def value(leaf: Any) -> Any:
            if isinstance(leaf, Recipe):
                return leaf.shown(tensors)
            return tensors[leaf.index] if isinstance(leaf, Slot) else leaf

        return _MAKE[self.how](*_mapped(self.arguments, value))


class Text:
    """A text that is made when the values of its tensors are known."""

    __slots__ = ("how", "arguments")

    def __init__(self, how: str, arguments: Any) -> None:
        self.how, self.arguments = how, arguments

    def bound(self, tensors: list[Tensor]) -> Recipe:
        """How it is made, with a Slot for each tensor, which goes to `tensors`."""

        def slot(leaf: Any) -> Any:
            if isinstance(leaf, Text):
                return leaf.bound(tensors)
            if not isinstance(leaf, Tensor):
                return leaf
            tensors.append(leaf)
            return Slot(len(tensors) - 1)

        return Recipe(self.how, _mapped(self.arguments, slot))

    def _unknown(self, *_: Any) -> NoReturn:
        raise errors.error(
            UnknownValue, "jit", "a text that shows a tensor is needed, but the tensor is known only when "
            "the graph runs", hint="print it, or show shape and dtype instead",
        )  # fmt: skip

    __str__ = __format__ = __len__ = __iter__ = __getitem__ = __contains__ = __add__ = __radd__ = __mul__ = (
        _unknown  # type: ignore[assignment]
    )
    __eq__ = __ne__ = __hash__ = __bool__ = _unknown  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._unknown()

    def __repr__(self) -> str:
        return f"<text that shows a tensor, by {self.how}>"


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) in (tuple, list):
        return type(value)([_mapped(v, change) for v in value])
    if type(value) is dict:
        return {k: _mapped(v, change) for k, v in value.items()}
    return change(value)


def is_unknown(value: Any) -> bool:
    """Whether a text made of `value` shows a traced tensor."""
    if type(value) in (tuple, list):
        return any(map(is_unknown, value))
    if type(value) is dict:
        return any(map(is_unknown, value.values()))
    return type(value) is Text or is_traced(value)


def tell_now(value: Any) -> None:
    """UnknownValue if `value` has a text or tensor that shows only when the graph runs."""
    if is_unknown(value):
        Text("str", ())._unknown()


def _join(*parts: Any) -> str:
    return "".join(p if isinstance(p, str) else _field(*p) for p in parts)


_CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def _field(value: Any, conversion: int, specification: str) -> str:
    convert = _CONVERSIONS.get(conversion)
    return format(value if convert is None else convert(value), specification)


def _format(template: str, positional: tuple, named: dict) -> str:
    return template.format(*positional, **named)


def _percent(template: str, values: Any) -> str:
    return template % values


_MAKE: dict[str, Callable[..., str]] = {"join": _join, "format": _format, "percent": _percent, "str": str}


def _with_numbers(value: Any) -> Any:
    """`value` with numbers of the graph in the place of sizes that are left open."""
    trace = active()
    return trace.sizes.number(value, trace) if trace is not None and is_open(value) else value


def _made(how: str, *arguments: Any) -> Any:
    arguments = _mapped(arguments, _with_numbers)
    if active() is not None and is_unknown(arguments):
        return Text(how, arguments)
    return _MAKE[how](*arguments)


def joined(*parts: Any) -> Any:
    """An f-string: texts, and fields as (value, conversion, specification)."""
    return _made("join", *parts)


def percent(template: str, values: Any) -> Any:
    """`template % values`."""
    return _made("percent", template, values)


def formatted(template: str) -> Callable[..., Any]:
    """`template.format`."""
    return lambda *positional, **named: _made("format", template, positional, named)


def text(*arguments: Any, **named: Any) -> Any:
    """`str(...)`."""
    return str(*arguments, **named) if named or len(arguments) != 1 else _made("str", *arguments)


def print_(*values: Any, **settings: Any) -> None:
    """`print(...)`: when the graph runs, in the form in which graphs print."""
    from mycelia.engine.ops.control_flow import debug, observe

    if active() is None:
        builtins.print(*values, **settings)
        return
    if not settings and not any(type(v).__module__ == "numpy" for v in values):
        debug.print_values(*_mapped(values, _with_numbers))
        return
    tensors: list[Tensor] = []
    pieces: list[Any] = []
    for value in _mapped(values, _with_numbers):
        if is_traced(value):
            pieces.append(len(tensors))
            tensors.append(value)
        else:
            pieces.append(Text("str", (value,)).bound(tensors) if is_unknown(value) else str(value))
    observe._print(tensors, tuple(pieces), tuple(settings.items()))
