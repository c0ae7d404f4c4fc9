"""Which program a step of eager calls ran: a loop over two networks, or a branch, has several, whose
operators share names and come from other lines, so each is a graph to those who watch.
"""

from __future__ import annotations

from collections.abc import Iterable

from mycelia.engine.observing.observers import Operator, Watched

_MOST = 32  # programs that are known; each has a mark for every operator


class EagerPrograms:
    """The programs that steps of a thread's eager calls have run of late. `calls`: what stands for them all,
    which the first program keeps. Of code whose every step is another program the one that ran least
    recently is forgotten; should it run again, it is a new one.
    """

    def __init__(self, calls: Watched) -> None:
        self.calls = calls
        # With a hash of each operator's name and lines, and of each Parameter's name; in order, so that steps
        # that fit several go on being of the first: its watchpoints hold although one step had more calls.
        self._marked: list[tuple[Watched, frozenset[int]]] = []
        self._ran: list[int] = []  # the numbers of these programs, that which ran last at the end

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
            self._forget_oldest()
            of = Watched(self.calls.name) if self._ran else self.calls
            self._marked.append((of, marks))
        else:
            of, known = self._marked[place]
            self._marked[place] = of, marks | known
            self._ran.remove(of.number)
        self._ran.append(of.number)
        return of

    def _forget_oldest(self) -> None:
        while len(self._marked) >= _MOST:
            gone = self._ran.pop(0)
            self._marked = [entry for entry in self._marked if entry[0].number != gone]

    def of_which_are(self, operators: Iterable[Operator], parameters: Iterable[str]) -> list[Watched]:
        """The known programs that have all these calls; where nothing is known, what stands for all calls."""
        marks = _marks(operators, parameters)
        return [of for of, known in self._marked if marks <= known] or [self.calls]


def _marks(operators: Iterable[Operator], parameters: Iterable[str]) -> frozenset[int]:
    return frozenset([*(hash((o.name, o.stack)) for o in operators), *map(hash, parameters)])
