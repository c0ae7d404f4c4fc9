# Written by tools/gen_stubs.py.
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.numpy._arguments import (
    an_int as an_int, result_dtype as result_dtype, same_dtype as same_dtype,
)
from mycelia.faces.numpy.statistics import histogram2d as histogram2d
from mycelia.mint.indexing import scatter_add_along as scatter_add_along
from mycelia.numpy import (
    bincount as bincount, corrcoef as corrcoef, cov as cov, digitize as digitize, histogram as histogram,
    histogram_bin_edges as histogram_bin_edges, histogramdd as histogramdd, searchsorted as searchsorted,
)
from mycelia.numpy.creation import as_tensor as as_tensor, constant as constant, to_dtype as to_dtype
from mycelia.numpy.elementwise import as_float as as_float

__all__ = [
    "an_int", "as_float", "as_tensor", "bincount", "constant", "corrcoef", "cov", "digitize", "histogram",
    "histogram2d", "histogram_bin_edges", "histogramdd", "is_tensor", "result_dtype", "same_dtype",
    "scatter_add_along", "searchsorted", "to_dtype",
]
