"""Optimizers."""

from mycelia.nn.optim.adam import Adam, AdaMax, AdamWeightDecay, Lamb
from mycelia.nn.optim.adaptive import FTRL, LARS, Adadelta, Adagrad, RMSProp, Rprop
from mycelia.nn.optim.descent import SGD, Momentum
from mycelia.nn.optim.optimizer import Optimizer

__all__ = [
    "FTRL", "LARS", "SGD", "AdaMax", "Adadelta", "Adagrad", "Adam", "AdamWeightDecay", "Lamb", "Momentum",
        "Optimizer",
    "RMSProp", "Rprop",
]  # fmt: skip
