"""How near a kernel must come to the reference body, by dtype, with the reasons."""

from __future__ import annotations

from mycelia.engine.base import dtypes

#: dtype -> (relative, absolute as a share of the largest reference value).
#: float32: kernels reorder sums and use polynomials of ~2 ulp; bodies sum pairwise. float16 and bfloat16 are
#: computed in float32 and rounded once, so one unit in the last place. Integers and bool are exact.
TOLERANCE = {
    dtypes.float16: (2e-3, 1e-3),
    dtypes.bfloat16: (1.6e-2, 8e-3),
    dtypes.float32: (2e-5, 2e-6),
    dtypes.float64: (1e-11, 1e-12),
    dtypes.complex64: (2e-5, 2e-6),
    dtypes.complex128: (1e-11, 1e-12),
}


def tolerance(dtype: dtypes.DType) -> tuple[float, float]:
    """(relative, absolute share) for results of `dtype`."""
    return TOLERANCE.get(dtype, (0.0, 0.0))
