"""An If whose branches give results of different numbers of axes: what follows is imported for each of them.

Ranks are part of what the converter knows of a value, so such a result has no type. The nodes behind the If
that depend on it become part of both branches, up to where the ranks are the same again. A branch behind
which a node cannot be, whatever the data, would fail in every engine that comes to the node: the other one is
converted, and checks the condition, also where an inner If might have passed the node by.
"""

from __future__ import annotations

import contextlib
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import Trace
from mycelia.errors import MyceliaIndexError, MyceliaValueError
from mycelia.ir.walk import substitute
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.errors import Code, ConversionError, Misfit
from mycelia_lite.converter.importers import regions
from mycelia_lite.converter.importers.nodes import Nodes
from mycelia_lite.converter.importers.onnx.calls import Call, as_tensor
from mycelia_lite.converter.importers.onnx.run_time import require

Place = tuple  # a node: the outputs of those around it, from the outermost on, and its own

_MOST = 64  # times that what follows an If is imported


class BranchesDiffer(Exception):
    """The If `call` at `place` in `trace`, whose results have no ranks before its condition is decided."""

    def __init__(self, call: Call, why: str, place: Place, trace: Trace, condition: Any) -> None:
        super().__init__(why)
        self.call, self.place, self.trace, self.condition = call, place, trace, condition


@dataclass
class Choice:
    """The branch that an If takes. `checks`: results of it, which hold if the condition is that."""

    taken: bool
    checks: list[Any] = field(default_factory=list)

    def required(self, condition: Any, values: Iterable[Any]) -> list[Any]:
        made = require(list(values), ops.equal(condition, ms.Tensor(self.taken)))
        self.checks.extend(made)
        return made

    def explain(self, error: ConversionError) -> None:
        """Lets the checks tell why the other branch is not there."""
        for node in (t.traced.producer for t in self.checks):
            reason = f"the other branch cannot be gone: {error.args[0]}"
            fields = dict(node.attrs["fields"]) | {"attr": (("reason", reason),)}
            node.attrs = {**node.attrs, "fields": tuple(sorted(fields.items()))}

    def trust(self, region: Trace) -> None:
        """Takes the checks away, for a region that runs under the condition alone."""
        nodes = [t.traced.producer for t in self.checks]
        substitute(region.graph, {n.outputs[0]: n.inputs[0] for n in nodes})


class Choices:
    """The branches of the Ifs that are decided where nodes are imported."""

    def __init__(self) -> None:
        self._of: dict[Place, Choice] = {}
        self.tried = 0

    def of(self, place: Place) -> Choice | None:
        return self._of.get(place)

    @contextlib.contextmanager
    def taking(self, place: Place, taken: bool) -> Iterator[Choice]:
        self._of[place] = choice = Choice(taken)
        try:
            yield choice
        finally:
            del self._of[place]


@dataclass
class _Way:
    """What follows an If, imported for one branch of it."""

    choice: Choice
    region: Trace
    errors: Sequence[ConversionError]

    @property
    def never_runs(self) -> bool:
        return bool(self.errors) and all(map(_misfit, self.errors))


def both_ways(
    differ: BranchesDiffer, around: Trace, choices: Choices, made: Nodes, environment: MutableMapping,
    wanted: Sequence[str], ranks: Mapping[str, int], run: Callable[[MutableMapping, Trace], None],
) -> None:  # fmt: skip
    """Adds `wanted` to `environment`, which ``run(environment, trace)`` does: the If and all behind it.

    `ranks`: those that the file declares. Errors: ConversionError if both ways end in one, or one that might
    run; BranchesDiffer if the ranks of `wanted` differ.
    """

    def followed(taken: bool) -> _Way:
        choices.tried += 1
        if choices.tried > _MOST:
            raise differ.call.fail(f"{differ}, as of others: there are more than {_MOST} ways to go on")
        region, before = Trace("then" if taken else "else", around), (made.fixed, len(made.scales))
        with choices.taking(differ.place, taken) as choice, region, obstacles.apart() as errors:
            inner = ChainMap({}, environment)
            try:
                run(inner, region)
                results = [inner[name] for name in wanted]
                if not obstacles.hide(results):
                    results = [as_tensor(v) for v in results]
                    _require_ranks(wanted, results, ranks)
                    region.graph.outputs = [region.value_of(t) for t in results]
            except ConversionError as error:
                errors.append(error)
        if errors:
            made.fixed, made.scales[:] = before[0], made.scales[: before[1]]
        return _Way(choice, region, errors)

    ways = [followed(True), followed(False)]
    left = [way for way in ways if not way.never_runs]
    for error in [e for way in left or ways for e in way.errors]:
        if not obstacles.note(error):
            raise error
    if any(way.errors for way in left) or not left:
        environment.update(dict.fromkeys(wanted, obstacles.UNKNOWN))
        return
    if len(left) == 1:
        (lost,) = (way for way in ways if way.never_runs)
        left[0].choice.explain(lost.errors[0])
        environment.update(zip(wanted, _spliced(left[0].region, around)))
        return
    for way in left:
        way.choice.trust(way.region)
    try:
        found = regions.joined(differ.call, differ.condition, [way.region for way in left])
    except regions.OtherRank:
        raise differ from None
    environment.update(zip(wanted, found))


def _spliced(region: Trace, around: Trace) -> list[Any]:
    """The results of a region whose nodes become nodes of the trace around it."""
    graph = region.graph
    substitute(graph, {inner: around.value_of(tensor) for tensor, inner in region.captured.values()})
    around.graph.nodes.extend(graph.nodes)
    around.owned.update(v for node in graph.nodes for v in node.outputs)
    return [around.tensor(v) for v in graph.outputs]


def _require_ranks(names: Sequence[str], values: Sequence[Any], ranks: Mapping[str, int]) -> None:
    """Errors: ConversionError for an output that has another rank than the file declares."""
    for name, value in zip(names, values):
        if ranks.get(name, value.ndim) != value.ndim:
            raise Misfit(
                Code.GRAPH_FILE_ERROR,
                f"the output '{name}' has {value.ndim} axes, {ranks[name]} in the file",
            )


def _misfit(error: ConversionError) -> bool:
    return isinstance(error, Misfit) or isinstance(error.__cause__, (MyceliaValueError, MyceliaIndexError))


def leave(
    nodes: Sequence[Any], trace: Trace, run: Callable[[Any], None]
) -> tuple[BranchesDiffer | None, list[Any]]:
    """Runs nodes in order but for Ifs whose branches differ and what depends on them: the first, these."""
    first, left, reached = None, [], set()
    for node in nodes:
        if not reached or reached.isdisjoint(_read(node)):
            try:
                run(node)
                continue
            except BranchesDiffer as differ:
                if differ.trace is not trace:
                    raise
                first = first or differ
        left.append(node)
        reached.update(filter(None, node.output))
    return first, left


def _read(node: Any) -> set[str]:
    """The names that a node and the graphs in its attributes read, theirs included."""
    names = set(node.input)
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            for inner in graph.node:
                names |= _read(inner)
            names |= {o.name for o in graph.output}
    return names
