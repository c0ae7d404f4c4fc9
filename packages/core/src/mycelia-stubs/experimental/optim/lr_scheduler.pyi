# Written by tools/gen_stubs.py.
from mycelia.faces.experimental.optim.lr_scheduler import (
    ConstantLR as ConstantLR, CosineAnnealingLR as CosineAnnealingLR,
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts, CyclicLR as CyclicLR,
    ExponentialLR as ExponentialLR, LRScheduler as LRScheduler, LambdaLR as LambdaLR, LinearLR as LinearLR,
    MultiStepLR as MultiStepLR, MultiplicativeLR as MultiplicativeLR, PolynomialLR as PolynomialLR,
    ReduceLROnPlateau as ReduceLROnPlateau, SequentialLR as SequentialLR, StepLR as StepLR,
)

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]
