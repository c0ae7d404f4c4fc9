# Written by tools/gen_stubs.py.
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.numpy._arguments import (
    axes_of as axes_of, common_dtype as common_dtype, one_axis as one_axis, same_dtype as same_dtype,
)
from mycelia.faces.numpy.selecting import (
    apply_over_axes as apply_over_axes, intersect1d as intersect1d, isscalar as isscalar, unique as unique,
    unravel_index as unravel_index,
)
from mycelia.mint.indexing import unique_sorted as unique_sorted
from mycelia.numpy import (
    apply_along_axis as apply_along_axis, argwhere as argwhere, array_equal as array_equal,
    array_equiv as array_equiv, array_str as array_str, choose as choose, in1d as in1d, isclose as isclose,
    isin as isin, piecewise as piecewise, ravel_multi_index as ravel_multi_index, select as select,
    setdiff1d as setdiff1d, take as take, take_along_axis as take_along_axis, where as where,
)
from mycelia.numpy.creation import as_tensor as as_tensor, constant as constant, to_dtype as to_dtype
from mycelia.numpy.elementwise import only_tensor as only_tensor
from mycelia.ops import gather_elements as gather_elements

__all__ = [
    "apply_along_axis", "apply_over_axes", "argwhere", "array_equal", "array_equiv", "array_str",
    "as_tensor", "axes_of", "choose", "common_dtype", "constant", "gather_elements", "in1d", "intersect1d",
    "is_tensor", "isclose", "isin", "isscalar", "one_axis", "only_tensor", "piecewise", "ravel_multi_index",
    "same_dtype", "select", "setdiff1d", "take", "take_along_axis", "to_dtype", "unique", "unique_sorted",
    "unravel_index", "where",
]
