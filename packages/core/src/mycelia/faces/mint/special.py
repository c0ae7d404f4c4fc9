"""`mint.special`: functions that mint has under the name of torch's module, too."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.ops import erfc, exp2, expm1, log1p, sinc
from mycelia.faces.mint.nn.functional import log_softmax


def round(input):
    """To the nearest integer; ties go to the even one.

    Shapes: any -> same.  dtypes: real.
    """
    return ops.round(input)


__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]
