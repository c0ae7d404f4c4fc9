# Written by tools/gen_stubs.py.
from mycelia.faces.boost.accumulation import GradientAccumulation as GradientAccumulation
from mycelia.faces.boost.freeze import FreezeOpt as FreezeOpt, GradientFreeze as GradientFreeze
from mycelia.faces.boost.layers import CommonHeadLastFN as CommonHeadLastFN, LessBN as LessBN
from mycelia.faces.boost.parameters import (
    OptimizerProcess as OptimizerProcess, ParameterProcess as ParameterProcess,
)
from mycelia.faces.boost.train import BoostTrainOneStepCell as BoostTrainOneStepCell
from typing import Any as Any

__all__ = [
    "AdaSum", "AutoBoost", "BoostTrainOneStepCell", "BoostTrainOneStepWithLossScaleCell",
    "CommonHeadLastFN", "DimReduce", "FreezeOpt", "GradientAccumulation", "GradientFreeze",
    "GroupLossScaleManager", "LessBN", "OptimizerProcess", "ParameterProcess", "freeze_cell",
]


class AdaSum:
    """Joins steps of devices. Errors: RuntimeError without Ascend."""
    def __init__(self, *args, **kwargs) -> None: ...

class AutoBoost:
    """Chooses among the algorithms by a level. Errors: RuntimeError without Ascend."""
    def __init__(self, *args, **kwargs) -> None: ...

class BoostTrainOneStepWithLossScaleCell:
    """A training step with a scaled loss. Errors: RuntimeError without Ascend."""
    def __init__(self, *args, **kwargs) -> None: ...

class DimReduce:
    """Second order steps in few dimensions. Errors: RuntimeError without Ascend."""
    def __init__(self, *args, **kwargs) -> None: ...

class GroupLossScaleManager:
    """A loss scale for each group of layers. Errors: RuntimeError without Ascend."""
    def __init__(self, *args, **kwargs) -> None: ...

def freeze_cell(reducer_flag, network, optimizer, sens, grad, use_grad_accumulation, mean=None, degree=None, max_accumulation_step=1) -> Any:
    """A training step for each optimizer of a FreezeOpt."""
