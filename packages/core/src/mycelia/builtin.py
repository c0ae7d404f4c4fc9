"""Core's own hook implementations, registered like those of any plugin. Imports nothing heavy at the top."""

from __future__ import annotations

from mycelia.engine.base.hookspecs import hookimpl

HOOK_API = 1


@hookimpl
def mycelia_begin(compiling: bool) -> None:
    """The data dump that the environment asks for."""
    from mycelia.engine.base import settings

    if settings.get("dump_config"):
        from mycelia.debug.dump import start

        start(compiling)
