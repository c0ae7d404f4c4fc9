"""Core's own hook implementations, registered like those of any plugin. Imports nothing heavy at the top."""

from __future__ import annotations

from mycelia.engine.base.hookspecs import hookimpl

HOOK_API = 1


@hookimpl
def mycelia_begin(compiling: bool) -> None:
    """What watches from the beginning if settings ask for it: the run recorder, the collection for
    `mycelia-precision`, the data dump, the debugger, the check for values that are not finite.
    """
    from mycelia.engine.base import settings

    if settings.get("rdr_enable") or settings.get("env_config_path"):
        mycelia_recorder()
    if settings.get("precision"):
        from mycelia.debug.precision import collection

        collection.start()
    if "check_overflow" not in _followed:
        _followed.add("check_overflow")
        settings.on_change("check_overflow", _load_check)
    if "save_graphs" not in _followed:
        _followed.add("save_graphs")
        settings.on_change("save_graphs", _load_saved_graphs)
    if settings.get("dump_config"):
        from mycelia.debug.dump import start

        start(compiling)
    if settings.get("debugger"):
        from mycelia.debug import online

        online.start(compiling)


@hookimpl
def mycelia_recorder() -> None:
    """The run recorder follows its settings."""
    from mycelia.debug import recorder
    from mycelia.engine.base import settings

    recorder.follow(settings.get("env_config_path"))


@hookimpl
def mycelia_observers(program) -> list:
    """Who records the instructions of compiled programs for `mycelia-precision`."""
    from mycelia.engine.base import settings

    if settings.get("precision") != "program":
        return []
    from mycelia.debug.precision import collection

    return [collection.program_dump(program.nodes)]


_followed: set[str] = set()  # settings whose parts are loaded when they are switched on


def _load_saved_graphs(level: object) -> None:
    if level:
        from mycelia.train.summary import saved_graphs

        saved_graphs.start()


def _load_check(on: object) -> None:
    if on:
        import mycelia.engine.compile.overflow  # noqa: F401  (follows the setting from now on)


@hookimpl
def mycelia_communicator(config):
    """A communicator of one of core's engines: over sockets, or over MPI."""
    from mycelia.parallel import engines

    return engines.connect(config)
