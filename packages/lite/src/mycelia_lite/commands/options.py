"""Options that have MindSpore Lite's spelling, `--modelFile=...`, and the usual one, `--model-file ...`."""

from __future__ import annotations

import re
from typing import Any

import typer


def spellings(name: str) -> tuple[str, str]:
    """`--model-file` and `--modelFile` for modelFile."""
    kebab = re.sub("[A-Z]", lambda m: f"-{m[0].lower()}", name)
    return f"--{kebab}", f"--{name}"


def option(name: str, help: str) -> Any:
    """An option with both spellings."""
    return typer.Option(*dict.fromkeys(spellings(name)), help=help, show_default=False)
