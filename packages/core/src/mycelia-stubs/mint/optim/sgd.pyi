# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.faces.experimental.optim.optimizer import (
    Optimizer as Optimizer, at_least as at_least, count_step as count_step,
)
from mycelia.faces.mint.optim.sgd import SGD as SGD

__all__ = [
    "Optimizer", "SGD", "Tensor", "at_least", "count_step",
]
