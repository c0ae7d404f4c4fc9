# Written by tools/gen_stubs.py.
from mycelia.io.onnx.rules.table import find as find

__all__ = [
    "find",
]
