"""Numbers that remember how they follow from sizes of arguments, which may differ from call to call.

A graph captured with such sizes holds for all sizes under which the captured Python code would have gone the
same way. Arithmetic on a `SymInt` is written down, a comparison becomes a condition (its outcome must be the
same again), and any other use as a Python number (an index, `range`, a hash, text) specializes the graph to
its present value. `SizeTable.resolve` gives all numbers for other sizes, or None if a condition fails.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Number = int | float


Conditions = dict[tuple[Callable, int, int], bool]  # comparisons of two entries, with their outcomes


class SizeTable:
    """The symbolic numbers of one capture, each entry made from earlier ones, and the conditions on them."""

    open = False  # True: a graph is for all values of its symbols, so nothing may be specialized

    def __init__(self) -> None:
        self.entries: list[tuple[Callable | None, Any, Any]] = []  # None: a constant; a symbol: its position
        self.known: dict[Any, SymInt] = {}
        self.conditions: Conditions = {}
        self.symbols: list[SymInt] = []
        self.specialized: set[int] = set()  # entries of which the number itself was needed
        self.closed = False  # the capture has ended: nothing is learnt any more
        self.quiet = False  # results of arithmetic are plain numbers, too
        self.captured = 0  # entries of the capture: the others come from what was made of its graph

    def symbol(self, hint: int) -> SymInt:
        """A new independent size, `hint` during the capture."""
        self.entries.append((_symbol, len(self.symbols), None))
        size = SymInt(self, len(self.entries) - 1, hint, True)
        self.symbols.append(size)
        return size

    def constant(self, value: Number) -> SymInt:
        key = _key(value)
        found = self.known.get(key)
        if found is None:
            self.entries.append((None, value, None))
            found = self.known[key] = SymInt(self, len(self.entries) - 1, value, value >= 0)
        return found

    def combined(self, function: Callable, a: SymInt, b: SymInt | None = None) -> SymInt:
        """`function` of one number or of two."""
        if self.quiet:
            return function(a.hint) if b is None else function(a.hint, b.hint)
        key = function, a.index, None if b is None else b.index
        found = self.known.get(key)
        if found is None:
            value = function(a.hint) if b is None else function(a.hint, b.hint)
            self.entries.append(key)
            positive = a.positive and (b is None or b.positive) and function not in _MAY_BE_NEGATIVE
            found = self.known[key] = SymInt(self, len(self.entries) - 1, value, positive)
        return found

    def specialize(self, size: SymInt) -> Number:
        """The present value of `size`, for which alone the graph holds from now on."""
        self.require(operator.eq, size, self.constant(size.hint))
        if not self.closed and self.entries[size.index][0] is not None:
            self.specialized.add(size.index)
        return size.hint

    def symbol_name(self, position: int) -> str:
        """What stands for a symbol in formulas."""
        return f"s{position}"

    def text(self, size: SymInt) -> str:
        return repr(size.fixed())

    def require(self, function: Callable, a: SymInt, b: SymInt) -> Any:
        """The outcome of a comparison, which becomes a condition."""
        outcome = function(a.hint, b.hint)
        if a is not b and not self.closed:
            self.conditions[function, a.index, b.index] = outcome
        return outcome

    def close(self) -> None:
        """Ends the capture."""
        self.closed = True
        self.captured = len(self.entries)

    @contextmanager
    def learning(self, sizes: Sequence[int]) -> Iterator[Conditions]:
        """Collects the conditions of what is decided meanwhile, with hints for the symbols as `sizes`."""
        values = self.resolve(sizes)
        for size in (*self.symbols, *self.known.values()):
            size.hint = values[size.index]
        kept = self.conditions, self.specialized
        self.conditions, self.specialized, self.closed = {}, set(), False
        try:
            yield self.conditions
        finally:
            (self.conditions, self.specialized), self.closed = kept, True

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Meanwhile sizes are as good as numbers: for estimates that any sizes may go by."""
        before = self.closed, self.quiet
        self.closed = self.quiet = True
        try:
            yield
        finally:
            self.closed, self.quiet = before

    def is_specialized(self) -> list[bool]:
        """For each symbol whether the graph holds for its present value only."""
        return [s.index in self.specialized for s in self.symbols]

    def resolve(self, sizes: Sequence[int]) -> list[Number] | None:
        """The numbers of all entries when the symbols are `sizes`; None if the graph is not for them. Of
        entries that came after the capture some may be None: they have no value."""
        values: list[Any] = []
        for position, (function, a, b) in enumerate(self.entries):
            try:
                if function is None:
                    values.append(a)
                elif function is _symbol:
                    values.append(sizes[a])
                elif b is None:
                    values.append(function(values[a]))
                else:
                    values.append(function(values[a], values[b]))
            except (ArithmeticError, ValueError, TypeError):  # a root of what is negative
                if position < self.captured or not self.closed:
                    return None
                values.append(None)
        return values if holds(self.conditions, values) else None


