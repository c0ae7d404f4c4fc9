"""Open sizes as tensors of a file: formulas over `Shape`, which the runtime computes when it plans.

Each formula is written once; the runtime knows its number as soon as it knows the shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mycelia.ir import Value
from mycelia.ir.symint import SizeTable, Symbol, SymInt
from mycelia_lite.format import Table

if TYPE_CHECKING:
    from mycelia_lite.converter.writer import Writer

_OPERATORS = {
    operator.add: "AddFusion",
    operator.sub: "SubFusion",
    operator.mul: "MulFusion",
    operator.floordiv: "FloorDiv",
    operator.mod: "FloorMod",
    min: "Minimum",
    max: "Maximum",
}


def _table_of(attributes: Any) -> SizeTable | None:
    """The table of the formulas in attributes; None if there are none."""
    if isinstance(attributes, SymInt):
        return attributes.table
    if isinstance(attributes, Mapping):
        attributes = attributes.values()
    elif not isinstance(attributes, list | tuple):
        return None
    return next((found for part in attributes if (found := _table_of(part)) is not None), None)


class OpenSizes:
    """The formulas of one subgraph that have been written."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        # Entries of one table of formulas: what an op is composed of has a table of its own.
        self._sources: dict[tuple[SizeTable, int], tuple[Value, int]] = {}  # symbol -> a value, its axis
        self._made: dict[tuple[SizeTable, int], int] = {}  # entry -> tensor [1] of int64
        self._shapes: dict[int, int] = {}  # tensor -> its shape

    def learn(self, attributes: Any, places: Sequence[tuple[int, int]], values: Sequence[Value]) -> None:
        """`places`: symbols of `attributes` and axes of `values`, as ops with open sizes have them."""
        table = _table_of(attributes)
        if table is None:
            return
        for (symbol, axis), value in zip(places, values, strict=True):
            self._sources.setdefault((table, symbol), (value, axis))

    def vector(self, numbers: Sequence[Any]) -> int:
        """A tensor [n] of numbers, some of which are formulas: int32 if all are known, else int64."""
        w = self.writer
        if all(type(n) is int for n in numbers):
            return w.constant(np.asarray(numbers, np.int32))
        parts, known = [], []
        for n in [*numbers, None]:
            if type(n) is int:
                known.append(n)
                continue
            if known:
                parts.append(w.constant(np.asarray(known, np.int64)))
                known = []
            if n is not None:
                parts.append(self.number(n))
        return parts[0] if len(parts) == 1 else w.step(Table("Concat"), parts, np.int64, [len(numbers)])

    def number(self, size: Any) -> int:
        """A tensor [1] of int64 that has the size."""
        w = self.writer
        if type(size) is not SymInt:
            return w.constant(np.asarray([size], np.int64))
        key = size.table, size.index
        if key not in self._made:
            function, *operands = size.made_of()
            if function is None:
                return self.number(operands[0])
            if function is Symbol:
                self._made[key] = self._symbol(size.table, operands[0])
            elif function in _OPERATORS and all(type(s.hint) is int for s in operands):
                inputs = [self.number(s) for s in operands]
                self._made[key] = w.step(Table(_OPERATORS[function]), inputs, np.int64, [1])
            else:
                raise w.fail(f"the size {size.formula()} that is open: give inputShape")
        return self._made[key]

    def _symbol(self, table: SizeTable, symbol: int) -> int:
        w = self.writer
        value, axis = self._sources[table, symbol]
        tensor, axis = w.anyhow(value, axis)
        if tensor not in self._shapes:
            shape = w.step(Table("Shape"), [tensor], np.int32, [value.type.rank])
            self._shapes[tensor] = w.step_to(shape, np.int64, [value.type.rank])
        inputs = [self._shapes[tensor], *(w.constant(np.asarray(n, np.int32)) for n in ([axis], 0))]
        return w.step(Table("Gather"), inputs, np.int64, [1])
