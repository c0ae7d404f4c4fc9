"""What a training was started with, as far as the process tells: for lineage."""

from __future__ import annotations

import hashlib
import platform
import shlex
import sys
from pathlib import Path

from mycelia.engine.base import config, redaction


def facts() -> dict[str, int | str]:
    """Names and values: command_line, python, platform; seed, script_sha256, git_commit if known.

    Secrets of the command line are not shown (`redaction.command`). git_commit is that of the working tree
    that holds the script; whether files differ from it is not told.
    """
    found: dict[str, int | str] = {
        "command_line": shlex.join(redaction.command(sys.orig_argv)),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    seed = config.get_seed()
    if seed is not None:
        found["seed"] = seed
    script = Path(sys.argv[0] if sys.argv else "").absolute()
    if script.is_file():
        found["script_sha256"] = hashlib.sha256(script.read_bytes()).hexdigest()
    commit = git_commit(script.parent if script.is_file() else Path.cwd())
    return {**found, "git_commit": commit} if commit else found


def git_commit(folder: Path) -> str:
    """The commit that the working tree around a folder has checked out, "" if there is none to be read."""
    try:
        place = next(one / ".git" for one in (folder, *folder.parents) if (one / ".git").exists())
        if place.is_file():  # a linked working tree
            place = place.parent / place.read_text().partition("gitdir:")[2].strip()
        head = (place / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        shared = place / "commondir"
        base = place / shared.read_text().strip() if shared.exists() else place
        if (base / name).is_file():
            return (base / name).read_text().strip()
        lines = (base / "packed-refs").read_text().splitlines()
        return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "")
    except (OSError, StopIteration, UnicodeDecodeError):
        return ""
