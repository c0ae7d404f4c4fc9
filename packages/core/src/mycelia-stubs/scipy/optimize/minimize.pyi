# Written by tools/gen_stubs.py.
from mycelia.faces.scipy.optimize.minimize import minimize as minimize

__all__ = [
    "minimize",
]
