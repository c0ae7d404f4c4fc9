"""Full quantization: weights and data are int8, sums int32, from one layer with weights to the next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from mycelia_lite.format import Table
from mycelia_lite.quant import channels, integer_graph, measure
from mycelia_lite.quant.integer_graph import Integers, Writer
from mycelia_lite.quant.measure import Departure
from mycelia_lite.quant.ranges import Grid, Range
from mycelia_lite.quant.roles import Choice, Graph, Limits, Role, find
from mycelia_lite.quant.settings import FullQuantization
from mycelia_lite.quant.tables import check_finite, described, in_order, nothing_to_do
from mycelia_lite.quant.weights import Layer, check_names

_CORRECTED, _COMPARED = 64, 16  # runs by which biases are corrected, and results compared


@dataclass
class _Attempt:
    """A model with integers: its tables, where the integers of tensors are, what became of layers."""

    model: Table
    places: dict[int, int]
    grids: dict[int, Grid]
    layers: list[Layer]
    local: dict[str, float]  # by node: what a layer's own integers make it depart by


@dataclass(frozen=True)
class Compared:
    """A tensor of the float model and of the one with integers. node, kind: what makes it."""

    tensor: str
    node: str
    kind: str
    cosine: float
    error: float
    clip_rate: float


@dataclass
class Result:
    """What a quantization did to each layer, and to each tensor that has integers.

    outputs: cosines between before and after, by name. casts: nodes between numbers and integers that are
    left; floats: (name, operator) of nodes that compute with numbers. numbers, integers: the models before
    and after; places: the tensor of integers by that of numbers; grids: what they stand for.
    """

    layers: list[Layer]
    tensors: list[Compared]
    outputs: dict[str, float]
    casts: int
    floats: list[tuple[str, str]]
    numbers: Table
    integers: Table
    places: dict[int, int]
    grids: dict[int, Grid]


def quantize_full(model: Table, how: FullQuantization) -> Result:
    """Let layers of the model compute with int8, in place; inputs and outputs stay what they are.

    Errors: ValueError if a weight or a number that calibration sees is NaN or infinite, data do not fit, a
    name in `skip` is that of no node, nothing can be quantized, or not with the `target_cosine`; the model is
    then as it was.
    """
    check_names(model, how.skip)
    original = model.copy()
    graph = Graph(original)
    roles, left = find(graph, _limits(how, ()))
    layers = [role for role in roles if role.is_layer]
    if not layers:
        raise nothing_to_do(left)
    check_finite(graph, layers)
    if how.equalize:
        channels.equalize(graph, layers)
    if how.smooth:
        channels.smooth(graph, layers, how.smooth, how.calibration)
    tensors = sorted({t for role in roles for t in (*role.data, *role.results)})
    ranges = measure.ranges(original, tensors, how.calibration, how.method)
    done = _attempt(original, how, (), ranges)
    outputs = _outputs(original, done, how)
    if how.target_cosine and min(outputs.values(), default=1) < how.target_cosine:
        done, outputs = _with_fewer(original, how, ranges, done)
    compared = _compared(original, done, how)
    numbers, integers = original, done.model.copy()
    integer_graph.drop_unread(done.model)
    for name in ("nodes", "allTensors", "subGraph", "inputIndex", "outputIndex"):
        setattr(model, name, getattr(done.model, name))
    casts = sum(n.primitive.kind == "QuantDTypeCast" for n in integers.nodes)
    floats = [(n.name, n.primitive.kind) for n in integers.nodes if n.quantType != integer_graph.QUANT_ALL]
    return Result(
        done.layers, compared, outputs, casts, floats, numbers, integers, done.places, done.grids
    )  # fmt: skip


def _limits(how: FullQuantization, more: Collection[str]) -> Limits:
    return Limits(how.min_size, how.min_channels, {*how.skip, *more})


# ---- one attempt


def _attempt(
    original: Table, how: FullQuantization, skipped: Collection[str], ranges: dict[int, Range]
) -> _Attempt:
    graph = Graph(original.copy())
    roles, left = find(graph, _limits(how, skipped))
    choice = Choice(graph, roles, ranges.keys(), how.integer_results)
    taken = [choice.taken[id(n)] for n in graph.nodes if id(n) in choice.taken]
    layers = [role for role in taken if role.is_layer]
    grids = _grids(choice, taken, ranges, how.method)
    integers = Integers(
        grids,
        integer_graph.rounded_weights(graph, layers, grids, how.per_channel),
        integer_graph.float_biases(graph, layers),
    )
    local = _corrected(original, layers, integers, how)
    made = {role.weights: described(graph, role, integers.weights[role.weights]) for role in layers}
    if skipped:
        why = f"the cosine of an output would be less than {how.target_cosine:g}"
        left = {t: (node, why if node.name in skipped else said) for t, (node, said) in left.items()}
    table = in_order(graph, made, left)
    places = integer_graph.store(graph, choice, integers)
    return _Attempt(graph.model, places, grids, table, local)


def _grids(choice: Choice, taken: Sequence[Role], ranges: dict[int, Range], method: str) -> dict[int, Grid]:
    """Integers for each tensor that has some; what only moves elements keeps them."""
    group: dict[int, int] = {}

    def root(tensor: int) -> int:
        while group.setdefault(tensor, tensor) != tensor:
            tensor = group[tensor]
        return tensor

    for role in taken:
        for tensor in (*role.data, *role.results):
            root(tensor)
        if role.shares:
            for tensor in role.results:
                group[root(tensor)] = root(role.data[0])
    limits: dict[int, tuple[float, float]] = {}
    for tensor in group:
        if choice.is_narrow(tensor):
            low, high = ranges[tensor].limits(method)
            before = limits.get(root(tensor), (low, high))
            limits[root(tensor)] = min(low, before[0]), max(high, before[1])
    return {t: Grid.of(*limits[root(t)]) for t in group if choice.is_narrow(t)}


def _corrected(
    original: Table, layers: Sequence[Role], integers: Integers, how: FullQuantization
) -> dict[str, float]:
    """Add the mean error of each channel to the biases; by node how far its own integers take it.

    Each layer is computed beside itself, on integers of the float model's own data.
    """
    twin = original.copy()
    graph = Graph(twin)
    writer = Writer(graph, integers)
    maker = {int(o): n for n in graph.nodes for o in n.outputIndex}
    nodes = list(graph.nodes)
    narrow: dict[int, int] = {}
    wanted: list[int] = []
    for role in layers:
        data, result = role.data[0], role.results[0]
        if data not in narrow:
            table = writer.tensors[data]
            narrow[data] = writer.tensor(
                f"{table.name}/int8", integer_graph.DataType.INT8, table, quantParams=writer.grid(data)
            )
            nodes.append(writer.cast(data, narrow[data]))
        plain, twice = maker[result].copy(), maker[result].copy()
        for node, word in ((plain, "plain"), (twice, "integers")):
            node.primitive.activation_type = "NO_ACTIVATION"
            node.name = f"{role.node.name}/{word}"
            made = writer.tensor(f"{node.name}:0", integer_graph.DataType.FLOAT32, writer.tensors[result])
            node.outputIndex = [made]
            wanted.append(made)
            nodes.append(node)
        writer.layer(twice, role, narrow[data], wanted[-1])
    integer_graph.replace(twin, nodes, writer.tensors)
    errors = [0.0] * len(layers)
    seen = [Departure() for _ in layers]
    counts = [0] * len(layers)
    for arrays in measure.values(twin, wanted, how.calibration, _CORRECTED):
        for i in range(len(layers)):
            one, two = arrays[2 * i], arrays[2 * i + 1]
            channels = one.shape[-1]
            rows = (one - two).reshape(-1, channels)
            errors[i] = errors[i] + rows.sum(0, dtype=np.float64)
            counts[i] += len(rows)
            seen[i].see(one, two)
    for role, error, count in zip(layers, errors, counts, strict=True):
        if how.bias_correction and count:
            integers.biases[role.results[0]] += error / count
    return {role.node.name: departure.error for role, departure in zip(layers, seen, strict=True)}


# ---- results


def _outputs(original: Table, done: _Attempt, how: FullQuantization) -> dict[str, float]:
    """The cosine of each output that is float32."""
    places = {int(t): int(t) for t in original.outputIndex}
    seen: dict[int, Departure] = {}
    for run in measure.pairs(original, done.model, places, done.grids, how.calibration, _COMPARED):
        for tensor, (a, b) in run.items():
            if a.dtype == np.float32:
                seen.setdefault(tensor, Departure()).see(a, b)
    return {original.allTensors[t].name: d.cosine for t, d in seen.items()}


def _with_fewer(
    original: Table, how: FullQuantization, ranges: dict[int, Range], first: _Attempt
) -> tuple[_Attempt, dict[str, float]]:
    """Without the layers whose own integers depart most: as few as the cosine needs.

    Errors: ValueError if it holds with none alone.
    """
    worst = sorted(first.local, key=first.local.__getitem__, reverse=True)
    best: tuple[_Attempt, dict[str, float]] | None = None
    least, most = 1, len(worst) - 1
    count = 1
    while least <= most:  # doubled until it holds, then halved between
        done = _attempt(original, how, worst[:count], ranges)
        outputs = _outputs(original, done, how)
        if min(outputs.values(), default=1) >= how.target_cosine:
            best, most = (done, outputs), count - 1
        else:
            least = count + 1
        count = min(2 * count, most) if best is None else (least + most) // 2
        count = max(count, least)
    if best is None:
        raise ValueError(
            f"target_cosine: with any one layer of integers the cosine of an output is less than "
            f"{how.target_cosine:g}"
        )
    return best


def _compared(original: Table, done: _Attempt, how: FullQuantization) -> list[Compared]:
    seen = {t: Departure() for t in done.places}
    for run in measure.pairs(original, done.model, done.places, done.grids, how.calibration, _COMPARED):
        for tensor, (a, b) in run.items():
            seen[tensor].see(a, b, done.grids[tensor])
    maker = {int(o): n for n in original.nodes for o in n.outputIndex}
    found = []
    for tensor, departure in seen.items():
        node = maker.get(tensor)
        name, kind = (node.name, node.primitive.kind) if node is not None else ("", "")
        found.append(
            Compared(
                original.allTensors[tensor].name,
                name,
                kind,
                departure.cosine,
                departure.error,
                departure.clip_rate,
            )  # fmt: skip
        )
    return found
