"""`mindspore.common.file_system`: how checkpoints are opened, where scripts ask for it."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class FileSystem:
    """What opens files: ``fs.create(path, *fs.create_args)`` to add to one, `open` to read it."""

    create: Callable = builtins.open
    create_args: tuple = ("ab",)
    open: Callable = builtins.open
    open_args: tuple = ("rb",)


def _register_basic_file_system(fs: FileSystem) -> bool:
    """Let `fs` open files of the machine, which it does anyway; whether that worked."""
    fs.create, fs.create_args, fs.open, fs.open_args = builtins.open, ("ab",), builtins.open, ("rb",)
    return True


def _register_mindio_file_system(fs: FileSystem) -> bool:
    """False: MindIO, a file system of Ascend clusters, is not here."""
    return False
