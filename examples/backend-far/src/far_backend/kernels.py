"""The kernels: the meaning of each op, on arrays in the memory of the device.

A device of one's own has functions of its own here (see the skeleton); what counts for this one is where its
arrays lie.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from mycelia import dtypes
from mycelia.ops.define import find

#: The ops of a network with convolutions, of its gradient, and of its optimizer.
NAMES = (
    "add", "sub", "mul", "div", "neg", "exp", "log", "sqrt", "square", "maximum", "cast", "assign",
    "assign_add", "relu", "relu_grad", "mat_mul", "dense", "bias_add", "sum", "mean", "transpose",
    "broadcast_to", "conv", "conv_input_grad", "conv_weight_grad", "max_pool", "max_pool_grad",
    "sparse_softmax_cross_entropy_with_logits", "apply_momentum", "adam",
)  # fmt: skip


def supports(op: str, types, attrs) -> bool:
    """Whether the kernel of `op` takes this case: no bfloat16, matrix products of floats."""
    if (
        any(t is not None and t.dtype is dtypes.bfloat16 for t in types)
        or attrs.get("dtype") is dtypes.bfloat16
    ):
        return False
    return op != "mat_mul" or types[0].dtype.is_floating


def table() -> dict[tuple[str, str], Callable]:
    """(op, dtypes) -> kernel."""
    return {(name, "*"): _kernel(find(name).definition.body) for name in NAMES}


def _kernel(body: Callable) -> Callable:
    @functools.wraps(body)
    def run(*arrays, **attrs):
        with np.errstate(all="ignore"):
            found = body(*arrays, **attrs)
        results = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(np.asarray(r) for r in results)

    return run
