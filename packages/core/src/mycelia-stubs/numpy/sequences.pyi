# Written by tools/gen_stubs.py.
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.numpy._arguments import (
    axes_of as axes_of, one_axis as one_axis, same_dtype as same_dtype,
)
from mycelia.faces.numpy.sequences import (
    diff as diff, ediff1d as ediff1d, gradient as gradient, polyadd as polyadd, polysub as polysub,
)
from mycelia.numpy import (
    convolve as convolve, correlate as correlate, interp as interp, polyder as polyder, polyint as polyint,
    polymul as polymul, polyval as polyval, searchsorted as searchsorted, trapz as trapz, unwrap as unwrap,
)
from mycelia.numpy.creation import as_tensor as as_tensor, to_dtype as to_dtype
from mycelia.numpy.elementwise import as_float as as_float, only_tensor as only_tensor

__all__ = [
    "as_float", "as_tensor", "axes_of", "convolve", "correlate", "diff", "ediff1d", "gradient", "interp",
    "is_tensor", "one_axis", "only_tensor", "polyadd", "polyder", "polyint", "polymul", "polysub",
    "polyval", "same_dtype", "searchsorted", "to_dtype", "trapz", "unwrap",
]
