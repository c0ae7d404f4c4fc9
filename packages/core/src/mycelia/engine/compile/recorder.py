"""The run recorder: graphs, orders and memory plans of compiled functions, written when something fails.

``{"rdr": {"enable": true, "mode": 1, "path": "/absolute"}}`` in the file of the setting `env_config_path`
switches it on, or the settings `rdr_enable`, `rdr_mode` and `rdr_path`, which go before the file. Mode 1
writes at the first error of a compiled function, mode 2 also when the process ends. The folder is
``PATH/rank_N/rdr``.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import platform
import time
import traceback
import weakref
from typing import Any, NamedTuple

from mycelia.engine.base import config, errors, ignored, log
from mycelia.engine.ir.text import to_text

ON_ERROR, ALSO_AT_END = 1, 2

#: Compiled functions that exist, see `compiled.Compiled`.
compiled: weakref.WeakSet[Any] = weakref.WeakSet()


class _Wanted(NamedTuple):
    mode: int
    path: str


class _State:
    """What the settings say, read when they change, and whether something was written."""

    wanted: _Wanted | None = None
    written = False


def failed(error: Exception) -> None:
    """Called with an error of a compiled function, while it is handled."""
    if _State.wanted is not None and not _State.written:
        _State.written = True
        _write("".join(traceback.format_exception(error)))


def _follow(path: str) -> None:
    _State.wanted, _State.written = _settings(path), False


def _settings(path: str) -> _Wanted | None:
    """Errors: ValueError for a file that says something else."""
    given: dict[str, Any] = {}
    if path:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            given = content.get("rdr", {})
            if not isinstance(given, dict):
                raise ValueError(f"'rdr' is {given!r}, not an object")
            for key in content.keys() - {"rdr"}:
                ignored.tell("env_config_path", key, content[key], "only the run recorder 'rdr' is set here")
        except (ValueError, AttributeError, RecursionError) as cause:
            raise errors.value_error("env_config_path", f"{path!r} is no JSON object: {cause}") from None
    known = {"enable": bool, "mode": int, "path": str}
    for key, value in given.items():
        if key not in known:
            raise errors.one_of(key, known, subject="env_config_path", what="key of 'rdr'")
        if type(value) is not known[key]:
            expected, got = known[key].__name__, type(value).__name__
            raise errors.type_error("env_config_path", f"{key} of 'rdr' must be {expected}, but got {got}")
    wanted = {
        "enable": config.get("rdr_enable"),
        "mode": config.get("rdr_mode"),
        "path": config.get("rdr_path"),
    }
    wanted.update((key, value) for key, value in given.items() if not config.is_set(f"rdr_{key}"))
    if wanted["mode"] not in (ON_ERROR, ALSO_AT_END):
        raise errors.one_of(
            wanted["mode"], (ON_ERROR, ALSO_AT_END), subject="env_config_path", what="mode of 'rdr'"
        )
    return _Wanted(wanted["mode"], _usable(wanted["path"])) if wanted["enable"] else None


def _usable(folder: str) -> str:
    """The folder for this process: below `folder` if that is an absolute path one can write to."""
    own = os.path.join(f"rank_{config.get('rank')}", "rdr")
    if os.path.isabs(folder):
        try:
            os.makedirs(os.path.join(folder, own), exist_ok=True)
            return os.path.join(folder, own)
        except OSError as cause:
            log.logger(__name__).warning("the run recorder cannot write to %s: %s", folder, cause)
    elif folder:
        log.logger(__name__).warning("the run recorder needs an absolute path, but got %r", folder)
    return os.path.abspath(own)


def _write(reason: str) -> None:
    """All that is known now; what cannot be written is told, the error that led here goes on."""
    folder, stamp = _State.wanted.path, time.strftime("%Y%m%d%H%M%S")
    serial = itertools.count()

    def put(name: str, ending: str, text: str) -> None:
        path = os.path.join(folder, f"{name}.{stamp}_{next(serial)}.{ending}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    try:
        os.makedirs(folder, exist_ok=True)
        for number, function in enumerate(sorted(compiled, key=lambda f: f.graph.name)):
            put(
                f"PIPELINE.{number:02d}_{function.graph.name.replace(os.sep, '_')}",
                "ir",
                to_text(function.graph),
            )
            program = function.program
            if program is None:
                continue
            order = [f"{i:4} {node.op.name} {node.location or ''}" for i, node in enumerate(program.nodes)]
            put(f"SESSION.graph_exec_order.{number}", "txt", "\n".join(order))
            report = program.info() if callable(program.info) else program.info
            put(f"RUNTIME_FRAMEWORK.mem_address_list.{number}", "txt", str(report))
        with open(os.path.join(folder, "README.txt"), "w", encoding="utf-8") as file:
            file.write(f"{platform.platform()}, Python {platform.python_version()}\n\n{reason}\n")
    except OSError as cause:
        log.logger(__name__).warning("the run recorder failed: %s", cause)


def _at_end() -> None:
    if _State.wanted is not None and _State.wanted.mode == ALSO_AT_END and not _State.written:
        _write("The process ended without an error of a compiled function.")


for _name in ("env_config_path", "rdr_enable", "rdr_mode", "rdr_path"):
    config.on_change(_name, lambda _: _follow(config.get("env_config_path")))
atexit.register(_at_end)
