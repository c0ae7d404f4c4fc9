"""Serving in this process, until a signal ends it."""

from __future__ import annotations

import contextlib
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

from mycelia_insight.runs.library import Library
from mycelia_insight.service import process
from mycelia_insight.service.app import make_app
from mycelia_insight.service.settings import Settings

_LOG_BYTES, _LOG_FILES = 50 << 20, 30
_FORM = (
    "[%(levelname)s] MI(%(process)d:%(thread)d,%(processName)s):%(asctime)s "
    "[%(filename)s:%(lineno)d][%(name)s] %(message)s"
)


def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM."""
    import uvicorn

    os.umask(0o077)
    _log_to(Path(settings.workspace) / "log" / "server" / f"service.{settings.port}.log")
    library = Library(settings.summary_base_dir, settings.workspace, interval=settings.reload_interval)
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(settings, library), host=settings.host, port=settings.port, log_config=None,
            access_log=False, timeout_graceful_shutdown=1, ws="none", lifespan="off",
        )
    )  # fmt: skip
    registered: list[Path] = []
    started = server.startup

    async def startup(*args, **kwargs) -> None:
        await started(*args, **kwargs)
        if server.started:  # told to those that wait for it when it answers
            registered.append(process.register(settings))
            logging.getLogger("service").info("Summary base dir is %s", settings.summary_base_dir)

    server.startup = startup
    library.start()
    try:
        with contextlib.suppress(KeyboardInterrupt):  # SIGINT is how it is ended
            server.run()
    finally:
        library.stop()
        for path in registered:
            path.unlink(missing_ok=True)


def _log_to(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES)
    handler.setFormatter(logging.Formatter(_FORM))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
