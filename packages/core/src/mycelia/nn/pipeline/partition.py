"""Which stage computes what of a captured network, and what goes from stage to stage.

A node belongs to the stage of the Cell whose code made it, one without such a Cell to the latest stage that
it gets something from. What is made without Cells of a stage of the data alone, or of Parameters alone, and
what depends on streams of random numbers alone, belongs to no stage: each that needs it computes it. So
random numbers are those of one process, and a Parameter of several stages is not sent but shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mycelia.engine.base import errors
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.pipeline.capture import Captured

_OWNER = "PipelineCell"


@dataclass(eq=False)
class Segment:
    """Nodes that run one after another; `again`: their values are not kept but computed once more."""

    graph: Graph
    again: bool


@dataclass(eq=False)
class Part:
    """What one stage computes: `receives` from earlier stages, each with whose it is, and `sends` to later
    ones, with whose they are; `inputs` from outside; `updates` of them. `smooth`: what of the values that
    cross carries a gradient back.
    """

    number: int
    segments: list[Segment] = field(default_factory=list)
    receives: list[tuple[Value, int]] = field(default_factory=list)
    sends: list[tuple[Value, list[int]]] = field(default_factory=list)
    inputs: list[tuple[Tensor, Value]] = field(default_factory=list)
    updates: list[tuple[Tensor, Value]] = field(default_factory=list)
    gives: bool = False
    smooth: set[Value] = field(default_factory=set)

    def described(self) -> str:
        """What goes from stage to stage, as text: stages that do not fit together differ in it."""
        received = [(str(v.type), stage) for v, stage in self.receives]
        return f"{self.number}: {received} -> {[(str(v.type), to) for v, to in self.sends]}"


def require_stages(network: Cell, count: int) -> None:
    """Errors: ValueError if a Cell is of a stage that is not there, or none is of one that is."""
    found = set()
    for name, cell in network.cells_and_names():
        stage = cell.__dict__.get("pipeline_stage")
        if stage is None:
            continue
        if stage >= count:
            raise errors.value_error(
                _OWNER, f"the cell '{name or 'self'}' ({type(cell).__name__}) has pipeline_stage {stage}, "
                f"but there are {count} stages, from 0 to {count - 1}",
            )  # fmt: skip
        found.add(stage)
    missing = sorted(set(range(count)) - found)
    if missing:
        raise errors.value_error(
            _OWNER, f"no cell has pipeline_stage {' or '.join(map(str, missing))}, but pipeline_stages is "
            f"{count}",
            hint="say cell.pipeline_stage = number, or stage_config={'name of a cell': number}",
        )  # fmt: skip


def place(captured: Captured) -> dict[Node, int | None]:
    """The stage of each node; None for what each stage computes for itself.

    Errors: ValueError if a Cell needs what a later stage computes.
    """
    stages: dict[Value, int] = {}
    data = set(captured.arguments)
    trained = {value for tensor, value in captured.inputs if _is_trained(tensor)}
    # What depends on streams of random numbers alone, which are no Parameters of the network.
    drawn = {value for tensor, value in captured.inputs if getattr(tensor, "name", "") == "random_state"}
    found: dict[Node, int | None] = {}
    for node in captured.nodes:
        label = captured.labels[node]
        inputs = [v for v in node.inputs if v is not None and not v.is_constant]
        before = max((stages[v] for v in inputs if v in stages), default=None)
        if not node.has_effect and all(v in drawn for v in inputs):
            drawn.update(node.outputs)
            found[node] = None
            continue
        of_data, of_trained = any(v in data for v in inputs), any(v in trained for v in inputs)
        is_alike = before is None and not (of_data and of_trained)
        if label.stage is None and is_alike and not node.has_effect:
            data.update(node.outputs if of_data else ())
            trained.update(node.outputs if of_trained else ())
            found[node] = None
            continue
        stage = label.stage
        if stage is None:
            stage = before or 0
        elif before is not None and before > stage:
            raise errors.value_error(
                _OWNER, f"the cell {type(label.cell).__name__} of stage {stage} needs what stage {before} "
                f"computes ({node.op.name}, {node.location}): data go from a stage to later ones only",
            )  # fmt: skip
        found[node] = stage
        stages.update((value, stage) for value in node.outputs)
    return found


def _is_trained(tensor: Tensor) -> bool:
    return isinstance(tensor, Parameter) and tensor.requires_grad


def cut(captured: Captured, count: int) -> list[Part]:
    """The parts of all stages. Errors: as `place`; ValueError for a stage that has nothing to compute."""
    places = place(captured)
    made_by = {value: places[node] for node in captured.nodes for value in node.outputs}
    smooth = _smooth(captured)
    last = made_by.get(captured.output)
    parts: list[Part] = []
    wanted: list[dict[Value, set[int]]] = [{} for _ in range(count)]  # of each stage, and by which
    for number in reversed(range(count)):
        part = Part(number, smooth=smooth, gives=number == (count - 1 if last is None else last))
        part.updates = [(t, v) for t, v in captured.updates if made_by.get(v) in (None, number)]
        needed = {value for _, value in part.updates} | set(wanted[number])
        if part.gives:
            needed.add(captured.output)
        nodes: list[Node] = []
        for node in reversed(captured.nodes):
            used = any(v in needed for v in node.outputs)
            if places[node] in (None, number) and (used or (node.has_effect and places[node] == number)):
                nodes.append(node)
                needed.update(v for v in node.inputs if v is not None and not v.is_constant)
        nodes.reverse()
        if number not in map(places.get, nodes):
            raise errors.value_error(
                _OWNER, f"stage {number} of {count} computes nothing that the result depends on"
            )
        order = [v for node in captured.nodes for v in node.outputs if v in needed]
        for value in order:
            source = made_by[value]
            if source is not None and source != number:
                part.receives.append((value, source))
                wanted[source].setdefault(value, set()).add(number)
        mine = [v for node in captured.nodes for v in node.outputs if v in wanted[number]]
        part.sends = [(v, sorted(wanted[number][v])) for v in mine]
        part.inputs = [(tensor, value) for tensor, value in captured.inputs if value in needed]
        ends = {v for v, _ in part.sends} | {v for _, v in part.updates}
        part.segments = _segments(captured, nodes, ends | ({captured.output} if part.gives else set()))
        parts.append(part)
    return parts[::-1]


def _smooth(captured: Captured) -> set[Value]:
    """Values by which a gradient reaches a trained Parameter."""
    found = {value for tensor, value in captured.inputs if _is_trained(tensor)}
    for node in captured.nodes:
        if not node.op.definition.nondiff and any(v in found for v in node.inputs):
            found.update(v for v in node.outputs if v.type.dtype.is_floating or v.type.dtype.is_complex)
    return found


def _segments(captured: Captured, nodes: list[Node], ends: set[Value]) -> list[Segment]:
    """The nodes as graphs, those of one call that is computed again together."""
    runs: list[tuple[int | None, list[Node]]] = []
    for node in nodes:
        again = captured.labels[node].again
        if not runs or runs[-1][0] != again:
            runs.append((again, []))
        runs[-1][1].append(node)
    segments: list[Segment] = []
    needed = set(ends)
    for again, members in reversed(runs):
        graph = Graph("stage" if again is None else "recomputed")
        made = {value for node in members for value in node.outputs}
        graph.nodes = members
        graph.outputs = [v for node in members for v in node.outputs if v in needed]
        read = dict.fromkeys(v for node in members for v in node.inputs if v is not None)
        graph.parameters = [v for v in read if v not in made and not v.is_constant]
        needed.update(graph.parameters)
        segments.append(Segment(graph, again is not None))
    return segments[::-1]
