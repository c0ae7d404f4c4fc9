"""Sizes that no value stands for: those of a graph that is exported for inputs of any size.

A capture with `OpenSizes` has a symbol for every size that a tensor shows only when the graph runs. What the
captured code computes from them becomes part of the graph: in an attribute as the formula itself (`sized`),
with tensors as a number (`size_value`). A comparison is decided if its outcome is the same for all sizes; in
the user's code any other is a traced bool, and where Python needs a number the error names the formula.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.capture.numbers import marked
from mycelia.engine.capture.trace import Trace, UnknownSize, active
from mycelia.engine.dispatch import Typing
from mycelia.engine.ir.graph import Graph, Value
from mycelia.engine.ir.sizes import symbols_of
from mycelia.engine.ir.symint import SizeTable, SymInt
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ir.walk import all_graphs
from mycelia.engine.ops.control_flow import sizes as ops
from mycelia.engine.tensors.tensor import Tensor

_HINT = 97  # while capturing, of every symbol; nothing is decided by it
_COMPARED = {  # function -> its outcome where the difference is in (low, high), None if that does not tell
    operator.eq: lambda low, high: False if low > 0 or high < 0 else True if low == high == 0 else None,
    operator.lt: lambda low, high: True if high < 0 else False if low >= 0 else None,
    operator.le: lambda low, high: True if high <= 0 else False if low > 0 else None,
}
_OTHERWISE = {operator.ne: operator.eq, operator.ge: operator.lt, operator.gt: operator.le}


class OpenSizes(SizeTable):
    """The sizes of one capture for export."""

    open = True

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[tuple[Value, int]] = []  # symbol -> a graph value, an axis of it

    def opened(self, value: Value) -> Value:
        """`value` with a new symbol in the place of each unknown size of its type."""
        shape = value.type.shape
        if UNKNOWN in shape:
            value.type = TensorType(
                value.type.dtype,
                tuple(self._of(value, axis) if n == UNKNOWN else n for axis, n in enumerate(shape)),
            )
        return value

    def _of(self, value: Value, axis: int) -> SymInt:
        self.sources.append((value, axis))
        return self.symbol(_HINT)

    def number(self, size: SymInt, trace: Trace) -> Tensor:
        """A size as a number of the graph of `trace`: a 0-d tensor of int64 or float32."""
        tensors, places = self.sources_of({"size": size}, trace)
        return marked(ops.size_value(tensors, size=size, places=places))

    def sources_of(self, attrs: dict[str, Any], trace: Trace) -> tuple[list[Tensor], tuple]:
        """The tensors whose sizes take part in attributes, and (symbol, axis) of each."""
        found = sorted(symbols_of(attrs))
        tensors = [trace.tensor(self.sources[symbol][0]) for symbol in found]
        return tensors, tuple((symbol, self.sources[symbol][1]) for symbol in found)

    def typing(self, definition: Any, types: tuple, counts: tuple, attrs: dict[str, Any]) -> Typing:
        """The types of one call; sizes that the op's rule cannot decide about count as unknown."""
        try:
            return Typing(definition, types, counts, attrs)
        except UnknownSize as error:
            undecided = error
        erased = tuple(without_sizes(t) for t in types)
        for given in (attrs, without_sizes(attrs)):
            try:
                typing = Typing(definition, erased, counts, given)
            except (UnknownSize, TypeError, ValueError):
                continue
            typing.in_types = tuple(  # as gradients want them
                t if t is None or not isinstance(given, TensorType) else TensorType(t.dtype, given.shape)
                for t, given in zip(typing.in_types, types)
            )
            return typing
        raise undecided

    def combined(self, function: Any, a: SymInt, b: SymInt | None = None) -> SymInt:
        if function is min or function is max:
            below = self.decided(operator.le, a, b)
            if below is None and self.decided(operator.le, b, a):  # equal ones may be either
                below = False
            if below is not None:
                return a if below is (function is min) else b
        return super().combined(function, a, b)

    # -- where SizeTable specializes to a present value

    def specialize(self, size: SymInt) -> Any:
        entry = self.entries[size.index]
        if entry[0] is None:
            return entry[1]
        raise errors.error(
            UnknownSize,
            "export",
            f"the size {size.formula()} is left open, but a number is needed here that is known while the "
            "graph is captured",
            hint="a loop over range(), operators and conditions of the network may depend on an open size; "
            "for anything else give the input a size",
        )

    def text(self, size: SymInt) -> str:
        return size.formula()

    def symbol_name(self, position: int) -> str:
        value, axis = self.sources[position]
        made = value.producer.op.name if value.producer is not None else "tensor"
        return f"{value.name or made}.shape[{axis}]"

    def require(self, function: Any, a: SymInt, b: SymInt) -> Any:
        """The outcome of a comparison: a bool, or in the user's code a traced one."""
        module = sys._getframe(2).f_globals.get("__name__", "")  # of the code that compares
        ours = module.partition(".")[0] == "mycelia" and module != "mycelia.engine.capture.conditions"
        # Of tensors without elements the functions of ours tell only that they have none.
        outcome = self.decided(function, a, b, least=1 if ours else 0)
        if outcome is not None:
            return outcome
        trace = active()
        text = f"{a.formula()} {_SIGN[function]} {b.formula()}"
        if ours or trace is None:
            raise errors.error(
                UnknownSize,
                "export",
                f"whether {text} holds is known only when the graph runs, but what is computed depends on it",
                hint="give the input this size, or write the operators that are meant for all sizes",
            )
        outcome = function(
            *(s if type(s) is not SymInt else self.number(s, trace) for s in map(_plain, (a, b)))
        )
        outcome.traced.name = text
        return outcome

    def decided(self, function: Any, a: SymInt, b: SymInt, least: int = 0) -> bool | None:
        """The outcome of a comparison if it is the same for all symbols from `least` on, else None."""
        if function in _OTHERWISE:
            found = self.decided(_OTHERWISE[function], a, b, least)
            return None if found is None else not found
        if a is b:
            return function is not operator.lt
        left, right = self._polynomial(a.index), self._polynomial(b.index)
        difference = _sum(left, right, -1)
        return _COMPARED[function](*self._range(difference, least))

    # -- formulas as polynomials: products of atoms (indices of entries) -> how often

    def _polynomial(self, index: int) -> dict[tuple[int, ...], Any]:
        function, a, b = self.entries[index]
        if function is None:
            return {(): a}
        if function is operator.add or function is operator.sub:
            sign = 1 if function is operator.add else -1
            return _sum(self._polynomial(a), self._polynomial(b), sign)
        if function is operator.mul:
            product: dict[tuple[int, ...], Any] = {}
            for m, x in self._polynomial(a).items():
                for n, y in self._polynomial(b).items():
                    key = tuple(sorted(m + n))
                    product[key] = product.get(key, 0) + x * y
            return product
        return {(index,): 1}

    def _range(self, polynomial: dict[tuple[int, ...], Any], least: int) -> tuple[Any, Any]:
        """The smallest and the largest value."""
        low = high = 0
        for atoms, count in polynomial.items():
            if not count:
                continue
            bottom, top = 1, 1
            for atom in atoms:
                lower, upper = self._range_of_atom(atom, least)
                if lower < 0:
                    return -math.inf, math.inf
                bottom, top = bottom * lower, top * upper if upper else 0
            ends = (count * bottom, count * top if top else 0)
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _range_of_atom(self, index: int, least: int) -> tuple[Any, Any]:
        function, a, b = self.entries[index]
        if self._is_symbol(index):
            return least, math.inf
        ranges = [self._range(self._polynomial(i), least) for i in (a, b) if i is not None]
        if function is min or function is max:
            return tuple(function(ends) for ends in zip(*ranges))
        low, high = ranges[0]
        if function in (operator.floordiv, operator.truediv, operator.mod) and low >= 0:
            smallest, largest = ranges[1]
            if smallest > 0 and function is operator.mod:
                return 0, min(high, largest - 1)
            if smallest > 0:
                return function(low, largest) if largest != math.inf else 0, (
                    function(high, smallest) if high != math.inf else math.inf
                )
        if function in (float, int, math.trunc, math.floor, math.ceil) and low >= 0:
            return low if function is float else math.floor(low), high
        return (0, math.inf) if self.known[self.entries[index]].positive else (-math.inf, math.inf)

    def _is_symbol(self, index: int) -> bool:
        return any(s.index == index for s in self.symbols)


