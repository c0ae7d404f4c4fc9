"""Imports a `servable_config.py` under a private name, so that a servable may be called like any module."""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import sys
import traceback
import types

from mycelia_serving.servable import directory as places
from mycelia_serving.servable.declaration import Declaration, declaring

_numbers = itertools.count(1)


def load_config(directory: str, name: str) -> Declaration:
    """What the config of the servable DIRECTORY/NAME declares. It is imported anew by every call.

    The module is part of a private package whose path is the servable's folder, so `from .labels import x`
    finds DIRECTORY/NAME/labels.py. Errors: RuntimeError that names file, line and cause.
    """
    folder = places.find(directory, name)
    file = os.path.join(folder, places.CONFIG_FILE)
    package = f"_mycelia_servable_{re.sub(r'[^0-9A-Za-z]', '_', name)}_{next(_numbers)}"
    parent = types.ModuleType(package)
    parent.__path__ = [folder]
    module_name = f"{package}.servable_config"
    spec = importlib.util.spec_from_file_location(module_name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[package] = parent
    sys.modules[module_name] = parent.servable_config = module
    declaration = Declaration(name, folder, module=module)
    try:
        with declaring(declaration):
            spec.loader.exec_module(module)
        if not declaration.methods:
            raise RuntimeError("no method is registered: decorate a function with register_method")
    except KeyboardInterrupt:
        unload(declaration)
        raise
    except BaseException as error:  # sys.exit() in a config does not end the server either
        unload(declaration)
        raise RuntimeError(f"The servable '{name}' cannot be imported from {_place(error, file)}") from error
    return declaration


def _place(error: BaseException, file: str) -> str:
    """File, line and cause of an error in a config."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    line = f", line {lines[-1]}" if lines else ""
    cause = str(error) if type(error) is RuntimeError else f"{type(error).__name__}: {error}"
    return f"{file}{line}: {cause}"


def unload(declaration: Declaration) -> None:
    """Forgets the modules of a servable."""
    package = declaration.module.__name__.rpartition(".")[0]
    for name in [n for n in sys.modules if n == package or n.startswith(package + ".")]:
        del sys.modules[name]
