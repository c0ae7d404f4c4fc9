"""Collecting all that hinders a conversion, instead of ending at the first: `--explain`.

While obstacles are collected, a node that cannot be imported or written is noted and passed over; what it
would compute is `UNKNOWN`, and nodes that read it are passed over: in silence, unless their operator is not
known.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from mycelia.ir import Graph, Value
from mycelia_lite.converter.errors import ConversionError

UNKNOWN = object()
_found: ContextVar[list[ConversionError] | None] = ContextVar("obstacles", default=None)
_unknown: ContextVar[frozenset[str]] = ContextVar("unknown operators", default=frozenset())


@contextlib.contextmanager
def collected() -> Iterator[list[ConversionError]]:
    """Notes obstacles in the list, in the order in which they are met."""
    found: list[ConversionError] = []
    token, kinds = _found.set(found), _unknown.set(_unknown.get())
    try:
        yield found
    finally:
        _found.reset(token)
        _unknown.reset(kinds)


@contextlib.contextmanager
def apart() -> Iterator[list[ConversionError]]:
    """While obstacles are collected those met within are noted in a list of their own."""
    if not are_collected():
        yield []
        return
    with collected() as found:
        yield found


def are_collected() -> bool:
    return _found.get() is not None


def note(error: ConversionError) -> bool:
    """Whether the error is noted, so that the conversion goes on; False where it is to be raised."""
    found = _found.get()
    if found is not None and error.args not in [other.args for other in found]:
        found.append(error)
    return found is not None


def expect(kinds: Iterable[str]) -> None:
    """Operators of the file that are not known: each node of them is told, also one that is passed over."""
    _unknown.set(frozenset(kinds))


def is_unknown(kind: str) -> bool:
    return kind in _unknown.get()


def hide(values: Iterable[Any]) -> bool:
    """Whether one of the inputs of a node, lists of them included, is the result of one passed over."""
    return any(hide(v) if isinstance(v, (list, tuple)) else v is UNKNOWN for v in values)


def outputs(graph: Graph, found: Sequence[Value]) -> list[Value]:
    """The outputs of a captured graph: while obstacles are collected all that nothing reads."""
    if not are_collected():
        return list(found)
    read = {v for node in graph.nodes for v in node.inputs}
    return [v for node in graph.nodes for v in node.outputs if v not in read]


def near(name: str, known: Iterable[str]) -> str:
    """What the name may stand for among those that are known."""
    found = difflib.get_close_matches(name, list(known), n=2, cutoff=0.75)
    return f"; near to it {'are' if len(found) > 1 else 'is'} {' and '.join(found)}" if found else ""
