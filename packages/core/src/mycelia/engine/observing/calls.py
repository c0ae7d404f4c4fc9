"""How a call of an op is looked at while it runs: what it reads, what it makes, and who hears of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycelia.engine.observing.observers import Observer, Operator, Run
from mycelia.engine.tensors.tensor import Tensor


def flat(values: Sequence[Any]) -> list[Any]:
    """The members of lists among the arguments of an op in their places."""
    found: list[Any] = []
    for value in values:
        found += value if isinstance(value, (tuple, list)) else (value,)
    return found


def observed_call(
    watching: Sequence[Observer],
    run: Run,
    operator: Operator,
    op: Any,
    inputs: tuple,
    execute: Callable[[], Any],
) -> Any:
    """The result of `execute()`, a call of `op` on `inputs`, of which the observers are told."""
    # An alias keeps what an op that updates its input finds there: the write goes to new memory.
    before = [t._detach() if isinstance(t, Tensor) else None for t in flat(inputs)]
    for observer in watching:
        observer.before(run, operator, before)
    try:
        result = execute()
    except BaseException as error:
        for observer in watching:
            observer.failed(run, operator, before, error)
        raise
    definition = op.definition
    made = list(result) if isinstance(result, tuple) else [result]
    if definition.updates:
        written = [inputs[definition.param_names.index(name)] for name in definition.updates]
        made = written + [t for t in made if all(t is not w for w in written)]
    outputs = [t._detach() for t in made if isinstance(t, Tensor)]
    for observer in watching:
        observer.seen(run, operator, before, outputs)
    return result
