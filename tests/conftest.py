"""What the whole-system tests share."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def install_metadata():
    """`install_metadata(pyproject, site)` writes into `site` what an installer would for that project."""

    def write(pyproject: Path, site: Path) -> None:
        project = tomllib.loads(pyproject.read_text())["project"]
        info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        lines = []
        for group, points in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines))

    return write


@pytest.fixture
def warned(monkeypatch):
    """Texts of the warnings that a test gets, each told anew."""
    from mycelia import log
    from mycelia.engine.base import ignored

    texts: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())
    monkeypatch.setattr(ignored, "_told", set())
    log.logger().addHandler(handler)
    yield texts
    log.logger().removeHandler(handler)


@pytest.fixture(scope="session")
def python():
    """`python(*arguments, path=..., cwd=...)` runs a new interpreter without settings of the environment."""

    def run(*arguments: str, path: list[Path] = (), cwd: Path | None = None, **env: str):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("MYCELIA_")}
        clean["PYTHONPATH"] = os.pathsep.join(map(str, path))
        return subprocess.run(
            [sys.executable, *arguments], env={**clean, **env}, cwd=cwd, capture_output=True, text=True
        )

    return run
