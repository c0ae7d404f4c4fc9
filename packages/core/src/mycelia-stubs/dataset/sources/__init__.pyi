# Written by tools/gen_stubs.py.
from . import text as text, vision as vision

__all__ = [
    "text", "vision",
]
