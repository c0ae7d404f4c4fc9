"""Captures an `if` on a tensor: both sides are traced,
and what they leave in the variables is brought together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.capture.jumps import RESULT
from mycelia.engine.capture.numbers import is_number, marked
from mycelia.engine.capture.rewrite_expressions import Site
from mycelia.engine.capture.trace import Trace, UnknownValue, active, number_tensor, traces, type_of
from mycelia.engine.capture.values import (
    NUMBERS,
    Mismatch,
    Undefined,
    close_over,
    common_dtype,
    equal_objects,
    flatten,
    fresh_containers,
    is_container,
    keys_of,
    rebuild_container,
    same_structure,
    source_line,
    zeros,
)
from mycelia.engine.ops.control_flow import control as ops
from mycelia.engine.tensors.tensor import Tensor

_DEEPEST = 40  # regions inside one another; more are a recursion that a tensor ends


def branch(
    test: Tensor, runs: Sequence[Callable[[], None]], get: Callable, set_: Callable, site: Site
) -> None:
    if len(traces) > _DEEPEST:
        raise errors.error(
            UnknownValue,
            "jit",
            f"the condition at {site.file}:{site.line} is inside itself: how deep a recursion goes shows "
            "only when the graph runs",
            hint="write it as a loop",
        )
    outer = active()
    before = get()
    sides = []
    for name, run in zip(("then", "else"), runs):
        region = Trace(f"{site.function}.{name}{site.line}", outer)
        region.forward_passes = list(outer.forward_passes)
        with region:
            set_(tuple(fresh_containers(v) for v in before))
            run()
            values = get()
            changed = region.changed()
        set_(before)
        sides.append((region, values, changed))
    outer.forward_passes[:] = [
        kept for kept in outer.forward_passes if all(kept in region.forward_passes for region, *_ in sides)
    ]
    join = _Join(site, *(s[0] for s in sides))
    merged = [
        join.merge(name, index, init, a, b)
        for index, (name, init, a, b) in enumerate(
            zip(site.names, before, sides[0][1], sides[1][1], strict=True)
        )
    ]
    objects: dict[int, list] = {}
    for side, (_, _, changed) in enumerate(sides):
        for tensor, old, new in changed:
            objects.setdefault(id(tensor), [tensor, old, old])[1 + side] = new
    targets = [
        (entry[0], join.pair(entry[1], entry[2], type_of(entry[0]).dtype)) for entry in objects.values()
    ]
    results = join.emit(test)
    set_(tuple(m(results) for m in merged))
    for tensor, position in targets:
        outer.see(tensor)
        tensor._assign(results[position])


class _Join:
    """Brings the results of two branches together."""

    def __init__(self, site: Site, then: Trace, orelse: Trace) -> None:
        self.site = site
        self.regions = (then, orelse)
        self.pairs: list[tuple[Tensor, Tensor]] = []

    def emit(self, test: Tensor) -> tuple[Tensor, ...]:
        """Closes the regions and makes the `cond` node, unless it would do nothing."""
        for region, values in zip(self.regions, zip(*self.pairs) if self.pairs else ((), ())):
            region.graph.outputs = [region.value_of(v) for v in values]
        has_effect = any(node.has_effect for region in self.regions for node in region.graph.nodes)
        if not self.pairs and not has_effect:
            return ()
        inputs = close_over(self.regions)
        return ops.cond(inputs, test, then=self.regions[0].graph, otherwise=self.regions[1].graph)

    def pair(self, a: Tensor, b: Tensor, dtype: Any) -> int:
        self.pairs.append((self.converted(0, a, dtype), self.converted(1, b, dtype)))
        return len(self.pairs) - 1

    def converted(self, side: int, value: Any, dtype: Any) -> Tensor:
        if not isinstance(value, Tensor):
            return number_tensor(value, dtype)
        if value.dtype is dtype:
            return value
        from mycelia.engine.ops.elementwise.cast import cast

        with self.regions[side]:
            return cast(value, dtype=dtype)

    def merge(self, name: str, index: int, init: Any, a: Any, b: Any) -> Callable[[Sequence[Tensor]], Any]:
        """How the variable's value after the statement is made from the results of the `cond` node."""
        ended = [region.ended for region in self.regions]
        if ended[0] != ended[1] or type(a) is Undefined or type(b) is Undefined:
            if type(a) is Undefined and type(b) is Undefined:
                return _always(a if a.reason else b)
            only = 0 if ended[1] or (type(b) is Undefined and not ended[0]) else 1
            value, missing = (a, b) if only == 0 else (b, a)
            if type(value) is Undefined:
                return _always(value)
            if ended[1 - only]:
                return self.placed(only, value)
            if missing.reason:
                return _always(missing)
            if name == RESULT:
                return self.placed(only, value)
            return _always(self.one_sided(name, only))
        try:
            return self.merged(init, a, b)
        except Mismatch as mismatch:
            return _always(Undefined(name, self.disagreement(name, mismatch), mismatch.kind))

    def placed(self, side: int, value: Any) -> Callable[[Sequence[Tensor]], Any]:
        """`value` exists in one branch only, and the other does not care: zeros take its place there."""
        leaves: list[Any] = []
        rebuild = flatten(value, leaves)
        parts: list[Callable] = []
        for leaf in leaves:
            if (
                isinstance(leaf, Tensor)
                and leaf.traced is not None
                and leaf.traced in self.regions[side].owned
            ):
                other = zeros(type_of(leaf))
                position = self.pair(*((leaf, other) if side == 0 else (other, leaf)), leaf.dtype)
                parts.append(functools.partial(_number if is_number(leaf) else _item, position))
            else:
                parts.append(_always(leaf))
        return lambda results: rebuild([p(results) for p in parts])

    def merged(self, init: Any, a: Any, b: Any) -> Callable[[Sequence[Tensor]], Any]:
        if a is b:
            return _always(a)
        if is_container(a) and is_container(b):
            keys = same_structure(a, b)
            before = init if is_container(init) and type(init) is type(a) and keys_of(init) == keys else None
            parts = [self.merged(None if before is None else before[k], a[k], b[k]) for k in keys]

            def build(results: Sequence[Tensor]) -> Any:
                items = [p(results) for p in parts]
                if before is not None and all(i is before[k] for i, k in zip(items, keys)):
                    return init
                return rebuild_container(a, keys, items)

            return build
        if isinstance(a, (Tensor, *NUMBERS)) and isinstance(b, (Tensor, *NUMBERS)):
            if (
                isinstance(a, Tensor)
                and isinstance(b, Tensor)
                and a.traced is not None
                and a.traced is b.traced
            ):
                return _always(a)
            if type(a) is type(b) and not isinstance(a, Tensor) and (a == b or a != a):
                return _always(a)
            position = self.pair(a, b, common_dtype(a, b))
            return functools.partial(_number if is_number(a) and is_number(b) else _item, position)
        if equal_objects(a, b):
            return _always(a)
        raise Mismatch(a, b)

    def one_sided(self, name: str, side: int) -> Undefined:
        site = self.site
        where = source_line(site.file, site.lines[side].get(name, site.line))
        branches = ("true branch", "false branch") if side == 0 else ("false branch", "true branch")
        return Undefined(
            name,
            f"The local variable '{name}' is not defined in {branches[1]}, but defined in {branches[0]}.",
            detail=f"It gets its value at {where}, and the condition at {site.file}:{site.line} is a tensor, "
            "known only when the graph runs: give it a value before the statement",
        )

    def disagreement(self, name: str, mismatch: Mismatch) -> str:
        site = self.site
        lines = [s.get(name) for s in site.lines]
        if name == RESULT:
            name = "the returned value"
        else:
            name = f"'{name}'" if name.isidentifier() else name
        places = [
            f" ({source_line(site.file, line)})" if line else " (unchanged)" if any(lines) else ""
            for line in lines
        ]
        return (
            "Cannot join the return values of different branches: under the tensor condition at "
            f"{site.file}, {source_line(site.file, site.line)}, {name} is {mismatch.a}{places[0]} in the one "
            f"and {mismatch.b}{places[1]} in the other; both must give the same structure, dtype and shape"
        )


def _always(value: Any) -> Callable[[Sequence[Tensor]], Any]:
    return lambda results: value


def _item(position: int, results: Sequence[Tensor]) -> Tensor:
    return results[position]


def _number(position: int, results: Sequence[Tensor]) -> Tensor:
    return marked(results[position])
