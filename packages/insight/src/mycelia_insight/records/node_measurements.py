"""What core measured of the nodes of a compiled graph, `mycelia/train/summary/node_measurements.py` there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

MOST_WITHIN = 20  # operators of a node's branches that are told
_VERSION = 1
_MOST = 1 << 53  # numbers from here on are no counts


@dataclass(frozen=True, slots=True)
class Within:
    """Outputs of an operator in a node's branches or its loop that were not finite: how many elements.

    name: the full one, as dumps have it.
    """

    name: str
    nan: int
    inf: int
    negative_inf: int
    is_first: bool


@dataclass(frozen=True, slots=True)
class NotFinite:
    """Outputs of a node that were not finite, in the first `step` in which they were: how many elements.

    is_first: it began there, as far as that is known; within: of a node with branches or a loop, operators in
    it of which this is so, those first with which it began.
    """

    step: int
    nan: int = 0
    inf: int = 0
    negative_inf: int = 0
    is_first: bool = False
    within: tuple[Within, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeMeasurements:
    """By full names of nodes. nanoseconds: of a step, the median of `steps` that were timed; fused: the node
    that has the time of one; nonfinite: None if nobody looked; unattributed: those that belong to no node.
    """

    graph: str
    steps: int
    unattributed: int
    nanoseconds: dict[str, int]
    fused: dict[str, str]
    nonfinite: dict[str, NotFinite] | None


def parse(data: bytes) -> NodeMeasurements:
    """Errors: ValueError for what is no such file."""
    told = orjson.loads(data)
    if not isinstance(told, dict) or told.get("version") != _VERSION:
        raise ValueError(f"no measurements of nodes, version {_VERSION}")
    nodes = told.get("nodes")
    if not isinstance(nodes, dict):
        raise ValueError("nodes must be an object")
    nanoseconds: dict[str, int] = {}
    fused: dict[str, str] = {}
    nonfinite: dict[str, NotFinite] = {}
    for name, row in nodes.items():
        if not isinstance(row, dict):
            raise ValueError(f"what is said of node {name[:100]!r} must be an object")
        if "nanoseconds" in row:
            nanoseconds[name] = _count(row, "nanoseconds")
        elif isinstance(row.get("in"), str):
            fused[name] = row["in"]
        if "step" in row:
            counts = (_count(row, kind) for kind in ("step", "nan", "inf", "-inf"))
            nonfinite[name] = NotFinite(*counts, row.get("first") is True, tuple(_within(row, name)))
    return NodeMeasurements(
        str(told.get("graph", "")),
        _count(told, "steps"),
        _count(told, "unattributed"),
        nanoseconds,
        fused,
        nonfinite if told.get("watched") is True else None,
    )


def _within(row: dict[str, Any], name: str) -> Iterator[Within]:
    told = row.get("within", [])
    if not isinstance(told, list) or not all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in told
    ):
        raise ValueError(f"what is within node {name[:100]!r} must be a list of objects with names")
    for one in told[:MOST_WITHIN]:
        counts = (_count(one, kind) for kind in ("nan", "inf", "-inf"))
        yield Within(one["name"], *counts, one.get("first") is True)


def _count(row: dict[str, Any], name: str) -> int:
    found = row.get(name, 0)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < _MOST:
        raise ValueError(f"{name} must be a count, but is {str(found)[:40]!r}")
    return found
