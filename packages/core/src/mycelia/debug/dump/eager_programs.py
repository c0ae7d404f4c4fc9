"""Which program a step of eager calls ran: a loop over two networks, or a branch, has several, whose
operators share names and come from other lines, so each is a graph of a dump.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mycelia.engine.observing import Operator
from mycelia.engine.observing.observers import Watched


@dataclass(slots=True)
class _Program:
    of: Watched
    marks: frozenset[int]  # a hash of each operator's name and lines, and of each Parameter's name


class EagerPrograms:
    """The programs that steps of eager calls have run so far."""

    def __init__(self) -> None:
        self._known: dict[int, list[_Program]] = {}  # by the number of the thread's calls, the latest first

    def of(
        self, calls: Watched, operators: Sequence[Operator], parameters: Sequence[str] = ()
    ) -> tuple[Watched, bool]:
        """(the graph that stands for the program, whether it has to be described, at first or anew).

        `calls`: all eager calls of the thread, which the first program keeps; `parameters`: names of those
        that the step read, which alone tell two networks of one class apart that one line calls. A step that
        lacks operators of a program, as one does that broke off or runs a loop less often, is one of it; one
        that has more of them describes it from then on.
        """
        marks = frozenset([*(hash((o.name, o.stack)) for o in operators), *map(hash, parameters)])
        known = self._known.setdefault(calls.number, [])
        for place, program in enumerate(known):
            if marks <= program.marks or program.marks <= marks:
                is_larger = len(marks) > len(program.marks)
                if is_larger:
                    program.marks = marks
                known.insert(0, known.pop(place))
                return program.of, is_larger
        program = _Program(Watched(calls.name) if known else calls, marks)
        known.insert(0, program)
        return program.of, True
