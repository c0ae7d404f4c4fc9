# Written by tools/gen_stubs.py.
from mycelia.nn.wrap.cell_wrapper import (
    ForwardValueAndGrad as ForwardValueAndGrad, GradAccumulationCell as GradAccumulationCell,
    MicroBatchInterleaved as MicroBatchInterleaved, ParameterUpdate as ParameterUpdate,
    TrainOneStepCell as TrainOneStepCell, WithEvalCell as WithEvalCell, WithGradCell as WithGradCell,
    WithLossCell as WithLossCell,
)
from mycelia.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell as DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell as FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell as TrainOneStepWithLossScaleCell,
)

__all__ = [
    "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "ForwardValueAndGrad", "GradAccumulationCell",
    "MicroBatchInterleaved", "ParameterUpdate", "TrainOneStepCell", "TrainOneStepWithLossScaleCell",
    "WithEvalCell", "WithGradCell", "WithLossCell",
]
