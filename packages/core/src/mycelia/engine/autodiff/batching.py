"""`vmap`: a function of one example becomes a function of a batch, each op once for the whole batch.

While a `Level` is active all op calls of the thread come to it. A Tensor that stands for one example of a
batch has the shape of the example and carries a `Batched` (`Tensor.traced`) with the batch, its axis in
front. The op's batching rule (`ops/batch_rules.py`) computes on batches, one level down: that may be the
data, a graph under capture, or an outer `vmap`. Recording for gradients happens where it began: inside the
function on examples, outside of `vmap` on batches. So all transforms nest.
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.arrays.axes import movedim
from mycelia.engine.ops.arrays.shape import broadcast_to
from mycelia.engine.ops.batch_rules import Call, rule_of
from mycelia.engine.ops.define import LIST

Tensor = _C.Tensor

__all__ = ["Batched", "Level", "vmap"]


class Batched:
    """What a Tensor that is one example of a batch stands for."""

    __slots__ = ("level", "physical", "type")

    def __init__(self, physical: Tensor, level: Level):
        self.physical, self.level = physical, level
        self.type = TensorType(physical.dtype, physical.shape[1:])


class Level:
    """One `vmap` in progress, over a batch of `size`: ``with level:`` it receives the thread's op calls."""

    def __init__(self, size: int):
        self.size = size
        self.of_parameters: list[Tensor] = []  # examples of Parameters: what they become is written back

    def __enter__(self) -> Level:
        # What happens on batches belongs to the transforms around, as they are now.
        self._mode_below = _C.mode()
        self._tape_level = _C.tape_level()
        dispatch.push_interceptor(self.intercept, dispatch.BATCHING)
        return self

    def __exit__(self, *exc: object) -> None:
        dispatch.pop_interceptor(self._mode_below)

    @contextlib.contextmanager
    def below(self) -> Iterator[None]:
        """Ops run on batches, as if this level were not there."""
        mode = _C.mode()
        interceptor = dispatch._interceptors.stack.pop()
        _C.set_mode(self._mode_below)
        tape_level = _C.set_tape_level(min(self._tape_level, _C.tape_level()))
        try:
            yield
        finally:
            _C.set_tape_level(tape_level)
            dispatch._interceptors.stack.append(interceptor)
            _C.set_mode(mode)

    # -- values

    def example(self, physical: Tensor) -> Tensor:
        """The Tensor that stands for one example of `physical` [batch, ...]."""
        value = Batched(physical, self)
        return _C.make_traced(value, physical.dtype, value.type.shape)

    def batch_of(self, tensor: Any) -> Tensor | None:
        """The batch that `tensor` is an example of at this level, else None."""
        value = tensor.traced if isinstance(tensor, Tensor) else None
        return value.physical if type(value) is Batched and value.level is self else None

    # -- ops

    def intercept(self, op: Any, inputs: tuple, attrs: tuple) -> Any:
        """One op call while this level is active."""
        definition = op.definition
        flat: list = []
        counts = []
        for (_, kind), value in zip(definition.params, inputs):
            if kind == LIST:
                flat += value
                counts.append(len(value))
            else:
                flat.append(value)
                counts.append(1)
        if not any(self.batch_of(t) is not None for t in flat):
            return self._unbatched(op, inputs, attrs)
        try:
            return self._batched(op, flat, tuple(counts), definition.canonical_attrs(attrs))
        except errors.MyceliaError as error:
            raise errors.about(op.name, error) from None

    def _unbatched(self, op: Any, inputs: tuple, attrs: tuple) -> Any:
        mode = _C.mode()
        interceptor = dispatch._interceptors.stack.pop()
        _C.set_mode(self._mode_below)
        try:
            return op(*inputs, *attrs)
        finally:
            dispatch._interceptors.stack.append(interceptor)
            _C.set_mode(mode)

    def _batched(self, op: Any, flat: list, counts: tuple, attrs: dict) -> Any:
        definition = op.definition
        recording = _C.tape_level() > self._tape_level and not definition.nondiff
        recording = recording and any(isinstance(t, Tensor) and t._node is not None for t in flat)
        composed = definition.decomposition is not None
        if composed and (definition.composed or recording and definition.vjp_function is None):
            return definition.decomposition(*definition.group(tuple(flat), counts), **attrs)
        types = tuple(
            None if t is None else TensorType(t.dtype, t.shape) if isinstance(t, Tensor) else type(t)
            for t in flat
        )
        typing = dispatch.Typing(definition, types, counts, attrs)
        for index, dtype in typing.casts.items():
            flat[index] = dispatch._to_dtype(flat[index], dtype)
        for index, value in enumerate(flat):
            if value is not None and not isinstance(value, Tensor):
                flat[index] = Tensor(value, typing.in_types[index].dtype)
        outputs = self._apply(op, flat, counts, attrs, typing)
        if recording:
            _C.record(op, attrs, typing.in_types, counts, tuple(flat), tuple(outputs))
        targets = [flat[definition.param_names.index(name)] for name in definition.updates]
        for target, output in zip(targets, outputs):
            if target is not None:
                self._write(op.name, target, output)
        rest = outputs[len(targets) :]
        if targets and not rest:
            return targets[0]
        return rest[0] if len(rest) == 1 and definition.outputs is not None else tuple(rest)

    def _write(self, name: str, target: Tensor, value: Tensor) -> None:
        if target._is_parameter and self.batch_of(target) is None:
            raise errors.error(
                errors.MyceliaRuntimeError,
                name,
                "a Parameter that is shared by the whole batch cannot take a value of each example",
            )
        target._assign(value)

    def _apply(self, op: Any, flat: list, counts: tuple, attrs: dict, typing: Any) -> list[Tensor]:
        batches = [self.batch_of(t) for t in flat]
        operands = [t if b is None else b for t, b in zip(flat, batches)]
        call = Call(
            op, operands, [b is not None for b in batches], counts, attrs, typing.in_types, typing.out_types,
            self.size,
        )  # fmt: skip
        with self.below():
            found = rule_of(op.definition)(call)
            found = found if isinstance(found, (tuple, list)) else (found,)
        return [self.example(physical) for physical in found]


