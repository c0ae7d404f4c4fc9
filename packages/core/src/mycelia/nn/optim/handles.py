"""What MindSpore's `Optimizer` offers to classes derived from it, each made when it is first asked for."""

from __future__ import annotations

import functools
from typing import Any

from mycelia import ops
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell

_MADE = {
    "map_": lambda self: ops.Map(),
    "map_reverse": lambda self: ops.Map(None, True),
    "hyper_map": lambda self: ops.HyperMap(),
    "hyper_map_reverse": lambda self: ops.HyperMap(None, True),
    "assignadd": lambda self: ops.AssignAdd(),
    "param_length": lambda self: len(self.parameters),
    "need_scale": lambda self: self.loss_scale != 1.0,
    "reciprocal_scale": lambda self: Tensor(1.0 / self.loss_scale),
    "global_step_increase_tensor": lambda self: Tensor([1], self.global_step.dtype),
    "decay_flags": lambda self: tuple(isinstance(d, Cell) or d > 0 for d in self._decays),
    "dynamic_decay_flags": lambda self: _each(self, lambda d: isinstance(d, Cell)),
    "weight_decay": lambda self: _each(self, lambda d: d),
    "grad_centralization": lambda self: tuple(self._centralize) if any(self._centralize) else False,
    "optim_filter": lambda self: (True,) * len(self.parameters),
    "is_group_params_ordered": lambda self: False,
    "use_parallel": lambda self: False,
    "enable_tuple_broaden": lambda self: True,
    "param_rank": lambda self: None,
}


def _each(optimizer: Any, fact: Any) -> Any:
    """A fact of the weight decays: of each where there are groups, else of the one that there is."""
    decays = optimizer._decays
    if optimizer.is_group:
        return tuple(map(fact, decays))
    return fact(next((d for d in decays if isinstance(d, Cell) or d), 0.0))


class Handles:
    """Base class that has the names of `_MADE`; an optimizer may overwrite them."""


for _name, _make in _MADE.items():
    _handle = functools.cached_property(_make)
    _handle.__set_name__(Handles, _name)
    setattr(Handles, _name, _handle)
