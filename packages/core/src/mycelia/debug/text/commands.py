"""The table of commands of the text interface, and how a line is read."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen, told
from mycelia.engine.base import errors

Run = Callable[[Place, Screen, list[str]], None]


@dataclass(frozen=True)
class Command:
    """A command. `takes`: what its arguments are, for completion: "node", "tensor", "condition" or ""."""

    name: str
    usage: str
    about: str
    run: Run
    takes: str = ""
    also: tuple[str, ...] = ()
    least: int = 0  # arguments that it needs
    most: int = 99


COMMANDS: dict[str, Command] = {}
_ALIASES: dict[str, str] = {}


def command(
    name: str, usage: str = "", takes: str = "", also: tuple[str, ...] = (), least: int = 0, most: int = 99
) -> Callable[[Run], Run]:
    """Make a function a command; its docstring is its help."""

    def decorate(run: Run) -> Run:
        about = " ".join((run.__doc__ or "").split())
        COMMANDS[name] = Command(name, f"{name} {usage}".strip(), about, run, takes, also, least, most)
        _ALIASES.update(dict.fromkeys(also, name))
        return run

    return decorate


def find(name: str) -> Command:
    """The command with this name, alias or beginning.  Errors: ValueError."""
    found = COMMANDS.get(_ALIASES.get(name, name))
    if found is None:
        beginning = [one for one in COMMANDS if one.startswith(name)]
        if len(beginning) != 1:
            raise errors.one_of(name, sorted(COMMANDS), subject="mycelia-debug", what="the command")
        found = COMMANDS[beginning[0]]
    return found


def run_line(place: Place, screen: Screen, line: str) -> bool:
    """Run one line; False if it was wrong, which is told."""
    try:
        words = split(line)
        if words:
            run_words(place, screen, words)
        return True
    except errors.MyceliaError as error:
        screen.line(told(error), "red")
        return False


def split(line: str) -> list[str]:
    """Words, as a shell has them; those within ``[...]`` are one.  Errors: ValueError."""
    try:
        words = shlex.split(line)
    except ValueError as cause:
        raise errors.value_error("mycelia-debug", f"{line!r} cannot be read: {cause}") from None
    return list(_joined(words))


def _joined(words: list[str]) -> Iterator[str]:
    held: list[str] = []
    for word in words:
        if held or ("[" in word and "]" not in word):
            held.append(word)
            if "]" in word:
                yield " ".join(held)
                held = []
        else:
            yield word
    if held:
        yield " ".join(held)


def run_words(place: Place, screen: Screen, words: list[str]) -> None:
    """Errors: ValueError for what is no command, or has other arguments."""
    found, arguments = find(words[0]), words[1:]
    if not found.least <= len(arguments) <= found.most:
        raise errors.value_error(found.name, f"it is used so: {found.usage}")
    place.source.refresh(place.rank)
    found.run(place, screen, arguments)


@command("help", "[COMMAND]", also=("h", "?"), most=1)
def _help(place: Place, screen: Screen, words: list[str]) -> None:
    """What there is, or what one command does."""
    if words:
        one = find(words[0])
        also = f"   (also {', '.join(one.also)})" if one.also else ""
        screen.line(f"{one.usage}{also}\n  {one.about}")
        return
    screen.table(
        ("command", "what it does"), [(c.usage, c.about.partition(".")[0]) for c in COMMANDS.values()]
    )
    screen.line(
        "NODE is a number of the last list, a name or the end or a part of one; TENSOR is NODE, NODE:SLOT or "
        "NODE:input:SLOT."
    )
