"""What a process runs in, for records and bundles: versions, machine, settings, variables without secrets."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from importlib import metadata
from typing import Any

from mycelia.engine.base import config

_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth|cookie|session")
HIDDEN = "(not shown)"
_SHORTEST = 6  # characters of a value that is taken out of texts
_OURS = ("MYCELIA_", "MINDSPORE_", "MS_", "GLOG_", "RANK_", "OMP_", "PYTHON", "CUDA_", "VLOG_")


def secrets() -> list[str]:
    """Values of environment variables whose names tell of a secret; short ones could be any word."""
    found = {v for name, v in os.environ.items() if _SECRET.search(name) and len(v) >= _SHORTEST}
    return sorted(found, key=len, reverse=True)


def shown(key: str, value: Any) -> str:
    """The value of a setting for people to read and pass on."""
    return HIDDEN if _SECRET.search(key) and value else repr(value)


def environment() -> dict[str, Any]:
    """Versions, machine, command line, settings in force and environment variables; secrets are not shown."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": [_SECRET_VALUE.sub(rf"\1{HIDDEN}", word) for word in sys.argv],
        "folder": os.getcwd(),
        "process": os.getpid(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": _packages(),
        "settings": {key: shown(key, config.get(key)) for key in config.SETTINGS},
        "variables": {
            name: HIDDEN if _SECRET.search(name) else value
            for name, value in sorted(os.environ.items())
            if name.startswith(_OURS)
        },
    }


_SECRET_VALUE = re.compile(r"(?i)^(--?\w*(?:key|token|secret|passw)[\w-]*=).*")


def _packages() -> dict[str, str]:
    """Versions of ours, and of what numbers depend on."""
    names = {d.metadata["Name"] or "" for d in metadata.distributions()}
    wanted = {n for n in names if n.lower().startswith("mycelia") or n.lower() in ("numpy", "scipy", "torch")}
    return {name: metadata.version(name) for name in sorted(wanted)}
