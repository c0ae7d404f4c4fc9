"""Functions that are another function under mint's parameter names: a table of signatures makes them."""

from __future__ import annotations

import re
from collections.abc import Callable

_SIGNATURE = re.compile(r"(\w+)\((.*)\)")
_PARAMETER = re.compile(r"(\*?\w+|\*)\s*(=.*)?")


def faces(table: dict[str, Callable], module: str) -> dict[str, Callable]:
    """The functions of a table ``{"name(input, dim=0, *, dtype=None)": target}`` by name.

    Positional parameters reach the target by their place, keyword-only ones by their name. As for a
    namedtuple the functions are compiled from their text, so that a face costs one plain call and has the
    signature that it shows.
    """
    return {name: function for name, function in (_face(text, f, module) for text, f in table.items())}


def _face(text: str, target: Callable, module: str) -> tuple[str, Callable]:
    name, parameters = _SIGNATURE.fullmatch(text).groups()
    passed, keyword_only = [], False
    for parameter in re.split(r",\s*(?![^(]*\))", parameters):
        own = _PARAMETER.fullmatch(parameter).group(1)
        if own == "*":
            keyword_only = True
            continue
        passed.append(f"{own}={own}" if keyword_only else own)
        keyword_only = keyword_only or own.startswith("*")
    space = {"_target": target, "__name__": module}
    exec(f"def {name}({parameters}):\n    return _target({', '.join(passed)})", space)
    function = space[name]
    function.__module__ = module
    function.__doc__ = _doc(target)
    return name, function


def _doc(target: Callable) -> str:
    definition = getattr(target, "definition", None)
    described = definition.doc if definition is not None else target.__doc__ or ""
    name = definition.name if definition is not None else target.__name__
    first = described.strip().split("\n")[0]
    return f"{first}\n\nSource: `{name}` of mycelia.ops under other parameter names."
