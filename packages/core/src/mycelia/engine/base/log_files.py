"""Log files in the form of glog, which MindSpore's C++ parts write: one for each level, and a link to it.

``mycelia.{machine}.{user}.log.{LEVEL}.{yyyymmdd-HHMMSS}.{process}`` takes the messages of that level and
above, and ``mycelia.{LEVEL}`` points to it. A file that has reached its size is followed by a new one.
"""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
import platform
import re
import sys
import time

#: glog's severities with the least level of `logging` in their files; what is below INFO goes to INFO's.
SEVERITIES = {"INFO": 0, "WARNING": logging.WARNING, "ERROR": logging.ERROR}

_HEADER = """Log file created at: {time}
Running on machine: {machine}
Log line format: [LEVEL] PART(process:thread,name):yyyy-mm-dd-hh:mm:ss.mmm.uuu [file:line] text
"""


class SeverityFiles(logging.Handler):
    """Writes each message to the files of its severity and of those below.

    `folder` exists. `max_bytes`: size after which a file is followed by the next; 0: never. `mode`: the
    permissions of new files. A process that was forked writes files of its own. When the disk is full the
    files end, and one line on the screen says so; the program goes on.
    """

    def __init__(self, folder: str, product: str, max_bytes: int, mode: int):
        super().__init__()
        self.folder, self.product, self.max_bytes, self.mode = folder, product, max_bytes, mode
        self._files: dict[str, _File] = {}
        self._process = os.getpid()
        self._ended = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message."""
        if self._ended:
            return
        if os.getpid() != self._process:  # the parent's files are the parent's
            self._files, self._process = {}, os.getpid()
        try:
            line = self.format(record) + "\n"
            for severity, least in SEVERITIES.items():
                if record.levelno >= least:
                    self._file(severity, len(line)).write(line)
        except OSError as cause:
            self._ended = True
            print(f"mycelia: log files in {self.folder} end here: {cause}", file=sys.stderr)

    def _file(self, severity: str, more: int) -> _File:
        file = self._files.get(severity)
        if file is None or (self.max_bytes and file.size and file.size + more > self.max_bytes):
            if file is not None:
                file.close()
            file = self._files[severity] = _File(self.folder, self.product, severity, self.mode)
        return file

    def close(self) -> None:
        """Close the files."""
        if os.getpid() == self._process:
            for file in self._files.values():
                file.close()
        self._files = {}
        super().close()


class _File:
    """One open log file; `size`: bytes after its header."""

    def __init__(self, folder: str, product: str, severity: str, mode: int):
        machine, stamp = platform.node() or "unknown", time.strftime("%Y%m%d-%H%M%S")
        stem = f"{product}.{_plain(machine)}.{_plain(_user())}.log.{severity}.{stamp}.{os.getpid()}"
        self.size = 0
        name, again = stem, 0
        while True:
            try:
                handle = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                break
            except FileExistsError:  # the second one within a second
                again += 1
                name = f"{stem}.{again}"
        self.file = os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace")
        self.file.write(_HEADER.format(time=time.strftime("%Y/%m/%d %H:%M:%S"), machine=machine))
        self.file.flush()
        _point(os.path.join(folder, f"{product}.{severity}"), name)

    def write(self, line: str) -> None:
        self.file.write(line)
        self.file.flush()  # a process that crashes leaves its last words
        self.size += len(line)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()


def _point(link: str, name: str) -> None:
    """Let `link` point to the file `name` beside it, where the system has links."""
    fresh = f"{link}.{os.getpid()}"
    try:
        os.symlink(name, fresh)
        os.replace(fresh, link)
    except (OSError, NotImplementedError):
        with contextlib.suppress(OSError):
            os.unlink(fresh)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # an id without a name
        return str(getattr(os, "getuid", lambda: "unknown")())


def _plain(text: str) -> str:
    """A part of a name: its dots and separators would be read as others."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", text)
