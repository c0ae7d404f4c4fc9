"""Control flow that the importers share: graphs of a file become regions of core's IR.

A region is traced on its own; what it reads of the graph around it becomes inputs of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import Trace
from mycelia.capture.values import close_over
from mycelia.ir import TensorType
from mycelia.ir.types import join
from mycelia.ops.define import find
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.importers.nodes import NodeCall
from mycelia_lite.converter.importers.onnx.calls import cast, is_number, shape_of
from mycelia_lite.converter.runtime_op import OPEN, file_loop

_MOST_TRIES = 20  # what changes in a loop, and sizes that turn out to differ, are found one after the other


class OtherRank(ValueError):
    """The results of two branches have different numbers of axes."""


def type_of(value: Any) -> TensorType:
    """The type of a value, with -1 for sizes that are open."""
    return TensorType(value.dtype, plain(shape_of(value)))


def plain(shape: Sequence[Any]) -> tuple[int, ...]:
    """A shape with -1 for what is open."""
    return tuple(n if is_number(n) else OPEN for n in shape)


def conditional(
    call: NodeCall, around: Trace, condition: Any, then: Callable, otherwise: Callable
) -> Sequence[Any]:
    """One of two branches, ``branch(region) -> results``, whose results have the same types but for sizes.

    Errors: ConversionError for other dtypes, OtherRank for other numbers of axes.
    """
    regions, results = [], []
    for name, branch in (("then", then), ("else", otherwise)):
        region = Trace(name, around)
        with region:
            results = branch(region)
            if not obstacles.hide(results):
                region.graph.outputs = [region.value_of(t) for t in results]
                regions.append(region)
    if len(regions) < 2:
        return [obstacles.UNKNOWN] * len(results)
    return joined(call, condition, regions)


def joined(call: NodeCall, condition: Any, regions: Sequence[Trace]) -> Sequence[Any]:
    """The same of two branches that are traced."""
    first, second = (region.graph.output_types for region in regions)
    if len(first) != len(second):
        raise call.fail(f"its branches have {len(first)} and {len(second)} results")
    for i, (a, b) in enumerate(zip(first, second)):
        differ = f"its output {i} is {a} in one branch and {b} in the other"
        if a.dtype is not b.dtype:
            raise call.fail(differ)
        if join(TensorType(a.dtype, plain(a.shape)), TensorType(b.dtype, plain(b.shape))) is None:
            raise OtherRank(differ)
    given = close_over(regions)
    graphs = [region.graph for region in regions]
    return find("cond")(given, condition, then=graphs[0], otherwise=graphs[1])


def while_loop(
    call: NodeCall, around: Trace, inputs: Sequence[Any], test: Callable, body: Callable
) -> Sequence[Any]:
    """Runs ``body(region, values) -> values`` as long as ``test(region, values)``, one Tensor, holds.

    Only what the body changes is carried from run to run; what is no Tensor must stay what it is.
    """
    types: dict[int, TensorType] = {}  # of what changes, by position
    for _ in range(_MOST_TRIES):
        regions, given, results = [], [], []
        for name, run in (("test", test), ("body", body)):
            region = Trace(name, around)
            with region:
                standing = {i: region.parameter(types[i]) for i in sorted(types)}
                given = [standing.get(i, v) for i, v in enumerate(inputs)]
                results = list(run(region, given))
                if obstacles.hide(results):
                    return [obstacles.UNKNOWN] * len(inputs)
                kept = [_truth(call, results)] if name == "test" else [results[i] for i in sorted(types)]
                region.graph.outputs = [region.value_of(t) for t in kept]
            regions.append(region)
        if len(results) != len(inputs):
            raise call.fail(f"its body makes {len(results)} values of {len(inputs)}")
        wider = {**types, **_changed(call, given, results, types)}
        if wider == types:
            break
        types = wider
    else:
        raise call.fail("the sizes of what it carries could not be found")
    if not types:
        return list(inputs)
    for region in regions:  # sizes that change are open outside, too
        for parameter, i in zip(region.graph.parameters, sorted(types)):
            parameter.type = types[i]
    rest = close_over(regions, len(types))
    carried = tuple(inputs[i] for i in sorted(types))
    condition, step = (region.graph for region in regions)
    made = find("while_loop")((*carried, *rest), test=condition, body=step, carried=len(types))
    results = dict(zip(sorted(types), made))
    return [results.get(i, v) for i, v in enumerate(inputs)]


def _truth(call: NodeCall, results: Sequence[Any]) -> Any:
    if len(results) != 1:
        raise call.fail(f"its test makes {len(results)} values, not one")
    return cast(ops.reshape(results[0], ()), ms.bool_)


def _changed(
    call: NodeCall, given: Sequence[Any], results: Sequence[Any], types: dict[int, TensorType]
) -> dict[int, TensorType]:
    """The types of what a run changes, wide enough for what enters it and what leaves it."""
    found = {}
    for i, (value, result) in enumerate(zip(given, results)):
        if result is value:
            continue
        if not isinstance(value, ms.Tensor) or not isinstance(result, ms.Tensor):
            raise call.fail(f"its value {i} is something else after a run")
        after = TensorType(result.dtype, shape_of(result))
        found[i] = join(types.get(i) or TensorType(value.dtype, shape_of(value)), after)
        if found[i] is None:
            before = f"{value.dtype}{list(shape_of(value))}"
            raise call.fail(f"its value {i} enters a run as {before} and leaves it as {after}")
    return found


def counted_loop(
    call: NodeCall, around: Trace, most: Any, going: Any, values: Sequence[Any], step: Callable
) -> Sequence[Any]:
    """``going, *values, *rows = step(region, number, going, values)`` `most` times, or until it stops.

    Results: the values after the last run, and the rows of all runs, stacked. A carried value of which a size
    changes has an open one.
    """
    types = [type_of(v) for v in values]
    for _ in range(_MOST_TRIES):
        region = Trace("body", around)
        with region:
            number = region.parameter(TensorType(ms.int64, ()))
            inner = region.parameter(TensorType(ms.bool_, ()))
            outputs = step(region, number, inner, [region.parameter(t) for t in types])
            if obstacles.hide(outputs):
                return [obstacles.UNKNOWN] * (len(outputs) - 1)
            region.graph.outputs = [region.value_of(t) for t in outputs]
        made = [TensorType(t.dtype, plain(t.shape)) for t in region.graph.output_types[1:]]
        left, rows = made[: len(values)], made[len(values) :]
        wider = [join(before, after) for before, after in zip(types, left)]
        for i, (before, after, both) in enumerate(zip(types, left, wider)):
            if both is None:
                raise call.fail(f"its carried value {i} enters a run as {before} and leaves it as {after}")
        if wider == types:
            break
        types = wider
    else:
        raise call.fail("the sizes of its carried values could not be found")
    stacked = [TensorType(t.dtype, (OPEN, *t.shape)) for t in rows]
    rest = close_over([region], 2 + len(values))
    return file_loop(
        (most, going, *values, *rest), body=region.graph, carried=len(values), types=(*types, *stacked)
    )
