"""Rules of shapes: what moves elements and whole axes, joins and cuts."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ir.types import agree
from mycelia.io.compositions import Unsupported
from mycelia.io.onnx.rules.table import rule

LAST = np.iinfo(np.int64).max  # an end behind every axis


@rule("reshape")
def _reshape(w, node, x):
    return w.reshape(x, node.attrs["shape"])


@rule("squeeze")
def _squeeze(w, node, x):
    given = node.attrs["axis"]
    asked = range(x.rank) if given is None else [a % x.rank for a in given]
    axes = sorted(a for a in asked if x.shape[a] == 1)
    if x.rank - len(axes) != node.outputs[0].type.rank:
        raise Unsupported("squeeze of a size that is left open")
    return w.squeeze(x, axes)


@rule("expand_dims")
def _expand_dims(w, node, x):
    return w.unsqueeze(x, [node.attrs["axis"] % (x.rank + 1)])


@rule("transpose")
def _transpose(w, node, x):
    return w.op("Transpose", x, perm=[d % x.rank for d in node.attrs["dims"]]) if x.rank else x


@rule("broadcast_to")
def _broadcast_to(w, node, x):
    shape = node.attrs["shape"]
    return w.op("Expand", x, w.ints([1 if type(n) is not SymInt and n == -1 else n for n in shape]))


@rule("tile")
def _tile(w, node, x):
    dims = node.attrs["dims"]
    x = w.unsqueeze(x, [*range(len(dims) - x.rank)])
    missing = node.outputs[0].type.rank - len(dims)
    return w.op("Tile", x, w.ints((1,) * missing + tuple(dims)))


@rule("concat")
def _concat(w, node, *xs):
    return w.op("Concat", *xs, axis=node.attrs["axis"] % xs[0].rank)


@rule("stack")
def _stack(w, node, *xs):
    axis = node.attrs["axis"] % (xs[0].rank + 1)
    return w.op("Concat", *(w.unsqueeze(x, [axis]) for x in xs), axis=axis)


def parts(w, x, sizes, axis):
    """Pieces of these sizes along an axis."""
    return w.ops("Split", [x, w.ints(sizes)], (None,) * len(sizes), axis=axis)


@rule("split")
def _split(w, node, x):
    axis, sections = node.attrs["axis"] % x.rank, node.attrs["sections"]
    sizes = [v.type.shape[axis] for v in node.outputs]
    if -1 in sizes:
        if len(sections) != len(sizes):
            raise Unsupported("split of a size that is left open")
        sizes = sections
    return parts(w, x, sizes, axis)


@rule("unstack")
def _unstack(w, node, x):
    axis = node.attrs["axis"] % x.rank
    return [w.squeeze(part, [axis]) for part in parts(w, x, (1,) * len(node.outputs), axis)]


@rule("shape_of")
def _shape_of(w, node, x):
    return w.shape_of(x)


@rule("flip")
def _flip(w, node, x):
    axes = [d % x.rank for d in node.attrs["dims"]]
    if not axes:
        return x
    return w.slice(x, [-1] * len(axes), [-LAST - 1] * len(axes), axes, [-1] * len(axes))


@rule("roll")
def _roll(w, node, x):
    for shift, axis in zip(node.attrs["shifts"], node.attrs["dims"]):
        axis %= x.rank
        n = x.shape[axis]
        if type(shift) is not SymInt and n >= 0:
            cut = w.ints([-shift % max(n, 1)])
        else:
            size = w.op("Max", w.size_of(x, axis), w.ints([1]))
            cut = w.op("Mod", w.op("Neg", w.ints([shift])), size)
        at = w.ints([axis])
        ends = w.op("Slice", x, cut, w.ints([LAST]), at), w.op("Slice", x, w.ints([0]), cut, at)
        for part in ends:
            part.shape = x.shape
        x = w.like(w.op("Concat", *ends, axis=axis), x.shape)
    return x


@rule("pad_constant")
def _pad_constant(w, node, x):
    pads = node.attrs["pads"]
    begins, ends = list(pads[0::2]), list(pads[1::2])
    cut = [
        d for d, pair in enumerate(zip(begins, ends)) if any(type(n) is not SymInt and n < 0 for n in pair)
    ]
    if cut:
        first = [-begins[d] if type(begins[d]) is not SymInt and begins[d] < 0 else 0 for d in cut]
        last = [ends[d] if type(ends[d]) is not SymInt and ends[d] < 0 else LAST for d in cut]
        x = w.slice(x, first, last, cut, [1] * len(cut))
        begins, ends = (
            [0 if type(n) is not SymInt and n < 0 else n for n in side] for side in (begins, ends)
        )
    if all(type(n) is not SymInt and n == 0 for n in (*begins, *ends)):
        return x
    return w.op("Pad", x, w.ints([*begins, *ends]), w.scalar(node.attrs["value"], x), mode="constant")


@rule("tril", "triu")
def _triangle(w, node, x):
    k = w.constant(np.array(node.attrs["diagonal"], np.int64))
    return w.op("Trilu", x, k, upper=int(node.op.name == "triu"))


@rule("diagonal")
def _diagonal(w, node, x):
    """The elements of the flattened planes, picked by their places."""
    m, n = (x.shape[node.attrs[d] % x.rank] for d in ("dim1", "dim2"))
    if min(m, n) < 0:
        raise Unsupported("diagonal of a plane whose sizes are left open")
    axes = [node.attrs[d] % x.rank for d in ("dim1", "dim2")]
    others = [d for d in range(x.rank) if d not in axes]
    x = w.op("Transpose", x, perm=[*others, *axes])
    places = np.diagonal(np.arange(m * n, dtype=np.int64).reshape(m, n), node.attrs["offset"])
    flat = w.op("Reshape", x, _joined(w, x, [node.inputs[0].type.shape[d] for d in others], m * n))
    return w.op("Gather", flat, w.constant(np.ascontiguousarray(places)), axis=len(others))


def _joined(w, x, sizes, last):
    """The shape (*sizes, last), sizes of -1 as they are in x."""
    sizes = [n if n != -1 else 0 for n in sizes]  # 0: as in the input
    if last == 0 or sizes.count(0) > sizes.count(-1):
        return w.ints([*sizes, last])
    return w.ints([*sizes, last])


@rule("linear_index")
def _linear_index(w, node, *indices):
    total, dims = None, node.attrs["dims"]
    for index, n in zip(indices, dims):
        index, size = w.cast(index, dtypes.int64), w.ints([n])
        size = w.squeeze(size, [0]) if index.rank == 0 else size
        zero = w.scalar(0, index)
        index = w.op("Where", w.op("Less", index, zero, dtype=dtypes.bool_), w.op("Add", index, size), index)
        total = index if total is None else w.op("Add", w.op("Mul", total, size), index)
    return total


def whole(begin, size, stride, entire):
    """Whether a strided part takes an axis as it is."""
    return (
        stride == 1 and agree(begin, 0) and (type(size) is not SymInt and size == -1 or agree(size, entire))
    )
