# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.experimental.optim.lr_scheduler.base import (
    counter as counter, per_group as per_group, require_optimizer as require_optimizer,
)
from mycelia.faces.experimental.optim.lr_scheduler.composed import (
    ReduceLROnPlateau as ReduceLROnPlateau, SequentialLR as SequentialLR,
)
from mycelia.ops import assign as assign, assign_add as assign_add, assign_sub as assign_sub

__all__ = [
    "Parameter", "ReduceLROnPlateau", "SequentialLR", "Tensor", "assign", "assign_add", "assign_sub",
    "counter", "per_group", "require_optimizer",
]
