# Written by tools/gen_stubs.py.
from mycelia.engine.ir.symint import SymInt as SymInt
from mycelia.engine.ops.arrays.triangles import (
    nearest_diagonal as nearest_diagonal, triangle_places as triangle_places,
)
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.numpy._arguments import (
    an_int as an_int, as_shape as as_shape, axes_of as axes_of, checked_dtype as checked_dtype,
    result_dtype as result_dtype,
)
from mycelia.faces.numpy.grids import diag_indices as diag_indices
from mycelia.numpy import (
    bartlett as bartlett, blackman as blackman, diag as diag, diagflat as diagflat, diagonal as diagonal,
    hamming as hamming, hanning as hanning, indices as indices, ix_ as ix_, meshgrid as meshgrid,
    mgrid as mgrid, ogrid as ogrid, trace as trace, tri as tri, tril as tril, tril_indices as tril_indices,
    tril_indices_from as tril_indices_from, triu as triu, triu_indices as triu_indices,
    triu_indices_from as triu_indices_from, vander as vander,
)
from mycelia.numpy.creation import as_tensor as as_tensor, constant as constant, to_dtype as to_dtype
from mycelia.numpy.elementwise import only_tensor as only_tensor

__all__ = [
    "SymInt", "an_int", "as_shape", "as_tensor", "axes_of", "bartlett", "blackman", "checked_dtype",
    "constant", "diag", "diag_indices", "diagflat", "diagonal", "hamming", "hanning", "indices",
    "is_tensor", "ix_", "meshgrid", "mgrid", "nearest_diagonal", "ogrid", "only_tensor", "result_dtype",
    "to_dtype", "trace", "tri", "triangle_places", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from", "vander",
]
