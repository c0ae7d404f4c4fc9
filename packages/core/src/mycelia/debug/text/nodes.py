"""Commands about nodes: lists, lines of code, neighbours, and why a value is not finite."""

from __future__ import annotations

from collections.abc import Callable

from mycelia.debug.analyzer import Node
from mycelia.debug.conditions import is_activation, is_gradient, is_weight
from mycelia.debug.reading.nonfinite import NonFinite
from mycelia.debug.reading.origins import trace_back
from mycelia.debug.text.commands import command
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen, short
from mycelia.engine.base import errors

_KINDS: dict[str, Callable[..., bool]] = {
    "weights": is_weight,
    "gradients": is_gradient,
    "activations": is_activation,
}
_MOST = 200  # nodes of a list


@command("nodes", "[TEXT] [weights | gradients | activations | bad] [code=TEXT]", also=("ls",))
def _nodes(place: Place, screen: Screen, words: list[str]) -> None:
    """Nodes in order of execution, by a part of the name, what they are, or a part of a line of code. Those
    with values that are not finite in this iteration are marked; `bad` lists these alone.
    """
    bad = {(row.graph, row.op_full_name) for row in _trace(place)}
    found = place.nodes
    for word in words:
        if word in _KINDS:
            found = [n for n in found if _KINDS[word](n.kind, n.name, n.attributes)]
        elif word == "bad":
            found = [n for n in found if (n.graph, n.name) in bad]
        elif word.startswith("code="):
            found = [n for n in found if any(word[5:] in str(line) for line in n.stack)]
        else:
            found = [n for n in found if word.lower() in n.name.lower() or word.lower() == n.kind.lower()]
    _list(place, screen, found, bad)


def _trace(place: Place) -> list[NonFinite]:
    try:
        return place.trace()
    except errors.MyceliaError:  # statistics without counts: no node is known to be bad
        return []


def _list(place: Place, screen: Screen, found: list[Node], bad: set[tuple[int, str]]) -> None:
    place.listed = found[:_MOST]
    if not found:
        screen.line("There is no such node.")
        return
    marked = [i for i, n in enumerate(place.listed) if (n.graph, n.name) in bad]
    graphs = len({n.graph for n in place.nodes}) > 1
    rows = [
        (i + 1, n.kind, f"{n.graph}: {n.name}" if graphs else n.name, "not finite" if i in marked else "")
        for i, n in enumerate(place.listed)
    ]
    screen.table(("", "type", "name", ""), rows, marked)
    if len(found) > _MOST:
        screen.line(f"... and {len(found) - _MOST} more; say more of the name")


@command("stack", "NODE", takes="node", least=1, most=1)
def _stack(place: Place, screen: Screen, words: list[str]) -> None:
    """The lines of code that made a node, the innermost first."""
    node = place.node(words[0])
    screen.line(node.name, "bold")
    if not node.stack:
        screen.line("  No line of code is known: the framework made it.")
    for depth, line in enumerate(node.stack):
        screen.line(f"  {'called from ' if depth else ''}{line.file}:{line.line}: {line.code}")


@command("attributes", "NODE", takes="node", also=("attrs",), least=1, most=1)
def _attributes(place: Place, screen: Screen, words: list[str]) -> None:
    """The attributes of a node, such as the strides of a convolution."""
    node = place.node(words[0])
    screen.line(node.name, "bold")
    if node.attributes:
        screen.table(("attribute", "value"), list(node.attributes.items()))
    else:
        screen.line("  It has no attributes, or the graph does not tell them.")


@command("code", "TEXT", least=1)
def _code(place: Place, screen: Screen, words: list[str]) -> None:
    """The nodes that lines of code with TEXT in them made; TEXT may be FILE:LINE."""
    _nodes(place, screen, [f"code={' '.join(words)}"])


@command("neighbours", "NODE [LEVELS]", takes="node", also=("graph",), least=1, most=2)
def _neighbours(place: Place, screen: Screen, words: list[str]) -> None:
    """What a node reads, and what reads it, over one or more levels, at most 9. The list has numbers."""
    node = place.node(words[0])
    levels = words[1] if len(words) > 1 else "1"
    if not levels.isdecimal() or not 1 <= int(levels) <= 9:
        raise errors.value_error("neighbours", f"LEVELS must be from 1 to 9, but is {levels!r}")
    by_name = {n.name: n for n in place.nodes if n.graph == node.graph}
    readers: dict[str, list[str]] = {}
    for one in by_name.values():
        for feed in dict.fromkeys(one.feeds):
            readers.setdefault(feed, []).append(one.name)
    above = _levels(node.name, lambda name: [f for f in by_name[name].feeds if f in by_name], int(levels))
    below = _levels(node.name, lambda name: readers.get(name, []), int(levels))
    place.listed = [by_name[name] for name in [*above, node.name, *below]]
    depths = [-depth for depth in above.values()] + [0] + list(below.values())
    places = sorted(range(len(depths)), key=lambda i: depths[i])
    place.listed = [place.listed[i] for i in places]
    rows = []
    for i, at in enumerate(places):
        depth = depths[at]
        way = f"reads {-depth}" if depth < 0 else f"read by {depth}" if depth else "*"
        rows.append((i + 1, way, place.listed[i].kind, place.listed[i].name))
    screen.table(("", "way", "type", "name"), rows)


def _levels(start: str, beside: Callable[[str], list[str]], levels: int) -> dict[str, int]:
    """Name -> how far it is; without `start`."""
    found = {start: 0}
    edge = [start]
    for depth in range(1, levels + 1):
        edge = [name for one in edge for name in dict.fromkeys(beside(one)) if name not in found]
        edge = list(dict.fromkeys(edge))
        found.update(dict.fromkeys(edge, depth))
    del found[start]
    return found


@command("why", "[NODE]", takes="node", most=1)
def _why(place: Place, screen: Screen, words: list[str]) -> None:
    """Where the first value of this iteration that is not finite came from, or the way back from NODE to
    where its values came from.
    """
    rows = place.trace()
    if not rows:
        screen.line(f"All values of {place.when()} are finite.", "green")
        return
    way = rows[:1]
    if words:
        node = place.node(words[0])
        mine = [row for row in rows if row.graph == node.graph]
        feeds = {n.name: n.feeds for n in place.nodes if n.graph == node.graph}
        way = trace_back(mine, feeds, node.name)
        if not way:
            screen.line(f"All outputs of {node.name} are finite in {place.when()}.", "green")
            return
    for row in way:
        _tell(screen, row)
    by_name = {(n.graph, n.name): n for n in place.nodes}
    place.listed = [n for row in way if (n := by_name.get((row.graph, row.op_full_name)))]
    if len(rows) > len(way):
        screen.line(f"{len(rows)} kinds of values in all are not finite; `nodes bad` lists their nodes.")


def _tell(screen: Screen, row: NonFinite) -> None:
    made = {True: "made here of finite inputs", False: "read it", None: "its inputs are not known"}[row.born]
    if row.op_type == "Parameter":
        made = "was there when the step began"
    elif row.given:
        made = "a number or a constant of the code is infinite"
    screen.line(
        f"{short(row.op_full_name)}:{row.slot}  {row.kind}  {row.count} of {row.size}  {made}", "bold"
    )
    for line in row.stack:
        screen.line(f"  {line.file}:{line.line}: {line.code}")
