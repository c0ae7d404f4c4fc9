"""The field `conditions` of a dump's configuration: what its entries must be."""

from __future__ import annotations

from typing import Any

from mycelia.debug.conditions import condition
from mycelia.engine.base import errors

_KEYS = ("condition", "params", "nodes")


def checked(entries: Any) -> tuple[dict[str, Any], ...]:
    """The entries, ``{"condition": "tensor_overflow", "params": {...}, "nodes": [...]}`` each.

    Errors: ValueError that names the entry's field and what it may be.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _invalid("conditions", "a list of objects", entries)
    for place, entry in enumerate(entries):
        _check(f"conditions[{place}]", entry)
    return tuple(entries)


def _check(where: str, entry: dict[str, Any]) -> None:
    if set(entry) - set(_KEYS) or not isinstance(entry.get("condition"), str):
        expected = "an object with 'condition', a text, and 'params' and 'nodes' if they like"
        raise _invalid(where, expected, entry)
    params, nodes = entry.get("params", {}), entry.get("nodes", [])
    if not isinstance(params, dict) or not all(isinstance(key, str) for key in params):
        raise _invalid(f"{where}.params", "an object of parameters and numbers or texts", params)
    if not isinstance(nodes, list) or not all(isinstance(part, str) for part in nodes):
        raise _invalid(f"{where}.nodes", "a list of parts of operators' names", nodes)
    try:
        found = condition(entry["condition"])
    except errors.MyceliaError as cause:
        raise _refused(f"{where}.condition", cause) from None
    try:
        found.values(params)
    except errors.MyceliaError as cause:
        raise _refused(f"{where}.params", cause) from None
    if found.compares_ranks:
        expected = f"about one rank, and {found.id} compares several: ask a DumpAnalyzer of their dumps"
        raise _invalid(f"{where}.condition", expected, entry["condition"])


def _invalid(name: str, expected: str, got: Any) -> Exception:
    return errors.value_error("dump_config", f"the field '{name}' must be {expected}, but got {shown(got)}")


def _refused(name: str, cause: errors.MyceliaError) -> Exception:
    return errors.value_error(
        "dump_config", f"the field '{name}' is none: {cause.subject}: {cause.message}", hint=cause.hint
    )


def shown(value: Any) -> str:
    """As Python writes it; long ones are cut."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"
