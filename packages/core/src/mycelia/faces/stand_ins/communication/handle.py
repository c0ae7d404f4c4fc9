"""What a collective that was started asynchronously gives back."""

from __future__ import annotations


class CommHandle:
    """An operation that was started: `wait()` comes back when it is done."""

    def wait(self) -> None:
        """All is done already: no other process takes part."""


def done(async_op: bool) -> CommHandle | None:
    """What a collective returns beside its result."""
    return CommHandle() if async_op else None
