"""Names of MindSpore 2.0: an operator is the last part of its scope with a number that is its own in the
graph, ``Dense-op3``, so that files and tools which know this part alone tell two layers apart.
"""

from __future__ import annotations

import copy

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
