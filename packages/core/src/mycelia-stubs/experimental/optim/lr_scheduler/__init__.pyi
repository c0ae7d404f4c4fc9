# Written by tools/gen_stubs.py.
from mycelia.faces.experimental.optim.lr_scheduler.base import LRScheduler as LRScheduler
from mycelia.faces.experimental.optim.lr_scheduler.composed import (
    ReduceLROnPlateau as ReduceLROnPlateau, SequentialLR as SequentialLR,
)
from mycelia.faces.experimental.optim.lr_scheduler.cycles import (
    CosineAnnealingLR as CosineAnnealingLR, CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
    CyclicLR as CyclicLR,
)
from mycelia.faces.experimental.optim.lr_scheduler.monotone import (
    ConstantLR as ConstantLR, ExponentialLR as ExponentialLR, LambdaLR as LambdaLR, LinearLR as LinearLR,
    MultiStepLR as MultiStepLR, MultiplicativeLR as MultiplicativeLR, PolynomialLR as PolynomialLR,
    StepLR as StepLR,
)

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]
