"""Where servables lie, and which of their versions are served.

    DIRECTORY/NAME/servable_config.py
    DIRECTORY/NAME/1/model.mindir      versions are whole numbers; other names in there mean nothing

A version counts as soon as its folder has its name: write it under another one and rename it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

CONFIG_FILE = "servable_config.py"
LARGEST_VERSION = 2**32 - 1
_VERSION = re.compile(r"[1-9][0-9]{0,9}")


def check_name(name: str) -> str:
    """The name of a servable: one component of a path."""
    if not isinstance(name, str) or not name:
        raise RuntimeError("Parameter 'servable_name' should be str and not empty")
    if name in (".", "..") or "\0" in name or "/" in name or os.sep in name or (os.altsep or "/") in name:
        raise RuntimeError(f"The servable name {name!r} should be the name of a folder, not a path")
    return name


def find(directory: str, name: str) -> str:
    """The folder of a servable. Errors: RuntimeError if it, or its config, is not there."""
    check_name(name)
    if not os.path.isdir(directory):
        raise RuntimeError(f"The servable directory {directory} does not exist")
    folder = os.path.join(os.path.abspath(directory), name)
    if not os.path.isdir(folder):
        raise RuntimeError(f"The servable '{name}' does not exist: there is no folder {folder}")
    if not os.path.isfile(os.path.join(folder, CONFIG_FILE)):
        raise RuntimeError(f"The servable '{name}' has no {CONFIG_FILE} in {folder}")
    return folder


def versions(folder: str) -> list[int]:
    """The versions in the folder of a servable, smallest first."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if _VERSION.fullmatch(entry.name) and int(entry.name) <= LARGEST_VERSION and entry.is_dir():
                found.append(int(entry.name))
    return sorted(found)


def choose_version(folder: str, wanted: int, has_models: bool) -> int:
    """The number behind `wanted`, 0 being the newest. A servable without models needs no folder: it is 1.

    Errors: RuntimeError that names version and folder.
    """
    found = versions(folder)
    if wanted in found or (wanted == 0 and found):
        return wanted or found[-1]
    if not has_models and wanted in (0, 1) and not found:
        return 1
    if wanted == 0:
        raise RuntimeError(f"There is no version of the servable in {folder}: make a folder {folder}/1")
    listed = f"there are {', '.join(map(str, found))}" if found else "there is none"
    raise RuntimeError(f"The version {wanted} of the servable is not in {folder}: {listed}")


def model_path(folder: str, version: int, file: str) -> str:
    """The path of a model file, which lies in the folder of its version.

    Errors: RuntimeError if it leads out of there or does not exist.
    """
    home = os.path.join(folder, str(version))
    path = os.path.normpath(os.path.join(home, file))
    if os.path.isabs(file) or not path.startswith(home + os.sep) or "\0" in file:
        raise RuntimeError(f"The model file '{file}' should lie in the folder of its version, {home}")
    if not os.path.isfile(path):
        raise RuntimeError(f"The model file {path} does not exist")
    return path


@dataclass(frozen=True, slots=True)
class VersionPolicy:
    """Which versions are served: the newest `count` (0: all), or those listed."""

    count: int = 1
    listed: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> VersionPolicy:
        """From `latest`, `latest:3`, `all` or `specific:1,3`. Errors: RuntimeError for other texts."""
        kind, colon, rest = text.partition(":")
        if text == "latest":
            return cls()
        if text == "all":
            return cls(count=0)
        if kind == "latest" and _VERSION.fullmatch(rest):
            return cls(count=int(rest))
        numbers = rest.split(",")
        if kind == "specific" and all(_VERSION.fullmatch(n) and int(n) <= LARGEST_VERSION for n in numbers):
            return cls(listed=tuple(sorted({int(n) for n in numbers})))
        raise RuntimeError(
            f"The version policy {text!r} should be latest, latest:N, all or specific:N,M, numbers from 1"
        )

    def choose(self, available: list[int]) -> list[int]:
        """Those of the versions, smallest first, that are to run."""
        if self.listed:
            return [v for v in available if v in self.listed]
        return available[-self.count :]  # 0: all of them

    def __str__(self) -> str:
        if self.listed:
            return "specific:" + ",".join(map(str, self.listed))
        return {0: "all", 1: "latest"}.get(self.count, f"latest:{self.count}")
