"""A stage at work: micro-batches forwards and backwards in the order of a schedule, and what is sent and
received meanwhile.

A micro-batch is held from when it goes forwards until its gradient goes back: then the tape that recorded
the stage gives the gradients of the stage's Parameters, which are added, and of what was received, which are
sent on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mycelia.engine import _C
from mycelia.engine.autodiff.recompute import run_twice
from mycelia.engine.autodiff.reverse import Recording, ones_like, transpose, zeros_of
from mycelia.engine.base import config
from mycelia.engine.capture.trace import Trace, of_this_thread
from mycelia.engine.communication import world
from mycelia.engine.communication.stages import Stage, group
from mycelia.engine.ir.graph import Graph, Value
from mycelia.engine.ir.interpret import evaluate
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.communication.collectives import broadcast_from, receive_from, send_to
from mycelia.engine.ops.elementwise.math import add
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.pipeline.capture import Captured
from mycelia.nn.pipeline.partition import Part, Segment
from mycelia.nn.pipeline.schedule import Step

_TAG = 0x70697065  # of messages between stages: scripts' own have others


@dataclass(eq=False)
class Plan:
    """How this process takes part in a network for batches of one kind."""

    captured: Captured
    part: Part
    stage: Stage
    giver: int  # the stage that has the result
    micro_size: int
    compiled: dict[Segment, Graph] = field(default_factory=dict)


@dataclass(eq=False)
class _Held:
    """A micro-batch between its way forwards and back: what was sent, with the tape, the result if the stage
    gives it, and the nodes of what was received and of Parameters.
    """

    sent: list[Tensor]
    result: Tensor | None
    nodes: list[_C.Node]


class _Block:
    """What `run_twice` asks of a Cell: there are no Parameters besides the arguments."""

    @staticmethod
    def get_parameters() -> tuple:
        return ()


class Run:
    """One call: `tensors` are the arguments of the whole batch, `variables` the Parameters whose gradients
    are wanted, None without a gradient; `seed`: where gradients begin, by default ones.
    """

    def __init__(
        self, plan: Plan, tensors: Sequence[Tensor], variables: list[Tensor] | None, seed: Tensor | None
    ) -> None:
        self.plan, self.tensors, self.seed = plan, tensors, seed
        self.trains = variables is not None
        self.variables = variables or []
        self.places = {id(v): i for i, v in enumerate(self.variables)}
        self.gradients: list[Tensor | None] = [None] * len(self.variables)
        self.total: Tensor | None = None
        self.held: dict[int, _Held] = {}
        self.most_held = 0

    def go(self, steps: Sequence[Step]) -> Tensor:
        """The sum of the results of all micro-batches, on all stages."""
        for step in steps:
            if step.backward:
                self._back(step.part)
            else:
                self._forth(step.part)
                self.most_held = max(self.most_held, len(self.held))
        stage = self.plan.stage
        total = zeros_of(self.plan.captured.output.type) if self.total is None else self.total
        line = tuple(stage.rank(i) for i in range(stage.count))
        return broadcast_from(total, root=self.plan.giver, group=group(line))

    # ---- forwards

    def _forth(self, i: int) -> None:
        plan, part = self.plan, self.plan.part
        values: dict[Value, Tensor] = dict(zip(plan.captured.arguments, self._rows(i)))
        values.update((value, tensor._detach()) for tensor, value in part.inputs)  # as they are now
        for value, source in part.receives:
            values[value] = self._receive(value, source)
        if self.trains:
            with Recording() as tape:
                nodes = []
                for value in self._watched():
                    values[value], node = tape.watch(values[value])
                    nodes.append(node)
                self._compute(values)
            result = values[plan.captured.output] if part.gives else None
            self.held[i] = _Held([values[v] for v, _ in part.sends], result, nodes)
        else:
            self._compute(values)
        for value, consumers in part.sends:
            for number in consumers:
                self._send(values[value]._detach(), number)
        for tensor, value in part.updates:
            trace = of_this_thread()
            if trace is not None:
                trace.see(tensor)
            tensor._assign(values[value]._detach())
        if part.gives:
            made = values[plan.captured.output]._detach()
            self.total = made if self.total is None else add(self.total, made)

    def _rows(self, i: int) -> list[Tensor]:
        found = []
        for x in self.tensors:
            rows = x.shape[0] // self.plan.micro_size
            found.append(x[i * rows : (i + 1) * rows])
        return found

    def _watched(self) -> list[Value]:
        """What gradients are wanted of: received values first, then Parameters."""
        part = self.plan.part
        received = [value for value, _ in part.receives if value in part.smooth]
        return received + [value for tensor, value in part.inputs if id(tensor) in self.places]

    def _compute(self, values: dict[Value, Tensor]) -> None:
        for segment in self.plan.part.segments:
            given = [values[v] for v in segment.graph.parameters]
            if segment.again:
                made = run_twice(
                    _Block, lambda again, s=segment: tuple(self._segment(s, again)), tuple(given)
                )
            else:
                made = self._segment(segment, given)
            values.update(zip(segment.graph.outputs, made, strict=True))

    def _segment(self, segment: Segment, given: Sequence[Tensor]) -> Sequence[Tensor]:
        trace = of_this_thread()
        if trace is not None:
            return trace.evaluate(segment.graph, given)
        if config.get("mode") != config.GRAPH_MODE:
            return evaluate(segment.graph, list(given))
        from mycelia.engine.compile import differentiate, executable

        graph = self.plan.compiled.get(segment)
        if graph is None:
            graph = self.plan.compiled[segment] = _optimized(segment.graph)
        found = differentiate.run(differentiate.Differentiable(graph), given) if _C.tape_level() else None
        return executable.program(graph)(*given) if found is None else found

    # ---- backwards

    def _back(self, i: int) -> None:
        part, held = self.plan.part, self.held.pop(i)
        outputs, cts = [], []
        for (value, consumers), sent in zip(part.sends, held.sent):
            if value not in part.smooth:
                continue
            ct = None
            for number in consumers:
                came = self._receive(value, number)
                ct = came if ct is None else add(ct, came)
            outputs.append(sent)
            cts.append(ct)
        if held.result is not None:
            outputs.append(held.result)
            cts.append(ones_like(held.result) if self.seed is None else self._seeded(held.result))
        pairs = [(o, ct) for o, ct in zip(outputs, cts) if o._node is not None]
        found = transpose([o for o, _ in pairs], [ct for _, ct in pairs], held.nodes, release=True)
        del held, pairs, outputs, cts
        received = [(value, source) for value, source in part.receives if value in part.smooth]
        for (value, source), gradient in zip(received, found):
            self._send(zeros_of(value.type) if gradient is None else gradient, source)
        trained = [tensor for tensor, _ in part.inputs if id(tensor) in self.places]
        for tensor, gradient in zip(trained, found[len(received) :], strict=True):
            place = self.places[id(tensor)]
            before = self.gradients[place]
            if gradient is not None:
                self.gradients[place] = gradient if before is None else add(before, gradient)

    def _seeded(self, result: Tensor) -> Tensor:
        assert self.seed is not None
        return ones_like(result) * self.seed.reshape(()).astype(result.dtype)

    def _receive(self, value: Value, number: int) -> Tensor:
        """What stage `number` sends of the type of `value`."""
        return receive_from(
            zeros_of(TensorType(value.type.dtype, ())), source=self.plan.stage.rank(number),
            shape=value.type.shape, tag=_TAG, group=world.WORLDS[0],
        )  # fmt: skip

    def _send(self, tensor: Tensor, number: int) -> None:
        send_to(tensor, to=self.plan.stage.rank(number), tag=_TAG, group=world.WORLDS[0])


def _optimized(graph: Graph) -> Graph:
    """A copy for the compiler."""
    from mycelia.engine.compile.passes import optimize

    trace = Trace(graph.name)
    with trace:
        arguments = [trace.parameter(v.type, v.name) for v in graph.parameters]
        outputs = trace.evaluate(graph, arguments)
        trace.graph.outputs = [trace.value_of(t) for t in outputs]
    optimize(trace.graph)
    return trace.graph
