"""Which code gives the same results in every process and counts by its version: ours, Python's, NumPy's."""

from __future__ import annotations

import functools
import os
import types
from typing import Any

import numpy as np

from mycelia.engine.base import errors


class NotKept(Exception):
    """Why a function has no place in the cache on disk."""


# Modules whose functions give the same results in every process; their own code counts by version.
PURE = frozenset(
    ("mycelia", "mindspore", "numpy", "builtins", "math", "cmath", "operator", "functools", "itertools")
    + ("typing", "collections", "abc", "dataclasses", "enum", "types", "numbers", "copy", "__future__")
)
IMPURE_NUMPY = frozenset(
    ("random", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "open_memmap", "empty", "empty_like")
)
IMPURE_BUILTINS = frozenset(
    (
        "open",
        "input",
        "eval",
        "exec",
        "compile",
        "globals",
        "locals",
        "vars",
        "id",
        "__import__",
        "breakpoint",
    )
    + ("hash",)
)


def is_pure(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in PURE


def is_ours(function: types.FunctionType) -> bool:
    """True for a function of Mycelia, NumPy or a pure module of Python, which counts by its version."""
    file = function.__code__.co_filename
    if file.startswith(errors.PACKAGE_ROOT):
        return True
    module = function.__module__ or ""
    return is_pure(module) and module.partition(".")[0] != "mycelia" and file.startswith(_trusted())


@functools.cache
def _trusted() -> tuple[str, ...]:
    return (os.path.dirname(os.__file__) + os.sep, os.path.dirname(np.__file__) + os.sep, "<frozen")


def is_of_module(value: types.BuiltinFunctionType) -> bool:
    return value.__self__ is None or isinstance(value.__self__, types.ModuleType)
