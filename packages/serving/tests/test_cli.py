"""The command line of Mycelia Serving."""

from __future__ import annotations

from importlib.metadata import version

from typer.testing import CliRunner

from mycelia_serving import commands
from mycelia_serving.cli import app


def test_version_command_prints_the_installed_version():
    result = CliRunner().invoke(app, ["version"])
    assert result.exit_code == 0, result.output
    assert result.output.strip() == version("mycelia-serving")


REASON = "[Errno 2] no such file: " + "a long way down/" * 12


def test_status_in_a_pipe_is_whole_lines_and_no_markup(monkeypatch, capsys):
    worker = {
        "address": "[::1]:6100", "state": "lost", "device": "CPU", "outstanding": 12345, "answered": 678901,
        "restarts": 3, "reason": REASON,
    }  # fmt: skip
    told = {
        "pid": 1, "ready": True, "stopping": False, "waiting_requests": 0, "lost_workers": 1,
        "addresses": [{"protocol": "grpc", "address": f"[::1]:{port}"} for port in range(5500, 5530)],
        "servables": [{"name": "s" * 70, "version": 1, "state": "ready", "reason": "", "workers": [worker]}],
    }  # fmt: skip
    monkeypatch.setattr(commands, "command", lambda pid, what: told)
    commands.show_status(None, False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("grpc [::1]:5529")
    (row,) = [line for line in lines if REASON in line]
    assert all(text in row for text in ("s" * 70, "[::1]:6100 lost", "12345", "678901"))
