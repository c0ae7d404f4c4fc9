# Written by tools/gen_stubs.py.
from mycelia.io.compositions.table import Unsupported as Unsupported
from mycelia.io.mindir.rules.table import find as find

__all__ = [
    "Unsupported", "find",
]
