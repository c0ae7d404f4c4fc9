# Written by tools/gen_stubs.py.
from mycelia.debug.precision.references import ReferenceDump as ReferenceDump

__all__ = [
    "NET", "ReferenceDump", "TYPES",
]

NET: str
TYPES: dict
