"""`CosineSimilarity`: how alike the rows of a matrix are."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import Metric, rearrange_inputs


class CosineSimilarity(Metric):
    """Cosines ('cosine') or products ('dot') of all pairs of rows; the diagonal becomes 0 with
    `zero_diagonal`.

    Shapes: [N, D] -> [N, N], or [N] with `reduction` 'sum' or 'mean'.
    As in MindSpore an update replaces the one before.
    """

    _replaced = ("_matrix",)

    def __init__(self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True):
        super().__init__()
        if similarity not in ("cosine", "dot"):
            raise errors.one_of(similarity, ["cosine", "dot"], subject="CosineSimilarity", what="similarity")
        if reduction not in ("none", "sum", "mean"):
            raise errors.one_of(
                reduction, ["none", "sum", "mean"], subject="CosineSimilarity", what="reduction"
            )
        if not isinstance(zero_diagonal, bool):
            raise errors.type_error(
                "CosineSimilarity", f"zero_diagonal must be a bool, but got {zero_diagonal!r}"
            )
        self.similarity, self.reduction, self.zero_diagonal = similarity, reduction, zero_diagonal
        self.clear()

    def clear(self):
        self._matrix = None

    @rearrange_inputs
    def update(self, inputs):
        (rows,) = self._arrays((inputs,), 1)
        if rows.ndim != 2:
            raise errors.value_error(
                "CosineSimilarity", f"the input must be [N, D], but its shape is {rows.shape}"
            )
        if self.similarity == "cosine":
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            rows = np.divide(rows, lengths, out=np.zeros(rows.shape, lengths.dtype), where=lengths != 0)
        self._matrix = rows @ rows.T

    def eval(self):
        self._require_updates(self._matrix is not None)
        matrix = self._matrix.copy()
        if self.zero_diagonal:
            np.fill_diagonal(matrix, 0)
        if self.reduction == "none":
            return matrix
        return matrix.sum(-1) if self.reduction == "sum" else matrix.mean(-1)
