"""Conditions that users write: comparisons of a tensor's measures, such as ``max > 10 * previous.max``.

Grammar, the loosest first; there are no calls, indices or attributes but `previous`, and nothing is evaluated
by Python::

    or:          and {"or" and}
    and:         not {"and" not}
    not:         "not" not | comparison
    comparison:  sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum:         product {("+" | "-") product}
    product:     sign {("*" | "/") sign}
    sign:        "-" sign | number | name | "previous." name | "(" or ")"
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mycelia.engine.base import errors

#: Counts of elements that are no finite numbers: with these an expression is about finite elements else.
NOT_FINITE = ("nan", "inf")
_MEASURES: dict[str, Callable[[np.ndarray], Any]] = {  # of finite elements, float64
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "std": np.std,
    "abs_mean": lambda x: np.mean(np.abs(x)),
    "l2norm": np.linalg.norm,
    "zero_percentage": lambda x: 100.0 * np.count_nonzero(x == 0) / x.size,
}
NAMES = (*_MEASURES, "count", *NOT_FINITE)
_PREVIOUS = "previous."
_LONGEST, _DEEPEST = 1000, 50

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]*)?)"
    r"|(?P<sign><=|>=|==|!=|[-+*/<>()])|(?P<end>$)|(?P<other>.))",
    re.DOTALL,
)
_COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_SUMS = {"+": np.add, "-": np.subtract}
_PRODUCTS = {"*": np.multiply, "/": np.divide}
_WORDS = ("and", "or", "not")

_Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece that was read. `is_truth`: it gives a truth, not a number."""

    value: Callable[[_Values], Any]
    is_truth: bool
    position: int


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition as it was read. `names`: the measures that it reads, in order of appearance."""

    text: str
    names: tuple[str, ...]
    _part: _Part

    @property
    def needs_previous(self) -> bool:
        return any(name.startswith(_PREVIOUS) for name in self.names)

    @property
    def counts_not_finite(self) -> bool:
        """Whether it asks for NaN or infinities, and so is about tensors that have them."""
        return any(name.removeprefix(_PREVIOUS) in NOT_FINITE for name in self.names)

    def measured(self, array: np.ndarray, previous: np.ndarray | None) -> dict[str, float]:
        """The value of each name; NaN for a measure of no finite elements."""
        found = {}
        finite: dict[bool, np.ndarray] = {}
        for name in self.names:
            is_before = name.startswith(_PREVIOUS)
            of = previous if is_before else array
            if is_before not in finite:
                finite[is_before] = _finite(np.asarray(of))
            found[name] = _measure(name.removeprefix(_PREVIOUS), np.asarray(of), finite[is_before])
        return found

    def holds(self, values: _Values) -> bool:
        """Whether it is true. Divisions by zero give infinities or NaN; comparisons with NaN are false, all
        but ``!=``.
        """
        with np.errstate(all="ignore"):
            return bool(self._part.value(values))


def _finite(array: np.ndarray) -> np.ndarray:
    x = np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64)
    return x[np.isfinite(x)]


def _measure(name: str, array: np.ndarray, finite: np.ndarray) -> float:
    if name == "count":
        return float(array.size)
    if name in NOT_FINITE:
        test = np.isnan if name == "nan" else np.isinf
        return float(np.count_nonzero(test(array))) if array.dtype.kind in "fc" else 0.0
    return float(_MEASURES[name](finite)) if finite.size else float("nan")


@lru_cache(maxsize=256)
def parse(text: str) -> Expression:
    """Read a condition.  Errors: ValueError that says at which position what was expected."""
    if len(text) > _LONGEST:
        raise errors.value_error(
            "expression", f"it must have at most {_LONGEST} characters, but has {len(text)}"
        )
    reader = _Reader(text)
    part = reader.any()
    if reader.kind != "end":
        reader.fail("an operator or the end")
    if not part.is_truth:
        reader.wants(part, True)
    return Expression(text, tuple(dict.fromkeys(reader.names)), part)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []
        self.depth = 0
        self.end = 0
        self.next()

    def next(self) -> None:
        match = _TOKEN.match(self.text, self.end)
        assert match is not None  # it takes any character, and the end
        self.kind: str = match.lastgroup or "end"
        self.token = match[self.kind]
        self.position, self.end = match.start(self.kind), match.end()

    def fail(self, expected: str, position: int | None = None, found: str | None = None) -> Any:
        at = self.position if position is None else position
        token = found or self.token
        got = repr(token) if token else "the end"
        raise errors.value_error(
            "expression", f"expected {expected} at position {at + 1} of {self.text!r}, but found {got}"
        )

    def takes(self, *tokens: str) -> str | None:
        """The token, if it is one of these; it is read then."""
        found = self.token if self.kind in ("name", "sign") and self.token in tokens else None
        if found:
            self.next()
        return found

    def wants(self, part: _Part, is_truth: bool) -> _Part:
        if part.is_truth != is_truth:
            kind = "a comparison, such as max > 1," if is_truth else "a number"
            self.fail(kind, part.position, self.text[part.position :].split()[0])
        return part

    def any(self) -> _Part:
        return self.joined(self.all, "or", lambda a, b: lambda v: a(v) or b(v))

    def all(self) -> _Part:
        return self.joined(self.negated, "and", lambda a, b: lambda v: a(v) and b(v))

    def joined(self, read: Callable[[], _Part], word: str, join: Callable) -> _Part:
        left = read()
        while self.takes(word):
            a, b = self.wants(left, True).value, self.wants(read(), True).value
            left = _Part(join(a, b), True, left.position)
        return left

    def negated(self) -> _Part:
        at = self.position
        if not self.takes("not"):
            return self.comparison()
        inner = self.nested(lambda: self.wants(self.negated(), True)).value
        return _Part(lambda v: not inner(v), True, at)

    def comparison(self) -> _Part:
        left = self.sum()
        sign = self.takes(*_COMPARISONS)
        if sign is None:
            return left
        a, b = self.wants(left, False).value, self.wants(self.sum(), False).value
        if self.kind == "sign" and self.token in _COMPARISONS:
            self.fail("'and', 'or' or the end")
        compare = _COMPARISONS[sign]
        return _Part(lambda v: compare(a(v), b(v)), True, left.position)

    def sum(self) -> _Part:
        return self.chain(lambda: self.chain(self.signed, _PRODUCTS), _SUMS)

    def chain(self, read: Callable[[], _Part], signs: Mapping[str, Callable]) -> _Part:
        left = read()
        while sign := self.takes(*signs):
            a, b = self.wants(left, False).value, self.wants(read(), False).value
            left = _Part(_applied(signs[sign], a, b), False, left.position)
        return left

    def signed(self) -> _Part:
        at = self.position
        if not self.takes("-"):
            return self.atom()
        inner = self.nested(lambda: self.wants(self.signed(), False)).value
        return _Part(lambda v: -inner(v), False, at)

    def nested(self, read: Callable[[], _Part]) -> _Part:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"at most {_DEEPEST} levels of '(', '-' and 'not'")
        found = read()
        self.depth -= 1
        return found

    def atom(self) -> _Part:
        at, token = self.position, self.token
        if self.takes("("):
            found = self.nested(self.any)
            if not self.takes(")"):
                self.fail("')'")
            return _Part(found.value, found.is_truth, at)
        if self.kind == "number":
            self.next()
            number = np.float64(token)
            return _Part(lambda v: number, False, at)
        if self.kind != "name" or token in _WORDS:
            self.fail("a number, a name or '('")
        if token.removeprefix(_PREVIOUS) not in NAMES:
            self.fail(f"one of the names {', '.join(NAMES)}, or previous. and one of them")
        self.next()
        self.names.append(token)
        return _Part(lambda v: np.float64(v[token]), False, at)


def _applied(apply: Callable, a: Callable[[_Values], Any], b: Callable[[_Values], Any]) -> Callable:
    return lambda values: apply(a(values), b(values))
