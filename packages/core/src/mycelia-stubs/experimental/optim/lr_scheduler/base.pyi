# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.experimental.optim.lr_scheduler.base import (
    LRScheduler as LRScheduler, check as check, counter as counter, per_group as per_group,
    require_optimizer as require_optimizer,
)
from mycelia.faces.experimental.optim.optimizer import Optimizer as Optimizer
from mycelia.ops import assign as assign, assign_add as assign_add

__all__ = [
    "LRScheduler", "Optimizer", "Parameter", "Tensor", "assign", "assign_add", "check", "counter",
    "per_group", "require_optimizer",
]
