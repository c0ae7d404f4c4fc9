"""Which nodes a search picks: by a part of the name, graph, category and lines of code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mycelia.debug.conditions import is_activation, is_gradient, is_weight
from mycelia_insight.debugger.wrong import Wrong

_CATEGORIES: dict[str, Callable[..., bool]] = {
    "all": lambda *node: True, "weight": is_weight, "gradient": is_gradient, "activation": is_activation,
}  # fmt: skip
_TEXTS = ("name", "graph_name", "stack_info_key_word")


def picked_by(given: Mapping[str, Any]) -> Callable[[str, Any], bool]:
    """Whether the search ``{name, graph_name, node_category, stack_info_key_word}``, each of which may be
    left out, picks a node, given its name with its graph.  Errors: Wrong.
    """
    category = given.get("node_category") or "all"
    if not isinstance(category, str) or category not in _CATEGORIES:
        raise Wrong("5054B081", f"node_category must be one of {sorted(_CATEGORIES)}, but is {category!r}")
    texts = [given.get(key) or "" for key in _TEXTS]
    for key, value in zip(_TEXTS, texts):
        if not isinstance(value, str):
            raise Wrong("5054B081", f"{key} must be a text, but is {value!r}")
    text, graph, stack = texts

    def chosen(name: str, node: Any) -> bool:
        return (
            text.lower() in name.lower() and (not graph or name.startswith(f"{graph}/"))
            and _CATEGORIES[category](node.kind, node.name, node.attributes)
            and (not stack or any(stack in str(line) for line in node.stack))
        )  # fmt: skip

    return chosen


@dataclass(frozen=True)
class Ticked:
    """What a client ticked for a watchpoint: `names` of nodes and scopes, as they came; in `graph`, or in all
    if that is empty; of these what the search picks that was shown, if there was one.
    """

    names: Any
    graph: str = ""
    picked: Callable[[str, Any], bool] | None = None
