"""What a process runs in, for records and bundles: versions, machine, settings, variables without secrets."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib import metadata
from typing import Any

from mycelia.engine.base import config, redaction

_OURS = ("MYCELIA_", "MINDSPORE_", "MS_", "GLOG_", "RANK_", "OMP_", "PYTHON", "CUDA_", "VLOG_")


def environment() -> dict[str, Any]:
    """Versions, machine, command line, settings in force and environment variables; secrets are not shown."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": redaction.command(sys.argv),
        "folder": os.getcwd(),
        "process": os.getpid(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": _packages(),
        "settings": {key: redaction.shown(key, config.get(key)) for key in config.SETTINGS},
        "variables": {
            name: redaction.HIDDEN if redaction.is_secret(name, value) else redaction.text(value)
            for name, value in sorted(os.environ.items())
            if name.startswith(_OURS)
        },
    }


def _packages() -> dict[str, str]:
    """Versions of ours, and of what numbers depend on."""
    names = {d.metadata["Name"] or "" for d in metadata.distributions()}
    wanted = {n for n in names if n.lower().startswith("mycelia") or n.lower() in ("numpy", "scipy", "torch")}
    return {name: metadata.version(name) for name in sorted(wanted)}
