"""What rewritten code calls (`capture/rewrite.py`): control flow that looks at its condition.

A condition that is a Python value runs as Python. One that is a traced Tensor is captured: both branches, or test and
body, are traced into regions; the names they assign are compared, and what differs becomes an input or output of a
`cond` or `while_loop` node. Python numbers become tensors where they have to. A name whose values do not fit together
stays unusable: the error, with both types and lines, comes where the name is read.
"""

from __future__ import annotations

import builtins
import functools
import os
import types
from collections.abc import Callable, Sequence
from typing import Any

from mycelia import dtypes, errors
from mycelia.capture import gradients, rewrite  # noqa: F401  (gradients gives the control ops their rules)
from mycelia.capture.rewrite import RESULT, Site
from mycelia.capture.trace import Trace, active, is_traced, snapshot, type_of
from mycelia.ir import types as ir_types
from mycelia.ir.graph import Value
from mycelia.ir.types import TensorType
from mycelia.ops import control as ops
from mycelia.tensor import Tensor

_NUMBERS = (bool, int, float)
_NUMBER_DTYPES = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float32}
_MOST_ATTEMPTS = 20  # each one settles at least one name; a loop that needs more does not settle


# ---- names without a value -----------------------------------------------------------------------------------------


class Undefined:
    """Stands in a variable that has no usable value, with the reason."""

    __slots__ = ("name", "reason")

    def __init__(self, name: str, reason: str = "") -> None:
        self.name, self.reason = name, reason

    def complain(self) -> Exception:
        if not self.reason:
            return UnboundLocalError(f"local variable '{self.name}' is used before it has a value")
        return errors.error(errors.CaptureError, "jit", self.reason)


def undefined(name: str) -> Undefined:
    return Undefined(name)


def load(value: Any) -> Any:
    """The value of a variable; raises if it has none."""
    if type(value) is Undefined:
        raise value.complain()
    return value


def result(value: Any) -> Any:
    """What the function returns."""
    if type(value) is Undefined and not value.reason:
        return None
    return load(value)


def get_attribute(owner: Any, name: str) -> Any:
    """`owner.name`, or Undefined: the attribute may be made inside the branch."""
    if type(owner) is Undefined:
        return owner
    try:
        return getattr(owner, name)
    except AttributeError:
        return Undefined(name)


def set_attribute(owner: Any, name: str, value: Any) -> None:
    if type(owner) is Undefined or type(value) is Undefined or getattr(owner, name, None) is value:
        return
    setattr(owner, name, value)


# ---- conditions ----------------------------------------------------------------------------------------------------


def _predicate(value: Tensor, what: str) -> Tensor:
    if value.size not in (1, ir_types.UNKNOWN) and ir_types.UNKNOWN not in value.shape:
        raise errors.value_error("jit", f"{what} must have one element, got {type_of(value)}; use x.any() or x.all()")
    return value


def _as_bool(value: Any) -> Any:
    """A traced tensor as a bool tensor; anything else as a Python bool."""
    if not is_traced(value):
        return bool(value)
    from mycelia.ops.cast import cast

    return value if value.dtype is dtypes.bool_ else cast(value, dtype=dtypes.bool_)


def and_(*operands: Callable[[], Any]) -> Any:
    """`a and b ...`; from the first traced tensor on, all operands are computed and combined."""
    return _combine(operands, "logical_and", False)


def or_(*operands: Callable[[], Any]) -> Any:
    """`a or b ...`; from the first traced tensor on, all operands are computed and combined."""
    return _combine(operands, "logical_or", True)


def _combine(operands: Sequence[Callable[[], Any]], op: str, deciding: bool) -> Any:
    from mycelia.ops import logic

    value = operands[0]()
    for operand in operands[1:]:
        if not is_traced(value):
            if bool(value) is deciding:
                return value
            value = operand()
            continue
        left, right = _as_bool(value), _as_bool(operand())
        if is_traced(right):
            value = getattr(logic, op)(left, right)
        else:
            value = deciding if right is deciding else left
        if value is deciding:
            return value
    return value


def not_(value: Any) -> Any:
    if not is_traced(value):
        return not value
    from mycelia.ops import logic

    return logic.logical_not(_as_bool(value))


