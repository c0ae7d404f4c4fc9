"""The primitives: ops as classes, `ops.ReduceMean(keep_dims=True)(x)`. Thin faces of the functions in `ops`.

An op's block names the class that does nothing but call it: `@op(primitive="Mish")`. A family of others is a
module here. A class without constants that calls a function is a line in a table of its module::

    table(ops, {"Trace": "trace"})

One with constants is a function: the inputs of a call, then, keyword-only, what is given at construction,
each with its check from `operations.checks` as annotation::

    @primitive
    def ReduceMean(x, axis=(), *, keep_dims: boolean = False):
        \"\"\"Mean over `axis`.\"\"\"
        return ops.mean(x, axis, keep_dims)

The class, its signature, attributes, printed form and errors follow. `primitive(shows={"mode": f})` prints a
constant as ``f(value)``; `extra` adds attributes; a class with state of its own is written out and decorated
with `register`; `renamed({"TensorAdd": "Add"})` gives old names. Modules whose names end in _ops are found,
and there is no `__all__` to keep: the registry knows all classes.
"""

from __future__ import annotations

import importlib
import pkgutil

from mycelia.ops import primitive
from mycelia.ops.primitive import *
from mycelia.ops.primitives.define import derive, registry

_MODULES = tuple(
    found.name
    for found in pkgutil.iter_modules(__path__)  # noqa: F405  (the package's own)
    if found.name.endswith("_ops")
)
_ELSEWHERE = {"TCPStore": "mycelia.faces.mint.distributed.store"}  # classes that lie above the ops


def _load() -> None:
    """Derive the classes that ops name, import all families, let each of them find the classes of others."""
    derive()
    modules = [importlib.import_module(f"{__name__}.{name}") for name in _MODULES]
    globals().update(registry)
    for module in modules:
        module.__getattr__ = __getattr__


def __getattr__(name: str):
    if name in registry:
        return registry[name]
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(_ELSEWHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_load()
__all__ = sorted({*registry, *primitive.__all__, *_ELSEWHERE})
