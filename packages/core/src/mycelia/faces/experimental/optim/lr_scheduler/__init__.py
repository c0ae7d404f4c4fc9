"""Schedulers that change the learning rates of an `experimental.optim` optimizer.

All arithmetic is on float32 scalars and conditions are `where`: a step may be part of a compiled function.
"""

from __future__ import annotations

from mycelia.faces.experimental.optim.lr_scheduler.base import LRScheduler
from mycelia.faces.experimental.optim.lr_scheduler.composed import ReduceLROnPlateau, SequentialLR
from mycelia.faces.experimental.optim.lr_scheduler.cycles import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
)
from mycelia.faces.experimental.optim.lr_scheduler.monotone import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
