"""Optimizers tell their states from the weights that they update: Parameters that they own and do not update.
Names do not tell, since layers may be called as states are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mycelia.engine.tensors.tensor import Parameter


class OwnsStates:
    """What is assigned to an attribute of such a Cell is a state of it, unless it stands in `parameters`."""

    updates_parameters = True

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        updated = {id(p) for p in self.__dict__.get("parameters", ())}
        for parameter in _parameters(value):
            parameter._is_optimizer_state = id(parameter) not in updated


def _parameters(value: Any) -> Iterator[Parameter]:
    if isinstance(value, Parameter):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _parameters(one)
