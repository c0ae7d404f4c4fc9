"""Output for people."""

from __future__ import annotations

WIDE = 10_000  # columns where nobody's window sets a limit


def console():
    """A `rich.console.Console` on standard output. What is no terminal gets whole lines.

    Text is shown as it is: "[Errno 2]" is no markup.
    """
    from rich.console import Console

    made = Console(markup=False, emoji=False)
    if not made.is_terminal:
        made.width = WIDE
    return made
