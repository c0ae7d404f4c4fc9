"""What the text interface writes: tables and lines, whatever names a dump has."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mycelia.engine.base import errors


class Screen:
    """Where answers go. `console`: of rich; without a terminal there are no colours."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)

    def line(self, text: str, style: str = "") -> None:
        """A line, which may be longer than the screen."""
        self.console.print(Text(visible(text), style), soft_wrap=True)

    def table(self, heads: Iterable[str], rows: Iterable[Iterable[object]], bad: Iterable[int] = ()) -> None:
        """Rows of cells; those whose places are in `bad` are red."""
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
        for head in heads:
            table.add_column(head, overflow="fold")  # names are whole, so that they can be copied
        marked = set(bad)
        for place, row in enumerate(rows):
            style = "red" if place in marked else ""
            table.add_row(*(Text(visible(str(cell)), style) for cell in row))
        self.console.print(table)


def visible(text: str) -> str:
    """What would move the cursor or change colours, of a hostile dump, is written as Python does."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode("ascii") for c in text
    )


def number(value: float) -> str:
    """Four digits: ten numbers stand beside each other in a terminal of 80 columns."""
    return f"{value:.4g}"


def told(error: errors.MyceliaError) -> str:
    """What was wrong with a command, without a place in a program, since there is none."""
    hint = f"\n  hint: {error.hint}" if error.hint else ""
    return f"{error.subject}: {error.message}{hint}"


def short(name: str) -> str:
    """The end of a full name: the Cell, and the operator in it; what computes a gradient is marked."""
    mark = "grad of " if name.startswith("Gradients/") else ""
    return mark + "/".join(name.split("/")[-3 if mark else -2 :])
