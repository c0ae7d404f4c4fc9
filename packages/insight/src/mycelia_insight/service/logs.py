"""Logs of the workspace: `<workspace>/log/<module>/<module>.<port>.log`, in lines as MindInsight has them."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path

_BYTES, _BACKUPS = 50 << 20, 30  # of a file, and how many full ones are kept
#: Module of the log -> loggers that write to it, with those below them; all others write to `utils`.
_MODULES = {
    "datavisual": ("mycelia_insight.runs", "mycelia_insight.records"),
    "lineage": (
        "mycelia_insight.runs.lineages",
        "mycelia_insight.runs.notes",
        "mycelia_insight.runs.importance",
    ),
    "restful_api": ("mycelia_insight.service",),
}
_TOKEN = re.compile(r"(?<=[?&]token=)[^& ]+")


class LogFile(RotatingFileHandler):
    """A file that only its user may read, begun anew at 50 MiB; 30 full ones are kept. Lines that a full disk
    has no room for are lost, which ends nothing else.
    """

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        super().__init__(
            path, maxBytes=_BYTES, backupCount=_BACKUPS, encoding="utf-8", errors="backslashreplace"
        )
        self.setFormatter(_Form())

    def _open(self):
        def private(name: str, flags: int) -> int:
            return os.open(name, flags | os.O_CLOEXEC, 0o600)

        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=private)

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


class _Form(logging.Formatter):
    """`[LEVEL] MI(pid:thread,process):time [file:line][MODULE] text`; a token in an address is not told."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime(record.created))
        micro = int(record.created % 1 * 1e6)
        line = (
            f"[{record.levelname}] MI({record.process}:{record.thread},{record.processName}):"
            f"{moment}.{micro // 1000:03}.{micro % 1000:03} [{record.filename}:{record.lineno}]"
            f"[{module_of(record.name).upper()}] {_TOKEN.sub('***', record.getMessage())}"
        )
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def module_of(logger: str) -> str:
    """The module whose log a logger writes to: the one that names it most closely."""
    if logger.startswith("uvicorn"):
        return "server"
    if logger == "scripts":
        return logger
    fitting = [
        (len(prefix), module)
        for module, prefixes in _MODULES.items()
        for prefix in prefixes
        if f"{logger}.".startswith(f"{prefix}.")
    ]
    return max(fitting, default=(0, "utils"))[1]


def path_of(workspace: str, module: str, port: int, name: str = "") -> Path:
    """The log of a module; `name` where that is not the module's: `server` has `access` and `error`."""
    return Path(workspace) / "log" / module / f"{name or module}.{port}.log"


def write_service(workspace: str, port: int, level: str) -> None:
    """All that the service tells goes to the logs of its modules; none of them reaches another's."""
    for module in (*_MODULES, "utils"):
        handler = LogFile(path_of(workspace, module, port))
        handler.addFilter(lambda record, module=module: module_of(record.name) == module)
        logging.getLogger().addHandler(handler)
    for name, file in (("uvicorn.error", "error"), ("uvicorn.access", "access")):
        logger = logging.getLogger(name)
        logger.addHandler(LogFile(path_of(workspace, "server", port, file)))
        logger.propagate = False
    logging.getLogger().setLevel(level)


def write_script(workspace: str, port: int, name: str, lines: list[str]) -> None:
    """Lines of `start` or `stop`; a workspace that cannot be written to is no reason to fail."""
    try:
        handler = LogFile(path_of(workspace, "scripts", port, name))
    except OSError:
        return
    logger = logging.getLogger("scripts")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    for line in lines:
        logger.info(line)
    logger.removeHandler(handler)
    handler.close()
