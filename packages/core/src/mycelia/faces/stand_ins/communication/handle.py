"""What a collective that was started asynchronously gives back."""

from __future__ import annotations

from collections.abc import Callable


class CommHandle:
    """An operation that was started: `wait()` comes back when it is done.

    Collectives are done when they return; only what `irecv` receives comes with `wait`.
    """

    def __init__(self, finish: Callable[[], None] | None = None) -> None:
        self._finish = finish

    def wait(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()


def done(async_op: bool) -> CommHandle | None:
    """What a collective returns beside its result."""
    return CommHandle() if async_op else None
