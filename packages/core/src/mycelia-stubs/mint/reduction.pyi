# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.mint.reduction import median as median, norm as norm
from mycelia.faces.mint.signature_adapters import faces as faces
from mycelia.mint import (
    all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin,
    bincount as bincount, count_nonzero as count_nonzero, cummax as cummax, cummin as cummin,
    cumsum as cumsum, histc as histc, max as max, mean as mean, min as min, nansum as nansum, prod as prod,
    softmax as softmax, std as std, std_mean as std_mean, sum as sum, trace as trace, var as var,
    var_mean as var_mean,
)
from mycelia.ops import cast as cast

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "bincount", "cast", "count_nonzero", "cummax",
    "cummin", "cumsum", "diff", "faces", "histc", "is_tensor", "max", "mean", "median", "min", "nansum",
    "norm", "prod", "softmax", "std", "std_mean", "sum", "trace", "var", "var_mean",
]


def diff(input, n=1, dim=-1, prepend=None, append=None) -> Tensor:
    """Differences of neighbours along `axis`, taken `n` times; `prepend` and `append` are joined first."""
