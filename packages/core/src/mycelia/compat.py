"""`import mindspore` means mycelia: for scripts run by `mycelia run`, never active otherwise.

`mindspore`, `mindspore.nn`, `mindspore.common.dtype`, ... resolve to the mycelia module of the same path, as
the same object.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType

_FOREIGN, _OWN = "mindspore", "mycelia"


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path=None, target=None):
        if fullname != _FOREIGN and not fullname.startswith(_FOREIGN + "."):
            return None
        own = _OWN + fullname[len(_FOREIGN) :]
        if own not in sys.modules and importlib.util.find_spec(own) is None:
            return None  # an ordinary ModuleNotFoundError names the module that the script asked for
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec) -> ModuleType:
        module = importlib.import_module(_OWN + spec.name[len(_FOREIGN) :])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just put the alias' spec on a module that has its own: give it back.
        alias, module.__spec__ = module.__spec__, module.__spec__.loader_state
        assert alias is not module.__spec__


def install() -> None:
    """Let `mindspore` stand for `mycelia` in this process."""
    if not any(isinstance(finder, _Alias) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Alias())


def uninstall() -> None:
    """Take the alias away again; modules that were imported under it are forgotten."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Alias)]
    for name in [n for n in sys.modules if n == _FOREIGN or n.startswith(_FOREIGN + ".")]:
        del sys.modules[name]
