# Written by tools/gen_stubs.py.
from mycelia.io.mindir.rules.table import Unsupported as Unsupported, decomposed as decomposed, find as find

__all__ = [
    "Unsupported", "decomposed", "find",
]
