# Written by tools/gen_stubs.py.
from mycelia.faces.experimental.optim.lr_scheduler.base import (
    LRScheduler as LRScheduler, check as check, per_group as per_group,
)
from mycelia.faces.experimental.optim.lr_scheduler.monotone import (
    ConstantLR as ConstantLR, ExponentialLR as ExponentialLR, LambdaLR as LambdaLR, LinearLR as LinearLR,
    MultiStepLR as MultiStepLR, MultiplicativeLR as MultiplicativeLR, PolynomialLR as PolynomialLR,
    StepLR as StepLR,
)

__all__ = [
    "ConstantLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
    "PolynomialLR", "StepLR", "check", "per_group",
]
