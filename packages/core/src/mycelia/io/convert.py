"""Checkpoints from one file format to the other."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from mycelia.engine.base import ignored
from mycelia.io import ckpt, safetensors
from mycelia.io.checkpoint import read_entries
from mycelia.io.files import atomic_write


@ignored.arguments(processes_num="one process reads and writes")
def ckpt_to_safetensors(file_path, save_path=None, name_map=None, file_name_regex=None, processes_num=1):
    """Writes .ckpt files as .safetensors files of the same names.

    file_path: a file, or a directory that is searched with its sub-directories. save_path: where the results
    go (default: beside the originals). name_map: parameter name -> new name. file_name_regex: which file
    names are taken. `processes_num` has no effect, as a warning says: one process reads and writes.
    Errors: ValueError for a path that does not exist or a file that is no checkpoint, damaged,
    encrypted, or holds texts.
    """
    for source, target in _files(file_path, save_path, file_name_regex, ".ckpt", ".safetensors"):
        entries = read_entries(source)
        texts = [name for name, value in entries.items() if isinstance(value, str)]
        if texts:
            raise ValueError(f"safetensors files cannot hold the texts of {source}: {', '.join(texts)}")
        with atomic_write(target, 0o400) as file:
            safetensors.write(file, _renamed(entries, name_map))


@ignored.arguments(processes_num="one process reads and writes")
def safetensors_to_ckpt(file_path, save_path=None, name_map=None, file_name_regex=None, processes_num=1):
    """Writes .safetensors files as .ckpt files of the same names; the arguments are those of
    `ckpt_to_safetensors`.
    """
    for source, target in _files(file_path, save_path, file_name_regex, ".safetensors", ".ckpt"):
        entries = read_entries(source, "safetensors")
        with atomic_write(target, 0o400) as file:
            ckpt.write(file, _renamed(entries, name_map).items())


def _renamed(entries: dict, name_map: dict[str, str] | None) -> dict:
    renamed = {(name_map or {}).get(name, name): value for name, value in entries.items()}
    if len(renamed) != len(entries):
        raise ValueError("name_map gives two parameters the same name")
    return renamed


def _files(
    path: str, save_path: str | None, regex: str | None, old: str, new: str
) -> Iterator[tuple[str, str]]:
    """(source, target) pairs; the directories of the targets exist."""
    if not os.path.exists(path):
        raise ValueError(f"'file_path' does not exist: {path}")
    if os.path.isfile(path):
        if not path.endswith(old):
            raise ValueError(f"'file_path' must be a directory or end with '{old}', but got {path}")
        root, sources = os.path.dirname(path), [path]
    else:
        root = path
        found = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        sources = sorted(f for f in found if f.endswith(old))
    if save_path is not None and os.path.exists(save_path) and not os.path.isdir(save_path):
        raise ValueError(f"'save_path' must be a directory, but got {save_path}")
    for source in sources:
        if regex is not None and not re.search(regex, os.path.basename(source)):
            continue
        target = os.path.join(save_path or root, os.path.relpath(source, root or "."))
        os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
        yield source, target.removesuffix(old) + new
