"""Sums of gradients over processes, started in parts as the gradients are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mycelia import ops
from mycelia.engine import _C
from mycelia.engine.base.dtypes import DType
from mycelia.engine.capture.trace import active
from mycelia.engine.communication import world
from mycelia.engine.ir.graph import Value
from mycelia.engine.ops.communication.collectives import all_reduce, reduce_scatter_sum
from mycelia.engine.ops.communication.started import start_sums, sums
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.optim import sharing


class Part(NamedTuple):
    """Places of gradients that go together; `scatters`: each process gets its share of them only."""

    places: list[int]
    scatters: bool = False

    @property
    def name(self) -> str:
        """Which gradients, in their order: what processes must agree on."""
        runs: list[list[int]] = []
        for i in self.places:
            if runs and i - runs[-1][-1] == (-1 if runs[-1][0] > i else 1):
                runs[-1][1:] = [i]
            else:
                runs.append([i])
        return "gradients " + ", ".join("-".join(map(str, run)) for run in runs)


class _Started(NamedTuple):
    """Sums on their way: their number, and what they are of."""

    number: Tensor
    dtype: DType
    shapes: Sequence[tuple[int, ...]]


class Sums:
    """Of the gradients of one step. `parts` are started in their order, each when all of its gradients are
    given; `divisor`: of the sums; `shares`: of those that each process gets its part of; `keeps_parts`:
    gradients of these are not kept longer than until they are sent.
    """

    def __init__(
        self, parts: Sequence[Part], group: str, divisor: float, shares: sharing.Shares | None = None,
        keeps_parts: bool = False,
    ) -> None:  # fmt: skip
        self.parts, self.group, self.divisor, self.shares = parts, group, divisor, shares
        self.keeps_parts = keeps_parts
        self._given: dict[int, Tensor] = {}
        self._told: set[int] = set()
        self._left = [len(part.places) for part in parts]
        self._part_of = {i: k for k, part in enumerate(parts) for i in part.places}
        self._started: list[_Started] = []
        self._found: dict[int, Tensor] = {}
        self._ended = 0  # how many parts have their sums in `_found`

    def ready(self, place: int, gradient: Tensor) -> bool:
        """A gradient is there: parts that are whole, and whose turn it is, are started. True if the gradient
        need not be kept.
        """
        part = self._part_of.get(place)
        if part is None or place in self._told:
            return False
        self._told.add(place)
        self._given[place] = gradient
        self._left[part] -= 1
        while len(self._started) < len(self.parts) and not self._left[len(self._started)]:
            self._start(self.parts[len(self._started)])
            if self.keeps_parts:
                self._finish(len(self._started) - 1)  # what was sent before; the last one is on its way
        return self.keeps_parts and self.parts[part].scatters

    def finish(self, gradients: Sequence[Tensor | None]) -> list[Tensor]:
        """The sums in place of all gradients, of which some may have been given before: None for those need
        not be kept.
        """
        trace = active()
        if not self._told and (
            _C.tape_level()
            or (trace is not None and trace.root.is_for_file)
            or not all(g.dtype.is_floating for g in gradients)
        ):
            return self._at_once(gradients)
        for i in self._part_of:
            self.ready(i, gradients[i])
        self._finish(len(self.parts))
        return [self._found[i] if i in self._part_of else self._divided(g) for i, g in enumerate(gradients)]

    def _start(self, part: Part) -> None:
        given = [self._given.pop(i) for i in part.places]
        shapes = [tuple(g.shape) for g in given]
        if part.scatters:
            shares = [self.shares[i] for i in part.places]
            given, shapes = [sharing.joined(shares, given)], [(sum(sharing.pieces(shares)),)]
        number = start_sums(
            given, divisor=self.divisor, name=part.name, scatters=part.scatters, group=self.group
        )
        self._started.append(_Started(number, given[0].dtype, shapes))

    def _finish(self, count: int) -> None:
        """Takes the sums of the first parts, up to `count`."""
        for part, started in zip(self.parts[self._ended : count], self._started[self._ended : count]):
            totals = sums(*started, self.group)
            if part.scatters:
                totals = sharing.own_parts([self.shares[i] for i in part.places], totals[0])
            self._found.update(zip(part.places, totals))
        self._ended = max(self._ended, count)

    def _at_once(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """By collectives that have gradients themselves, and take numbers of every kind."""
        found = list(gradients)
        for part in self.parts:
            given = [found[i] for i in part.places]
            if part.scatters:
                joined = sharing.joined([self.shares[i] for i in part.places], given)
                size = world.size("reduce_scatter", self.group)
                own = reduce_scatter_sum(joined, size=size, group=self.group)
                totals = sharing.own_parts([self.shares[i] for i in part.places], own)
            else:
                flat = ops.cat([g.reshape(-1) for g in given]) if len(given) > 1 else given[0]
                total = all_reduce(flat, "sum", self.group)
                totals = sharing.cut(total, [g.size for g in given])
            for i, total in zip(part.places, totals):
                found[i] = total if part.scatters else total.reshape(gradients[i].shape)
        return [self._divided(g) for g in found]

    def _divided(self, gradient: Tensor) -> Tensor:
        return gradient if self.divisor == 1 else gradient / self.divisor


def as_they_are_made(gradients: Sequence[Tensor]) -> list[int]:
    """Places of gradients in the order in which a backward pass makes them; in eager mode the last first."""
    trace = active()
    if trace is None:
        return list(range(len(gradients)))[::-1]
    places = {node: k for k, node in enumerate(trace.graph.nodes)}
    known: dict[Value, int] = {}

    def made(value: object) -> int:
        """Behind which node there is all that it is prepared from."""
        if not isinstance(value, Value) or value.producer not in places:
            return -1
        if value not in known:
            node = value.producer
            definition = node.op.definition
            known[value] = places[node]
            if definition.elementwise or definition.moves or definition.view:
                known[value] = max(map(made, node.inputs), default=-1)
        return known[value]

    return sorted(range(len(gradients)), key=lambda i: (made(gradients[i].traced), -i))
