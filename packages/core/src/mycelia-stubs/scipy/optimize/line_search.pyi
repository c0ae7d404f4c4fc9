# Written by tools/gen_stubs.py.
from mycelia.faces.scipy.optimize.line_search import line_search as line_search

__all__ = [
    "line_search",
]
