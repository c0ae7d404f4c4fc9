"""Which runs are wanted: `loss < 0.1 and optimizer == "Adam"`; a parser of its own, nothing is evaluated.

    query   = and ("or" and)*
    and     = not ("and" not)*
    not     = "not" not | "(" query ")" | compare
    compare = name ("==" | "!=" | "<" | "<=" | ">" | ">=") value
            | name ["not"] "in" "[" value ("," value)* "]"
            | name ["not"] "contains" text
    value   = number | "text" | 'text' | true | false | none

A name is letters, digits and _ . / -, or anything between back quotes. A value that a run does not have
equals `none` and nothing else; values of different kinds are unequal, and none of them is the lesser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Lookup = Callable[[str], Any]
Query = Callable[[Lookup], bool]

_MOST_CHARACTERS, _DEEPEST = 4000, 50
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<name>[^\W\d][\w./-]*|`[^`]+`)
    | (?P<sign>==|!=|<=|>=|<|>|\(|\)|\[|\]|,)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"and", "or", "not", "in", "contains"}
_CONSTANTS = {"true": True, "false": False, "none": None}
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


class QueryError(ValueError):
    """What is wrong with a query, and where: `at` counts characters from 0."""

    def __init__(self, text: str, at: int):
        super().__init__(f"{text} at character {at + 1}")
        self.at = at


def parse(text: str) -> Query:
    """The query that a text says; an empty one is true of every run.  Errors: QueryError."""
    if len(text) > _MOST_CHARACTERS:
        raise QueryError(f"a query has at most {_MOST_CHARACTERS} characters", _MOST_CHARACTERS)
    return _Parser(text).parse() if text.strip() else lambda _: True


class _Parser:
    def __init__(self, text: str):
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        end = len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            if found is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise QueryError(f"{text[at : at + 20]!r} is not understood", at)
            kind = str(found.lastgroup)
            value = found[kind]
            is_word = kind == "name" and value in _WORDS
            self._tokens.append(("word" if is_word else kind, value, found.start(kind)))
            at = found.end()
        self._tokens.append(("end", "", end))
        self._at = self._depth = 0

    def parse(self) -> Query:
        found = self._any()
        if self._next[0] != "end":
            raise self._expected("'and', 'or' or the end")
        return found

    @property
    def _next(self) -> tuple[str, str, int]:
        return self._tokens[self._at]

    def _take(self, *values: str) -> str:
        """The next token if it is one of these words or signs, else nothing."""
        kind, value, _ = self._next
        if kind in ("word", "sign") and value in values:
            self._at += 1
            return value
        return ""

    def _need(self, value: str) -> None:
        if not self._take(value):
            raise self._expected(f"'{value}'")

    def _expected(self, what: str) -> QueryError:
        kind, value, at = self._next
        return QueryError(f"{what} is expected, not {'the end' if kind == 'end' else repr(value[:40])}", at)

    def _any(self) -> Query:
        parts = [self._all()]
        while self._take("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda of: any(part(of) for part in parts)

    def _all(self) -> Query:
        parts = [self._one()]
        while self._take("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda of: all(part(of) for part in parts)

    def _one(self) -> Query:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise QueryError(f"a query is at most {_DEEPEST} brackets deep", self._next[2])
        if self._take("not"):
            inner = self._one()
            found: Query = lambda of: not inner(of)
        elif self._take("("):
            found = self._any()
            self._need(")")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> Query:
        kind, name, _ = self._next
        if kind != "name":
            raise self._expected("a name")
        self._at += 1
        name = name.strip("`")
        if sign := self._take("==", "!=", *_SIGNS):
            value = self._value()
            return lambda of: _compare(sign, of(name), value)
        negated = bool(self._take("not"))
        if self._take("in"):
            self._need("[")
            values = [self._value()]
            while self._take(","):
                values.append(self._value())
            self._need("]")
            return lambda of: any(_equal(of(name), value) for value in values) != negated
        if self._take("contains"):
            part = self._value()
            if not isinstance(part, str):
                self._at -= 1
                raise self._expected("a text")
            return lambda of: (part.lower() in str(of(name) or "").lower()) != negated
        raise self._expected("'in' or 'contains'" if negated else "a comparison")

    def _value(self) -> Any:
        kind, value, _ = self._next
        if kind == "number":
            found: Any = float(value) if re.search("[.eE]", value) else int(value)
        elif kind == "text":
            found = re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)
        elif kind == "name" and value in _CONSTANTS:
            found = _CONSTANTS[value]
        else:
            raise self._expected("a number, a text in quotes, true, false or none")
        self._at += 1
        return found


def _kind(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def _equal(left: Any, right: Any) -> bool:
    return _kind(left) == _kind(right) and left == right


def _compare(sign: str, left: Any, right: Any) -> bool:
    if sign in ("==", "!="):
        return _equal(left, right) == (sign == "==")
    return (
        left is not None and right is not None and _kind(left) == _kind(right) and _SIGNS[sign](left, right)
    )
