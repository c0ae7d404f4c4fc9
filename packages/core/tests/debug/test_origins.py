"""The way back from a value that is not finite."""

from __future__ import annotations

from mycelia.debug.reading.nonfinite import NonFinite
from mycelia.debug.reading.origins import trace_back


def row(name: str) -> NonFinite:
    return NonFinite(name, "Add", 0, 0, "nan", 1, 1, None, 0, 0, ())


def way(bad: str, feeds: dict[str, list[str]], name: str) -> str:
    return "".join(one.op_full_name for one in trace_back([row(n) for n in bad], feeds, name))


def test_the_way_goes_over_what_is_not_finite_alone():
    feeds = {"d": ["x", "c"], "c": ["y", "b"], "b": ["a"], "a": ["z"]}
    assert way("abcd", feeds, "d") == "dcba"
    assert way("cd", feeds, "d") == "dc"


def test_the_shortest_way_is_told():
    assert way("abcde", {"e": ["d", "a"], "d": ["c"], "c": ["b"], "b": []}, "e") == "ea"


def test_what_is_finite_or_unknown_has_no_way():
    assert way("a", {}, "b") == "" and way("a", {}, "a") == "a" and way("", {}, "a") == ""


def test_circles_end():
    assert way("abc", {"a": ["b"], "b": ["c"], "c": ["a", "c"]}, "a") == "abc"