# ---- the transform -----------------------------------------------------------------------------------------


def _error(message: str) -> Exception:
    return errors.error(errors.MyceliaRuntimeError, "vmap", message)


def vmap(fn: Callable, in_axes=0, out_axes=0) -> Callable:
    """A function that applies `fn` along an axis of its arguments, for all members at once.

    `in_axes`, `out_axes`: the axis of each argument and result: an int, None for one that all members share,
    or a tuple or list that follows their structure. `fn` may be a CellList of two or more equal Cells: member
    i goes to Cell i. A list as result comes back as a tuple.
    Errors: RuntimeError for axes that are no such thing, do not fit the arguments or results, or are out of
    range, for sizes that differ and for Cells that take other arguments; ValueError for another number of
    Cells than members.
    """
    if not callable(fn) and not _is_cell_list(fn):
        raise _error(f"fn must be a function or a Cell, but got {type(fn).__name__}")
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if axes is None and not _is_cell_list(fn):
            raise _error(f"The '{name}' of 'vmap' cannot be a single None while 'fn' is not a 'CellList'.")
    if not _is_cell_list(fn) and _names_no_axis(out_axes):
        raise _error(
            f"The 'out_axes' of 'vmap' cannot be all None while 'fn' is not a 'CellList', but got {out_axes}."
        )

    def run(*args, **kwargs):
        return _vmap(fn, in_axes, out_axes, args, kwargs)

    return run


def _is_cell_list(fn: Any) -> bool:
    return type(fn).__name__ == "CellList" and hasattr(fn, "cells_and_names")


