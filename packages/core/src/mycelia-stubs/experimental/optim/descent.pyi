# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.experimental.optim.descent import ASGD as ASGD, Rprop as Rprop, SGD as SGD
from mycelia.faces.experimental.optim.optimizer import (
    Optimizer as Optimizer, above as above, at_least as at_least, count_step as count_step,
)

__all__ = [
    "ASGD", "Optimizer", "Parameter", "Rprop", "SGD", "Tensor", "above", "at_least", "count_step",
]
