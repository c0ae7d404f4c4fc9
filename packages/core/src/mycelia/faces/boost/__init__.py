"""`mycelia.boost`: training that skips some of its work: frozen groups of Parameters, centered gradients.

What joins several devices (AdaSum, DimReduce) or needs an Ascend device raises an error at its use.
"""

from mycelia.faces.boost.accumulation import GradientAccumulation
from mycelia.faces.boost.freeze import FreezeOpt, GradientFreeze, freeze_cell
from mycelia.faces.boost.layers import CommonHeadLastFN, LessBN
from mycelia.faces.boost.parameters import OptimizerProcess, ParameterProcess
from mycelia.faces.boost.train import (
    AdaSum,
    AutoBoost,
    BoostTrainOneStepCell,
    BoostTrainOneStepWithLossScaleCell,
    DimReduce,
    GroupLossScaleManager,
)

__all__ = [
    "AdaSum",
    "AutoBoost",
    "BoostTrainOneStepCell",
    "BoostTrainOneStepWithLossScaleCell",
    "CommonHeadLastFN",
    "DimReduce",
    "FreezeOpt",
    "GradientAccumulation",
    "GradientFreeze",
    "GroupLossScaleManager",
    "LessBN",
    "OptimizerProcess",
    "ParameterProcess",
    "freeze_cell",
]
