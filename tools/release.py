"""Lockstep versions: `python tools/release.py bump 0.2.0` edits all packages, `... show` tells what they say.

A package's own version and every `mycelia-*~=X.Y.0` among its requirements move together. Building and
uploading is hatch's work: `hatch build --all`, `hatch run wheels:check`, then the upload.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r'(?m)^version = "([^"]+)"$')
REQUIREMENT = re.compile(r'"mycelia-([a-z-]+)(\[[a-z,-]+\])?~=([^";]+)(;[^"]*)?"')


def projects() -> list[Path]:
    return sorted(ROOT.glob("packages/*/pyproject.toml"))


def compatible(version: str) -> str:
    """What packages of this version ask of one another: 0.2.3 -> 0.2.0, as any release of 0.2 will do."""
    major, minor, *_ = version.split(".")
    return f"{major}.{minor}.0"


def state() -> dict[str, tuple[str, set[str]]]:
    """Package -> (its version, the versions that it asks of others)."""
    found = {}
    for path in projects():
        text = path.read_text()
        found[path.parent.name] = (VERSION.search(text)[1], {m[3] for m in REQUIREMENT.finditer(text)})
    return found


def problems() -> list[str]:
    """What does not agree; empty when all is well."""
    versions = {version for version, _ in state().values()}
    found = [f"versions differ: {sorted(versions)}"] if len(versions) > 1 else []
    for name, (version, asked) in state().items():
        found += [f"{name} {version} asks for ~={a}" for a in asked if a != compatible(version)]
    return found


def bump(version: str) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        sys.exit(f"release: {version!r} is not a version such as 0.2.0 or 0.2.0rc1")
    asks = f"~={compatible(version)}"
    for path in projects():
        text = VERSION.sub(f'version = "{version}"', path.read_text(), count=1)
        text = REQUIREMENT.sub(lambda m: f'"mycelia-{m[1]}{m[2] or ""}{asks}{m[4] or ""}"', text)
        path.write_text(text)
        print(f"release: {path.relative_to(ROOT)} is {version}")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["bump", version]:
            bump(version)
        case ["show"]:
            for name, (version, asked) in state().items():
                print(f"{name:20} {version}  asks for {', '.join(sorted(asked)) or '-'}")
            sys.exit("\n".join(problems()) or 0)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
