# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.faces.scipy.optimize.line_search import line_search as line_search
from mycelia.faces.scipy.optimize.minimize import minimize as minimize

__all__ = [
    "line_search", "linear_sum_assignment", "minimize",
]


def linear_sum_assignment(cost_matrix, maximize, dimension_limit=None) -> tuple[Tensor, Tensor]:
    """Rows and columns of the pairs whose costs have the least, or with `maximize` the greatest, sum."""
