"""How much a step changes parameters: norms of the change and of what was there before."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mycelia.engine.tensors.tensor import Parameter


class Updates:
    """Compares `parameters` with themselves before a step; what it keeps meanwhile is as large as they."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._parameters = list(parameters)
        self._before: list[np.ndarray] | None = None

    def begin(self) -> None:
        """Before the step."""
        self._before = [parameter.asnumpy().copy() for parameter in self._parameters]

    def end(self) -> list[tuple[str, float, float | None]]:
        """After it: (name, |w| before, |change| / |w|, None where |w| is 0) of each, Euclidean norms in
        float64; empty if it did not begin.
        """
        if self._before is None:
            return []
        before, self._before = self._before, None
        found = []
        for parameter, old in zip(self._parameters, before, strict=True):
            wide = old.astype(np.float64)
            norm, change = _norm(wide), _norm(parameter.asnumpy().astype(np.float64) - wide)
            found.append((parameter.name, norm, change / norm if norm else None))
        return found


def _norm(values: np.ndarray) -> float:
    """Summed by NumPy itself: threads of a BLAS would wait, busily, for the next product."""
    return math.sqrt(np.square(values).sum())
