"""`import mindspore_serving` and other packages of MindSpore's family: a plugin says what stands for them."""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType

_FAMILY = "mindspore_"


@functools.cache
def _packages() -> dict[str, str]:
    """MindSpore's package -> ours."""
    from mycelia.engine.base import plugins

    return {
        name: own for found in plugins.manager().hook.mycelia_compat_packages() for name, own in found.items()
    }


class ProductFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives modules of products under the names that MindSpore's have, as the same objects."""

    def find_spec(self, fullname: str, path=None, target=None):
        if not fullname.startswith(_FAMILY) or _module(fullname) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec) -> ModuleType:
        module = _module(spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = module.__spec__.loader_state  # it is imported already, under its own name


def _module(fullname: str) -> ModuleType | None:
    """Our module for a path of MindSpore's: one of the same path, or what its parent has under that name."""
    first, _, rest = fullname.partition(".")
    own = _packages().get(first)
    if own is None:
        return None
    module = importlib.import_module(own)
    for name in rest.split(".") if rest else ():
        value = getattr(module, name, None)
        if not isinstance(value, ModuleType):
            try:
                value = importlib.import_module(f"{module.__name__}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{module.__name__}.{name}":
                    raise
                return None
        module = value
    return module


def install() -> None:
    """Let MindSpore's names of products be found in this process."""
    sys.meta_path.insert(0, ProductFinder())


def uninstall() -> None:
    """Take the names away again; modules that were imported under them are forgotten."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, ProductFinder)]
    for name in [n for n in sys.modules if n.startswith(_FAMILY)]:
        del sys.modules[name]