def holds(conditions: Conditions, values: Sequence[Number]) -> bool:
    """Whether comparisons turn out as they did."""
    try:
        return all(function(values[a], values[b]) is same for (function, a, b), same in conditions.items())
    except TypeError:  # an entry without a value
        return False


def _key(value: Number) -> tuple:
    return type(value), value if type(value) is int else repr(value)  # -0.0 is a number of its own


def _symbol(a: int, b: int) -> int:
    raise AssertionError("a symbol has no formula")


_MAY_BE_NEGATIVE = (operator.sub, math.log, math.log2, math.log10)  # of two numbers that are not


def _arithmetic(function: Callable, neutral: Number | None = None) -> tuple[Callable, Callable]:
    """The operator and its reflected form; `neutral` on the right changes nothing."""

    def forward(self: SymInt, other: Any) -> Any:
        if type(other) is int and other == neutral:
            return self
        other = self._partner(other)
        if other is None:
            return NotImplemented
        if function is operator.floordiv:  # (a * b) // b, as from reshape(-1, b)
            made, a, b = self.table.entries[self.index]
            if made is operator.mul and other.hint > 0 and self.table.entries[other.index][0] is None:
                if b == other.index:
                    return _entry(self.table, a)
        return self.table.combined(function, self, other)

    def reflected(self: SymInt, other: Any) -> Any:
        if type(other) is int and other == neutral and function in (operator.add, operator.mul):
            return self
        other = self._partner(other)
        return NotImplemented if other is None else self.table.combined(function, other, self)

    return forward, reflected


def _rounding(function: Callable) -> Callable:
    """A way from a float to an int."""
    return lambda self: self if isinstance(self.hint, int) else self.table.combined(function, self)


def _comparison(function: Callable) -> Callable:
    def compare(self: SymInt, other: Any) -> Any:
        if self.positive and type(other) is int and other < 0:  # `shape` is searched for -1 everywhere
            return function(self.hint, other)
        other = self._partner(other)
        return NotImplemented if other is None else self.table.require(function, self, other)

    return compare


