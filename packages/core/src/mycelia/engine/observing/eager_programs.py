"""Which program a step of eager calls ran: a loop over two networks, or a branch, has several, whose
operators share names and come from other lines, so each is a graph to those who watch.
"""

from __future__ import annotations

from collections.abc import Iterable

from mycelia.engine.observing.observers import Operator, Watched


class EagerPrograms:
    """The programs that steps of a thread's eager calls have run so far. `calls`: what stands for them all,
    which the first program keeps.
    """

    def __init__(self, calls: Watched) -> None:
        self.calls = calls
        # With a hash of each operator's name and lines, and of each Parameter's name; in order, so that steps
        # that fit several go on being of the first: its watchpoints hold although one step had more calls.
        self._marked: list[tuple[Watched, frozenset[int]]] = []

    def of(self, operators: Iterable[Operator], parameters: Iterable[str]) -> Watched:
        """The graph that stands for the program of these calls.

        `parameters`: names of those that the calls read, which alone tell two networks of one class apart
        that one line calls. Calls that lack operators of a program, as those of a step do that broke off,
        goes on or runs a loop less often, are of it.
        """
        marks = _marks(operators, parameters)
        places = (i for i, (_, known) in enumerate(self._marked) if marks <= known or known <= marks)
        place = next(places, None)
        if place is None:
            self._marked.append((Watched(self.calls.name) if self._marked else self.calls, marks))
            return self._marked[-1][0]
        of, known = self._marked[place]
        self._marked[place] = of, marks | known
        return of

    def of_which_are(self, operators: Iterable[Operator], parameters: Iterable[str]) -> list[Watched]:
        """The known programs that have all these calls; where nothing is known, what stands for all calls."""
        marks = _marks(operators, parameters)
        return [of for of, known in self._marked if marks <= known] or [self.calls]


def _marks(operators: Iterable[Operator], parameters: Iterable[str]) -> frozenset[int]:
    return frozenset([*(hash((o.name, o.stack)) for o in operators), *map(hash, parameters)])
