# Written by tools/gen_stubs.py.
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.numpy._arguments import (
    an_int as an_int, as_shape as as_shape, axes_of as axes_of, common_dtype as common_dtype,
    one_axis as one_axis,
)
from mycelia.faces.numpy.shaping import (
    append as append, array_split as array_split, concatenate as concatenate, dsplit as dsplit,
    hsplit as hsplit, split as split, vsplit as vsplit,
)
from mycelia.numpy import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays, broadcast_to as broadcast_to, column_stack as column_stack,
    dstack as dstack, expand_dims as expand_dims, flip as flip, fliplr as fliplr, flipud as flipud,
    hstack as hstack, moveaxis as moveaxis, ravel as ravel, repeat as repeat, reshape as reshape,
    roll as roll, rollaxis as rollaxis, rot90 as rot90, size as size, squeeze as squeeze, stack as stack,
    swapaxes as swapaxes, tile as tile, transpose as transpose, vstack as vstack,
)
from mycelia.numpy.creation import as_tensor as as_tensor, constant as constant, to_dtype as to_dtype
from mycelia.numpy.elementwise import only_tensor as only_tensor

__all__ = [
    "an_int", "append", "array_split", "as_shape", "as_tensor", "atleast_1d", "atleast_2d", "atleast_3d",
    "axes_of", "broadcast_arrays", "broadcast_to", "column_stack", "common_dtype", "concatenate",
    "constant", "dsplit", "dstack", "expand_dims", "flip", "fliplr", "flipud", "hsplit", "hstack",
    "is_tensor", "moveaxis", "one_axis", "only_tensor", "ravel", "repeat", "reshape", "roll", "rollaxis",
    "rot90", "size", "split", "squeeze", "stack", "swapaxes", "tile", "to_dtype", "transpose", "vsplit",
    "vstack",
]
