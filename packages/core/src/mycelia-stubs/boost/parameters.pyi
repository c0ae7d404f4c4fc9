# Written by tools/gen_stubs.py.
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.boost.layers import CommonHeadLastFN as CommonHeadLastFN
from mycelia.faces.boost.parameters import (
    OptimizerProcess as OptimizerProcess, ParameterProcess as ParameterProcess,
    arguments_of as arguments_of, made_again as made_again, parameters_of as parameters_of,
)
from mycelia.nn.cell import Cell as Cell
from mycelia.nn.conv import Conv2d as Conv2d
from mycelia.nn.optim.adaptive import LARS as LARS
from mycelia.nn.optim.optimizer import Optimizer as Optimizer

__all__ = [
    "Cell", "CommonHeadLastFN", "Conv2d", "LARS", "Optimizer", "OptimizerProcess", "Parameter",
    "ParameterProcess", "arguments_of", "made_again", "parameters_of",
]
