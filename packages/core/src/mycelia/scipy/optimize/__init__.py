"""Minima of functions of a vector, steps along a direction, assignments of rows to columns."""

from mycelia.scipy.optimize.assignment import linear_sum_assignment
from mycelia.scipy.optimize.search import line_search
from mycelia.scipy.optimize.solvers import minimize

__all__ = ["line_search", "linear_sum_assignment", "minimize"]
