"""Collection from the script's side: a context manager, and what the setting `precision` starts."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mycelia.debug.dump import dump, parse
from mycelia.debug.precision import operator_check
from mycelia.debug.precision.instructions import ProgramDump
from mycelia.debug.precision.switches import ALL, read_switches
from mycelia.engine.base import config, errors
from mycelia.engine.compile import failures
from mycelia.engine.ir.graph import Node

ACTIONS = ("overflow", "fusion_off", "dump", "fusion_switch", "program")
_OVERFLOW = 3  # `op_debug_mode`


@contextmanager
def collect(
    action: str = "dump", steps: str = "all", path: str = "precision_data", switches: str = ""
) -> Iterator[None]:
    """Collect in this block what the precision tool compares.

    `action`: "dump" all tensors of the network as its code has it, "program" what the instructions of
    programs make that are compiled in this block, fused as they are, "overflow" tensors of operators whose
    outputs are not finite, "fusion_off" nothing, but compile without fusion, "fusion_switch" without the
    passes that the file `switches` names.
    `steps`: "all", or numbers and ranges, ``"0|5-10"``. `path`: the folder of the dump.
    Errors: ValueError for another action.
    """
    if action not in ACTIONS:
        raise errors.one_of(action, ACTIONS, subject="collect", what="action")
    with ExitStack() as stack:
        if action in ("fusion_off", "fusion_switch"):
            off = ALL if action == "fusion_off" else ",".join(read_switches(switches))
            stack.enter_context(config.context(pass_off=off))
        elif action == "program":
            collected = {"precision": action, "precision_steps": steps, "precision_path": path}
            stack.enter_context(config.context(**collected))
        else:
            stack.enter_context(dump(_dump_settings(action, steps, path)))
        yield


def _dump_settings(action: str, steps: str, path: str) -> dict:
    common = {"path": os.path.abspath(path), "iteration": steps}
    return {**common, "op_debug_mode": _OVERFLOW} if action == "overflow" else common


_started = False


def start() -> None:
    """Begin what the setting `precision` asks for, once, before anything is compiled."""
    global _started
    if _started:
        return
    _started = True
    action = config.get("precision")
    path = Path(config.get("precision_path") or "precision_data").absolute()
    if action in ("dump", "overflow"):
        path.mkdir(parents=True, exist_ok=True)
        settings = {
            "common_dump_settings": _dump_settings(action, config.get("precision_steps"), os.fspath(path)),
            "e2e_dump_settings": {"enable": True},
        }
        file = path / "data_dump.json"
        file.write_text(json.dumps(settings, indent=2), encoding="utf-8")
        config.set_value("dump_config", os.fspath(file))
    elif action == "fusion_off":
        config.set_value("pass_off", ALL)
    elif action == "passes":
        failures.listeners.append(_Passes(path))
    elif action in operator_check.INPUTS:
        _check_operators(action, path)


def _check_operators(inputs: str, path: Path) -> None:
    """Keep the operators of this process, and write a table of them when it ends."""
    stack = ExitStack()
    found = stack.enter_context(operator_check.acc_check())

    def write() -> None:
        stack.close()
        operator_check.write_table(found.results(inputs), path)

    atexit.register(write)


def program_dump(nodes: Sequence[Node]) -> ProgramDump:
    """What dumps a compiled program with these instructions, for the action "program"."""
    folder = os.path.abspath(config.get("precision_path") or "precision_data")
    settings = _dump_settings("program", config.get("precision_steps"), folder)
    return ProgramDump(folder, nodes, parse(settings).has_iteration)


class _Passes:
    """Writes the names of the passes that changed a graph, when the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[str, None] = {}
        atexit.register(self.write)

    def staged(self, stage: str, graph) -> None:
        """A pass has changed `graph`."""
        for prefix in ("lower_", "order_"):
            stage = stage.removeprefix(prefix)
        self.names[stage] = None

    def failed(self, error, function, tensors) -> None:
        """Nothing to do with passes."""

    def write(self) -> None:
        from mycelia.debug.precision.runs import pass_names

        known = set(pass_names())
        partial = self.path.with_suffix(".partial")
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps([n for n in self.names if n in known]), encoding="utf-8")
        os.replace(partial, self.path)
