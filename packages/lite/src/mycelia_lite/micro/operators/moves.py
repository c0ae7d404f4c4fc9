"""Elements that go to other places: slices, transposes, parts side by side, copies."""

from __future__ import annotations

import math

import numpy as np

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.memory import FREE
from mycelia_lite.micro.program import Step

_MOST_AXES = 8


def _steps(shape: tuple[int, ...], item: int) -> list[int]:
    """Bytes from one place to the next along each axis."""
    made = [item]
    for size in reversed(shape[1:]):
        made.append(made[-1] * size)
    return made[::-1] if shape else []


def copy(
    b: Builder,
    step: Step,
    x: int,
    y: int,
    sizes: list[int],
    reads: list[int],
    writes: list[int],
    begin_from: int = 0,
    begin_to: int = 0,
    continues: bool = False,
) -> None:
    """Add a copy of elements along axes with these steps in bytes."""
    item = b.value(x).dtype.itemsize
    if math.prod(sizes) == 0:
        return
    axes: list[list[int]] = []
    for size, read, write in zip(sizes, reads, writes):
        if size == 1:
            continue
        if axes and axes[-1][1] == read * size and axes[-1][2] == write * size:
            axes[-1] = [axes[-1][0] * size, read, write]
        else:
            axes.append([size, read, write])
    if axes and axes[-1][1] == axes[-1][2] == item:
        item *= axes.pop()[0]
    b.require(len(axes) <= _MOST_AXES, f"{len(axes)} axes")
    axes = [[1, 0, 0]] * (_MOST_AXES - len(axes)) + axes
    size, read, write = (list(column) for column in zip(*axes))
    fields = {
        "size": size,
        "from": read,
        "to": write,
        "begin_from": begin_from,
        "begin_to": begin_to,
        "bytes": item,
    }
    together = all(n == 1 for n in size)
    distances = {x: FREE} if together else {}
    b.call(step, "micro_copy", "micro_move", fields, [x], [y], 0, distances, continues)


@lowers("transpose")
def transpose(b: Builder, step: Step) -> None:
    """Axes in another order."""
    (x,), (y,) = step.inputs, step.outputs
    item = b.value(x).dtype.itemsize
    reads = _steps(b.shape(x), item)
    order = [d % len(reads) for d in step.attributes["dims"]]
    begin = sum(p * s for p, s in zip(step.attributes.get("begin", []), reads))  # of a part of x
    copy(b, step, x, y, list(b.shape(y)), [reads[d] for d in order], _steps(b.shape(y), item), begin)


@lowers("broadcast_to")
def broadcast_to(b: Builder, step: Step) -> None:
    """Elements over and over along axes of size 1."""
    (x,), (y,) = step.inputs, step.outputs
    item = b.value(x).dtype.itemsize
    shape, wide = b.shape(x), b.shape(y)
    reads = [0] * (len(wide) - len(shape)) + [s if n != 1 else 0 for s, n in zip(_steps(shape, item), shape)]
    copy(b, step, x, y, list(wide), reads, _steps(wide, item))


@lowers("strided_slice")
def strided_slice(b: Builder, step: Step) -> None:
    """Each so many elements from a place on."""
    (x,), (y,) = step.inputs, step.outputs
    item, a = b.value(x).dtype.itemsize, step.attributes
    reads = _steps(b.shape(x), item)
    begin = sum(p * s for p, s in zip(a["begin"], reads))
    copy(
        b,
        step,
        x,
        y,
        list(b.shape(y)),
        [s * n for s, n in zip(reads, a["stride"])],
        _steps(b.shape(y), item),
        begin,
    )


@lowers("flip")
def flip(b: Builder, step: Step) -> None:
    """Axes from their end on."""
    (x,), (y,) = step.inputs, step.outputs
    item, shape = b.value(x).dtype.itemsize, b.shape(x)
    reads = _steps(shape, item)
    begin = 0
    for d in {n % len(shape) for n in step.attributes["dims"]}:
        begin += (shape[d] - 1) * reads[d]
        reads[d] = -reads[d]
    copy(b, step, x, y, list(shape), reads, _steps(shape, item), begin)


@lowers("tile")
def tile(b: Builder, step: Step) -> None:
    """A tensor over and over."""
    (x,), (y,) = step.inputs, step.outputs
    item = b.value(x).dtype.itemsize
    dims = step.attributes["dims"]
    shape = (1,) * (len(dims) - len(b.shape(x))) + b.shape(x)
    dims = [1] * (len(shape) - len(dims)) + list(dims)
    reads, writes = _steps(shape, item), _steps(b.shape(y), item)
    sizes = [n for pair in zip(dims, shape) for n in pair]
    copy(
        b, step, x, y, sizes, [n for s in reads for n in (0, s)],
        [n for s, size in zip(writes, shape) for n in (s * size, s)],
    )  # fmt: skip


@lowers("concat", "stack")
def concat(b: Builder, step: Step) -> None:
    """Parts side by side along an axis."""
    (y,) = step.outputs
    whole = b.shape(y)
    axis = step.attributes["axis"] % len(whole)
    writes = _steps(whole, b.value(y).dtype.itemsize)
    at = 0
    is_run = math.prod(whole[:axis]) == 1  # each part lies together in the whole
    before = len(b.items)
    for x in step.inputs:
        shape = b.shape(x) if step.op == "concat" else (*whole[:axis], 1, *whole[axis + 1 :])
        part, begin = y, at * writes[axis]
        if is_run:
            part, begin = b.program.view(y, shape, begin), 0
        reads = _steps(shape, b.value(x).dtype.itemsize)
        if not _lies_there(b, x, part):
            begun = len(b.items) > before and not is_run
            copy(b, step, x, part, list(shape), reads, writes, 0, begin, continues=begun)
        at += shape[axis]


def _lies_there(b: Builder, x: int, part: int) -> bool:
    """Whether a part of the whole is made where it belongs."""
    return (b.value(x).root, b.value(x).offset) == (b.value(part).root, b.value(part).offset)


@lowers("pad_constant")
def pad(b: Builder, step: Step) -> None:
    """A border of one number."""
    (x,), (y,) = step.inputs, step.outputs
    value, a = b.value(x), step.attributes
    item, shape = value.dtype.itemsize, value.shape
    pads = a["pads"]
    number = b.program.constant(np.asarray(a["value"]).astype(value.dtype))
    b.call(step, "micro_fill", "micro_filling", {"count": b.value(y).size, "bytes": item}, [number], [y])
    reads, writes = _steps(shape, item), _steps(b.shape(y), item)
    sizes, begin_from, begin_to = [], 0, 0
    for d, size in enumerate(shape):
        before, after = pads[2 * d], pads[2 * d + 1]
        begin_from += max(0, -before) * reads[d]
        begin_to += max(0, before) * writes[d]
        sizes.append(size + min(0, before) + min(0, after))
    copy(b, step, x, y, sizes, reads, writes, begin_from, begin_to, continues=True)
