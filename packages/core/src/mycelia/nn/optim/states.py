"""Optimizers tell their states from the weights that they update: Parameters that they own and do not update.
Names do not tell, since layers may be called as states are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mycelia.engine.tensors.tensor import Parameter

if TYPE_CHECKING:
    from mycelia.nn.optim.owners import Owners


class OwnsStates:
    """What is assigned to an attribute of such a Cell is a state of it, unless it stands in `parameters`."""

    updates_parameters = True
    by_parameter = False  # whether a step of one Parameter reads and writes that and its own states alone
    owners: Owners | None = None  # who updates which Parameter; None: all update all

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        updated = {id(p) for p in self.__dict__.get("parameters", ())}
        for parameter in _parameters(value):
            parameter._is_optimizer_state = id(parameter) not in updated
        if not isinstance(value, (tuple, list)) or not value or len(value) != len(updated):
            return
        if all(isinstance(p, Parameter) and p._is_optimizer_state for p in value):
            self.__dict__.setdefault("_of_parameters", {})[name] = value
            self._keep_own_states()

    def _keep_own_states(self) -> None:
        """Leaves those states that this process has, where each Parameter belongs to one."""
        for states in self.__dict__.get("_of_parameters", {}).values() if self.owners is not None else ():
            self.owners.keep(states)


def _parameters(value: Any) -> Iterator[Parameter]:
    if isinstance(value, Parameter):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _parameters(one)
