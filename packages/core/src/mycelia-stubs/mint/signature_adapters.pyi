# Written by tools/gen_stubs.py.
from mycelia.faces.mint.signature_adapters import faces as faces

__all__ = [
    "faces",
]
