"""Settings of the service: from the command line, else the environment, else a configuration."""

from __future__ import annotations

import importlib
import ipaddress
import json
import os
import re
import runpy
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

_SEGMENT = re.compile(r"[A-Za-z0-9_.-]+")


class SettingError(ValueError):
    """A value that is out of range; the message names where it came from."""


@dataclass(frozen=True)
class Settings:
    """Settings of one service.

    workspace: folder of logs and columns. port: 1..65535. url_path_prefix: "" or "/a/b". reload_interval:
    0..300 seconds between two looks for new runs, 0 for one look. summary_base_dir: the folder of runs.
    host: the address that is listened at. token: what a request must bring, "" for none.
    """

    workspace: str = ""
    port: int = 8080
    url_path_prefix: str = ""
    reload_interval: int = 3
    summary_base_dir: str = ""
    host: str = "127.0.0.1"
    token: str = ""

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self.url_path_prefix}"


def _whole(low: int, high: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        try:
            number = int(str(value))
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise SettingError(f"{name} should be chosen from {low} to {high}")
        return number

    return read


def _prefix(name: str, value: Any) -> str:
    parts = [part for part in str(value).split("/") if part]
    if any(not _SEGMENT.fullmatch(part) or part in (".", "..") for part in parts):
        raise SettingError(
            f"{name} should be segments of letters, digits, '_', '.', '-' with '/' between, not '.' or '..'"
        )
    return "".join(f"/{part}" for part in parts)


def _folder(_name: str, value: Any) -> str:
    return os.path.abspath(os.path.expanduser(str(value)))


def _text(_name: str, value: Any) -> str:
    return str(value)


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "workspace": _folder,
    "port": _whole(1, 65535),
    "url_path_prefix": _prefix,
    "reload_interval": _whole(0, 300),
    "summary_base_dir": _folder,
    "host": _text,
    "token": _text,
}


def of(given: Mapping[str, Any], config: str = "", environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from options that were given (None: not given), the environment, and a configuration.

    Errors: SettingError names the option, the variable or the key.
    """
    found: dict[str, Any] = {"workspace": _folder("", "~/mycelia-insight"), "summary_base_dir": os.getcwd()}
    configured = _configuration(config) if config else {}
    for field in fields(Settings):
        name, upper = field.name, field.name.upper()
        places = [
            (f"--{name.replace('_', '-')}", given.get(name)),
            *((key, environ.get(key)) for key in (f"MYCELIA_INSIGHT_{upper}", f"MINDINSIGHT_{upper}")),
            (f"{upper} of {config}", configured.get(upper)),
        ]
        for place, value in places:
            if value is not None:
                found[name] = _READERS[name](place, value)
                break
    settings = Settings(**found)
    if not is_loopback(settings.host) and not settings.token:
        raise SettingError(f"--host {settings.host} can be reached by others: give a --token, too")
    return settings


def is_loopback(host: str) -> bool:
    """Whether only the own machine is reached under this name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _configuration(text: str) -> Mapping[str, Any]:
    """Upper-case names of `file:/path.py`, `.toml` or `.json`, or `python:package.module`."""
    kind, _, place = text.partition(":")
    try:
        if kind == "python":
            return vars(importlib.import_module(place))
        if kind == "file" and place.endswith(".py"):
            return runpy.run_path(place)
        if kind == "file" and place.endswith(".toml"):
            return tomllib.loads(Path(place).read_text())
        if kind == "file" and place.endswith(".json"):
            return json.loads(Path(place).read_text())
    except (OSError, ImportError, ValueError) as error:
        raise SettingError(f"--config {text}: {error}") from error
    raise SettingError(
        f"--config should be file:/path.py, .toml or .json, or python:package.module, not {text}"
    )
