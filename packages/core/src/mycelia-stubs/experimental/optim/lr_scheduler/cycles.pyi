# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.experimental.optim.lr_scheduler.base import (
    LRScheduler as LRScheduler, check as check, per_group as per_group,
    require_optimizer as require_optimizer,
)
from mycelia.faces.experimental.optim.lr_scheduler.cycles import (
    CosineAnnealingLR as CosineAnnealingLR, CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
    CyclicLR as CyclicLR,
)
from mycelia.ops import assign as assign

__all__ = [
    "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "LRScheduler", "Parameter", "Tensor",
    "assign", "check", "per_group", "require_optimizer",
]
