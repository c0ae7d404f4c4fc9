"""Files that switch passes of the compiler off: ``PassName:off`` lines, or MindStudio's JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

from mycelia.engine.base import errors

ALL = "ALL"  # every pass that a result does not need


def read_switches(path: str | os.PathLike) -> list[str]:
    """The names that are switched off; `ALL` stands for every pass.

    ``ALL:off`` or ``fuse:off`` on lines of their own, or
    ``{"Switch": {"GraphFusion": {"ALL": "off"}, "UBFusion": {"name": "off"}}}``.
    Errors: ValueError for another content, with its line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise errors.value_error("switches", f"{os.fspath(path)} cannot be read: {cause}") from None
    entries = _of_json(text, path) if text.lstrip().startswith("{") else _of_lines(text, path)
    return list(dict.fromkeys(name for name, state in entries if state == "off"))


def _of_lines(text: str, path: str | os.PathLike) -> list[tuple[str, str]]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, _, state = (part.strip() for part in line.partition(":"))
        if not name or state not in ("on", "off"):
            raise errors.value_error(
                "switches", f"{os.fspath(path)}:{number}: expected NAME:on or NAME:off, but got {line!r}"
            )
        found.append((name, state))
    return found


def _of_json(text: str, path: str | os.PathLike) -> list[tuple[str, str]]:
    try:
        groups = json.loads(text)["Switch"]
        found = [(str(n), str(s)) for names in groups.values() for n, s in names.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
        raise errors.value_error(
            "switches", f'{os.fspath(path)}: expected {{"Switch": {{GROUP: {{NAME: "off"}}}}}}: {cause!r}'
        ) from None
    for name, state in found:
        if state not in ("on", "off"):
            raise errors.value_error("switches", f"{os.fspath(path)}: {name} is {state!r}, not 'on' or 'off'")
    return found