def _check_axes(name: str, axes: Any) -> None:
    if isinstance(axes, (tuple, list)):
        for axis in axes:
            _check_axes(name, axis)
    elif axes is not None and (isinstance(axes, bool) or not isinstance(axes, int)):
        raise _error(
            f"{name} must be an int, None, or a tuple or list of them, but got {type(axes).__name__}"
        )


def _names_no_axis(axes: Any) -> bool:
    return all(map(_names_no_axis, axes)) if isinstance(axes, (tuple, list)) else axes is None


def _pairs(value: Any, axes: Any, where: str) -> Iterator[tuple[Any, int | None]]:
    """(leaf, its axis): an axis holds for all that is below it."""
    if isinstance(value, (tuple, list)):
        if isinstance(axes, (tuple, list)):
            if len(axes) != len(value):
                owner = "arguments" if where == "in_axes" else "results"
                raise _error(
                    f"The size of vmap's '{where}' should be equal to the number of {owner} of 'fn': "
                    f"{len(value)}, but got size: {len(axes)}."
                )
            for v, a in zip(value, axes):
                yield from _pairs(v, a, where)
        else:
            for v in value:
                yield from _pairs(v, axes, where)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _pairs(v, axes, where)
    elif isinstance(axes, (tuple, list)):
        raise _error(f"{where} is {tuple(axes)} where the value is a {type(value).__name__}")
    else:
        yield value, axes


def _map(value: Any, axes: Any, function: Callable[[Any, int | None], Any]) -> Any:
    """`value` with ``function(leaf, axis)`` for its leaves."""
    if isinstance(value, (tuple, list)):
        each = axes if isinstance(axes, (tuple, list)) else [axes] * len(value)
        members = [_map(v, a, function) for v, a in zip(value, each)]
        return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
    if isinstance(value, dict):
        return {k: _map(v, axes, function) for k, v in value.items()}
    return function(value, axes)


