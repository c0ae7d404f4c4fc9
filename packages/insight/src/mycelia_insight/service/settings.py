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


_LARGEST = 2**31 - 1
_METHODS = {"GET", "POST", "PUT", "DELETE"}
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
#: What is read, so that configurations of MindInsight serve, and changes nothing here.
WITHOUT_EFFECT = (
    "offline_debugger_mem_limit",
    "max_graph_node_size", "max_processes_count", "max_tag_size_per_events_data", "max_tensor_tag_size",
    "default_step_sizes_per_tag", "max_graph_tag_size", "enable_recommended_watchpoints",
)  # fmt: skip


class SettingError(ValueError):
    """A value that is out of range; the message names where it came from."""


@dataclass(frozen=True)
class Settings:
    """Settings of one service.

    workspace: folder of logs and columns. port: 1..65535. url_path_prefix: "" or "/a/b". reload_interval:
    seconds between two looks for new runs, 0..max_reload_interval, 0 for one look. summary_base_dir: folder
    of runs. host: the address that is listened at. token: what a request must bring, "" for none.
    allow_delete: whether runs may be deleted from the pages. enable_debugger: whether trainings may connect
    to be debugged, at debugger_port of the same address, with the same token.

    Without an option: enable_cors, if pages of other sites may ask; api_prefix of MindInsight's interface,
    whose answers max_*_step_size_per_tag bound, 0 for all steps; support_request_methods; log_level.
    """

    workspace: str = ""
    port: int = 8080
    url_path_prefix: str = ""
    reload_interval: int = 3
    summary_base_dir: str = ""
    host: str = "127.0.0.1"
    token: str = ""
    allow_delete: bool = False
    enable_debugger: bool = False
    debugger_port: int = 50051
    offline_debugger_mem_limit: int = 16384  # MB
    max_offline_debugger_session_num: int = 2
    max_graph_node_size: int = 100_000
    max_reload_interval: int = 300
    enable_cors: bool = False
    api_prefix: str = "/v1/mindinsight"
    support_request_methods: str = "DELETE,GET,POST,PUT"
    log_level: str = "INFO"
    max_scalar_step_size_per_tag: int = 0
    max_image_step_size_per_tag: int = 0
    max_histogram_step_size_per_tag: int = 0
    max_tensor_step_size_per_tag: int = 0
    max_tensor_response_data_size: int = 100_000
    max_processes_count: int = 1
    max_tag_size_per_events_data: int = 0
    default_step_sizes_per_tag: int = 0
    max_tensor_tag_size: int = 0
    max_graph_tag_size: int = 0
    enable_recommended_watchpoints: bool = True

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


def _api_prefix(name: str, value: Any) -> str:
    found = _prefix(name, value)
    if not found:
        raise SettingError(f"{name} should not be empty")
    return found


def _folder(_name: str, value: Any) -> str:
    return os.path.abspath(os.path.expanduser(str(value)))


def _text(_name: str, value: Any) -> str:
    return str(value)


def _truth(name: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0"):
        raise SettingError(f"{name} should be true, false, 1 or 0, got {str(value)[:80]!r}")
    return text in ("true", "1")


def _methods(name: str, value: Any) -> str:
    given = value.split(",") if isinstance(value, str) else value
    try:
        found = {str(one).strip().upper() for one in given}
    except TypeError:
        found = set()
    if not found or not found <= _METHODS:
        raise SettingError(f"{name} should be some of {', '.join(sorted(_METHODS))}, got {str(value)[:80]!r}")
    return ",".join(sorted(found))


def _level(name: str, value: Any) -> str:
    if str(value).upper() not in _LEVELS:
        raise SettingError(f"{name} should be one of {', '.join(_LEVELS)}, got {str(value)[:80]!r}")
    return str(value).upper()


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "workspace": _folder,
    "port": _whole(1, 65535),
    "url_path_prefix": _prefix,
    "summary_base_dir": _folder,
    "host": _text,
    "token": _text,
    "allow_delete": _truth,
    "enable_debugger": _truth,
    "debugger_port": _whole(1, 65535),
    "offline_debugger_mem_limit": _whole(512, _LARGEST),
    "max_offline_debugger_session_num": _whole(1, 8),
    "max_graph_node_size": _whole(1, 2_000_000),
    "enable_cors": _truth,
    "api_prefix": _api_prefix,
    "support_request_methods": _methods,
    "log_level": _level,
    "max_processes_count": _whole(1, _LARGEST),
    "enable_recommended_watchpoints": _truth,
    "max_tensor_response_data_size": _whole(1, _LARGEST),
}


def of(given: Mapping[str, Any], config: str = "", environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from options that were given (None: not given), the environment, and a configuration.

    Errors: SettingError names the option, the variable or the key.
    """
    found: dict[str, Any] = {"workspace": _folder("", "~/mycelia-insight"), "summary_base_dir": os.getcwd()}
    configured = _configuration(config) if config else {}
    came_from: dict[str, str] = {}
    for field in sorted(fields(Settings), key=lambda field: field.name == "reload_interval"):
        name, upper = field.name, field.name.upper()
        places = [
            (f"--{name.replace('_', '-')}", given.get(name)),
            *((key, environ.get(key)) for key in (f"MYCELIA_INSIGHT_{upper}", f"MINDINSIGHT_{upper}")),
            (f"{upper} of {config}", configured.get(upper)),
        ]
        read = _READERS.get(name, _whole(0, _LARGEST))
        if name == "reload_interval":  # the last one: another setting is its bound
            read = _whole(0, found.get("max_reload_interval", Settings.max_reload_interval))
        for place, value in places:
            if value is not None:
                found[name], came_from[name] = read(place, value), place
                break
    settings = Settings(**found)
    if "debugger_port" in came_from and settings.debugger_port == settings.port:
        raise SettingError(
            f"{came_from['debugger_port']} should differ from the service's port {settings.port}"
        )
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
