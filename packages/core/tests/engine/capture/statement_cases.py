"""Functions of one number that are run eagerly and compiled: what tests of statements share."""

import numpy as np

import mycelia as ms
from mycelia import Tensor

VALUES = (3.0, -2.0, 0.0, 3.0, -2.0)


class Cases(list):
    """Functions, gathered by decoration."""

    def __call__(self, function):
        self.append(function)
        return function


def outcomes(function):
    """What the calls of `function` give, one after another: numbers, or the builtin kind of error."""
    found = []
    for value in VALUES:
        try:
            made = function(Tensor(value, ms.float32))
            found.append(np.asarray(made, np.float64).tolist())
        except Exception as error:
            found.append(type(error).__name__)
    return found
