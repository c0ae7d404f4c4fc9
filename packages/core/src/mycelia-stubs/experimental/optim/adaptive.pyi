# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.faces.experimental.optim.adaptive import (
    Adadelta as Adadelta, Adagrad as Adagrad, RMSprop as RMSprop,
)
from mycelia.faces.experimental.optim.optimizer import (
    Optimizer as Optimizer, above as above, at_least as at_least, count_step as count_step,
)

__all__ = [
    "Adadelta", "Adagrad", "Optimizer", "RMSprop", "Tensor", "above", "at_least", "count_step",
]
