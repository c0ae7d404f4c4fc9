"""Layouts written into the graph that is being captured."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mycelia.engine.base import errors, ignored
from mycelia.engine.capture import cache_invalidation
from mycelia.engine.capture.trace import active
from mycelia.engine.communication import mode, world
from mycelia.engine.ops.define import find
from mycelia.engine.sharding import strategies
from mycelia.engine.sharding.strategies import Written
from mycelia.engine.tensors.tensor import Tensor


def changed(subject: str, strategy: Any) -> None:
    """An operator has another strategy than before: graphs that are there are of others. A warning says where
    there is nobody to divide anything with.
    """
    if world.current() is None:
        ignored.tell(subject, "in_strategy", strategy, "no other process takes part")
    world.laid_out()
    cache_invalidation.changed()


def with_layout(x: Tensor, written: Written, owner: str) -> Tensor:
    """`x`, which lies as `written` says. Errors: ShapeError if an axis is not divisible."""
    return find("with_layout")(
        x, matrix=written.matrix, counts=tuple(map(len, written.axes)),
        axes=tuple(a for g in written.axes for a in g),
        owner=owner, said=written.said,
    )  # fmt: skip


def ranks(owner: str) -> int:
    """Among how many ranks the graph that is captured is divided; 1: none is, or this process trains alone.

    Errors: RuntimeError outside of a graph where ranks divide graphs.
    """
    size = mode.dividing(owner)
    here = world.current()
    if size == 1 and here is not None and here.communicator.size > 1 and mode.stages() > 1:
        raise errors.error(
            errors.NotSupportedError, owner, "operators are not cut within stages of a pipeline",
            hint="pipeline_stages=1 cuts operators among all ranks",
        )  # fmt: skip
    if size > 1 and active() is None:
        mode.require_graph(owner)
    return size


def of_operator(
    name: str, attrs: dict, strategy: tuple, result: tuple | None, call: Callable, args: tuple, kwargs: dict
) -> Any:
    """The call of an operator whose tensors lie as `strategy` says, and whose results as `result` says."""
    size = ranks(name)
    if size == 1:
        return call(*args, **kwargs)
    tensors = [
        t for a in args for t in (a if isinstance(a, (tuple, list)) else (a,)) if isinstance(t, Tensor)
    ]
    given = strategy
    if len(given) != len(tensors) and len(given) == len(args):  # numbers among them have ()
        given = tuple(s for s, a in zip(given, args) if isinstance(a, Tensor))
    shapes = [tuple(t.shape) for t in tensors]
    found = None
    if given and all(map(strategies.is_layout, given)):
        strategies.check_number(name, given, shapes)
        layouts = [strategies.of_layout(name, layout, size) for layout in given]
    else:
        layouts, found = strategies.of_operator(name, attrs, given, shapes, size)
    given = [with_layout(t, written, name) for t, written in zip(tensors, layouts)]
    before = [t.traced for t in given]
    laid = iter(given)
    args = tuple(
        type(a)(next(laid) if isinstance(t, Tensor) else t for t in a) if type(a) in (tuple, list)
        else next(laid) if isinstance(a, Tensor) else a
        for a in args
    )  # fmt: skip
    made = call(*args, **kwargs)
    for tensor, one, value in zip(tensors, given, before):
        if one.traced is not value:  # the operator has overwritten it
            find("assign")(tensor, one)
    if result is None:
        return made
    many = isinstance(made, tuple)
    results = list(made) if many else [made]
    if len(result) != len(results):
        raise errors.value_error(
            name, f"out_strategy is for {len(result)} results, but there are {len(results)}"
        )
    for i, one in enumerate(result):
        if one is None:
            continue
        if strategies.is_layout(one):
            written = strategies.of_layout(name, one, size)
        elif found is None:
            raise errors.value_error(name, "in_strategy has Layouts, so out_strategy must have them, too")
        else:
            written = strategies.of_result(name, found, one)
        results[i] = with_layout(results[i], written, name)
    return tuple(results) if many else results[0]


def of_tensors(owner: str, tensors: Sequence[Any], strategy: Sequence[Any], name: str) -> list[Any]:
    """`tensors` that lie as the entries of `strategy` say; None leaves one as it is."""
    size = ranks(owner)
    if size == 1:
        return list(tensors)
    if len(strategy) != len(tensors):
        raise errors.value_error(
            owner, f"{name} has {len(strategy)} entries, but there are {len(tensors)} tensors"
        )
    made = []
    for x, one in zip(tensors, strategy):
        if one is None or not isinstance(x, Tensor):
            made.append(x)
            continue
        written = strategies.of_layout(owner, one,
        size) if strategies.is_layout(one) else strategies.of_counts(
            owner, one, size
        )  # fmt: skip
        made.append(with_layout(x, written, owner))
    return made


def shard(
    owner: str, fn: Callable, in_strategy: Any, out_strategy: Any = None, plan: dict[Any, Any] | None = None
) -> Callable:
    """`fn` whose tensors lie as `in_strategy` says and whose results as `out_strategy` says: an entry for
    each, None for one of which nothing is said; `plan`: Parameters -> where they lie.

    Errors: TypeError unless the strategies are tuples of tuples of int, Layouts and None; as `of_operator`.
    """
    for name, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
        if strategy is None and name == "out_strategy":
            continue
        if not isinstance(strategy, tuple):
            raise errors.type_error(owner, f"{name} must be a tuple, but got {type(strategy).__name__}")
        for one in strategy:
            if one is not None and not strategies.is_layout(one):
                strategies.check_counts(owner, name, one)
    for parameter, one in (plan or {}).items():
        if not strategies.is_layout(one):
            strategies.check_counts(owner, "parameter_plan", one)
        parameter._planned = one
    changed(owner, in_strategy)

    @functools.wraps(fn, updated=())
    def sharded(*args: Any, **kwargs: Any) -> Any:
        if ranks(owner) == 1:
            return fn(*args, **kwargs)
        from mycelia.engine.capture.control import callee  # it loads the rewriting of code

        found = callee(fn)(*of_tensors(owner, args, in_strategy, "in_strategy"), **kwargs)
        if out_strategy is None:
            return found
        many = isinstance(found, tuple)
        laid = of_tensors(owner, found if many else (found,), out_strategy, "out_strategy")
        return tuple(laid) if many else laid[0]

    return sharded


def planned(parameter: Any, size: int) -> Written | None:
    """Where a `parameter_plan` says that a Parameter lies."""
    one = getattr(parameter, "_planned", None)
    if one is None:
        return None
    owner = f"parameter_plan of {parameter.name}"
    made = (
        strategies.of_layout(owner, one, size)
        if strategies.is_layout(one)
        else strategies.of_counts(owner, one, size)
    )
    strategies.require_divisible(
        owner, made, parameter.share.shape if parameter.share is not None else parameter.shape
    )
    return made


def plan(fn: Any, named: Any) -> dict[Any, Any]:
    """A `parameter_plan` by Parameters instead of their names.

    Errors: TypeError unless a dict; ValueError for a name that `fn`, a Cell, does not have.
    """
    if named is None:
        return {}
    if not isinstance(named, dict):
        raise errors.type_error("shard", f"parameter_plan must be a dict, but got {type(named).__name__}")
    known = dict(fn.parameters_and_names()) if hasattr(fn, "parameters_and_names") else {}
    found = {}
    for name, one in named.items():
        short = name.removeprefix("self.") if isinstance(name, str) else name
        if short not in known:
            raise errors.one_of(name, sorted(known), subject="shard", what="parameter_plan")
        found[known[short]] = one
    return found
