# Written by tools/gen_stubs.py.
from . import bijector as bijector, distribution as distribution

__all__ = [
    "bijector", "distribution",
]
