"""Names of MindSpore 2.0: an operator is the last part of its scope with a number that is its own in the
graph, ``Dense-op3``, so that files and tools which know this part alone tell two layers apart.
"""

from __future__ import annotations

import copy
import itertools
from collections import defaultdict
from collections.abc import Iterable

from mycelia.engine.base.origins import Origin
from mycelia.engine.observing import Operator
from mycelia.engine.observing.observers import Watched


class UniqueNumbers:
    """Gives operators names whose numbers are unique in a graph: their places in the graph as it was
    captured, which passes do not change; of eager calls, the order of first use. `of`: the graph with them.
    """

    def __init__(self, of: Watched) -> None:
        self._names: dict[str, str] = {}  # those that operators had -> those that they get
        self._taken: set[int] = set()
        placed = sorted(of.operators.values(), key=lambda operator: _place(operator) is None)
        for operator in placed:
            self.of_operator(operator)
        self.of = copy.copy(of)
        self.of.operators = {node: self.of_operator(operator) for node, operator in of.operators.items()}

    def of_operator(self, operator: Operator) -> Operator:
        """`operator` under its new name; one that was not known gets a number that is free."""
        found = copy.copy(operator)
        if operator.name not in self._names:
            number = _place(operator)
            if number is None or number in self._taken:
                number = next(n for n in itertools.count(len(self._names)) if n not in self._taken)
            self._taken.add(number)
            self._names[operator.name] = f"{operator.name.rpartition('-op')[0]}-op{number}"
        found.name = self._names[operator.name]
        return found


def _place(operator: Operator) -> int | None:
    """Of an operator of a graph, that among those that were captured."""
    origin = operator.origin
    numbered = origin.numbered if isinstance(origin, Origin) else None
    return None if numbered is None or numbered.kind != operator.type else numbered.place


def numbered_in_scopes(names: Iterable[str]) -> dict[str, str]:
    """Full names of all operators of a graph, by either rule -> those by the rule of 2.10, which counts the
    operators of a type in each scope.
    """
    alike: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in names:
        kind, _, number = name.rpartition("-op")
        if kind and number.isdecimal():
            alike[kind].append((int(number), name))
    return {
        name: f"{kind}-op{place}"
        for kind, numbered in alike.items()
        for place, (_, name) in enumerate(sorted(numbered))
    }
