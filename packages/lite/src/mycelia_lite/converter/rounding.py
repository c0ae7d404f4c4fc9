"""How much of what a source answers is rounding: the same source in float64.

A variance as a difference of large means, or a division by what is nearly 0, leaves few digits of a float32.
Engines then depart from each other, and all of them from the numbers that the model stands for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import mycelia as ms
from mycelia.ir import Graph, TensorType, Value, evaluate
from mycelia.ir.walk import all_graphs, constants


def in_float64(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a graph that computes in float64 where it says float32, in its own dtypes.

    The graph is changed. Errors: those of ops that have no float64.
    """
    dtypes = [v.type.dtype for v in graph.outputs]
    for each in all_graphs(graph):
        values: list[Value] = [*each.parameters, *each.outputs, *constants(each)]
        for node in each.nodes:
            values.extend(node.outputs)
            node.attrs = {k: ms.float64 if a is ms.float32 else a for k, a in node.attrs.items()}
        for value in dict.fromkeys(values):
            if value.type.dtype is ms.float32:
                value.type = TensorType(ms.float64, value.type.shape)
                if value.is_constant:
                    value.constant = value.constant.astype(ms.float64)
    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    found = evaluate(graph, [ms.Tensor(a) for a in wide])
    return [t.astype(dtype).asnumpy() for t, dtype in zip(found, dtypes, strict=True)]
