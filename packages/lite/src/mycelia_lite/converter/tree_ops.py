"""Forests of decision trees, which core lacks: what NumPy says here, a kernel of the runtime computes."""

import numpy as np

import mycelia as ms
from mycelia.ir import TensorType
from mycelia.ops.define import op

HOWS = ("sum", "average", "min", "max")  # of the leaves of all trees
COMPARISONS = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
NAN = 8  # added to the number of a comparison that holds for NaN
_COMPARE = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)


@op(name="trees", nondiff=True, on_host=True)
def trees(x, nodes, thresholds, roots, leaves, *, how: "str" = "sum"):
    """What the leaves of all trees have together: one of `HOWS`.

    Shapes: x [N, F]; nodes int32 [n, 4], (feature, the node if the comparison with the threshold holds, the
    one if not, which of `COMPARISONS`, plus `NAN`), of a leaf (-1, its row of leaves, 0, 0), each behind its
    parent; thresholds [n], roots int32 [T], leaves [L, K] -> [N, K]. dtypes: float32.
    """
    at = np.repeat(roots[None].astype(np.int64), len(x), 0)
    while True:
        feature, yes, no, kind = np.moveaxis(nodes[at], -1, 0)
        inner = feature >= 0
        if not inner.any():
            break
        value = np.take_along_axis(x, np.maximum(feature, 0), 1)
        holds = np.choose(kind & 7, [f(value, thresholds[at]) for f in _COMPARE])
        holds = np.where(np.isnan(value), kind & NAN > 0, holds)
        at = np.where(inner, np.where(holds, yes, no), at)
    found = leaves[nodes[at][..., 1]]
    reduced = {"sum": np.sum, "average": np.mean, "min": np.min, "max": np.max}[how](found, axis=1)
    return reduced.astype(np.float32)


@trees.infer
def trees(x, nodes, thresholds, roots, leaves, *, how):
    return TensorType(ms.float32, (x.shape[0], leaves.shape[1]))
