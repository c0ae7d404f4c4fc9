"""If, Loop and Scan, whose bodies are graphs in attributes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import Trace
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.importers import regions
from mycelia_lite.converter.importers.onnx import run_time, sequences
from mycelia_lite.converter.importers.onnx.branches import BranchesDiffer, Choices, Place
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    TensorList,
    as_tensor,
    cast,
    is_number,
    known,
    known_shape,
    positive_axis,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.file import tensor_of
from mycelia_lite.converter.runtime_op import custom

_ENDLESS = np.iinfo(np.int64).max


@dataclass
class Surroundings:
    """Where a node with graphs stands. `run`: ``(nodes, environment, trace, outputs)`` imports nodes."""

    environment: Mapping[str, Any]
    trace: Trace
    folder: str
    run: Callable[[Sequence[Any], Any, Trace, Sequence[str]], None]
    place: Place
    choices: Choices

    def inside(self, graph: Any, trace: Trace, inputs: Mapping[str, Any]) -> list[Any]:
        """The outputs of a graph whose nodes run in `trace`."""
        weights = {t.name: tensor_of(t, self.folder) for t in graph.initializer}
        inner = ChainMap({**weights, **inputs}, self.environment)
        outputs = [o.name for o in graph.output]
        self.run(graph.node, inner, trace, outputs)
        return [inner[name] for name in outputs]


def branch(call: Call, inputs: Sequence[Any], around: Surroundings) -> Sequence[Any]:
    """An If: the nodes of one branch if the condition is known, else both as regions."""
    graphs = [call.need("then_branch"), call.need("else_branch")]
    condition = as_tensor(inputs[0])
    if known(condition) is not None:
        return around.inside(graphs[0 if known(condition).all() else 1], around.trace, {})

    if any(is_number(n) and n != 1 for n in shape_of(condition)):
        raise call.misfit(f"its condition has the shape {list(shape_of(condition))}, not one element")
    choice = around.choices.of(around.place)
    if choice is not None:
        values = around.inside(graphs[0 if choice.taken else 1], around.trace, {})
        return values if obstacles.hide(values) else choice.required(condition, map(as_tensor, values))

    def results(graph: Any) -> Callable:
        return lambda region: [as_tensor(v) for v in around.inside(graph, region, {})]

    try:
        return regions.conditional(call, around.trace, condition, *map(results, graphs))
    except (regions.OtherRank, BranchesDiffer) as differ:
        condition = ops.reshape(condition, ())
        raise BranchesDiffer(call, str(differ), around.place, around.trace, condition) from None


def loop(call: Call, inputs: Sequence[Any], around: Surroundings) -> Sequence[Any]:
    """A Loop: carried values, then rows of every run. Of sequences it carries what each run appends."""
    inputs = [*inputs, None, None][: max(len(inputs), 2)]
    most = ms.Tensor(_ENDLESS, ms.int64) if inputs[0] is None else ops.reshape(as_tensor(inputs[0]), ())
    going = ms.Tensor(True) if inputs[1] is None else ops.reshape(as_tensor(inputs[1]), ())
    given = inputs[2:]
    lists = {i: v for i, v in enumerate(given) if isinstance(v, TensorList)}
    values = [as_tensor(v) for i, v in enumerate(given) if i not in lists]
    body = call.need("body")
    names = [i.name for i in body.input]
    if len(names) != len(given) + 2 or len(body.output) < len(given) + 1:
        raise call.fail(
            f"its body has {len(names)} inputs and {len(body.output)} outputs for {len(given)} values"
        )
    added: dict[int, int] = {}  # how many tensors a run appends to each sequence

    def step(region: Trace, number: Any, going: Any, values: list[Any]) -> list[Any]:
        entering = {i: sequences.carried(call, v) for i, v in lists.items()}
        tensors = iter(values)
        arguments = [entering[i] if i in entering else next(tensors) for i in range(len(given))]
        found = around.inside(body, region, dict(zip(names, (number, going, *arguments))))
        if obstacles.hide(found):
            return [obstacles.UNKNOWN] * len(found)
        left, rows = found[1 : len(given) + 1], found[len(given) + 1 :]
        more = {i: sequences.appended(call, v, left[i]) for i, v in entering.items()}
        added.update({i: len(v) for i, v in more.items()})
        kept = [as_tensor(v) for i, v in enumerate(left) if i not in lists]
        rows = [*map(as_tensor, rows), *(as_tensor(v) for part in more.values() for v in part)]
        return [ops.reshape(as_tensor(found[0]), ()), *kept, *rows]

    made = list(regions.counted_loop(call, around.trace, cast(most, ms.int64), going, values, step))
    if not lists or obstacles.hide(made):
        return made
    left, rows = iter(made[: len(values)]), made[len(values) :]
    plain = len(rows) - sum(added.values())
    behind = iter(rows[plain:])
    ends = {i: sequences.grown(call, v, [next(behind) for _ in range(added[i])]) for i, v in lists.items()}
    return [*(ends[i] if i in ends else next(left) for i in range(len(given))), *rows[:plain]]


def scan(call: Call, inputs: Sequence[Any], around: Surroundings) -> Sequence[Any]:
    """A Scan: a loop over slices of some inputs."""
    count = call.need("num_scan_inputs")
    if call.version < 9:
        return _batch_of_scans(call, inputs, around, count)
    values, scanned = (
        [as_tensor(v) for v in inputs[: len(inputs) - count]],
        [as_tensor(v) for v in inputs[len(inputs) - count :]],
    )
    rows = len(call.need("body").output) - len(values)
    axes = call.get("scan_input_axes") or [0] * count
    axes = [positive_axis(call, a, x.ndim) for x, a in zip(scanned, axes)]
    made = _scanned(call, around, values, scanned, axes, call.get("scan_input_directions") or [0] * count)
    output_axes = call.get("scan_output_axes") or [0] * rows
    backwards = call.get("scan_output_directions") or [0] * rows
    for i, (axis, back) in enumerate(zip(output_axes, backwards), len(values)):
        made[i] = ops.flip(made[i], (0,)) if back else made[i]
        axis = positive_axis(call, axis, made[i].ndim)
        order = [*range(1, axis + 1), 0, *range(axis + 1, made[i].ndim)]
        made[i] = ops.transpose(made[i], tuple(order)) if axis else made[i]
    return made


def _batch_of_scans(call: Call, inputs: Sequence[Any], around: Surroundings, count: int) -> Sequence[Any]:
    """A Scan of version 8: one for each of a batch, along the first axis of its slices, all stacked."""
    lengths, *given = inputs
    given = [as_tensor(v) for v in given]
    split = len(given) - count
    directions = call.get("directions") or [0] * count
    batch = known_shape(call, given[-1], (0,))[0]
    if lengths is not None and shape_of(as_tensor(lengths)) != (batch,):
        raise call.fail(f"{list(shape_of(as_tensor(lengths)))} lengths for {batch} sequences")
    call.fixed = True
    results = []
    for b in range(batch):
        own, most = [x[b] for x in given], None if lengths is None else as_tensor(lengths)[b]
        made = _scanned(call, around, own[:split], own[split:], [0] * count, directions, most)
        if most is not None:
            whole = run_time.sizes(own[split])[:1]
            made[split:] = [_filled(x, whole, shape_of(own[split])[0]) for x in made[split:]]
        results.append(made)
    return [ops.stack(list(each), 0) for each in zip(*results)]


def _filled(x: Any, whole: Any, length: Any) -> Any:
    """The rows of a sequence with zeros behind them: `whole` [1] in all, `length` as far as it is known."""
    shape = ops.concat((whole, run_time.sizes(x)[1:])) if x.ndim > 1 else whole
    return custom("pad_to", [x, shape], [(x.dtype, (length, *shape_of(x)[1:]))])


def _scanned(
    call: Call, around: Surroundings, values: Sequence[Any], scanned: Sequence[Any], axes: Sequence[int],
    directions: Sequence[int], runs: Any = None,
) -> list[Any]:  # fmt: skip
    """The values after the last run, and the rows of all runs along a first axis.

    `runs`: how many there are, all slices without it.
    """
    body = call.need("body")
    if runs is None:
        scanned = [ops.flip(x, (a,)) if back else x for x, a, back in zip(scanned, axes, directions)]
    length = shape_of(scanned[0])[axes[0]]
    most = (
        ms.Tensor(length, ms.int64) if is_number(length) else around.trace.sizes.number(length, around.trace)
    )
    if runs is not None:
        runs = cast(runs, ms.int64)
        within = ops.logical_and(ops.less_equal(runs, cast(most, ms.int64)), ops.greater(runs, ms.Tensor(0)))
        (most,) = run_time.require([runs], within, "the length of a sequence of a Scan is out of range")
    names = [i.name for i in body.input]

    def step(region: Trace, number: Any, going: Any, values: list[Any]) -> list[Any]:
        last = None if runs is None else ops.sub(ops.sub(most, ms.Tensor(1)), number)
        places = [number if last is None or not back else last for back in directions]
        parts = [ops.gather(x, at, axis) for x, axis, at in zip(scanned, axes, places)]
        return [
            ms.Tensor(True),
            *map(as_tensor, around.inside(body, region, dict(zip(names, (*values, *parts))))),
        ]

    return list(regions.counted_loop(call, around.trace, cast(most, ms.int64), ms.Tensor(True), values, step))
