# Written by tools/gen_stubs.py.
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.numpy._arguments import (
    axes_of as axes_of, one_axis as one_axis, result_dtype as result_dtype, same_dtype as same_dtype,
)
from mycelia.faces.numpy.reduction import average as average, norm as norm
from mycelia.numpy import (
    amax as amax, amin as amin, argmax as argmax, argmin as argmin, count_nonzero as count_nonzero,
    cumprod as cumprod, cumsum as cumsum, max as max, mean as mean, min as min, nancumsum as nancumsum,
    nanmax as nanmax, nanmean as nanmean, nanmin as nanmin, nanstd as nanstd, nansum as nansum,
    nanvar as nanvar, ptp as ptp, sometrue as sometrue, std as std, sum as sum, var as var,
)
from mycelia.numpy.creation import as_tensor as as_tensor, to_dtype as to_dtype
from mycelia.numpy.elementwise import as_float as as_float, only_tensor as only_tensor

__all__ = [
    "amax", "amin", "argmax", "argmin", "as_float", "as_tensor", "average", "axes_of", "count_nonzero",
    "cumprod", "cumsum", "is_tensor", "max", "mean", "min", "nancumsum", "nanmax", "nanmean", "nanmin",
    "nanstd", "nansum", "nanvar", "norm", "one_axis", "only_tensor", "ptp", "result_dtype", "same_dtype",
    "sometrue", "std", "sum", "to_dtype", "var",
]
