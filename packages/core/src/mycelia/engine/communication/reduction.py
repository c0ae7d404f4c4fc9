"""A reduction that was started (`reducing.py`), as far as it has come."""

from __future__ import annotations

import numpy as np

from mycelia.engine.communication.direct import Direct
from mycelia.engine.communication.recipes import Recipe
from mycelia.engine.communication.shared import Placed
from mycelia.engine.communication.transport import GIVEN

NO_ELEMENTS = np.empty(0, np.uint8)


class Reduction:
    """A reduction on its way. `parts`: what came in this round, by member; `awaited`: from whom it has not;
    `opening`: members that have still to open memory that is new to them; `total`: the sums, when they are
    there; `is_taken`: somebody makes them; `direct`: by which such sums go when all have opened its memory,
    of which this one shows a `room`, if it is not -1.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.what, self.cuts = recipe, recipe.what, recipe.cuts
        self.phase = GIVEN
        self.own = NO_ELEMENTS  # all elements of this member
        self.place: Placed | None = None  # where the others see them
        self.parts: list[np.ndarray | None] = []
        self.awaited: set[int] = set()
        self.opening: set[int] = set()
        self.early: list[tuple[int, np.ndarray]] = []  # sums that came before the first round was over
        self.total: np.ndarray | None = None
        self.is_taken = False
        self.failure: BaseException | None = None
        self.direct: Direct | None = None
        self.room = -1

    def begin(self, rank: int, size: int) -> None:
        """`own` is there: those of the others of `size` members are awaited."""
        self.parts = [None] * size
        self.parts[rank] = self.own[self.cuts[rank]] if self.cuts else self.own
        self.awaited = set(range(size)) - {rank}

    @property
    def is_ready(self) -> bool:
        """Whether there is something to add, and nobody does."""
        return not self.awaited and self.total is None and not self.is_taken and self.failure is None
