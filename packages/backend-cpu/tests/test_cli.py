"""The command line of the CPU backend."""

from __future__ import annotations

from importlib.metadata import version

from typer.testing import CliRunner

from mycelia_backend_cpu.cli import app


def test_version_command_prints_the_installed_version():
    result = CliRunner().invoke(app, ["version"])
    assert result.exit_code == 0, result.output
    assert result.output.strip() == version("mycelia-backend-cpu")
