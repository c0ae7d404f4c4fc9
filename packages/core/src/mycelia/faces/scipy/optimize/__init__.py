"""Minima of functions of a vector, steps along a direction, assignments of rows to columns."""

import sys
from types import ModuleType

from mycelia.faces.scipy.optimize.line_search import line_search
from mycelia.faces.scipy.optimize.linear_sum_assignment import linear_sum_assignment
from mycelia.faces.scipy.optimize.minimize import minimize

__all__ = ["line_search", "linear_sum_assignment", "minimize"]


class _Package(ModuleType):
    """The package, of which these names stay the functions even when the files called so are imported."""

    def __setattr__(self, name: str, value) -> None:
        if name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
