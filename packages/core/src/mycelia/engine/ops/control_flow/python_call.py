"""One op that calls a function in Python on NumPy arrays: eagerly, and each time a graph runs."""

import numpy as np

from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op


@op(
    infer=lambda inputs, function, results: tuple(TensorType(dtype, shape) for dtype, shape in results),
    outputs=None, nondiff=True, effect=True,
)  # fmt: skip
def python_call(inputs: "tensors", *, function: "any", results: "any"):
    """Results of ``function(*arrays)``, which have the dtypes and shapes ``results``.

    Shapes: any.  dtypes: any.  Errors: what the function raises, ValueError for another number of results.
    """
    found = function(*inputs)
    found = found if isinstance(found, (tuple, list)) else (found,)
    if len(found) != len(results):
        raise ValueError(f"the function gave {len(found)} results, but {len(results)} were declared")
    return tuple(
        np.ascontiguousarray(np.broadcast_to(np.asarray(one, dtype.np), shape))
        for one, (dtype, shape) in zip(found, results)
    )


def call_python(function, inputs, results):
    """Tensors with the results of ``function(*arrays)``: for each a pair of dtype and shape is declared."""
    return python_call(list(inputs), function=function, results=results)


__all__ = []