def in_(item: Any, container: Any) -> Any:
    """`item in container`: with traced tensors among a few candidates, a chain of comparisons."""
    if isinstance(container, (tuple, list)) and (is_traced(item) or any(is_traced(c) for c in container)):
        comparable = [c for c in container if isinstance(c, (Tensor, *_NUMBERS))]
        if not comparable:
            return False
        return or_(*(functools.partial(lambda c: item == c, c) for c in comparable))
    return item in container


# ---- if ------------------------------------------------------------------------------------------------------------


def if_(
    test: Any, then: Callable[[], None], orelse: Callable[[], None], get: Callable[[], tuple], set_: Callable, site: Site
) -> None:
    """An `if` statement."""
    if not is_traced(test):
        (then if test else orelse)()
        return
    _branch(_predicate(test, f"the condition at {site.file}:{site.line}"), (then, orelse), get, set_, site)


def if_else(test: Any, then: Callable[[], Any], orelse: Callable[[], Any], site: Site) -> Any:
    """A conditional expression."""
    if not is_traced(test):
        return then() if test else orelse()
    box: list[Any] = [Undefined("value")]

    def assign(make: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            box[0] = make()

        return run

    def set_(values: Sequence[Any]) -> None:
        box[0] = values[0]

    named = Site(site.kind, site.file, site.line, site.function, ("the value",), ({}, {}))
    _branch(_predicate(test, "the condition"), (assign(then), assign(orelse)), lambda: (box[0],), set_, named)
    return load(box[0])


def _branch(test: Tensor, runs: Sequence[Callable[[], None]], get: Callable, set_: Callable, site: Site) -> None:
    outer = active()
    before = get()
    sides = []
    for name, run in zip(("then", "else"), runs):
        region = Trace(f"{site.function}.{name}{site.line}", outer)
        with region:
            set_(tuple(_fresh_containers(v) for v in before))
            run()
            values = get()
            changed = region.changed()
        set_(before)
        sides.append((region, values, changed))
    join = _Join(site, *(s[0] for s in sides))
    merged = [
        join.merge(name, index, init, a, b)
        for index, (name, init, a, b) in enumerate(zip(site.names, before, sides[0][1], sides[1][1], strict=True))
    ]
    objects: dict[int, list] = {}
    for side, (_, _, changed) in enumerate(sides):
        for tensor, old, new in changed:
            objects.setdefault(id(tensor), [tensor, old, old])[1 + side] = new
    targets = [(entry[0], join.pair(entry[1], entry[2], type_of(entry[0]).dtype)) for entry in objects.values()]
    results = join.emit(test)
    set_(tuple(m(results) for m in merged))
    for tensor, position in targets:
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
        inputs = _close_over(self.regions)
        return ops.cond(inputs, test, then=self.regions[0].graph, otherwise=self.regions[1].graph)

    def pair(self, a: Tensor, b: Tensor, dtype: Any) -> int:
        self.pairs.append((self.converted(0, a, dtype), self.converted(1, b, dtype)))
        return len(self.pairs) - 1

    def converted(self, side: int, value: Any, dtype: Any) -> Tensor:
        if not isinstance(value, Tensor):
            return Tensor(value, dtype)
        if value.dtype is dtype:
            return value
        from mycelia.ops.cast import cast

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
            if ended[1 - only] or name == RESULT:
                return self.placed(only, value)
            if missing.reason:
                return _always(missing)
            return _always(Undefined(name, self.one_sided(name, only)))
        try:
            return self.merged(init, a, b)
        except _Mismatch as mismatch:
            return _always(Undefined(name, self.disagreement(name, mismatch)))

    def placed(self, side: int, value: Any) -> Callable[[Sequence[Tensor]], Any]:
        """`value` exists in one branch only, and the other does not care: zeros take its place there."""
        leaves: list[Any] = []
        rebuild = _flatten(value, leaves)
        parts: list[Callable] = []
        for leaf in leaves:
            if isinstance(leaf, Tensor) and leaf.traced is not None and leaf.traced in self.regions[side].owned:
                other = _zeros(type_of(leaf))
                position = self.pair(*((leaf, other) if side == 0 else (other, leaf)), leaf.dtype)
                parts.append(functools.partial(_item, position))
            else:
                parts.append(_always(leaf))
        return lambda results: rebuild([p(results) for p in parts])

    def merged(self, init: Any, a: Any, b: Any) -> Callable[[Sequence[Tensor]], Any]:
        if a is b:
            return _always(a)
        if _is_container(a) and _is_container(b):
            keys = _same_structure(a, b)
            before = init if _is_container(init) and type(init) is type(a) and _keys(init) == keys else None
            parts = [self.merged(None if before is None else before[k], a[k], b[k]) for k in keys]

            def build(results: Sequence[Tensor]) -> Any:
                items = [p(results) for p in parts]
                if before is not None and all(i is before[k] for i, k in zip(items, keys)):
                    return init
                return _rebuild_container(a, keys, items)

            return build
        if isinstance(a, (Tensor, *_NUMBERS)) and isinstance(b, (Tensor, *_NUMBERS)):
            if isinstance(a, Tensor) and isinstance(b, Tensor) and a.traced is not None and a.traced is b.traced:
                return _always(a)
            if type(a) is type(b) and not isinstance(a, Tensor) and (a == b or a != a):
                return _always(a)
            position = self.pair(a, b, _common_dtype(a, b))
            return functools.partial(_item, position)
        if _equal_objects(a, b):
            return _always(a)
        raise _Mismatch(_describe(a), _describe(b))

    def one_sided(self, name: str, side: int) -> str:
        line = self.site.lines[side].get(name, self.site.line)
        other = "else" if side == 0 else "if"
        return (
            f"'{name}' has a value only if one side of the tensor condition at {self.site.file}:{self.site.line} is taken: "
            f"it is assigned at line {line}, but not in the {other} branch; give it a value before the statement"
        )

    def disagreement(self, name: str, mismatch: _Mismatch) -> str:
        lines = [s.get(name) for s in self.site.lines]
        if name == RESULT:
            name = "the returned value"
        else:
            name = f"'{name}'" if name.isidentifier() else name
        places = [f" (line {line})" if line else " (unchanged)" if any(lines) else "" for line in lines]
        return (
            f"the branches of the tensor condition at {self.site.file}:{self.site.line} disagree about {name}: "
            f"{mismatch.a}{places[0]} in the one, {mismatch.b}{places[1]} in the other; "
            "both must give the same structure, dtype and shape"
        )


class _Mismatch(Exception):
    def __init__(self, a: str, b: str) -> None:
        super().__init__(a, b)
        self.a, self.b = a, b


def _always(value: Any) -> Callable[[Sequence[Tensor]], Any]:
    return lambda results: value


def _item(position: int, results: Sequence[Tensor]) -> Tensor:
    return results[position]


def _close_over(regions: Sequence[Trace], first: int = 0) -> tuple[Tensor, ...]:
    """Gives all regions the same parameters after their first `first` own ones; returns the tensors these stand for."""
    outer: dict[Value, Tensor] = {}
    for region in regions:
        for value, (tensor, _) in region.captured.items():
            outer.setdefault(value, tensor)
    for region in regions:
        own = region.graph.parameters[:first]
        region.graph.parameters = own
        for value in outer:
            if value in region.captured:
                own.append(region.captured[value][1])
            else:
                region.graph.add_parameter(value.type, value.name)
    return tuple(outer.values())


def _common_dtype(a: Any, b: Any) -> Any:
    """The dtype two branch values share; numbers adapt to tensors. Raises _Mismatch."""
    tensors = [v for v in (a, b) if isinstance(v, Tensor)]
    if len(tensors) == 2:
        if ir_types.join(type_of(a), type_of(b)) is None or not type_of(a).accepts(type_of(b)):
            raise _Mismatch(_describe(a), _describe(b))
        return a.dtype
    if not tensors:
        return dtypes.promote(_NUMBER_DTYPES[type(a)], _NUMBER_DTYPES[type(b)])
    number = b if tensors[0] is a else a
    if tensors[0].shape != ():
        raise _Mismatch(_describe(a), _describe(b))
    return dtypes.promote_number(tensors[0].dtype, type(number))


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return str(type_of(value))
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{type(value).__name__} {value!r}" if value is not None else "None"


def _equal_objects(a: Any, b: Any) -> bool:
    if type(a) is not type(b) or isinstance(a, Tensor):
        return False
    try:
        return bool(a == b)
    except Exception:
        return False


def _zeros(type_: TensorType) -> Tensor:
    if not type_.is_static:
        raise errors.error(
            errors.CaptureError, "jit", f"a value of type {type_} is returned under a tensor condition: its size must be known"
        )
    from mycelia.ops.create import full

    return full(type_.shape, 0, dtype=type_.dtype)


# ---- structures ----------------------------------------------------------------------------------------------------


def _is_container(value: Any) -> bool:
    return type(value) in (list, tuple, dict) or (isinstance(value, tuple) and hasattr(value, "_fields"))


def _keys(container: Any) -> list:
    return list(container) if isinstance(container, dict) else list(range(len(container)))


def _same_structure(a: Any, b: Any) -> list:
    if type(a) is not type(b) or _keys(a) != _keys(b):
        raise _Mismatch(_describe(a), _describe(b))
    return _keys(a)


def _rebuild_container(like: Any, keys: list, items: list) -> Any:
    if isinstance(like, dict):
        return dict(zip(keys, items))
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def _fresh_containers(value: Any) -> Any:
    """Copies of the containers, so that a branch may change them; the leaves stay."""
    if not _is_container(value):
        return value
    keys = _keys(value)
    return _rebuild_container(value, keys, [_fresh_containers(value[k]) for k in keys])


def _flatten(value: Any, leaves: list) -> Callable[[Sequence[Any]], Any]:
    """Collects the leaves of nested containers; the result builds the structure from new leaves."""
    if not _is_container(value):
        index = len(leaves)
        leaves.append(value)
        return lambda items: items[index]
    keys = _keys(value)
    parts = [_flatten(value[k], leaves) for k in keys]
    return lambda items: _rebuild_container(value, keys, [p(items) for p in parts])


# ---- while and for -------------------------------------------------------------------------------------------------


def while_(test: Callable[[], Any], body: Callable[[], None], get: Callable, set_: Callable, site: Site) -> None:
    """A `while` statement: runs as Python as long as the condition is a Python value."""
    while True:
        going = test()
        if is_traced(going):
            _Loop(test, body, get, set_, site).capture()
            return
        if not going:
            return
        body()


def for_(
    iterable: Any,
    body: Callable[[Any], None],
    stop: Callable[[], Any] | None,
    get: Callable,
    set_: Callable,
    site: Site,
) -> None:
    """A `for` statement: unrolled, unless the number of rounds is known only when the graph runs."""
    if isinstance(iterable, TensorRange):
        _counted_loop(iterable, lambda index: index, body, stop, get, set_, site)
        return
    if is_traced(iterable):
        if iterable.ndim == 0:
            raise errors.type_error("jit", "iteration over a 0-d tensor")
        if iterable.shape[0] == ir_types.UNKNOWN:
            from mycelia.ops.shape import shape_of

            rounds = TensorRange(0, shape_of(iterable)[0], 1)
            _counted_loop(rounds, lambda index: iterable[index], body, stop, get, set_, site)
            return
        iterable = (iterable[i] for i in range(iterable.shape[0]))
    for item in iterable:
        stopped = stop() if stop is not None else False
        if is_traced(stopped):
            if_(not_(stopped), functools.partial(body, item), _nothing, get, set_, site)
        elif stopped:
            break
        else:
            body(item)


def _nothing() -> None:
    pass


class TensorRange:
    """`range` with traced limits."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        if is_traced(step):
            raise errors.error(errors.CaptureError, "jit", "the step of range() must be a Python int, not a tensor")
        if step == 0:
            raise errors.value_error("range", "the step must not be zero")
        self.start, self.stop, self.step = start, stop, step


def _counted_loop(rounds: TensorRange, item_of: Callable, body: Callable, stop: Any, get: Callable, set_: Callable, site: Site) -> None:
    counter = [rounds.start]

    def inside() -> Any:
        return counter[0] < rounds.stop if rounds.step > 0 else counter[0] > rounds.stop

    def test() -> Any:
        return inside() if stop is None else and_(lambda: not_(stop()), inside)

    def step() -> None:
        item = item_of(counter[0])
        counter[0] = counter[0] + rounds.step
        body(item)

    def get_all() -> tuple:
        return (*get(), counter[0])

    def set_all(values: Sequence[Any]) -> None:
        set_(values[:-1])
        counter[0] = values[-1]

    named = Site(site.kind, site.file, site.line, site.function, (*site.names, "the loop counter"), site.lines)
    while_(test, step, get_all, set_all, named)


class _Again(Exception):
    """The loop must be traced anew: what it carries has changed."""


class _Loop:
    """Captures a loop. Which variables the body changes shows only by tracing it, so it is traced until that settles."""

    def __init__(self, test: Callable, body: Callable, get: Callable, set_: Callable, site: Site) -> None:
        self.test, self.body, self.get, self.set = test, body, get, set_
        self.site = site
        self.outer = active()
        self.leaves: list[list[Any]] = []
        self.rebuild: list[Callable] = []
        self.before = list(get())
        for value in self.before:
            leaves: list[Any] = []
            self.rebuild.append(_flatten(value, leaves))
            self.leaves.append(leaves)
        self.carried: dict[tuple[int, int], TensorType] = {}
        self.lost: dict[int, str] = {}  # variables that have no value when a round begins, with the reason
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
        captured = _close_over((test, body), len(values))
        inputs = (*values, *captured)
        results = ops.while_loop(inputs, test=test.graph, body=body.graph, carried=len(values))
        after: list[list[Any]] = [list(leaves) for leaves in self.leaves]
        for (i, k), tensor in zip(keys, results):
            after[i][k] = tensor
        self.set(tuple(self.after(i, after[i]) for i in range(len(after))))
        for (tensor, _), value in zip(self.objects.values(), results[len(keys) :]):
            tensor._assign(value)

    def after(self, i: int, leaves: list[Any]) -> Any:
        if i in self.lost:
            return Undefined(self.site.names[i], self.lost[i])
        return self.rebuild[i](leaves)

    def error(self, text: str) -> Exception:
        return errors.error(errors.CaptureError, "jit", f"the loop at {self.site.file}:{self.site.line}: {text}")

    def initial(self, key: tuple[int, int]) -> Tensor:
        leaf = self.leaves[key[0]][key[1]]
        dtype = self.carried[key].dtype
        if not isinstance(leaf, Tensor):
            return Tensor(leaf, dtype)
        if leaf.dtype is dtype:
            return leaf
        from mycelia.ops.cast import cast

        return cast(leaf, dtype=dtype)

    # -- one attempt

    def enter(self, region: Trace) -> None:
        """Gives the variables and objects the values they have when a round begins."""
        values = [list(leaves) for leaves in self.leaves]
        for (i, k), type_ in self.carried.items():
            values[i][k] = region.parameter(type_, self.site.names[i] if k == 0 else "")
        state = tuple(
            Undefined(self.site.names[i], self.lost[i]) if i in self.lost else _fresh_containers(self.rebuild[i](leaves))
            for i, leaves in enumerate(values)
        )
        self.set(state)
        for tensor, _ in self.objects.values():
            tensor._assign(region.parameter(type_of(tensor)))

    def leave(self, region: Trace) -> tuple[list[Tensor], list]:
        """Sets variables and objects back; returns what the carried objects had become, and other changed objects."""
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
            going = _as_bool(_predicate(going, "the condition") if is_traced(going) else going)
            region.graph.outputs = [region.value_of(going if isinstance(going, Tensor) else Tensor(going))]
        return region

    def trace_body(self) -> tuple[Trace, list[Value]]:
        region = Trace(f"{self.site.function}.body{self.site.line}", self.outer)
        with region:
            self.enter(region)
            entered = self.get()
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
        """Checks variable `i` at the end of a round against its beginning; True if the loop must be traced anew."""
        name = self.site.names[i]
        if i in self.lost:
            return False
        if type(start) is Undefined:
            if type(end) is Undefined:
                return False
            if name == RESULT:
                return self.prepare_result(region, i, end)
            line = self.site.lines[0].get(name, self.site.line)
            return self.lose(
                i,
                f"'{name}' gets its value at line {line}, inside the loop at {self.site.file}:{self.site.line}, which runs "
                "zero times if its tensor condition is false: give it a value before the loop",
            )
        if type(end) is Undefined:
            return self.lose(i, end.reason or f"'{name}' is deleted inside the loop at {self.site.file}:{self.site.line}")
        starts: list[Any] = []
        ends: list[Any] = []
        _flatten(start, starts)
        _flatten(end, ends)
        if len(starts) != len(ends) or not _alike(start, end):
            return self.lose(i, self.disagreement(name, _describe(start), _describe(end)))
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
            same = a is b or _equal_objects(a, b)
            if same or (isinstance(a, Tensor) and isinstance(b, Tensor) and a.traced is not None and a.traced is b.traced):
                return False
            if not isinstance(a, (Tensor, *_NUMBERS)) or not isinstance(b, (Tensor, *_NUMBERS)):
                return self.lose(i, self.disagreement(name, _describe(a), _describe(b)))
            if isinstance(a, Tensor):
                self.carried[key] = type_of(a)
            else:  # a number is weak: it takes the dtype that the body gives it
                dtype = dtypes.promote_number(b.dtype, type(a)) if isinstance(b, Tensor) else _common_dtype(a, b)
                self.carried[key] = TensorType(dtype, ())
            return True
        if isinstance(b, _NUMBERS):
            dtype = dtypes.promote_number(carried.dtype, type(b))
            if carried.shape != ():
                return self.lose(i, self.disagreement(name, str(carried), _describe(b)))
            if dtype is not carried.dtype:
                return self.widen(key, TensorType(dtype, ()), b)
            b = Tensor(b, dtype)
        if not isinstance(b, Tensor):
            return self.lose(i, self.disagreement(name, str(carried), _describe(b)))
        found = type_of(b)
        if found.dtype is not carried.dtype:
            return self.widen(key, TensorType(found.dtype, carried.shape), b)
        if found.shape != carried.shape:
            joined = ir_types.join(found, carried)
            if joined is None:
                return self.lose(i, self.disagreement(name, str(carried), str(found)))
            if joined != carried:
                self.carried[key] = joined
                return True
        outs[key] = region.value_of(b)
        return False

    def widen(self, key: tuple[int, int], type_: TensorType, found: Any) -> bool:
        """A variable that began as a Python number takes the dtype that the body gives it; a tensor keeps its own."""
        leaf = self.leaves[key[0]][key[1]]
        current = self.carried[key]
        if isinstance(leaf, Tensor) or dtypes.promote(current.dtype, type_.dtype) is not type_.dtype:
            return self.lose(key[0], self.disagreement(self.site.names[key[0]], str(current), _describe(found)))
        self.carried[key] = type_
        return True

    def lose(self, i: int, reason: str) -> bool:
        self.lost[i] = reason
        for key in [key for key in self.carried if key[0] == i]:
            del self.carried[key]
        return True

    def prepare_result(self, region: Trace, i: int, end: Any) -> bool:
        """The returned value exists only after a `return` inside the loop: zeros stand for it before."""
        leaves: list[Any] = []
        rebuild = _flatten(end, leaves)
        leaves = [_zeros(type_of(leaf)) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
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
            f"{name} changes its type in the loop at {self.site.file}:{self.site.line}: it enters a round as {a} and leaves it "
            f"as {b}{f' (line {line})' if line else ''}; under a tensor condition it must keep structure, dtype and shape"
        )


def _alike(a: Any, b: Any) -> bool:
    """True if the containers have the same structure."""
    if not _is_container(a) or not _is_container(b):
        return not _is_container(a) and not _is_container(b)
    return type(a) is type(b) and _keys(a) == _keys(b) and all(_alike(a[k], b[k]) for k in _keys(a))


# ---- assert and raise ----------------------------------------------------------------------------------------------


def assert_(test: Any, message: Callable[[], Any], site: Site) -> None:
    """An `assert` statement; on a traced tensor the check is part of the graph."""
    if not is_traced(test):
        if not test:
            text = message()
            raise AssertionError() if text is None else AssertionError(text)
        return
    text = message()
    place = f"at {site.file}:{site.line} in {site.function}"
    ops.require(_as_bool(_predicate(test, "the condition")), error=AssertionError(place if text is None else f"{text} ({place})"))


def raise_(error: Any, site: Site) -> Any:
    """A `raise` statement: gives the exception back; under a tensor condition it is raised when the graph runs."""
    trace = active()
    if trace is None or trace.parent is None:
        return error
    ops.require(Tensor(False), error=error)
    trace.ended = True
    return None


# ---- calls ---------------------------------------------------------------------------------------------------------


def callee(function: Any) -> Any:
    """The callable to use in the place of `function`: user code with its control flow rewritten."""
    kind = type(function)
    if kind is types.FunctionType:
        if rewrite.is_user_function(function):
            return _rewritten(function)
        return _with_rewritten_closure(function)
    if kind is types.MethodType:
        inner = callee(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if kind is types.BuiltinFunctionType or kind is type:
        return _BUILTINS.get(function, function)
    if kind is functools.partial:
        return functools.partial(callee(function.func), *function.args, **function.keywords)
    if kind is Undefined:
        raise function.complain()
    call = getattr(kind, "__call__", None)
    if rewrite.is_user_function(call):
        return types.MethodType(_rewritten(call), function)
    return function


def _rewritten(function: types.FunctionType) -> types.FunctionType:
    if rewrite.HELPERS in function.__code__.co_freevars:  # it is already
        return function
    try:
        return rewrite.rewrite_function(function)
    except rewrite.CannotRewrite:
        return function  # traced as it is; `capture/unsupported.py` explains a tensor condition in it


_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_in_progress: set[int] = set()


def _with_rewritten_closure(function: types.FunctionType) -> types.FunctionType:
    """A function of ours that calls user functions it has closed over (a gradient transform) calls the rewritten ones."""
    cells = function.__closure__
    if not cells or not function.__code__.co_filename.startswith(_OWN) or id(function) in _in_progress:
        return function
    _in_progress.add(id(function))
    try:
        changed = False
        fresh = []
        for cell in cells:
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                fresh.append(cell)
                continue
            other = callee(content) if type(content) in (types.FunctionType, types.MethodType, functools.partial) else content
            changed |= other is not content
            fresh.append(cell if other is content else types.CellType(other))
    finally:
        _in_progress.discard(id(function))
    if not changed:
        return function
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(fresh))
    made.__kwdefaults__ = function.__kwdefaults__
    return made


# ---- builtins with tensors -----------------------------------------------------------------------------------------


def _range(*limits: Any) -> Any:
    if not any(is_traced(limit) for limit in limits):
        return range(*limits)
    start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    return TensorRange(start, stop, step)


def _convert(kind: type, dtype: Any) -> Callable:
    def convert(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or not is_traced(args[0]):
            return kind(*args, **kwargs)
        from mycelia.ops.cast import cast

        value = _predicate(args[0], f"the argument of {kind.__name__}()")
        return cast(value if value.ndim == 0 else value.reshape(()), dtype=dtype)

    return convert


def _extreme(kind: Callable, op: str) -> Callable:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        items = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        if kwargs or len(items) < 2 or not any(is_traced(i) for i in items):
            return kind(*args, **kwargs)
        from mycelia.ops import math

        return functools.reduce(getattr(math, op), items)

    return extreme


def _every(kind: Callable, combine: Callable) -> Callable:
    def every(items: Any) -> Any:
        values = list(items)
        if not any(is_traced(v) for v in values):
            return kind(values)
        return combine(*(functools.partial(lambda v: v, v) for v in values))

    return every


_BUILTINS: dict[Any, Callable] = {
    builtins.range: _range,
    builtins.int: _convert(int, dtypes.int64),
    builtins.float: _convert(float, dtypes.float32),
    builtins.bool: _convert(bool, dtypes.bool_),
    builtins.max: _extreme(max, "maximum"),
    builtins.min: _extreme(min, "minimum"),
    builtins.all: _every(all, and_),
    builtins.any: _every(any, or_),
}
