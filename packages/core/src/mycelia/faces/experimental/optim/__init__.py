"""Optimizers with `param_groups`: each group a dict of its own options, which a scheduler may change."""

from mycelia.faces.experimental.optim import lr_scheduler
from mycelia.faces.experimental.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from mycelia.faces.experimental.optim.adaptive import Adadelta, Adagrad, RMSprop
from mycelia.faces.experimental.optim.descent import ASGD, SGD, Rprop
from mycelia.faces.experimental.optim.optimizer import Optimizer

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop",
    "Rprop", "lr_scheduler",
]  # fmt: skip
