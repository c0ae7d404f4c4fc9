"""Statistics that the target computes by kernels of its own, so that nothing but four numbers comes to the
host: the `stat_calc_mode` "device" of a dump.
"""

from __future__ import annotations

import math

from mycelia import ops
from mycelia.engine.base.dtypes import float32
from mycelia.engine.tensors.tensor import Tensor


def device_statistics(tensor: Tensor, precision: str) -> dict[str, float]:
    """Largest and smallest element, mean and Euclidean norm, by their columns of ``statistic.csv``.

    `precision`: "high" computes in float32, "low" in the dtype of floating tensors, whose range sums and
    squares may leave. Unlike those of the host they are of all elements: one NaN makes each of them NaN.
    Complex numbers count by their absolute values; of a tensor without elements all are NaN.
    """
    if not tensor.size:
        return dict.fromkeys(("Max Value", "Min Value", "Avg Value", "L2Norm Value"), math.nan)
    x = tensor._detach()
    if x.dtype.is_complex:
        x = ops.abs(x)
    if precision == "high" or not x.dtype.is_floating:
        x = x.astype(float32)
    x = x.reshape(-1)
    found = {
        "Max Value": x.max(),
        "Min Value": x.min(),
        "Avg Value": x.mean(),
        "L2Norm Value": (x * x).sum().sqrt(),
    }
    return {column: float(value.float().asnumpy()) for column, value in found.items()}
