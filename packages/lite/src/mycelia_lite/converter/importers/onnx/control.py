"""If, Loop and Scan: graphs in attributes become regions of core's IR.

A region is traced on its own; what it reads of the graph around it becomes inputs of the node.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import Trace
from mycelia.capture.values import close_over
from mycelia.ir import TensorType
from mycelia.ir.types import join
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    as_tensor,
    cast,
    is_number,
    known,
    positive_axis,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.file import tensor_of
from mycelia_lite.converter.runtime_op import OPEN, at_run_time, file_loop

_ENDLESS = np.iinfo(np.int64).max
_MOST_TRIES = (
    10  # sizes of carried values that turn out to differ from run to run are opened one after the other
)


@dataclass
class Surroundings:
    """Where a node with graphs stands. `run`: ``(nodes, environment, trace)`` imports nodes."""

    environment: Mapping[str, Any]
    trace: Trace
    folder: str
    run: Callable[[Sequence[Any], Any, Trace], None]
    assumed: dict[str, bool]  # conditions, by the node's name, that are taken for granted

    def inside(self, graph: Any, trace: Trace, inputs: Mapping[str, Any]) -> list[Any]:
        """The outputs of a graph whose nodes run in `trace`."""
        weights = {t.name: tensor_of(t, self.folder) for t in graph.initializer}
        inner = ChainMap({**weights, **inputs}, self.environment)
        self.run(graph.node, inner, trace)
        return [inner[o.name] for o in graph.output]


def branch(call: Call, inputs: Sequence[Any], around: Surroundings) -> Sequence[Any]:
    """An If: the nodes of one branch if the condition is known, else both as regions."""
    graphs = [call.need("then_branch"), call.need("else_branch")]
    condition = as_tensor(inputs[0])
    if known(condition) is not None:
        return around.inside(graphs[0 if known(condition).all() else 1], around.trace, {})
    regions = []
    for name, graph in zip(("then", "else"), graphs):
        region = Trace(name, around.trace)
        with region:
            outputs = [as_tensor(v) for v in around.inside(graph, region, {})]
            region.graph.outputs = [region.value_of(t) for t in outputs]
        regions.append(region)
    types = [region.graph.output_types for region in regions]
    for i, (a, b) in enumerate(zip(*types)):
        if join(TensorType(a.dtype, _plain(a.shape)), TensorType(b.dtype, _plain(b.shape))) is None:
            if a.dtype is not b.dtype:
                raise call.fail(f"its output {i} is {a} in one branch and {b} in the other")
            return _assumed(call, condition, graphs, around)
    given = close_over(regions)
    then, otherwise = (region.graph for region in regions)
    return find("cond")(given, condition, then=then, otherwise=otherwise)


def _assumed(call: Call, condition: Any, graphs: Sequence[Any], around: Surroundings) -> Sequence[Any]:
    """The results of one branch, if those of the other have another number of dimensions.

    What follows is made for one of them, most often the first. Runs where the condition is otherwise fail.
    """
    taken = around.assumed.setdefault(call.name, True)
    expected = ops.equal(condition, ms.Tensor(taken))
    values = [as_tensor(v) for v in around.inside(graphs[0 if taken else 1], around.trace, {})]
    return [
        at_run_time("Custom", (x, expected), [(x.dtype, _plain(shape_of(x)))], type="require") for x in values
    ]


def loop(call: Call, inputs: Sequence[Any], around: Surroundings) -> Sequence[Any]:
    """A Loop: carried values, then rows of every run."""
    inputs = [*inputs, None, None][: max(len(inputs), 2)]
    most = ms.Tensor(_ENDLESS, ms.int64) if inputs[0] is None else ops.reshape(as_tensor(inputs[0]), ())
    going = ms.Tensor(True) if inputs[1] is None else ops.reshape(as_tensor(inputs[1]), ())
    values = [as_tensor(v) for v in inputs[2:]]
    body = call.need("body")
    names = [i.name for i in body.input]
    if len(names) != len(values) + 2 or len(body.output) < len(values) + 1:
        raise call.fail(
            f"its body has {len(names)} inputs and {len(body.output)} outputs for {len(values)} values"
        )

    def step(region: Trace, number: Any, going: Any, values: list[Any]) -> list[Any]:
        found = around.inside(body, region, dict(zip(names, (number, going, *values))))
        return [ops.reshape(as_tensor(found[0]), ()), *map(as_tensor, found[1:])]

    return _looped(call, around, cast(most, ms.int64), going, values, step)


def scan(call: Call, inputs: Sequence[Any], around: Surroundings) -> Sequence[Any]:
    """A Scan: a loop over slices of some inputs."""
    if call.version < 9:
        raise call.fail("a Scan of version 8, which has a batch")
    body, count = call.need("body"), call.need("num_scan_inputs")
    values, scanned = (
        [as_tensor(v) for v in inputs[: len(inputs) - count]],
        [as_tensor(v) for v in inputs[len(inputs) - count :]],
    )
    rows = len(body.output) - len(values)
    axes = call.get("scan_input_axes") or [0] * count
    directions = call.get("scan_input_directions") or [0] * count
    scanned = [
        ops.flip(x, (positive_axis(call, a, x.ndim),)) if back else x
        for x, a, back in zip(scanned, axes, directions)
    ]
    axes = [positive_axis(call, a, x.ndim) for x, a in zip(scanned, axes)]
    length = shape_of(scanned[0])[axes[0]]
    most = (
        ms.Tensor(length, ms.int64) if is_number(length) else around.trace.sizes.number(length, around.trace)
    )
    names = [i.name for i in body.input]

    def step(region: Trace, number: Any, going: Any, values: list[Any]) -> list[Any]:
        parts = [ops.gather(x, number, axis) for x, axis in zip(scanned, axes)]
        return [
            ms.Tensor(True),
            *map(as_tensor, around.inside(body, region, dict(zip(names, (*values, *parts))))),
        ]

    made = list(_looped(call, around, cast(most, ms.int64), ms.Tensor(True), values, step))
    output_axes = call.get("scan_output_axes") or [0] * rows
    backwards = call.get("scan_output_directions") or [0] * rows
    for i, (axis, back) in enumerate(zip(output_axes, backwards), len(values)):
        made[i] = ops.flip(made[i], (0,)) if back else made[i]
        axis = positive_axis(call, axis, made[i].ndim)
        order = [*range(1, axis + 1), 0, *range(axis + 1, made[i].ndim)]
        made[i] = ops.transpose(made[i], tuple(order)) if axis else made[i]
    return made


def _looped(
    call: Call, around: Surroundings, most: Any, going: Any, values: list[Any], step: Callable
) -> Sequence[Any]:
    """A loop whose body is `step`. A carried value of which a size changes has an open one."""
    types = [TensorType(v.dtype, _plain(shape_of(v))) for v in values]
    for _ in range(_MOST_TRIES):
        region = Trace("body", around.trace)
        with region:
            number, inner = (
                region.parameter(TensorType(ms.int64, ())),
                region.parameter(TensorType(ms.bool_, ())),
            )
            carried = [region.parameter(t) for t in types]
            outputs = step(region, number, inner, carried)
            region.graph.outputs = [region.value_of(t) for t in outputs]
        left = [TensorType(t.dtype, _plain(t.shape)) for t in region.graph.output_types[1 : 1 + len(values)]]
        wider = [join(before, after) for before, after in zip(types, left)]
        for i, (before, after, both) in enumerate(zip(types, left, wider)):
            if both is None:
                raise call.fail(f"its carried value {i} enters a run as {before} and leaves it as {after}")
        if wider == types:
            break
        types = wider
    else:
        raise call.fail("the sizes of its carried values could not be found")
    rows = [
        TensorType(t.dtype, (OPEN, *_plain(t.shape))) for t in region.graph.output_types[1 + len(values) :]
    ]
    rest = close_over([region], 2 + len(values))
    return file_loop(
        (most, going, *values, *rest), body=region.graph, carried=len(values), types=(*types, *rows)
    )


def _plain(shape: Sequence[Any]) -> tuple[int, ...]:
    """A shape with -1 for what is open."""
    return tuple(n if is_number(n) else OPEN for n in shape)
