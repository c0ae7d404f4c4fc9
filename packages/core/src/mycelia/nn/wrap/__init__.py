"""Cells that join a network with its loss, its gradients and its optimizer."""

from mycelia.nn.wrap.cell_wrapper import (
    ForwardValueAndGrad,
    GradAccumulationCell,
    MicroBatchInterleaved,
    ParameterUpdate,
    TrainOneStepCell,
    WithEvalCell,
    WithGradCell,
    WithLossCell,
)
from mycelia.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell,
)

__all__ = [
    "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "ForwardValueAndGrad", "GradAccumulationCell",
    "MicroBatchInterleaved", "ParameterUpdate", "TrainOneStepCell", "TrainOneStepWithLossScaleCell",
    "WithEvalCell", "WithGradCell", "WithLossCell",
]  # fmt: skip
