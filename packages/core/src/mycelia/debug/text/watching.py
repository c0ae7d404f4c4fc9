"""Commands about watchpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mycelia.debug.analyzer import Node
from mycelia.debug.conditions import CATALOGUE, condition, error_texts
from mycelia.debug.conditions.recommended import Recommended, parse_changes, recommended, suits
from mycelia.debug.text.commands import command
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen, number, short
from mycelia.engine.base import errors


@command("conditions", most=0)
def _conditions(place: Place, screen: Screen, words: list[str]) -> None:
    """All conditions with their parameters, and what they are about."""
    rows = [
        (c.id, c.abbr, c.target, ", ".join(
            p.name if p.default is None else f"{p.name} ({p.default:g})" for p in c.parameters if not p.hidden
        ))
        for c in CATALOGUE.values()
    ]  # fmt: skip
    screen.table(("condition", "", "about", "parameters (if none is said)"), rows)


@command("recommended", "[WATCHPOINT.PARAMETER=VALUE ...]")
def _recommended(place: Place, screen: Screen, words: list[str]) -> None:
    """What `watch recommended` would watch, with numbers that are changed."""
    rows = [
        (one.name, _bounds(one.given), len(_nodes_of(place, one)))
        for one in recommended(parse_changes(words))
    ]
    screen.table(("watchpoint", "parameters", "nodes"), rows)


def _nodes_of(place: Place, one: Recommended) -> list[Node]:
    return [n for n in place.nodes if one.suits(n.kind, n.name, n.attributes)]


def _bounds(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={v if isinstance(v, str) else number(v)}" for k, v in given.items())


@command(
    "watch", "[CONDITION [PARAMETER=VALUE ...] [TEXT] | recommended [WATCHPOINT.PARAMETER=VALUE ...]]",
    takes="condition", also=("w",),
)  # fmt: skip
def _watch(place: Place, screen: Screen, words: list[str]) -> None:
    """A new watchpoint, on all nodes that its condition is about, or those with TEXT in their names; the
    recommended ones, with numbers that are changed; or a list of those that there are.
    """
    if words[:1] == ["recommended"]:
        for one in recommended(parse_changes(words[1:])):
            nodes = _nodes_of(place, one)
            if nodes:
                place.source.watch(one.condition, dict(one.given), nodes)
    elif words:
        wanted = condition(words[0])
        given, texts = _parsed(words[1:], {p.name for p in wanted.parameters if p.read})
        wanted.values(given)
        nodes = [
            n for n in place.nodes
            if suits(wanted, n.kind, n.name, attributes=n.attributes)
            and all(t.lower() in n.name.lower() for t in texts)
        ]  # fmt: skip
        if not nodes:
            raise errors.value_error("watch", f"{wanted.id} is about no node with {' '.join(texts)!r} in it")
        place.source.watch(wanted, given, nodes)
    watches = place.source.watches
    if not watches:
        screen.line("There are no watchpoints. `conditions` lists what can be watched.")
        return
    rows = [(key, w.condition.id, _bounds(w.given), len(w.nodes)) for key, w in watches.items()]
    screen.table(("", "condition", "parameters", "nodes"), rows)


def _parsed(words: list[str], of_text: set[str]) -> tuple[dict[str, Any], list[str]]:
    given: dict[str, Any] = {}
    texts = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            texts.append(word)
            continue
        if name in of_text:
            given[name] = value
            continue
        try:
            given[name] = {"true": True, "false": False}.get(value.lower(), None)
            if given[name] is None:
                given[name] = float(value)
        except ValueError:
            raise errors.value_error("watch", f"{name} must be a number, but is {value!r}") from None
    return given, texts


@command("unwatch", "N | all", least=1, most=1)
def _unwatch(place: Place, screen: Screen, words: list[str]) -> None:
    """Take a watchpoint away, or all."""
    known = place.source.watches
    if words[0] == "all":
        place.source.unwatch(None)
    elif words[0].isdecimal() and int(words[0]) in known:
        place.source.unwatch(int(words[0]))
    else:
        raise errors.one_of(words[0], [*map(str, known), "all"], subject="unwatch", what="the watchpoint")
    screen.line(f"{len(place.source.watches)} watchpoints are left.")


@command("hits", most=0)
def _hits(place: Place, screen: Screen, words: list[str]) -> None:
    """What hits watchpoints in this iteration: what was set, and what the tensor has."""
    watches = place.source.watches
    if not watches:
        raise errors.value_error("hits", "there are no watchpoints", hint="watch recommended")
    found = place.source.hits(place.rank)
    if not found:
        screen.line(f"No tensor of {place.when()} hits a watchpoint.", "green")
        return
    place.listed = list(dict.fromkeys(tensor.node for _, tensor, _ in found))
    rows, bad = [], []
    for i, (key, tensor, hit) in enumerate(found):
        watch = watches[key]
        told = (
            "; ".join(error_texts(hit.error_code))
            or hit.reason
            or ", ".join(
                f"{p.name}: set {number(p.value)}, is {number(p.actual)}" for p in hit.parameters if p.hit
            )
        )
        at = place.listed.index(tensor.node) + 1
        rows.append((at, f"{short(tensor.node.name)}:{tensor.slot}", key, watch.condition.abbr, told))
        if hit.hit:
            bad.append(i)
    screen.table(("", "tensor", "watchpoint", "", "what it hit"), rows, bad)
