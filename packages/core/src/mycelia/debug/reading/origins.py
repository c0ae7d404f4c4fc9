"""From a value that is not finite back to the operator that made it: "why is this NaN"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mycelia.debug.reading.nonfinite import NonFinite


def trace_back(found: Iterable[NonFinite], feeds: Mapping[str, Sequence[str]], name: str) -> list[NonFinite]:
    """The shortest way from `name` back to what reads finite values alone, or nothing, as arguments do.

    Each reads an output of the one after it.  found: what is not finite in one run of one graph, see
    `trace_nonfinite`.  feeds: full name -> full names of what it reads, in order.  Empty if all outputs of
    `name` are finite.
    """
    rows: dict[str, NonFinite] = {}
    for row in found:
        rows.setdefault(row.op_full_name, row)
    if name not in rows:
        return []
    reader: dict[str, str | None] = {name: None}
    queue = [name]
    for here in queue:  # breadth first; it grows while it is walked
        bad = [feed for feed in feeds.get(here, ()) if feed in rows and feed != here]
        if not bad:
            return _way(rows, reader, here)
        for feed in bad:
            if feed not in reader:
                reader[feed] = here
                queue.append(feed)
    return _way(rows, reader, queue[-1])  # a circle, which no graph of a dump should have


def _way(rows: Mapping[str, NonFinite], reader: Mapping[str, str | None], end: str) -> list[NonFinite]:
    way = []
    at: str | None = end
    while at is not None:
        way.append(rows[at])
        at = reader[at]
    return way[::-1]
