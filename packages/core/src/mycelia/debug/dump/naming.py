"""Names of MindSpore 2.0: an operator is the last part of its scope with a number that is its own in the
graph, ``Dense-op3``, so that files and tools which know this part alone tell two layers apart.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable

from mycelia.engine.observing import Operator
from mycelia.engine.observing.observers import Watched


class UniqueNumbers:
    """Gives operators names whose numbers are unique in a graph. `of`: the graph with them."""

    def __init__(self, of: Watched) -> None:
        self._names: dict[str, str] = {}  # those that operators had -> those that they get
        self.of = copy.copy(of)
        self.of.operators = {node: self.of_operator(operator) for node, operator in of.operators.items()}

    def of_operator(self, operator: Operator) -> Operator:
        """`operator` under its new name; one that was not known gets the next number."""
        found = copy.copy(operator)
        number = len(self._names)
        found.name = self._names.setdefault(operator.name, f"{operator.name.rpartition('-op')[0]}-op{number}")
        return found


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
