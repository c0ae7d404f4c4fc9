"""Mycelia: tensors, gradients, graphs and training, as MindSpore users know them.

`import mycelia as ms` loads next to nothing: each public name is imported when it is first used (PEP 562).
"""

from __future__ import annotations

import sys
from types import ModuleType

from mycelia import public_names as _names

GRAPH_MODE = 0
PYNATIVE_MODE = 1

_TABLE: dict[str, str] = {name: module for module, listed in _names.NAMES.items() for name in listed.split()}

__all__ = ["GRAPH_MODE", "PYNATIVE_MODE", *_TABLE, *_names.ATTRIBUTES]


def __getattr__(name: str):
    from importlib import import_module

    if name in _TABLE:
        value = getattr(import_module(f"{__name__}.{_TABLE[name]}"), name)
    elif name in _names.ATTRIBUTES or name in _names.MODULES:
        value = import_module(f"{__name__}.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("mycelia-core")
    elif name.startswith("__"):
        raise _no_attribute(name)
    else:
        return _names.beyond("", name, _no_attribute(name))
    globals()[name] = value  # found directly from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _no_attribute(name: str) -> AttributeError:
    import difflib

    near = difflib.get_close_matches(name, __all__, n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near and not name.startswith("_") else ""
    return AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name, obj=None)


class _Package(ModuleType):
    """The package, of which a name stays the function even when a file is called so: `ms.tensor`."""

    def __setattr__(self, name: str, value) -> None:
        if name in _TABLE and isinstance(value, ModuleType):
            return  # the import system hangs each sub-module into its package
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
_names.install()
