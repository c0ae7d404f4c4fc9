# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter, ParameterTuple as ParameterTuple
from mycelia.faces.experimental.optim.optimizer import (
    Optimizer as Optimizer, above as above, at_least as at_least, count_step as count_step,
    fractions as fractions,
)
from mycelia.nn.cell import Cell as Cell
from mycelia.nn.optim.owners import whole_ones as whole_ones
from mycelia.nn.optim.states import OwnsStates as OwnsStates
from mycelia.ops import assign_add as assign_add

__all__ = [
    "Cell", "Optimizer", "OwnsStates", "Parameter", "ParameterTuple", "Tensor", "above", "assign_add",
    "at_least", "count_step", "fractions", "whole_ones",
]
