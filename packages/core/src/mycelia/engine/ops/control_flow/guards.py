"""Ops that let values pass and stop the program when they are not as they must be."""

import numpy as np

from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import same


@op(elementwise="same", infer=same(), effect=True)
def check_numerics(x):
    """`x`, if all its elements are finite.

    Shapes: any -> same.  dtypes: floating.  Errors: RuntimeError for NaN or an infinity.
    """
    if not np.isfinite(x).all():
        found = "NaN" if np.isnan(x).any() else "an infinity"
        raise RuntimeError(f"the tensor holds {found}")
    return x


@check_numerics.vjp
def check_numerics(ct):
    return ct


@check_numerics.samples
def check_numerics(rand):
    yield rand(3, 4)
    yield rand()
    yield rand(0, 2)


__all__ = []
