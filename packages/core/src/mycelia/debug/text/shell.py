"""The prompt of the text interface, with completion and a history where prompt_toolkit is there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mycelia.debug.conditions import CATALOGUE
from mycelia.debug.conditions.recommended import recommended
from mycelia.debug.text import (  # noqa: F401 - they fill the table
    driving,
    health,
    index,
    moving,
    nodes,
    tensors,
    watching,
)
from mycelia.debug.text.commands import COMMANDS, find, run_line, run_words
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen, visible
from mycelia.debug.text.source import Source
from mycelia.engine.base import errors

_END = ("quit", "exit", "q")
_MOST_CHOICES = 200


def run_command(source: Source, words: list[str], iteration: int | None = None) -> None:
    """One command, as arguments of ``mycelia-debug DIR``; of the iteration that the source is at if none is
    said.

    Errors: ValueError.
    """
    place = Place(source)
    if iteration is not None:
        source.go(place.rank, iteration)
    run_words(place, Screen(), words)


def run_shell(source: Source, screen: Screen | None = None) -> None:
    """Read commands until the end."""
    place, shown = Place(source), screen or Screen()
    ask = _reader(place)
    shown.line("Commands over " + source.about + ": help, quit.")
    with contextlib.suppress(EOFError):
        while True:
            try:
                line = ask(f"{visible(source.where())}> ").strip()
                if line in _END:
                    break
                run_line(place, shown, line)
            except KeyboardInterrupt:  # ends what runs, or the line that is typed
                shown.line("")


def _reader(place: Place) -> Callable[[str], str]:
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
    except ImportError:
        return input

    class Choices(Completer):
        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Any]:
            word = document.text_before_cursor.rpartition(" ")[2]
            for choice in choices(place, document.text_before_cursor):
                yield Completion(choice, start_position=-len(word), display=visible(choice))

    def bar() -> str:
        source, all_ = place.source, place.iterations
        shown = f"{all_[0]}..{all_[-1]}" if all_ else "none"
        return visible(
            f"{source.title}  rank {place.rank}  {source.unit}s {shown}  watchpoints {len(source.watches)}"
        )

    session: Any = PromptSession(completer=Choices(), complete_while_typing=False, bottom_toolbar=bar)
    return session.prompt


def choices(place: Place, text: str) -> list[str]:
    """What may stand at the end of a line that has begun so."""
    words = text.split(" ")
    if len(words) == 1:
        return [name for name in (*COMMANDS, "quit") if name.startswith(words[0])]
    try:
        takes = find(words[0]).takes
    except errors.MyceliaError:
        return []
    found: Iterable[str] = ()
    if words[0] == "help":
        found = COMMANDS
    elif words[0] == "recommended" or (words[1] == "recommended" and len(words) > 2):
        found = (f"{one.name}.{parameter}=" for one in recommended() for parameter in one.given)
    elif takes == "condition":
        known = CATALOGUE.get(words[1])
        parameters = [f"{p.name}=" for p in known.parameters if not p.hidden] if known else []
        found = (*CATALOGUE, "recommended") if len(words) == 2 else parameters
    elif takes and len(words) == 2:
        found = (node.name for node in place.nodes)
    begun = words[-1].lower()
    fits = (
        one
        for one in found
        if (begun in one.lower() if takes in ("node", "tensor") else one.startswith(begun))
    )
    return [one for one, _ in zip(fits, range(_MOST_CHOICES), strict=False)]
