# Written by tools/gen_stubs.py.
from mycelia.nn.optim.adam import (
    AdaMax as AdaMax, Adam as Adam, AdamWeightDecay as AdamWeightDecay, Lamb as Lamb,
)
from mycelia.nn.optim.adaptive import (
    Adadelta as Adadelta, Adagrad as Adagrad, FTRL as FTRL, LARS as LARS, RMSProp as RMSProp,
    Rprop as Rprop,
)
from mycelia.nn.optim.descent import Momentum as Momentum, SGD as SGD
from mycelia.nn.optim.optimizer import Optimizer as Optimizer

__all__ = [
    "FTRL", "LARS", "SGD", "AdaMax", "Adadelta", "Adagrad", "Adam", "AdamWeightDecay", "Lamb", "Momentum",
    "Optimizer", "RMSProp", "Rprop",
]
