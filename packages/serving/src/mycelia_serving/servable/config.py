"""Imports a `servable_config.py` under a private name, so that a servable may be called like any module."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import itertools
import os
import re
import sys
import threading
import traceback
import types

from mycelia_serving.servable import directory as places
from mycelia_serving.servable.declaration import Declaration, declaring

CONFIG_S = 60.0  # how long the import of a config may take

_numbers = itertools.count(1)


def load_config(directory: str, name: str, timeout_s: float = CONFIG_S) -> Declaration:
    """What the config of the servable DIRECTORY/NAME declares. It is imported anew by every call.

    The module is part of a private package whose path is the servable's folder, so `from .labels import x`
    finds DIRECTORY/NAME/labels.py. Errors: RuntimeError that names file, line and cause, also if the import
    has not ended after `timeout_s`.
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

    def run() -> None:
        with declaring(declaration):
            spec.loader.exec_module(module)

    try:
        _within(timeout_s, run, folder)
        if not declaration.methods:
            raise RuntimeError("no method is registered: decorate a function with register_method")
    except KeyboardInterrupt:
        unload(declaration)
        raise
    except BaseException as error:  # sys.exit() in a config does not end the server either
        unload(declaration)
        raise RuntimeError(f"The servable '{name}' cannot be imported from {_place(error, file)}") from error
    return declaration


class _TooLate(BaseException):
    """Ends the Python code of an import that nobody waits for any more."""


def _within(timeout_s: float, run, folder: str) -> None:
    """Call `run` in a thread of its own, so that one which never returns holds up nobody.

    Errors: those of `run`; RuntimeError that says where it is when the time is over.
    """
    raised: list[BaseException] = []

    def work() -> None:
        try:
            run()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, name="serving-config", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        where = _position(thread, folder)
        with contextlib.suppress(AttributeError):  # another interpreter than CPython: it stays as it is
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(_TooLate)
            )
        raise RuntimeError(f"the import has not ended after {timeout_s:g} s{where}")
    if raised:
        raise raised[0]


def _position(thread: threading.Thread, folder: str) -> str:
    """Which line of the servable's files a thread is at."""
    stack = traceback.extract_stack(sys._current_frames().get(thread.ident))
    for frame in reversed(stack):
        if frame.filename.startswith(folder + os.sep):
            return f", it is at {frame.filename}, line {frame.lineno}: {frame.line}"
    return ""


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
