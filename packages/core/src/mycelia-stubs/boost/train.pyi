# Written by tools/gen_stubs.py.
from mycelia.boost import (
    AdaSum as AdaSum, AutoBoost as AutoBoost,
    BoostTrainOneStepWithLossScaleCell as BoostTrainOneStepWithLossScaleCell, DimReduce as DimReduce,
    GroupLossScaleManager as GroupLossScaleManager, freeze_cell as freeze_cell,
)
from mycelia.engine._C import Tensor as Tensor
from mycelia.faces.boost.freeze import FreezeOpt as FreezeOpt
from mycelia.faces.boost.train import BoostTrainOneStepCell as BoostTrainOneStepCell
from mycelia.nn.wrap.cell_wrapper import TrainOneStepCell as TrainOneStepCell

__all__ = [
    "AdaSum", "AutoBoost", "BoostTrainOneStepCell", "BoostTrainOneStepWithLossScaleCell", "DimReduce",
    "FreezeOpt", "GroupLossScaleManager", "Tensor", "TrainOneStepCell", "freeze_cell",
]
