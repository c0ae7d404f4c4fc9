"""Optimizers whose steps need whole Parameters, divided among the processes that train together: each large
Parameter belongs to one of them, which alone keeps its states, updates it, and gives it to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.communication import mode, stages, world
from mycelia.engine.communication.share import Share
from mycelia.engine.ops.communication.collectives import broadcast_from
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.tensors.tensor import Parameter
from mycelia.nn.optim import sharing

_OWNER = "enable_parallel_optimizer"


def whole_ones(optimizer: Any, base: type, dividing: mode.Dividing) -> Owners:
    """Who updates which Parameter of an optimizer, a class derived of `base`.

    Errors: NotImplementedError unless it says that its steps of Parameters do not depend on one another, and
    for levels that divide more than states.
    """
    missing = ""
    if not sharing.says(type(optimizer), base, "by_parameter"):
        missing = (
            "divides states of optimizers that treat each element, or each Parameter, alone, which this one "
            "does not say of itself"
        )
    elif dividing.level > 1:
        missing = f"has optimizer_level='level{dividing.level}', but its steps need whole gradients, weights"
    if missing:
        raise errors.error(
            errors.NotSupportedError, type(optimizer).__name__, f"enable_parallel_optimizer {missing}",
            hint="a class whose steps do that says so by elementwise = True or by_parameter = True",
        )  # fmt: skip
    return Owners(optimizer.parameters, dividing)


class Owners:
    """Who updates which of `parameters`: `ranks` has the number of a process for each, the same on all; -1:
    all do. The largest ones go first, each to the process that has least.
    """

    def __init__(self, parameters: Sequence[Parameter], dividing: mode.Dividing) -> None:
        self.size = dividing.size
        self.rank = world.group(_OWNER, stages.data_group(_OWNER)).rank % self.size
        sizes = [p.size * p.dtype.itemsize for p in parameters]
        loads = [0] * self.size
        self.ranks = [-1] * len(sizes)
        for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
            if sharing.is_divisible(parameters[i], dividing):
                self.ranks[i] = loads.index(min(loads))
                loads[self.ranks[i]] += sizes[i]

    def has(self, index: int) -> bool:
        """Whether this process updates a Parameter."""
        return self.ranks[index] in (-1, self.rank)

    def keep(self, states: Sequence[Parameter]) -> None:
        """Leaves those of `states`, one for each Parameter, that belong to this process."""
        for rank, state in zip(self.ranks, states):
            if rank >= 0 and state.share is None:
                state.share = Share(self.rank, self.size, tuple(state.shape), rank)
                if rank != self.rank:
                    state.set_data(ops.zeros((0,), state.dtype))

    def give(self, parameters: Sequence[Parameter]) -> None:
        """All get what each has updated."""
        group = stages.shard_group(_OWNER, self.size)
        for owner in range(self.size):
            for some in self._together(parameters, owner):
                flat = ops.cat([p.reshape(-1) for p in some]) if len(some) > 1 else some[0].reshape(-1)
                found = sharing.cut(broadcast_from(flat, root=owner, group=group), [p.size for p in some])
                if owner != self.rank:
                    for parameter, value in zip(some, found):
                        assign(parameter, value.reshape(parameter.shape))

    def _together(self, parameters: Sequence[Parameter], owner: int) -> list[list[Parameter]]:
        """What goes by one collective: of one dtype, up to `mode.PART_BYTES`."""
        groups: list[list[Parameter]] = []
        size = 0.0
        for rank, p in zip(self.ranks, parameters):
            if rank != owner or p.elsewhere:
                continue
            count = p.size * p.dtype.itemsize
            if not groups or groups[-1][0].dtype is not p.dtype or size + count > mode.PART_BYTES:
                groups.append([])
                size = 0.0
            groups[-1].append(p)
            size += count
        return groups