def _axis_of(where: str, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise _error(
            f"The axis: {axis} in '{where}' is out of bounds for array of dimension [{-rank},{rank})."
        )
    return axis % rank


def _batch_size(args: tuple, in_axes: Any) -> int:
    sizes: dict[int, None] = {}
    for value, axis in _pairs(args, in_axes, "in_axes"):
        if axis is None:
            continue
        if not isinstance(value, Tensor):
            raise _error(
                f"an argument of type {type(value).__name__} has no axis: its in_axes must be None",
            )
        sizes[value.shape[_axis_of("in_axes", axis, value.ndim)]] = None
    if not sizes:
        raise _error(
            "Failed to get 'axis_size' within the scope of vmap. No argument has an axis to go along."
        )
    if len(sizes) > 1:
        raise _error(
            "The 'axis_size' of each argument in the scope of 'vmap' should be equal, but got "
            f"{' and '.join(map(str, sizes))}."
        )
    return next(iter(sizes))


def _check_call(fn: Any, args: tuple, kwargs: dict) -> None:
    """TypeError if a Cell or function cannot be called so: clearer than axes that do not fit."""
    function = getattr(fn, "construct", fn)
    if not isinstance(function, (types.FunctionType, types.MethodType)):
        return
    takes = inspect.signature(function)
    try:
        takes.bind(*args, **kwargs)
    except TypeError:
        raise errors.type_error(
            "vmap",
            f"The parameters number of the function is {len(takes.parameters)}, but the number of provided "
            f"arguments is {len(args) + len(kwargs)}.",
        ) from None


def _vmap(fn: Callable, in_axes: Any, out_axes: Any, args: tuple, kwargs: dict) -> Any:
    cells = list(fn) if _is_cell_list(fn) else []
    _check_call(cells[0] if cells else fn, args, kwargs)
    if cells:
        _check_cells(cells)
    if cells and all(axes is None for axes in (in_axes if isinstance(in_axes, tuple) else (in_axes,))):
        size = len(cells)
    else:
        size = _batch_size(args, in_axes)
    if cells and size != len(cells):
        raise errors.value_error(
            "vmap",
            "a 'CellList' must have a Cell for each member of the batch, "
            f"but we get axis_size: {size} and the cell size: {len(cells)}.",
        )
    level = Level(size)
    written: list = []  # Parameters among the arguments: (Parameter, its axis, example, what it was)

    def entered(value: Any, axis: int | None) -> Any:
        if axis is None:
            return value
        example = level.example(_front(value, axis))
        if _of_parameter(value):
            level.of_parameters.append(example)
            written.append((value, axis, example, example.traced))
        return example

    args = _map(args, in_axes, entered)
    with _stacked_parameters(cells, level) if cells else contextlib.nullcontext():
        with level:
            result = (cells[0] if cells else fn)(*args, **kwargs)
    for parameter, axis, example, before in written:
        if example.traced is not before:
            batch = level.batch_of(example)
            axis %= batch.ndim
            batch = movedim(batch, 0, axis) if axis else batch
            parameter._assign(batch._detach() if parameter._is_parameter else batch)
    if type(result) is list:
        result = tuple(result)
    list(_pairs(result, out_axes, "out_axes"))  # does the structure fit?
    return _map(result, out_axes, lambda v, a: _collected(v, a, level))


def _of_parameter(value: Any) -> bool:
    """Whether it is a Parameter, or stands for an example of one in a `vmap` around this one."""
    if not isinstance(value, Tensor):
        return False
    around = value.traced
    return (
        value._is_parameter
        or type(around) is Batched
        and any(value is example for example in around.level.of_parameters)
    )


def _check_cells(cells: list) -> None:
    """Cells that one call can stand for: at least two, which take the same arguments."""
    if len(cells) < 2:
        raise _error(f"the size of 'CellList' must be greater than 1, but got {len(cells)}.")
    if len({inspect.signature(cell.construct) for cell in cells}) > 1:
        raise _error("the Cells of a 'CellList' must take the same inputs.")


def _front(value: Tensor, axis: int) -> Tensor:
    axis = _axis_of("in_axes", axis, value.ndim)
    return value if axis == 0 else movedim(value, axis, 0)


def _collected(value: Any, axis: int | None, level: Level) -> Any:
    """A result of the function for the whole batch."""
    if not isinstance(value, Tensor):
        if axis is None or not isinstance(value, (int, float)):
            return value
        value = Tensor(value)
    batch = level.batch_of(value)
    if axis is None:
        if batch is not None:
            raise _error(
                "'out_axes' is None for a result that differs from example to example. "
                "It is invalid that source is not None and dst is None."
            )
        return value
    if batch is None:
        batch = broadcast_to(value, (level.size, *value.shape))
    target = _axis_of("out_axes", axis, batch.ndim)
    return batch if target == 0 else movedim(batch, 0, target)


@contextlib.contextmanager
def _stacked_parameters(cells: Sequence[Any], level: Level) -> Iterator[None]:
    """While it is open, the Parameters of the first cell stand for those of all cells."""
    from mycelia.engine.ops.arrays.joining import stack

    groups = [list(cell.cells_and_names()) for cell in cells]
    changed = []
    try:
        for position, (_, owner) in enumerate(groups[0]):
            others = [group[position][1] for group in groups]
            for name, parameter in list(owner._params.items()):
                if parameter is None:
                    continue
                members = [other._params[name] for other in others]
                example = level.example(stack(members))
                changed.append((owner, name, parameter, members, example, example.traced))
        for owner, name, _, _, example, _ in changed:
            owner.__dict__[name] = example
        yield
        for _, _, _, members, example, before in changed:
            if example.traced is not before:  # it was written to
                batch = level.batch_of(example)
                for i, member in enumerate(members):
                    member._assign(batch[i]._detach())
    finally:
        for owner, name, parameter, *_ in changed:
            owner.__dict__[name] = parameter
