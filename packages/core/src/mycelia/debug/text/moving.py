"""Commands about iterations and ranks."""

from __future__ import annotations

from mycelia.debug.text.commands import command
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen
from mycelia.debug.text.watching import hits_of
from mycelia.engine.base import errors

_WORDS = ("next", "back", "first", "last", "hit")


@command("steps", most=0)
def _steps(place: Place, screen: Screen, words: list[str]) -> None:
    """All iterations that were dumped, and their health: how many outputs have values that are not finite."""
    rows, bad = [], []
    for i, iteration in enumerate(place.iterations):
        outputs = [
            record for step in place.analyzer.dump.steps
            if (step.rank, step.iteration) == (place.rank, iteration)
            for record in step.records() if record.io == "output"
        ]  # fmt: skip
        counts = [record.nonfinite() for record in outputs]
        known = [count for count in counts if count is not None]
        sums = [sum(count.get(kind, 0) for count in known) for kind in ("nan", "inf", "-inf")]
        here = ">" if iteration == place.iteration else ""
        odd = sum(map(bool, known)) if known or not outputs else "?"
        rows.append((here, iteration, len(outputs), odd, *sums))
        if odd and odd != "?":
            bad.append(i)
    screen.table(("", "iteration", "outputs", "not finite", "nan", "inf", "-inf"), rows, bad)


@command("step", "N | next | back | first | last | hit", also=("iteration",), least=1, most=1)
def _step(place: Place, screen: Screen, words: list[str]) -> None:
    """Look at another iteration. `hit` goes on to the next one in which a watchpoint hits."""
    word, all_ = words[0], place.iterations
    if word.isdecimal():
        place.go(int(word))
    elif word == "hit":
        _to_hit(place, screen)
        return
    elif word in _WORDS:
        at = all_.index(place.iteration)
        to = {"next": at + 1, "back": at - 1, "first": 0, "last": len(all_) - 1}[word]
        if not 0 <= to < len(all_):
            side = "before" if to < 0 else "after"
            raise errors.value_error("step", f"there is no iteration {side} this one")
        place.go(all_[to])
    else:
        raise errors.one_of(word, ["N", *_WORDS], subject="step", what="the iteration")
    screen.line(f"iteration {place.iteration}")


@command("next", also=("n",), most=0)
def _next(place: Place, screen: Screen, words: list[str]) -> None:
    """The next iteration that was dumped."""
    _step(place, screen, ["next"])


@command("back", also=("b",), most=0)
def _back(place: Place, screen: Screen, words: list[str]) -> None:
    """The iteration before."""
    _step(place, screen, ["back"])


def _to_hit(place: Place, screen: Screen) -> None:
    if not place.watches:
        raise errors.value_error("step", "there are no watchpoints", hint="watch recommended")
    for iteration in (one for one in place.iterations if one > place.iteration):
        count = len(hits_of(place, iteration))
        if count:
            place.go(iteration)
            screen.line(f"iteration {iteration}: {count} hits; `hits` shows them")
            return
    screen.line("No later iteration has a hit.")


@command("rank", "[N]", most=1)
def _rank(place: Place, screen: Screen, words: list[str]) -> None:
    """Which ranks there are, or look at another one."""
    ranks = place.analyzer.get_ranks()
    if words:
        if not words[0].isdecimal() or int(words[0]) not in ranks:
            raise errors.one_of(words[0], [str(rank) for rank in ranks], subject="rank", what="the rank")
        before, place.rank = place.rank, int(words[0])
        if place.rank != before:
            place.listed = []
            if place.iteration not in place.iterations:
                place.iteration = place.iterations[0]
    screen.line(f"rank {place.rank} of {', '.join(map(str, ranks))}, iteration {place.iteration}")
