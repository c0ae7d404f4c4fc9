# Written by tools/gen_stubs.py.
from mycelia.boost import freeze_cell as freeze_cell
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter, ParameterTuple as ParameterTuple
from mycelia.faces.boost.freeze import FreezeOpt as FreezeOpt, GradientFreeze as GradientFreeze
from mycelia.faces.boost.parameters import (
    ParameterProcess as ParameterProcess, made_again as made_again, parameters_of as parameters_of,
)
from mycelia.nn.cell import Cell as Cell
from mycelia.nn.dense import Identity as Identity
from mycelia.nn.optim.adaptive import LARS as LARS
from mycelia.nn.optim.optimizer import Optimizer as Optimizer
from mycelia.ops import cast as cast, full_like as full_like

__all__ = [
    "Cell", "FreezeOpt", "GradientFreeze", "Identity", "LARS", "Optimizer", "Parameter", "ParameterProcess",
    "ParameterTuple", "Tensor", "cast", "freeze_cell", "full_like", "made_again", "parameters_of",
]
