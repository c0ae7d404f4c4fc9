"""Serving in this process, until a signal ends it."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import Any

from mycelia_insight.runs.library import Library
from mycelia_insight.service import logs, process
from mycelia_insight.service.app import make_app
from mycelia_insight.service.settings import Settings

_log = logging.getLogger(__name__)


def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM."""
    import uvicorn

    os.umask(0o077)
    logs.write_service(settings.workspace, settings.port, settings.log_level)
    library = Library(
        settings.summary_base_dir,
        settings.workspace,
        settings.reload_interval,
        may_delete=settings.allow_delete,
    )
    listener, online = _debugger(settings) if settings.enable_debugger else (None, None)
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(settings, library, online), host=settings.host, port=settings.port, log_config=None,
            timeout_graceful_shutdown=1, ws="none", lifespan="off",
        )
    )  # fmt: skip
    registered: list[Path] = []
    started = server.startup

    async def startup(*args, **kwargs) -> None:
        await started(*args, **kwargs)
        if server.started:  # told to those that wait for it when it answers
            registered.append(process.register(settings))
            _log.info("Summary base dir is %s", settings.summary_base_dir)

    server.startup = startup
    library.start()
    try:
        with contextlib.suppress(KeyboardInterrupt):  # SIGINT is how it is ended
            server.run()
    finally:
        library.stop()
        if listener is not None:
            listener.stop()
        for path in registered:
            path.unlink(missing_ok=True)


def _debugger(settings: Settings) -> tuple[Any, Any]:
    """What listens for trainings, and the session over them.  Errors: ImportError, OSError."""
    from mycelia_insight.debugger.online.listener import Listener
    from mycelia_insight.debugger.online.session import OnlineSession

    listener = Listener(settings.host, settings.debugger_port, settings.token)
    _log.info("The debugger listens at port %d", listener.port)
    return listener, OnlineSession(listener)
