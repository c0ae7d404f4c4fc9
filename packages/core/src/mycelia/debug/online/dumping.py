"""A step that a debugged training keeps as a data dump, asked for while it runs."""

from __future__ import annotations

import os

from mycelia.debug.dump import files
from mycelia.debug.dump.config import parse
from mycelia.debug.dump.groups import PARAMETER, Group
from mycelia.debug.dump.groups import Step as Written
from mycelia.debug.dump.writer import Writer
from mycelia.debug.online.steps import GraphValues, Step
from mycelia.engine.base import config

FOLDER, NET = "debugger_dump", "Debugged"  # below the path of diagnostic data; the folder of the net there


def folder() -> str:
    """Where such dumps are written: nobody who only has a page may choose it."""
    return os.path.abspath(os.path.join(config.get("diagnostic_data_path") or ".", FOLDER))


def write(iteration: int, step: Step) -> str:
    """The folder of the dump in which `step` is now, as far as its values are kept.  Errors: OSError."""
    found = folder()
    writer = Writer(parse({"path": found, "net_name": NET}))
    for values in step.values():
        if values.of is not None:
            writer.finish(_written(iteration, values))
    return found


def _written(iteration: int, values: GraphValues) -> Written:
    assert values.of is not None
    step, is_eager = Written(values.of, iteration), values.of.graph is None
    step.roles, step.calls = dict(values.roles), list(values.outline)
    for name, tensor in values.parameters.items():
        step.groups.append(Group(PARAMETER, name, files.CLOCK.take(1), (), (tensor,)))
    for operator, inputs, outputs in values.calls.values():
        count = sum(t is not None for t in (*inputs, *outputs))
        call = (operator, inputs, outputs) if is_eager else None
        stamp = files.CLOCK.take(max(1, count))
        step.groups.append(Group(operator.type, operator.name, stamp, inputs, outputs, call))
    return step
