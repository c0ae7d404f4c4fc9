"""Control flow of PyTorch: higher-order ops whose graphs are modules of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import Trace
from mycelia_lite.converter.importers import regions
from mycelia_lite.converter.importers.onnx.calls import is_number
from mycelia_lite.converter.importers.torch.calls import Call, as_tensor, shape_of


@dataclass
class Surroundings:
    """Where a node with graphs stands. `run`: ``(module, arguments, trace)`` -> its results."""

    trace: Trace
    run: Callable[[Any, Sequence[Any], Trace], list[Any]]

    def within(self, module: Any, arguments: Sequence[Any], region: Trace) -> list[Any]:
        """The results of a module as tensors."""
        return [as_tensor(v) for v in self.run(module, arguments, region)]


def cond(call: Call, around: Surroundings, condition: Any, then: Any, otherwise: Any, given: Any = ()):
    condition = as_tensor(condition, ms.bool_)

    def results(module: Any) -> Callable:
        return lambda region: around.within(module, given, region)

    return list(regions.conditional(call, around.trace, condition, results(then), results(otherwise)))


def while_loop(call: Call, around: Surroundings, test: Any, body: Any, carried: Any, given: Any = ()):
    def results(module: Any) -> Callable:
        return lambda region, values: around.within(module, [*values, *given], region)

    carried = [as_tensor(v) for v in carried]
    return list(regions.while_loop(call, around.trace, carried, results(test), results(body)))


def mapped(call: Call, around: Surroundings, body: Any, rows: Any, given: Any = ()):
    """The results of `body` for each of the rows, which lie along the first axis, stacked."""

    def step(region: Trace, parts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        return around.within(body, [*parts, *given], region)

    return _over_rows(call, around, rows, [], step)


def scan(call: Call, around: Surroundings, body: Any, first: Any, rows: Any, given: Any = ()):
    """``*values, *row = body(*values, *slices of the rows)``: the last values, then all rows."""

    def step(region: Trace, parts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        return around.within(body, [*values, *parts, *given], region)

    return _over_rows(call, around, rows, [as_tensor(v) for v in first], step)


def _over_rows(
    call: Call, around: Surroundings, rows: Sequence[Any], values: Sequence[Any], step: Callable
) -> list[Any]:
    if not rows:
        raise call.fail("it has nothing to go over")
    length = shape_of(rows[0])[0]
    most = as_tensor(length) if not is_number(length) else ms.Tensor(length, ms.int64)

    def run(region: Trace, number: Any, going: Any, inner: Sequence[Any]) -> list[Any]:
        parts = [ops.gather(x, number, 0) for x in rows]
        return [ms.Tensor(True), *step(region, parts, inner)]

    made = list(regions.counted_loop(call, around.trace, most, ms.Tensor(True), values, run))
    if not is_number(length):
        return made
    return made[: len(values)] + [_of_length(x, length) for x in made[len(values) :]]


def _of_length(x: Any, length: int) -> Any:
    """Rows of all runs, of which the number is known."""
    sizes = shape_of(x)[1:]
    return ops.reshape(x, (length, *sizes)) if all(map(is_number, sizes)) else x


CONTROL: dict[str, Callable] = {"cond": cond, "while_loop": while_loop, "map_impl": mapped, "scan": scan}
