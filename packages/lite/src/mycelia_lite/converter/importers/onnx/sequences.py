"""ONNX operators on sequences of tensors, which the converter keeps as lists: none is left in the model.

Which tensor an operator takes must be known, or all must be of one shape. A loop may append tensors of one
shape to a sequence, which become rows that it collects. Sequences at borders of a model and in results of
branches are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    TensorList,
    as_tensor,
    cast,
    integers,
    is_number,
    known,
    known_shape,
    operator,
    positive_axis,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.file import dtype_of

KINDS = (
    "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength",
    "SplitToSequence", "ConcatFromSequence", "Identity",
)  # fmt: skip
_MOST = 1 << 12  # tensors of a sequence; each is a node


class Origin:
    """A sequence as it enters a run of a loop; `read`: whether the run looks into it."""

    read = False


@dataclass(frozen=True, eq=False)
class Carried(TensorList):
    """A sequence within a run of a loop: what it was before the loop, and what this run has appended."""

    origin: Origin
    added: tuple = ()


@dataclass(frozen=True, eq=False)
class Rows(TensorList):
    """A sequence to which a loop has appended: behind the items the slices of `rows` along its first axis."""

    rows: Any

    def stacked(self) -> Any:
        """All tensors, one behind the other along a new first axis."""
        return ops.concat((ops.stack(list(self.items)), self.rows), 0) if self.items else self.rows


def carried(call: Call, before: TensorList) -> Carried:
    """A sequence as a run of a loop gets it."""
    return Carried(_items(call, before), Origin())


def appended(call: Call, before: Carried, after: Any) -> list[Any]:
    """What a run has put behind a sequence."""
    if not isinstance(after, Carried) or after.origin is not before.origin:
        raise call.fail("a run of it changes a sequence otherwise than by appending tensors")
    if after.added and before.origin.read:
        raise call.fail("a run of it reads a sequence to which it appends")
    return list(after.added)


def grown(call: Call, before: TensorList, rows: Sequence[Any]) -> TensorList:
    """The sequence after the loop; `rows`: of all runs, one for each tensor that a run appends."""
    _list(call, [*before.items, *rows])
    if not rows:
        return before
    if len(rows) == 1:
        return Rows(before.items, rows[0])
    each = ops.stack(list(rows), 1)
    n, count, *shape = shape_of(each)
    return Rows(before.items, ops.reshape(each, (n * count, *shape)))


def _list(call: Call, items: Sequence[Any]) -> TensorList:
    if len({x.dtype for x in items}) > 1:
        raise call.fail(f"tensors of {' and '.join(sorted({str(x.dtype) for x in items}))} in one sequence")
    if len(items) > _MOST:
        raise call.fail(f"a sequence of {len(items)} tensors, {_MOST} at most are imported")
    return TensorList(tuple(items))


def _items(call: Call, value: Any) -> tuple:
    if not isinstance(value, TensorList):
        raise call.fail("its input is no sequence of tensors")
    if isinstance(value, Rows):
        raise call.fail("a sequence whose length follows from a loop")
    if isinstance(value, Carried):
        if value.added:
            raise call.fail("a sequence to which a run of a loop has appended")
        value.origin.read = True
    return value.items


def _place(call: Call, position: Any, count: int) -> int:
    """A position that is known, counted from the front; `count`: of those there are."""
    found = known(position)
    if found is None:
        raise call.fail("a position that is known only when the model runs")
    place = int(found.reshape(()))
    if not -count <= place < count:
        raise call.fail(f"position {place} of {count}")
    return place % count


@operator("SequenceConstruct")
def _construct(call, *items):
    return _list(call, [as_tensor(x) for x in items])


@operator("SequenceEmpty")
def _empty(call):
    dtype_of(call.get("dtype", 1), "the sequence")
    return TensorList(())


@operator("SequenceInsert", sizes=(0,))
def _insert(call, sequence, item, position=None):
    if isinstance(sequence, Carried) and position is None:
        return replace(sequence, added=(*sequence.added, item))
    items = list(_items(call, sequence))
    items.insert(len(items) if position is None else _inserted(call, position, len(items)), item)
    return _list(call, items)


def _inserted(call: Call, position: Any, count: int) -> int:
    """Where a new one goes: behind the last, too; -1 is in front of the last."""
    found = known(position)
    if found is not None and int(found.reshape(())) == count:
        return count
    return _place(call, position, count)


@operator("SequenceErase", sizes=(0,))
def _erase(call, sequence, position=None):
    items = list(_items(call, sequence))
    del items[len(items) - 1 if position is None else _place(call, position, len(items))]
    return _list(call, items)


@operator("SequenceLength", sizes=(0,))
def _length(call, sequence):
    if isinstance(sequence, Rows):
        return run_time.sizes(sequence.stacked())[0]
    return ms.Tensor(len(_items(call, sequence)), ms.int64)


@operator("SequenceAt", sizes=(0,))
def _at(call, sequence, position):
    if isinstance(sequence, Rows):
        every = sequence.stacked()
        return _taken(every, position, run_time.sizes(every)[0])
    items = _items(call, sequence)
    if known(position) is not None:
        return items[_place(call, position, len(items))]
    shapes = {tuple(shape_of(x)) for x in items}
    if len(shapes) != 1 or not all(map(is_number, next(iter(shapes)))):
        raise call.fail("a position that is known only when the model runs, among tensors of several shapes")
    return _taken(ops.stack(list(items)), position, ms.Tensor(len(items), ms.int64))


def _taken(every: Any, position: Any, count: Any) -> Any:
    """The slice of `every` at a position that may count from the end."""
    place = cast(ops.reshape(position, ()), ms.int64)
    place = ops.where(ops.less(place, scalar(0, place)), ops.add(place, count), place)
    return ops.gather(every, place, 0)


@operator("SplitToSequence")
def _split(call, x, split=None):
    axis = positive_axis(call, call.get("axis", 0), x.ndim)
    keep = call.get("keepdims", 1) or split is not None
    n = known_shape(call, x, (axis,))[axis]
    sizes = [1] * n if split is None else integers(call, split, "split")
    if split is None or not split.ndim:
        each = 1 if split is None else sizes[0]
        if each < 1:
            raise call.misfit(f"parts of {each} elements")
        call.fixed = known(x) is None
        sizes = [min(each, n - at) for at in range(0, n, each)]
    if sum(sizes) != n or any(size < 0 for size in sizes):
        raise call.misfit(f"parts of {sizes} elements of an axis of {n}")
    parts = []
    for begin, size in zip(np.cumsum([0, *sizes]).tolist(), sizes):
        part = x[(slice(None),) * axis + (slice(begin, begin + size),)]
        parts.append(part if keep else ops.squeeze(part, (axis,)))
    return _list(call, parts)


@operator("ConcatFromSequence", sizes=(0,))
def _concat(call, sequence):
    axis, new = call.need("axis"), call.get("new_axis", 0)
    if isinstance(sequence, Rows):
        return _joined(sequence.stacked(), positive_axis(call, axis, sequence.rows.ndim - 1 + new), new)
    items = list(_items(call, sequence))
    if not items:
        raise call.fail("an empty sequence")
    axis = positive_axis(call, axis, items[0].ndim + new)
    return ops.stack(items, axis) if new else ops.concat(items, axis)


def _joined(every: Any, axis: int, new: int) -> Any:
    """The slices of `every` along its first axis, stacked or concatenated along `axis`."""
    order = (*range(1, axis + 1), 0, *range(axis + 1, every.ndim))
    y = ops.transpose(every, order) if axis else every
    if new:
        return y
    shape = shape_of(y)
    return ops.reshape(y, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
