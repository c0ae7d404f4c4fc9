"""Logs of the workspace."""

from __future__ import annotations

import errno
import io
import logging
import os

from mycelia_insight.service.logs import LogFile, path_of, write_script


class Full(io.StringIO):
    """A file for which the disk has no room."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    close = flush


def record(text: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("a", logging.INFO, __file__, 1, text, arguments, None)


def test_a_full_disk_ends_no_command_and_no_service(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(LogFile, "_open", lambda self: Full())
    write_script(str(tmp_path), 8080, "stop", ["port = 8080", "Stop mycelia-insight service successfully"])
    handler = LogFile(path_of(str(tmp_path), "utils", 8080))
    for _ in range(3):
        handler.handle(record("a line"))
    handler.close()
    assert capsys.readouterr() == ("", "")


def test_another_fault_of_a_log_is_told(tmp_path, capsys):
    handler = LogFile(path_of(str(tmp_path), "utils", 8080))
    handler.handle(record("%d", "no number"))
    handler.close()
    assert "Logging error" in capsys.readouterr().err


def test_lines_of_commands_are_for_their_user_alone(tmp_path):
    write_script(str(tmp_path), 8080, "start", ["at http://x/?token=secret&a=1"])
    path = path_of(str(tmp_path), "scripts", 8080, "start")
    assert path.stat().st_mode & 0o777 == 0o600
    line = path.read_text()
    assert "[SCRIPTS] at http://x/?token=***&a=1" in line and "secret" not in line
