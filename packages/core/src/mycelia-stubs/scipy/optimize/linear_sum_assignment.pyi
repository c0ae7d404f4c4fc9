# Written by tools/gen_stubs.py.
from mycelia.scipy.optimize import linear_sum_assignment as linear_sum_assignment

__all__ = [
    "linear_sum_assignment",
]
