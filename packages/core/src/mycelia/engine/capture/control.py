"""What rewritten code calls (`capture/rewrite.py`): control flow that looks at its condition.

A condition that is a Python value runs as Python. One that is a traced Tensor is captured: both branches,
or test and body, are traced into regions; the names they assign are compared, and what differs becomes an
input or output of a `cond` or `while_loop` node (`branch.py`, `loop.py`). Python numbers become tensors
where they have to. A name whose values do not fit together stays unusable: the error, with both types and
lines, comes where the name is read.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.base.errors import CaptureError
from mycelia.engine.capture import gradients, hooks, rewrite  # noqa: F401  (give ops and traces their rules)
from mycelia.engine.capture.attributes import set_attribute, update_attribute
from mycelia.engine.capture.branch import branch
from mycelia.engine.capture.calls import TensorRange, callee
from mycelia.engine.capture.conditions import and_, as_bool, in_, not_, or_, predicate
from mycelia.engine.capture.loop import Loop
from mycelia.engine.capture.rewrite_expressions import Site
from mycelia.engine.capture.sequences import get_item, put_item
from mycelia.engine.capture.text import joined, percent, tell_now
from mycelia.engine.capture.trace import UnknownSize, UnknownValue, active, is_traced
from mycelia.engine.capture.values import (
    Undefined,
    fresh_containers,
    get_attribute,
    has_key,
    in_place,
    leave,
    load,
    refill,
    result,
    undefined,
)
from mycelia.engine.ir import types as ir_types
from mycelia.engine.ops.control_flow import control as ops
from mycelia.engine.tensors.tensor import Tensor

__all__ = [
    "CaptureError", "Context", "and_", "assert_", "callee", "caused", "current_error", "for_",
    "get_attribute", "get_item", "guard", "has_key", "if_", "if_else", "in_", "in_place", "joined", "load",
    "not_", "or_", "percent", "put_item", "raise_", "result", "set_attribute", "slice_", "undefined",
    "update_attribute", "while_",
]  # fmt: skip


slice_ = slice

# ---- if ----------------------------------------------------------------------------------------------------


def if_(
    test: Any,
    then: Callable[[], None],
    orelse: Callable[[], None],
    get: Callable[[], tuple],
    set_: Callable,
    site: Site,
) -> None:
    """An `if` statement."""
    if not is_traced(test):
        (then if test else orelse)()
        return
    what = f"the condition at {site.file}:{site.line}"
    branch(predicate(test, what, then, orelse), (then, orelse), get, set_, site)


def if_else(
    test: Any, then: Callable[[], Any], orelse: Callable[[], Any], site: Site, changed: Sequence[Any] = ()
) -> Any:
    """A conditional expression; `changed`: lists and dicts whose content its parts may change."""
    if not is_traced(test):
        return then() if test else orelse()
    box: list[Any] = [Undefined("value")]
    held = [value for value in changed if type(value) in (list, dict)]

    def assign(make: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            box[0] = make()

        return run

    def get() -> tuple:
        return (box[0], *map(fresh_containers, held))

    def set_(values: Sequence[Any]) -> None:
        box[0] = values[0]
        for container, content in zip(held, values[1:]):
            refill(container, load(content))

    names = ("the value", *("what it changes" for _ in held))
    named = Site(site.kind, site.file, site.line, site.function, names, ({}, {}))
    branch(predicate(test, "the condition"), (assign(then), assign(orelse)), get, set_, named)
    return load(box[0])


# ---- while and for -----------------------------------------------------------------------------------------


def while_(
    test: Callable[[], Any], body: Callable[[], None], get: Callable, set_: Callable, site: Site
) -> None:
    """A `while` statement: runs as Python as long as the condition is a Python value."""
    while True:
        going = test()
        if is_traced(going):
            Loop(test, body, get, set_, site).capture()
            return
        if not going:
            break
        body()
    leave(site, get, set_)


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
            raise errors.error(UnknownSize, "jit", "the number of rows to go through depends on the data")
        rows = iterable
        iterable = (rows[i] for i in range(rows.shape[0]))
    for item in iterable:
        stopped = stop() if stop is not None else False
        if is_traced(stopped):
            if_(not_(stopped), functools.partial(body, item), _nothing, get, set_, site)
        elif stopped:
            break
        else:
            body(item)
    leave(site, get, set_)


def _nothing() -> None:
    pass


def _counted_loop(
    rounds: TensorRange,
    item_of: Callable,
    body: Callable,
    stop: Any,
    get: Callable,
    set_: Callable,
    site: Site,
) -> None:
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

    named = Site(
        site.kind, site.file, site.line, site.function, (*site.names, "the loop counter"), site.lines
    )
    while_(test, step, get_all, set_all, named)


# ---- assert and raise --------------------------------------------------------------------------------------


def assert_(test: Any, message: Callable[[], Any], site: Site) -> None:
    """An `assert` statement; on a traced tensor the check is part of the graph."""
    if not is_traced(test):
        if not test:
            text = message()
            raise AssertionError() if text is None else AssertionError(text)
        return
    _require_unguarded(site)
    text = message()
    place = f"at {site.file}:{site.line} in {site.function}"
    ops.require(
        as_bool(predicate(test, "the condition")),
        error=AssertionError(place if text is None else f"{text} ({place})"),
    )


def raise_(error: Any, site: Site) -> Any:
    """A `raise` statement: gives the exception back; under a tensor condition it is raised when the graph
    runs. One that tells values of tensors makes the function run as Python.
    """
    trace = active()
    if trace is not None and isinstance(error, BaseException):
        tell_now(error.args)
    if trace is None or trace.parent is None:
        return error
    _require_unguarded(site)
    ops.require(Tensor(False), error=error)
    trace.ended = True
    return None


def current_error() -> BaseException:
    """What a `raise` without an error raises again."""
    return sys.exc_info()[1] or RuntimeError("No active exception to reraise")


def caused(error: Any, cause: Any) -> BaseException:
    """The error of ``raise error from cause``."""
    made = error() if isinstance(error, type) else error
    made.__cause__ = cause() if isinstance(cause, type) else cause
    return made


# ---- try and with ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def guard(site: Site) -> Iterator[None]:
    """The body of a `try` or `with` statement, which has to see the errors in it."""
    trace = active()
    if trace is None:
        yield
        return
    trace.root.guards.append(site)
    try:
        yield
    finally:
        trace.root.guards.pop()


class Context:
    """A context manager of the user's, which must not swallow what stops the capture."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> Any:
        return self.manager.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        swallows = self.manager.__exit__(kind, error, traceback)
        return swallows and not isinstance(error, CaptureError)


def _require_unguarded(site: Site) -> None:
    """Raises UnknownValue for an error that the running graph raises, if a statement around has to see it."""
    trace = active()
    if trace is None or not trace.root.guards:
        return
    around = trace.root.guards[-1]
    raise errors.error(
        UnknownValue,
        "jit",
        f"a tensor decides whether the `{site.kind}` at {site.file}:{site.line} happens, inside of the "
        f"`{around.kind}` statement at {around.file}:{around.line}, which a graph does not have",
        hint="use ops.where, or move the check out of the statement",
    )


rewrite.use_helpers(sys.modules[__name__])
