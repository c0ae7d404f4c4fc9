"""Captures a loop whose condition is a tensor: which variables it carries,
and as what, is found by tracing it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.engine.base import dtypes, errors
from mycelia.engine.capture.conditions import as_bool, predicate
from mycelia.engine.capture.jumps import RESULT
from mycelia.engine.capture.numbers import is_number, marked
from mycelia.engine.capture.rewrite_expressions import Site
from mycelia.engine.capture.trace import (
    Trace,
    UnknownSize,
    active,
    is_traced,
    number_tensor,
    snapshot,
    type_of,
)
from mycelia.engine.capture.values import (
    NUMBERS,
    Mismatch,
    MissingValue,
    Undefined,
    alike,
    close_over,
    common_dtype,
    describe,
    equal_objects,
    flatten,
    fresh_containers,
    inside_only,
    source_line,
    zeros,
)
from mycelia.engine.ir import types as ir_types
from mycelia.engine.ir.graph import Value
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.control_flow import control as ops
from mycelia.engine.tensors.tensor import Tensor

_MOST_ATTEMPTS = 20  # each one settles at least one name; a loop that needs more does not settle


class _Again(Exception):
    """The loop must be traced anew: what it carries has changed."""


class Loop:
    """Captures a loop. Which variables the body changes shows only by tracing it,
    so it is traced until that settles.
    """

    def __init__(self, test: Callable, body: Callable, get: Callable, set_: Callable, site: Site) -> None:
        self.test, self.body, self.get, self.set = test, body, get, set_
        self.site = site
        self.outer = active()
        self.leaves: list[list[Any]] = []
        self.rebuild: list[Callable] = []
        self.before = list(get())
        for value in self.before:
            leaves: list[Any] = []
            self.rebuild.append(flatten(value, leaves))
            self.leaves.append(leaves)
        self.carried: dict[tuple[int, int], TensorType] = {}
        self.tensors: set[tuple[int, int]] = set()  # what began as a number and is a tensor after a round
        self.lost: dict[int, Undefined] = {}  # variables that have no value when a round begins
        self.objects: dict[int, tuple[Tensor, Tensor]] = {}  # tensors changed in place: (object, what it was)
        for i, leaves in enumerate(self.leaves):
            for k, leaf in enumerate(leaves):
                if isinstance(leaf, Tensor) and not leaf._is_parameter:
                    self.carried[i, k] = type_of(leaf)

    def capture(self) -> None:
        for _ in range(_MOST_ATTEMPTS):
            try:
                test = self.trace_test()
                body, outs = self.trace_body()
                break
            except _Again:
                continue
        else:
            raise self.error("what it carries from round to round does not settle")
        keys = list(self.carried)
        values = [self.initial(key) for key in keys] + [before for _, before in self.objects.values()]
        body.graph.outputs = outs
        captured = close_over((test, body), len(values))
        inputs = (*values, *captured)
        results = ops.while_loop(inputs, test=test.graph, body=body.graph, carried=len(values))
        after: list[list[Any]] = [list(leaves) for leaves in self.leaves]
        for (i, k), tensor in zip(keys, results):
            after[i][k] = marked(tensor) if self.is_number((i, k)) else tensor
        self.set(tuple(self.after(i, after[i]) for i in range(len(after))))
        for (tensor, _), value in zip(self.objects.values(), results[len(keys) :]):
            self.outer.see(tensor)
            tensor._assign(value)

    def after(self, i: int, leaves: list[Any]) -> Any:
        if i in self.lost:
            return self.lost[i]
        return self.rebuild[i](leaves)

    def is_number(self, key: tuple[int, int]) -> bool:
        """Whether what is carried stands for a Python number."""
        return key not in self.tensors and is_number(self.leaves[key[0]][key[1]])

    def error(self, text: str) -> Exception:
        return errors.error(
            errors.CaptureError, "jit", f"the loop at {self.site.file}:{self.site.line}: {text}"
        )

    def initial(self, key: tuple[int, int]) -> Tensor:
        leaf = self.leaves[key[0]][key[1]]
        dtype = self.carried[key].dtype
        if not isinstance(leaf, Tensor):
            return number_tensor(leaf, dtype)
        if leaf.dtype is dtype:
            return leaf
        from mycelia.engine.ops.elementwise.cast import cast

        return cast(leaf, dtype=dtype)

    # -- one attempt

    def enter(self, region: Trace) -> None:
        """Gives the variables and objects the values they have when a round begins."""
        values = [list(leaves) for leaves in self.leaves]
        for (i, k), type_ in self.carried.items():
            standing = region.parameter(type_, self.site.names[i] if k == 0 else "")
            values[i][k] = marked(standing) if self.is_number((i, k)) else standing
        state = tuple(
            self.lost[i] if i in self.lost else fresh_containers(self.rebuild[i](leaves))
            for i, leaves in enumerate(values)
        )
        self.set(state)
        for tensor, _ in self.objects.values():
            tensor._assign(region.parameter(type_of(tensor)))

    def leave(self, region: Trace) -> tuple[list[Tensor], list]:
        """Sets variables and objects back; returns what the carried objects had become,
        and other changed objects.
        """
        objects = []
        for tensor, before in self.objects.values():
            objects.append(snapshot(tensor))
            tensor._assign(before)
        changed = region.changed()
        self.set(tuple(self.before))
        return objects, changed

    def trace_test(self) -> Trace:
        region = Trace(f"{self.site.function}.test{self.site.line}", self.outer)
        with region:
            self.enter(region)
            going = self.test()
            _, changed = self.leave(region)
            if changed:
                raise self.error("its condition changes a tensor in place")
            what = f"the condition at {self.site.file}:{self.site.line}"
            going = as_bool(predicate(going, what, self.body) if is_traced(going) else going)
            region.graph.outputs = [region.value_of(going if isinstance(going, Tensor) else Tensor(going))]
        return region

    def trace_body(self) -> tuple[Trace, list[Value]]:
        region = Trace(f"{self.site.function}.body{self.site.line}", self.outer)
        with region:
            self.enter(region)
            entered = tuple(map(fresh_containers, self.get()))  # the body may change the containers in place
            self.body()
            left = self.get()
            objects, changed = self.leave(region)
            if region.ended:
                left = entered
            again = False
            for tensor, before, after in changed:
                self.require_type(tensor, before, after)
                self.objects[id(tensor)] = (tensor, before)
                again = True
            outs: dict[tuple[int, int], Value] = {}
            for i, (start, end) in enumerate(zip(entered, left, strict=True)):
                again |= self.compare(region, i, start, end, outs)
            if again:
                raise _Again
            for (tensor, before), after in zip(self.objects.values(), objects):
                self.require_type(tensor, before, after)
            values = [outs[key] for key in self.carried] + [region.value_of(t) for t in objects]
        return region, values

    def require_type(self, tensor: Tensor, before: Tensor, after: Tensor) -> None:
        if type_of(before) != type_of(after):
            name = getattr(tensor, "name", "a tensor")
            raise self.error(f"{name} is {type_of(before)}, but its body assigns {type_of(after)} to it")

    def compare(self, region: Trace, i: int, start: Any, end: Any, outs: dict) -> bool:
        """Checks variable `i` at the end of a round against its beginning;
        True if the loop must be traced anew.
        """
        name = self.site.names[i]
        if i in self.lost:
            return False
        if type(start) is Undefined:
            if type(end) is Undefined:
                return bool(end.reason) and self.lose(i, end.reason, end.kind, end.detail)
            if name == RESULT:
                return self.prepare_result(region, i, end)
            site = self.site
            where = source_line(site.file, site.lines[0].get(name, site.line))
            return self.lose(
                i,
                inside_only(name, site.kind),
                detail=f"It gets its value at {where}, and the loop at {site.file}:{site.line} runs zero "
                "times if its tensor condition is false: give it a value before the loop",
            )
        if type(end) is Undefined:
            return self.lose(
                i,
                end.reason or f"'{name}' is deleted inside the loop at {self.site.file}:{self.site.line}",
                end.kind,
                end.detail,
            )
        starts: list[Any] = []
        ends: list[Any] = []
        flatten(start, starts)
        flatten(end, ends)
        if len(starts) != len(ends) or not alike(start, end):
            return self.differ(i, start, end)
        again = False
        for k, (a, b) in enumerate(zip(starts, ends)):
            again |= self.compare_leaf(region, i, k, a, b, outs)
            if i in self.lost:
                return True
        return again

    def compare_leaf(self, region: Trace, i: int, k: int, a: Any, b: Any, outs: dict) -> bool:
        key = (i, k)
        name = self.site.names[i]
        carried = self.carried.get(key)
        if carried is None:
            same = a is b or equal_objects(a, b)
            if same or (
                isinstance(a, Tensor)
                and isinstance(b, Tensor)
                and a.traced is not None
                and a.traced is b.traced
            ):
                return False
            if not isinstance(a, (Tensor, *NUMBERS)) or not isinstance(b, (Tensor, *NUMBERS)):
                return self.differ(i, a, b)
            if isinstance(a, Tensor):
                self.carried[key] = type_of(a)
            else:  # a number is weak: it takes the dtype that the body gives it
                dtype = (
                    dtypes.promote_number(b.dtype, type(a)) if isinstance(b, Tensor) else common_dtype(a, b)
                )
                self.carried[key] = TensorType(dtype, ())
            return True
        if self.is_number(key) and not is_number(b):
            self.tensors.add(key)
            return self.compare_leaf(region, i, k, a, b, outs) or True
        if isinstance(b, NUMBERS):
            dtype = dtypes.promote_number(carried.dtype, type(b))
            if carried.shape != ():
                return self.differ(i, carried, b)
            if dtype is not carried.dtype:
                return self.widen(key, TensorType(dtype, ()), b)
            b = number_tensor(b, dtype)
        if not isinstance(b, Tensor):
            return self.differ(i, carried, b)
        found = type_of(b)
        if found.dtype is not carried.dtype:
            return self.widen(key, TensorType(found.dtype, carried.shape), b)
        if found.shape != carried.shape:
            joined = ir_types.join(found, carried)
            if joined is None:
                return self.lose(i, self.disagreement(name, str(carried), str(found)), UnknownSize)
            if not joined.is_static and region.sizes_known:
                raise errors.error(UnknownSize, "jit", self.disagreement(name, str(carried), str(found)))
            if joined != carried:
                self.carried[key] = joined
                return True
        outs[key] = region.value_of(b)
        return False

    def widen(self, key: tuple[int, int], type_: TensorType, found: Any) -> bool:
        """A variable that began as a Python number takes the dtype that the body gives
        it; a tensor keeps its own.
        """
        leaf = self.leaves[key[0]][key[1]]
        current = self.carried[key]
        if isinstance(leaf, Tensor) or dtypes.promote(current.dtype, type_.dtype) is not type_.dtype:
            return self.differ(key[0], current, found)
        self.carried[key] = type_
        return True

    def lose(
        self, i: int, reason: str, kind: type[errors.CaptureError] = MissingValue, detail: str = ""
    ) -> bool:
        self.lost[i] = Undefined(self.site.names[i], reason, kind, detail=detail)
        for key in [key for key in self.carried if key[0] == i]:
            del self.carried[key]
        return True

    def differ(self, i: int, a: Any, b: Any) -> bool:
        """Loses variable `i`, which begins a round as `a` and ends it as `b`."""
        reason = self.disagreement(self.site.names[i], describe(a), describe(b))
        return self.lose(i, reason, Mismatch(a, b).kind)

    def prepare_result(self, region: Trace, i: int, end: Any) -> bool:
        """The returned value exists only after a `return` inside the loop: zeros stand for it before."""
        leaves: list[Any] = []
        rebuild = flatten(end, leaves)
        leaves = [zeros(type_of(leaf)) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self.leaves[i] = leaves
        self.rebuild[i] = rebuild
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                self.carried[i, k] = type_of(leaf)
        return True

    def disagreement(self, name: str, a: str, b: str) -> str:
        line = self.site.lines[0].get(name)
        name = "the returned value" if name == RESULT else f"'{name}'"
        return (
            f"{name} changes its type in the loop at {self.site.file}:{self.site.line}: it enters a round "
            f"as {a} and leaves it "
            f"as {b}{f' (line {line})' if line else ''}; under a tensor condition it must keep structure, "
            "dtype and shape"
        )
