# Written by tools/gen_stubs.py.
from . import lr_scheduler as lr_scheduler
from mycelia.faces.experimental.optim.adam import (
    Adam as Adam, AdamW as AdamW, Adamax as Adamax, NAdam as NAdam, RAdam as RAdam,
)
from mycelia.faces.experimental.optim.adaptive import (
    Adadelta as Adadelta, Adagrad as Adagrad, RMSprop as RMSprop,
)
from mycelia.faces.experimental.optim.descent import ASGD as ASGD, Rprop as Rprop, SGD as SGD
from mycelia.faces.experimental.optim.optimizer import Optimizer as Optimizer

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam",
    "RMSprop", "Rprop", "lr_scheduler",
]
