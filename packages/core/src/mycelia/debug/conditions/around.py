"""What a condition may look at beside the tensor itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia.debug.conditions.catalogue import Condition


@dataclass(frozen=True, slots=True)
class Around:
    """`earlier`: the tensor's values in the steps right before, the last first; `kind`: the type of the
    operator that made it; `inputs`: what that read, None if it is not known; `others`: the same tensor on
    other ranks.
    """

    earlier: Sequence[np.ndarray] = ()
    kind: str = ""
    inputs: Sequence[np.ndarray] | None = None
    others: Sequence[np.ndarray] = ()


class Memory:
    """Values of the steps before, for one condition with its parameters, while steps go by."""

    def __init__(self, condition: Condition, given: Mapping[str, Any]) -> None:
        self.depth = condition.depth(condition.values(given))
        self._is_of_numbers = condition.id == "loss_not_decreasing"  # of what is larger nothing is kept
        self._values: dict[Hashable, dict[int, np.ndarray]] = {}  # by iteration, in order

    def earlier(
        self,
        key: Hashable,
        iteration: int,
        otherwise: Callable[[int], np.ndarray | None] = lambda iteration: None,
    ) -> list[np.ndarray]:
        """The values right before `iteration`, the last first, as far as there is no gap. `otherwise`: where
        else a value may be, by its iteration.
        """
        kept = self._values.get(key, {})
        found: list[np.ndarray] = []
        for step in range(iteration - 1, max(iteration - 1 - self.depth, -1), -1):
            value = kept[step] if step in kept else otherwise(step)
            if value is None:
                break
            found.append(value)
        return found

    def add(self, key: Hashable, iteration: int, array: np.ndarray) -> None:
        """Keep a copy for steps to come, if they are looked back from."""
        if not self.depth or (self._is_of_numbers and array.size != 1):
            return
        kept = self._values.setdefault(key, {})
        kept[iteration] = array.copy()
        while len(kept) > self.depth + 1:  # this step may be checked once more
            del kept[next(iter(kept))]
