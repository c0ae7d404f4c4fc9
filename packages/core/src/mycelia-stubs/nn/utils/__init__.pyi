# Written by tools/gen_stubs.py.
from mycelia.nn import no_init_parameters as no_init_parameters

__all__ = [
    "no_init_parameters",
]
