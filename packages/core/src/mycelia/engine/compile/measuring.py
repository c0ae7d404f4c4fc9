"""Numbers about all that programs compute, found by a kernel right after each instruction, while the result
is in the cache. Programs stay as they are, fused and in order; while nothing is measured they pay nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mycelia.engine import _C, dispatch
from mycelia.engine.base import dtypes
from mycelia.engine.compile import executable
from mycelia.engine.ir.types import TensorType
from mycelia.engine.observing.operator_names import Operator, named_operators
from mycelia.engine.ops.define import OpDef, find

#: What can be measured: all numbers of a debugger, or how many elements are NaN, -inf and inf.
STATISTICS, FINITE = "tensor_statistics", "nonfinite_counts"
_DTYPES = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_KERNEL = 0  # kind of Plan
_COUNTS = {STATISTICS: slice(5, 8), FINITE: slice(0, 3)}  # columns: NaN, -inf, inf


class Measured:
    """What was found in one run of a program. `rows`: an operator and the number of its output per row of
    `table`, in order of execution; rows of what did not run, and of numbers that are no floats, are zero.
    `run`: how many runs of the program were measured before; `is_finite`: whether every element of all
    outputs is.
    """

    __slots__ = ("program", "run", "is_finite", "_table")

    def __init__(self, program: _C.Program, table: _C.Tensor, run: int, is_finite: bool) -> None:
        self.program, self.run, self.is_finite, self._table = program, run, is_finite, table

    @property
    def table(self) -> np.ndarray:
        return self._table.asnumpy()

    @property
    def rows(self) -> list[tuple[Operator, int]]:
        return _rows(self.program)

    @property
    def nonfinite(self) -> np.ndarray:
        """How many elements are NaN, -inf and inf, a row each."""
        table = self.table
        return table[:, _COUNTS[FINITE if table.shape[1] == 3 else STATISTICS]]


_known_rows: weakref.WeakKeyDictionary[_C.Program, list[tuple[Operator, int]]] = weakref.WeakKeyDictionary()
_counts: weakref.WeakKeyDictionary[_C.Program, int] = weakref.WeakKeyDictionary()
_reports: list[tuple[Callable[[Measured], None], str]] = []


def _rows(program: _C.Program) -> list[tuple[Operator, int]]:
    found = _known_rows.get(program)
    if found is None:
        nodes, found = list(program.nodes), []
        parts = dict.fromkeys(part for node in nodes for part in node.parts)
        of_parts = dict(zip(parts, named_operators(list(parts))))
        for node, operator in zip(nodes, named_operators(nodes)):
            operator.parts = tuple(of_parts[part] for part in node.parts)
            found += [(operator, slot) for slot in range(len(node.outputs))]
        _known_rows[program] = found
    return found


@contextmanager
def measuring(report: Callable[[Measured], None], gauge: str = FINITE) -> Iterator[None]:
    """In this block `report` is called at the end of each run of a program, on the thread that ran it.

    `gauge`: `STATISTICS` or `FINITE`. What `report` raises leaves the call of the function; Parameters that
    were updated in place keep their new values then.
    """
    entry = report, gauge
    _reports.append(entry)
    if len(_reports) == 1:
        executable.built_listeners.append(_attach)
    _attach_all()
    try:
        yield
    finally:
        _reports.remove(entry)
        if not _reports:
            executable.built_listeners.remove(_attach)
        _attach_all()


def _attach_all() -> None:
    for program in executable.live_programs():
        _attach(program)


def _attach(program: _C.Program) -> None:
    if not _reports:
        program.measure(None, (), 0, 0, b"")
        return
    gauge = STATISTICS if any(g == STATISTICS for _, g in _reports) else FINITE
    reference = weakref.ref(program)

    def meter(table: _C.Tensor, is_finite: bool) -> None:
        alive = reference()
        if alive is None:
            return
        run = _counts[alive] = _counts.get(alive, -1) + 1
        measured = Measured(alive, table, run, is_finite)
        for report, _ in list(_reports):
            report(measured)

    found = gauges(gauge)
    counts = _COUNTS[gauge] if found else slice(0, 0)
    program.measure(meter, found, counts.start, counts.stop, _passes(program))


def _passes(program: _C.Program) -> bytes:
    """Per instruction whether its results are finite where all that it reads is: what only moves elements, or
    chooses among them, makes no infinities. A copy of theirs would be read for nothing.
    """
    if not program.nodes:
        return bytes(program.instruction_count)
    return bytes(keeps_finite(node.op.definition) for node in program.nodes)


def keeps_finite(definition: OpDef | None) -> bool:
    """Whether results of an op are finite where all that it reads is, whatever its attributes are."""
    return definition is not None and (definition.exact or definition.only_moves)


def gauges(name: str, of: Sequence[dtypes.DType] = _DTYPES) -> tuple[tuple[Any, _C.Plan], ...]:
    """(dtype, Plan) of the kernels that the host has; without a kernel library there are none."""
    found = []
    for dtype in of:
        plan = dispatch.resolve(find(name), (TensorType(dtype, (1,)),), (), (1,))
        if plan.kind == _KERNEL and plan.device == 0:
            found.append((dtype, plan))
    return tuple(found)
