"""Commands about iterations and ranks."""

from __future__ import annotations

from mycelia.debug.text.commands import command
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen
from mycelia.engine.base import errors

_WORDS = ("next", "back", "first", "last", "hit")


@command("steps", most=0)
def _steps(place: Place, screen: Screen, words: list[str]) -> None:
    """All iterations that have values, and their health: how many outputs have values that are not finite."""
    rows, bad = [], []
    for i, iteration in enumerate(place.iterations):
        health = place.source.health(place.rank, iteration)
        is_known = health["unknown"] < health["tensors"] or not health["tensors"]
        sums = [health[kind] for kind in ("nan", "inf", "-inf")]
        here = ">" if iteration == place.iteration else ""
        rows.append((here, iteration, health["tensors"], health["bad"] if is_known else "?", *sums))
        if health["bad"]:
            bad.append(i)
    screen.table(("", place.source.unit, "outputs", "not finite", "nan", "inf", "-inf"), rows, bad)


@command("step", "N | +N | next | back | first | last | hit", also=("iteration",), least=1, most=1)
def _step(place: Place, screen: Screen, words: list[str]) -> None:
    """Look at another iteration, or at the N-th after this one. `hit` goes on to the next one in which a
    watchpoint hits. A running training runs as far as that needs; Ctrl-C ends the waiting for it.
    """
    word, all_ = words[0], place.iterations
    earlier = [one for one in all_ if one < place.iteration]
    if word.isdecimal():
        place.source.go(place.rank, int(word))
    elif word.removeprefix("+").isdecimal() and int(word) > 0:
        place.source.forward(place.rank, int(word))
    elif word == "hit":
        _to_hit(place, screen)
        return
    elif word == "next":
        place.source.forward(place.rank, 1)
    elif word in _WORDS:
        if not (earlier if word == "back" else all_):
            raise errors.value_error("step", f"there is no {place.source.unit} before this one")
        to = {"back": earlier[-1:], "first": all_[:1], "last": all_[-1:]}[word]
        place.source.go(place.rank, to[0])
    else:
        raise errors.one_of(word, ["N", "+N", *_WORDS], subject="step", what="the iteration")
    tell(place, screen)


@command("next", also=("n",), most=0)
def _next(place: Place, screen: Screen, words: list[str]) -> None:
    """The next iteration, which a running training runs; within a step of it, the rest of that."""
    _step(place, screen, ["next"])


@command("back", also=("b",), most=0)
def _back(place: Place, screen: Screen, words: list[str]) -> None:
    """The iteration before."""
    _step(place, screen, ["back"])


@command("continue", also=("c",), most=0)
def _continue(place: Place, screen: Screen, words: list[str]) -> None:
    """On to the next iteration in which a watchpoint hits; without one a running training goes to its end."""
    _step(place, screen, ["hit"])


def _to_hit(place: Place, screen: Screen) -> None:
    if not (place.source.watches or place.source.is_live):
        raise errors.value_error("step", "there are no watchpoints", hint="watch recommended")
    if place.source.to_hit(place.rank):
        count = len(place.source.hits(place.rank))
        screen.line(f"{place.source.where()}: {count} hits; `hits` shows them")
    else:
        screen.line(f"No later {place.source.unit} has a hit.")
        if place.source.is_live:
            tell(place, screen)


def tell(place: Place, screen: Screen) -> None:
    """Where one is now; of a training also what hits there, since that has stopped it."""
    source = place.source
    count = len(source.hits(place.rank)) if source.is_live and source.watches else 0
    screen.line(source.where() + (f": {count} hits; `hits` shows them" if count else ""))


@command("rank", "[N]", most=1)
def _rank(place: Place, screen: Screen, words: list[str]) -> None:
    """Which ranks there are, or look at another one."""
    ranks = place.source.get_ranks()
    if words:
        if not words[0].isdecimal() or int(words[0]) not in ranks:
            raise errors.one_of(words[0], [str(rank) for rank in ranks], subject="rank", what="the rank")
        before, place.rank = place.rank, int(words[0])
        if place.rank != before:
            place.listed = []
            place.source.refresh(place.rank)
            if place.iterations and place.iteration not in place.iterations:
                place.source.go(place.rank, place.iterations[0])
    screen.line(f"rank {place.rank} of {', '.join(map(str, ranks))}, {place.source.where()}")
