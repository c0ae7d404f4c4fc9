# Written by tools/gen_stubs.py.
from . import operators as operators
from mycelia.io import (
    export as export, load as load, load_mindir as load_mindir, save_mindir as save_mindir,
)

__all__ = [
    "export", "load", "load_mindir", "save_mindir",
]
