"""What a condition may look at beside the tensor itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from mycelia.debug.conditions.catalogue import Condition


@dataclass(frozen=True, slots=True)
class Around:
    """`earlier`: the tensor's values in the steps of its graph right before, the last first; `kind`: the type
    of the operator that made it; `inputs`: what that read, None if it is not known; `others`: the same tensor
    on other ranks.
    """

    earlier: Sequence[np.ndarray] = ()
    kind: str = ""
    inputs: Sequence[np.ndarray] | None = None
    others: Sequence[np.ndarray] = ()


#: A tensor: the number of its graph, and what tells it apart there.
Key = tuple[Any, ...]


class Memory:
    """Values of the steps before, for one condition with its parameters, while steps go by.

    Of the last `most_graphs` graphs that ran: a training whose every step is another one has no end of them.
    """

    def __init__(self, condition: Condition, given: Mapping[str, Any], most_graphs: int = 64) -> None:
        self.depth = condition.depth(condition.values(given))
        self._is_of_numbers = condition.id == "loss_not_decreasing"  # of what is larger nothing is kept
        self._most_graphs = most_graphs
        # By graph, the one that ran last at the end; of a tensor by iteration, in order.
        self._graphs: OrderedDict[Any, dict[Key, dict[int, np.ndarray]]] = OrderedDict()

    def earlier(
        self,
        key: Key,
        iteration: int,
        otherwise: Callable[[int], Iterable[np.ndarray]] = lambda iteration: (),
    ) -> list[np.ndarray]:
        """The values before `iteration`, the last first. Steps of other graphs may lie between; where one
        lacks the tensor, or nobody saw it, `forget` or `clear` are called.

        `otherwise`: what is known beside this of the time before an iteration, the last first.
        """
        kept = self._graphs.get(key[0], {}).get(key, {})
        steps = [step for step in reversed(kept) if step < iteration][: self.depth]
        found = [kept[step] for step in steps]
        if len(found) < self.depth:
            first = steps[-1] if steps else iteration
            found += islice(otherwise(first), self.depth - len(found))
        return found

    def add(self, key: Key, iteration: int, array: np.ndarray) -> None:
        """Keep a copy for steps to come, if they are looked back from."""
        if not self.depth or (self._is_of_numbers and array.size != 1):
            return
        kept = self._graphs.setdefault(key[0], {}).setdefault(key, {})
        self._graphs.move_to_end(key[0])
        while len(self._graphs) > self._most_graphs:
            self._graphs.popitem(last=False)
        if kept and iteration < next(reversed(kept)):
            return  # an older step is checked once more
        kept[iteration] = array.copy()
        while len(kept) > self.depth + 1:  # this step may be checked once more
            del kept[next(iter(kept))]

    def forget(self, key: Key) -> bool:
        """Let go what is kept of a tensor that its graph's step lacks; whether there was something."""
        return self._graphs.get(key[0], {}).pop(key, None) is not None

    def clear(self) -> None:
        """Let go all, where nobody saw a step."""
        self._graphs.clear()
