# Written by tools/gen_stubs.py.
from . import passes as passes
from mycelia.engine.compile.jit import jit as jit
from mycelia.engine.compile.mutable import mutable as mutable

__all__ = [
    "jit", "mutable",
]
