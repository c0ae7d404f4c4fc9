"""Pairs of rows and columns with the least sum of costs."""

from __future__ import annotations

import sys

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.linalg import factors
from mycelia.engine.tensors.tensor import Tensor

__all__ = ["linear_sum_assignment"]


def linear_sum_assignment(cost_matrix, maximize, dimension_limit=None):
    """Rows and columns of the pairs whose costs have the least, or with `maximize` the greatest, sum.

    Only the first `dimension_limit` columns count (None: all); places that stay without a pair hold -1.
    Shapes: [m, n], [] -> [min(m, n)] twice.  dtypes: any but complex, int64 -> int64.
    Errors: TypeError for dtypes and if `maximize` is no bool, ValueError unless the rank is 2.
    """
    owner = "linear_sum_assignment"
    limit = Tensor(sys.maxsize, dtypes.int64) if dimension_limit is None else dimension_limit
    if not isinstance(maximize, bool):
        raise errors.type_error(owner, f"maximize must be a bool, but got {maximize!r}")
    if not isinstance(limit, Tensor) or limit.dtype is not dtypes.int64:
        raise errors.type_error(owner, f"dimension_limit must be an int64 Tensor, but got {limit!r}")
    if not isinstance(cost_matrix, Tensor) or cost_matrix.dtype.is_complex:
        raise errors.type_error(
            owner, f"cost_matrix must be a Tensor of real numbers, but got {cost_matrix!r}"
        )
    return factors.linear_sum_assignment(cost_matrix, limit, maximize)