_SIGN = {
    operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">",
    operator.ge: ">=",
}  # fmt: skip


def _sum(a: dict[tuple[int, ...], Any], b: dict[tuple[int, ...], Any], sign: int) -> dict:
    total = dict(a)
    for atoms, count in b.items():
        total[atoms] = total.get(atoms, 0) + sign * count
    return total


def _plain(size: SymInt) -> Any:
    """The number itself for a constant."""
    function, value, _ = size.table.entries[size.index]
    return value if function is None else size


def unopened(type_: TensorType) -> TensorType:
    """The type with -1 for each size that only the running graph knows."""
    if not any(type(n) is SymInt or n == UNKNOWN for n in type_.shape):
        return type_
    return TensorType(type_.dtype, tuple(_plain_or_unknown(n) for n in type_.shape))


def _plain_or_unknown(n: Any) -> int:
    found = _plain(n) if type(n) is SymInt else n
    return _OPEN if type(found) is SymInt or n == UNKNOWN else found


class OpenSize(int):
    """-1 in the types of a finished graph: equal to `UNKNOWN`, but nothing can be computed from it."""

    def _refuse(self, other: Any = None) -> Any:
        raise errors.error(UnknownSize, "export", "a number follows from a size that is left open")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _refuse
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _refuse


_OPEN = OpenSize(UNKNOWN)


def without_sizes(value: Any) -> Any:
    """An attribute, or a type, with -1 for each open size."""
    kind = type(value)
    if kind is SymInt:
        found = _plain(value)
        return UNKNOWN if type(found) is SymInt else found
    if kind is TensorType:
        return TensorType(value.dtype, without_sizes(value.shape))
    if kind is tuple or kind is list:
        return kind(without_sizes(v) for v in value)
    return {k: without_sizes(v) for k, v in value.items()} if kind is dict else value


def forget_sizes(graph: Graph) -> None:
    """Gives open sizes the value -1 in the types of a finished graph; its attributes keep the formulas."""
    for region in all_graphs(graph):
        for value in region.parameters:
            value.type = unopened(value.type)
        for node in region.nodes:
            for value in node.outputs:
                value.type = unopened(value.type)
