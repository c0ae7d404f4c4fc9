"""The graph of a network for one micro-batch, which says of each node whose stage it belongs to."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

from mycelia.engine.autodiff.structures import flatten
from mycelia.engine.base import errors
from mycelia.engine.base.origins import cell_calls
from mycelia.engine.capture.effects import collect
from mycelia.engine.capture.outside import put_back, require_unchanged
from mycelia.engine.capture.trace import (
    Trace,
    UnknownSize,
    UnknownValue,
    capture_lock,
    of_this_thread,
    type_of,
)
from mycelia.engine.ir.graph import Node, Value
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell


class Label(NamedTuple):
    """What the Cells say whose code made a node: `stage` of the innermost `cell` that has one, and a number
    for the call whose values are computed again in the backward pass, if one is.
    """

    stage: int | None = None
    cell: Cell | None = None
    again: int | None = None


@dataclass(frozen=True, eq=False)
class Captured:
    """`nodes` make `output` of `arguments`, and of tensors from outside, `inputs`; `updates`: what these
    become.
    """

    nodes: list[Node]
    arguments: list[Value]
    inputs: list[tuple[Tensor, Value]]
    updates: list[tuple[Tensor, Value]]
    output: Value
    labels: dict[Node, Label]
    cells: list[Cell]


class _Labelled(Trace):
    """A trace of what `top` calls that keeps a label for each node."""

    def __init__(self, name: str, parent: Trace | None, top: Cell) -> None:
        super().__init__(name, parent, sizes_known=True)
        self.top = top
        self.labels: dict[Node, Label] = {}
        self._calls: list[FrameType] = []  # kept as long as their numbers are compared

    def bind(self, op: Any, flat: list, counts: tuple[int, ...], attrs: dict[str, Any]) -> Any:
        first = len(self.graph.nodes)
        made = super().bind(op, flat, counts, attrs)
        added = [node for node in self.graph.nodes[first:] if node not in self.labels]
        if added:
            label = self._label()
            self.labels.update((node, label) for node in added)
        return made

    def _label(self) -> Label:
        stage, owner, again = None, None, None
        for cell, frame in cell_calls(sys._getframe(2)):
            if cell is self.top:
                break
            if stage is None and "pipeline_stage" in cell.__dict__:
                stage, owner = cell.pipeline_stage, cell
            if cell._recompute:
                again = frame
        return Label(stage, owner, None if again is None else self._number(again))

    def _number(self, frame: FrameType) -> int:
        for number, known in enumerate(self._calls):
            if known is frame:
                return number
        self._calls.append(frame)
        return len(self._calls) - 1

    def close(self) -> None:
        super().close()
        self._calls.clear()


def capture(top: Cell, network: Cell, args: tuple, kwargs: dict) -> Captured:
    """The graph of ``network(*args, **kwargs)``, which `top` calls, for Tensors like these.

    Errors: TypeError unless the result is a Tensor; CaptureError for code without a graph form.
    """
    tensors: list[Tensor] = []
    rebuild = flatten((args, kwargs), tensors)
    outer = of_this_thread()
    with capture_lock:
        trace = _Labelled(type(network).__name__, outer, top)
        try:
            with trace:
                standing = [trace.parameter(type_of(t)) for t in tensors]
                arguments = [t.traced for t in standing]
                for parameter in network.get_parameters():
                    if parameter.traced is None:
                        trace.lift(parameter, parameter.name)
                given, named = rebuild(standing)
                del standing
                result = network._run(given, named)
                if not isinstance(result, Tensor):
                    raise errors.type_error(
                        type(top).__name__,
                        f"the network must return one Tensor, which is added over micro-batches, but it gave "
                        f"{type(result).__name__}",
                    )
                output = trace.value_of(result)
                del result, given, named
                changed = trace.changed()
                inside = [(tensor, trace.value_of(after)) for tensor, _, after in changed]
            if outer is None:
                require_unchanged(trace)
                effects = collect(trace)
                inputs, updates = effects.inputs, list(zip(effects.targets, effects.results))
            else:
                inputs, updates = _from_outside(trace), inside
        except (UnknownSize, UnknownValue):
            put_back(trace)
            raise
        finally:
            labels = dict(trace.labels)
            if outer is None:
                trace.close()
    cells = list(trace.root.cells.values())
    return Captured(trace.graph.nodes, arguments, inputs, updates, output, labels, cells)


def _from_outside(trace: _Labelled) -> list[tuple[Tensor, Value]]:
    """Tensors of the surrounding graph that are used: Parameters themselves, which change, others as they
    were."""
    parameters = {before.traced: t for t, before in trace.seen.values() if t._is_parameter}
    return [(parameters.get(value, snap), own) for value, (snap, own) in trace.captured.items()]