class SymInt:
    """A number that follows from sizes of a compiled function's arguments; `hint` is its present value."""

    __slots__ = ("table", "index", "hint", "positive")

    def __init__(self, table: SizeTable, index: int, hint: Number, positive: bool) -> None:
        self.table, self.index, self.hint = table, index, hint
        self.positive = positive  # never below zero

    @property
    def __class__(self) -> type:
        """`isinstance(size, int)` holds: code that asks goes on with arithmetic."""
        return type(self.hint)

    def _partner(self, other: Any) -> SymInt | None:
        kind = type(other)
        if kind is SymInt:
            return other if other.table is self.table else self.table.constant(other.fixed())
        if kind is int or kind is float:
            return self.table.constant(other)
        return self.table.constant(int(other)) if kind is bool else None

    def agrees(self, other: Any) -> bool | None:
        """Whether `other` is the same size; None where only the finished graph knows."""
        partner = self._partner(other)
        if partner is None:
            return None
        return self.table.decided(operator.eq, self, partner) if self.table.open else self == other

    def fixed(self) -> Number:
        """The present value; the graph holds for it only."""
        return self.table.specialize(self)

    __add__, __radd__ = _arithmetic(operator.add, 0)
    __sub__, __rsub__ = _arithmetic(operator.sub, 0)
    __mul__, __rmul__ = _arithmetic(operator.mul, 1)
    __floordiv__, __rfloordiv__ = _arithmetic(operator.floordiv, 1)
    __truediv__, __rtruediv__ = _arithmetic(operator.truediv)
    __mod__, __rmod__ = _arithmetic(operator.mod)
    __pow__, __rpow__ = _arithmetic(operator.pow)
    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)

    __trunc__, __floor__, __ceil__ = _rounding(math.trunc), _rounding(math.floor), _rounding(math.ceil)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.fixed(), digits) if digits is not None else _rounding(round)(self)

    def converted(self, kind: type) -> Any:
        """`int(size)` and `float(size)` as sizes; by themselves these two give Python's numbers."""
        if kind is int:
            return self.__trunc__()
        if kind is float:
            return self if isinstance(self.hint, float) else self.table.combined(float, self)
        return kind(self)

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> SymInt:
        return self

    def __abs__(self) -> Any:
        return self if self.positive or self >= 0 else -self

    def __bool__(self) -> bool:
        return self != 0

    def __divmod__(self, other: Any) -> tuple:
        return self // other, self % other

    def __index__(self) -> int:
        return operator.index(self.fixed())

    def __int__(self) -> int:
        return int(self.fixed())

    def __float__(self) -> float:
        return float(self.fixed())

    def __hash__(self) -> int:
        return hash(self.fixed())

    def __repr__(self) -> str:
        return self.table.text(self)

    def __format__(self, spec: str) -> str:
        return format(self.fixed(), spec)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy as np

        return np.array(self.fixed(), dtype)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(type(self.hint), name):
            raise AttributeError(name)
        return getattr(self.fixed(), name)  # bit_length and the like

    def __reduce__(self) -> Any:
        return type(self.hint), (self.fixed(),)

    def made_of(self) -> tuple:
        """(function, SymInts that it is applied to), (Symbol, position), or (None, number)."""
        function, a, b = self.table.entries[self.index]
        if function is None or function is _symbol:
            return (None if function is None else Symbol), a
        return function, *(_entry(self.table, i) for i in (a, b) if i is not None)

    def formula(self) -> str:
        """Text such as ``s0 * 4``, for graphs that people read."""
        function, *operands = self.made_of()
        if function is None or function is Symbol:
            return str(operands[0]) if function is None else self.table.symbol_name(operands[0])
        texts = [operand.formula() for operand in operands]
        if function in _SIGNS:
            return f"({f' {_SIGNS[function]} '.join(texts)})"
        return f"{function.__name__}({', '.join(texts)})"


class Symbol:
    """In the place of a function: the SymInt is a symbol, made from nothing (`SymInt.made_of`)."""


_SIGNS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.truediv: "/",
    operator.mod: "%", operator.pow: "**",
}  # fmt: skip


def _entry(table: SizeTable, index: int) -> SymInt:
    function, a, _ = table.entries[index]
    if function is _symbol:
        return table.symbols[a]
    return table.known[_key(a) if function is None else table.entries[index]]


def applied(function: Callable, *operands: Any) -> Any:
    """`function` of numbers, some of which may be Sizes: `min`, `float` and the like give a SymInt then."""
    size = next((o for o in operands if type(o) is SymInt), None)
    if size is None or function in _SIGNS:
        return function(*operands)
    return size.table.combined(function, *map(size._partner, operands))
