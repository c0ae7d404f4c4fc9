"""What is accepted although nothing follows it: a warning says once what does not happen.

Imports logging only when there is something to tell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

_VARARGS, _VARKEYWORDS = 4, 8  # flags of code objects with *args, with **keywords

_told: set[tuple[str, str]] = set()


def tell(subject: str, name: str, value: object, missing: str) -> None:
    """Warn, once in a process for each `name`, that `subject` was given a value that nothing follows.

    `missing` tells what does not happen, as a sentence without its end.
    """
    if (subject, name) in _told:
        return
    _told.add((subject, name))
    from mycelia.engine.base import log

    text = repr(value)
    text = text if len(text) < 80 else text[:80] + "..."
    log.warning("%s: %s=%s has no effect: %s", subject, name, text, missing)


def arguments(**missing: str) -> Callable[[Callable], Callable]:
    """A decorator: `tell` of each named argument that is given a value other than its default.

    `missing` has what does not happen for each. The name of a ``**keywords`` parameter stands for all
    keywords that the function does not name.
    """

    def decorate(function: Callable) -> Callable:
        code = function.__code__
        positional = code.co_varnames[: code.co_argcount]
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        rest = code.co_varnames[len(named) :][
            : bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
        ]
        if unknown := missing.keys() - {*named, *rest[-1:]}:
            raise TypeError(f"{function.__qualname__} has no arguments {sorted(unknown)}")
        defaults = dict(zip(reversed(positional), reversed(function.__defaults__ or ())))
        defaults.update(function.__kwdefaults__ or {})
        subject = function.__qualname__.removesuffix(".__init__")
        places = {name: place for place, name in enumerate(positional)}
        rules = [
            (name, places.get(name, len(places)), defaults.get(name), text)
            for name, text in missing.items()
            if name in named
        ]
        others = next((text for name, text in missing.items() if name not in named), None)

        @functools.wraps(function)
        def told(*args, **kwargs):
            for name, place, default, text in rules:
                value = args[place] if place < len(args) else kwargs.get(name, default)
                if value is not default and not _equal(value, default):
                    tell(subject, name, value, text)
            if others is not None:
                for name in kwargs.keys() - set(named):
                    tell(subject, name, kwargs[name], others)
            return function(*args, **kwargs)

        told.ignored = missing
        return told

    return decorate


def _equal(value: object, default: object) -> bool:
    return type(value) is type(default) and bool(value == default)
