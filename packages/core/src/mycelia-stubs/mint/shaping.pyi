# Written by tools/gen_stubs.py.
from mycelia.engine.ops.arrays.shape import as_ints as as_ints
from mycelia.faces.mint.signature_adapters import faces as faces
from mycelia.mint import (
    broadcast_to as broadcast_to, cat as cat, chunk as chunk, concat as concat, diag as diag,
    flatten as flatten, flip as flip, meshgrid as meshgrid, narrow as narrow, permute as permute,
    repeat_interleave as repeat_interleave, reshape as reshape, split as split, squeeze as squeeze,
    stack as stack, tile as tile, transpose as transpose, tril as tril, triu as triu,
)

__all__ = [
    "as_ints", "broadcast_to", "cat", "chunk", "concat", "diag", "faces", "flatten", "flip", "meshgrid",
    "narrow", "permute", "repeat_interleave", "reshape", "split", "squeeze", "stack", "tile", "transpose",
    "tril", "triu",
]
