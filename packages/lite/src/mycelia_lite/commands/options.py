"""Options that have MindSpore Lite's spelling, `--modelFile=...`, and the usual one, `--model-file ...`."""

from __future__ import annotations

import re
from typing import Any


def spellings(name: str) -> tuple[str, str]:
    """`--model-file` and `--modelFile` for modelFile."""
    return f"--{in_words(name, '-')}", f"--{name}"


def in_words(name: str, between: str) -> str:
    """`model-file` for modelFile."""
    return re.sub("[A-Z]", lambda m: f"{between}{m[0].lower()}", name)


def option(name: str, help: str) -> Any:
    """An option with both spellings."""
    import typer

    return typer.Option(*dict.fromkeys(spellings(name)), help=help, show_default=False)
