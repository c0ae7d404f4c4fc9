"""Operators that move, cut out, repeat or pick elements."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from mycelia.ir import Node, Value
from mycelia.ir.symint import SymInt
from mycelia_lite.converter.rules.table import along, in_layout, rule
from mycelia_lite.converter.spelled import Spelled
from mycelia_lite.converter.writer import LAST_AXIS, TO_FIRST, TO_LAST, Writer
from mycelia_lite.format import Table


@rule("sized")
def _sized(w: Writer, node: Node) -> None:
    """An op with attributes that are open sizes, which rules for these ops write as what stands for them."""
    op, count = node.attrs["op"], len(node.inputs) - len(node.attrs["places"])
    if op.name not in _SIZED:
        raise w.fail(f"'{op.name}' with a size that is open: give inputShape")
    w.sizes.learn(node.attrs["attrs"], node.attrs["places"], node.inputs[count:])
    inner = copy(node)
    inner.op, inner.inputs, inner.attrs = op, node.inputs[:count], node.attrs["attrs"]
    _SIZED[op.name](w, inner)


@rule("size_value")
def _size_value(w: Writer, node: Node) -> None:
    w.sizes.learn(node.attrs["size"], node.attrs["places"], node.inputs)
    scalar = w.step(Table("Squeeze", axis=[0]), [w.sizes.number(node.attrs["size"])], np.int64, [])
    w.cast(node.outputs[0], scalar)


@rule("reshape")
def _reshape(w: Writer, node: Node) -> None:
    x, y, sizes = node.inputs[0], node.outputs[0], node.attrs["shape"]
    text = sizes.text if isinstance(sizes, Spelled) else ()
    if text and len(text) == y.type.rank and all(n or i < x.type.rank for i, n in enumerate(text)):
        w.emit(y, Table("Reshape"), [w.first(x), w.constant(np.asarray(text, np.int32))])
    else:
        _as_shape(w, y, w.first(x), sizes)


def _as_shape(w: Writer, y: Value, tensor: int, sizes: Sequence[Any]) -> None:
    """`y` has the elements of a tensor in a shape of numbers, formulas and perhaps one -1."""
    shape = [-1 if type(n) is not int else n for n in y.type.shape]
    given = list(w.tensors[tensor].dims)
    kept = all(given[i : i + 1] == [0] for i, n in enumerate(shape) if n == 0)  # as 0 in a Reshape means
    if not kept and shape.count(0) == 1 and -1 not in shape:  # no elements: what is left for -1 is none
        shape[shape.index(0)], kept = -1, True
    if shape and shape.count(-1) <= 1 and kept:
        if -1 in shape and any(n != 1 for n in shape if n != -1):  # which -1 would take what they grow by
            w.fix()
        w.emit(y, Table("Reshape"), [tensor, w.constant(np.asarray(shape, np.int32))])
    elif shape:
        if any(type(n) is int and n == 0 for n in sizes):  # of a Reshape it would mean another size
            raise w.fail(f"the shape {shape} without elements beside sizes that are open: give inputShape")
        w.emit(y, Table("Reshape"), [tensor, w.sizes.vector(sizes)])
    else:  # a constant without elements cannot stand in a file
        w.emit(y, Table("Squeeze", axis=list(range(w.rank(tensor)))), [tensor])


@rule("transpose")
def _transpose(w: Writer, node: Node) -> None:
    """From one layout of images to the other nothing is moved: what lies there is read in the other way."""
    x, y, dims = node.inputs[0], node.outputs[0], tuple(node.attrs["dims"])
    if dims == TO_FIRST:
        w.alias(y, w.first(x), last=True)
    elif dims == TO_LAST:
        w.alias(y, w.last(x))
    else:
        w.emit(y, Table("Transpose"), [w.first(x), w.constant(np.asarray(dims, np.int32))])


@rule("expand_dims")
def _expand_dims(w: Writer, node: Node) -> None:
    axis = w.constant(np.asarray(node.attrs["axis"] % node.outputs[0].type.rank, np.int32))
    w.emit(node.outputs[0], Table("ExpandDims"), [w.first(node.inputs[0]), axis])


@rule("squeeze")
def _squeeze(w: Writer, node: Node) -> None:
    x, axes = node.inputs[0], node.attrs["axis"]
    if axes is None:
        axes = [i for i, n in enumerate(x.type.shape) if type(n) is int and n == 1]
    if not x.type.rank:
        w.alias(node.outputs[0], w.first(x))
        return
    axes = [a % x.type.rank for a in axes]
    if axes:
        w.emit(node.outputs[0], Table("Squeeze", axis=axes), [w.first(x)])
    else:
        w.alias(node.outputs[0], w.first(x))


@rule("concat")
def _concat(w: Writer, node: Node) -> None:
    along(w, node, "Concat", lambda axis: axis)


@rule("split")
def _split(w: Writer, node: Node) -> None:
    sizes = [v.type.shape[node.attrs["axis"]] for v in node.outputs]
    along(w, node, "Split", lambda axis: axis, output_num=len(sizes), size_splits=sizes)


@rule("stack")
def _stack(w: Writer, node: Node) -> None:
    axis = node.attrs["axis"] % node.outputs[0].type.rank
    w.emit(node.outputs[0], Table("Stack", axis=axis), [w.first(v) for v in node.inputs])


@rule("unstack")
def _unstack(w: Writer, node: Node) -> None:
    x = node.inputs[0]
    w.emit_all(node.outputs, Table("Unstack", axis=node.attrs["axis"] % x.type.rank), [w.first(x)])


@rule("flip")
def _flip(w: Writer, node: Node) -> None:
    x = node.inputs[0]
    tensor, last = in_layout(w, x)
    axes = [d % x.type.rank for d in node.attrs["dims"]]
    w.emit(
        node.outputs[0],
        Table("ReverseV2", axis=[LAST_AXIS[a] for a in axes] if last else axes),
        [tensor],
        last,
    )


@rule("strided_slice")
def _strided_slice(w: Writer, node: Node) -> None:
    x, y, attrs = node.inputs[0], node.outputs[0], node.attrs
    if not x.type.rank:
        _as_shape(w, y, w.first(x), attrs["shape"])
        return
    begin, stride, size, shape = (list(attrs[name]) for name in ("begin", "stride", "size", "shape"))
    end, whole_axis = [], np.iinfo(np.int32).max
    for b, s, n, whole in zip(begin, stride, size, x.type.shape):
        if s == 1 and type(b) is int and b == 0 and _same_size(n, whole):  # all, whatever the size becomes
            end.append(whole_axis)
        elif type(n) is int and type(b) is int and n >= 0:  # right behind the last; -1 is the last
            stop = b + (n - 1) * s + (1 if s > 0 else -1) if n else b
            end.append(stop if stop >= 0 else -int(whole) - 1)
        elif s < 0:
            raise w.fail("a slice from the back whose size is open: give inputShape")
        elif type(n) is SymInt or type(b) is SymInt and n >= 0:
            end.append(b + n * s)
        elif type(b) is int and b == 0 and s == 1:  # all of an axis of which the size has no formula
            end.append(whole_axis)
        else:
            raise w.fail("a slice whose size is open: give inputShape")
    same = len(size) == len(shape) and all(map(_same_size, size, shape))
    last = w.is_last(x) and same
    if last:
        begin, end, stride = ([v[i] for i in TO_LAST] for v in (begin, end, stride))
    inputs = [w.last(x) if last else w.first(x), *(w.sizes.vector(v) for v in (begin, end, stride))]
    # MindSpore Lite refuses places behind the end but where the mask says that they do not count.
    op = Table("StridedSlice", end_mask=sum(1 << i for i, n in enumerate(end) if n is whole_axis))
    if same:
        w.emit(y, op, inputs, last)
    else:
        _as_shape(w, y, w.step(op, inputs, x.type, size), shape)


def _same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are surely the same."""
    return a is b or (type(a) is int and type(b) is int and a == b)


@rule("pad_constant")
def _pad(w: Writer, node: Node) -> None:
    x = node.inputs[0]
    pads = np.asarray(node.attrs["pads"], np.int32).reshape(-1, 2)
    if (pads < 0).any():
        raise w.fail(f"padding {pads.tolist()} that takes elements away")
    tensor, last = in_layout(w, x)
    rows = w.constant(pads[list(TO_LAST)] if last else pads)
    primitive = Table("PadFusion", padding_mode="CONSTANT", constant_value=node.attrs["value"])
    w.emit(node.outputs[0], primitive, [tensor, rows], last)


@rule("broadcast_to")
def _broadcast_to(w: Writer, node: Node) -> None:
    x, y = node.inputs[0], node.outputs[0]
    shape, given = list(node.attrs["shape"]), x.type.shape
    if not shape:
        w.alias(y, w.first(x))
    elif all(type(n) is int for n in shape) and all(  # -1: as it was
        n >= 0 or (i >= 0 and type(given[i]) is not int) for i, n in enumerate(shape, len(given) - len(shape))
    ):
        w.emit(y, Table("BroadcastTo", shape=shape), [w.first(x)])
    else:
        w.emit(y, Table("BroadcastTo"), [w.first(x), w.sizes.vector(shape)])


@rule("tile")
def _tile(w: Writer, node: Node) -> None:
    x, times = node.inputs[0], list(node.attrs["dims"])
    times = [1] * (x.type.rank - len(times)) + times
    if len(times) > x.type.rank:
        raise w.fail(f"{len(times)} repetitions of {x.type}")
    primitive = Table("TileFusion", dims=list(range(len(times))))
    w.emit(node.outputs[0], primitive, [w.first(x), w.sizes.vector(times)])


@rule("shape_of")
def _shape(w: Writer, node: Node) -> None:
    y = node.outputs[0]
    shape = w.step(Table("Shape"), [w.first(node.inputs[0])], np.int32, y.type.shape)
    w.cast(y, shape)


@rule("fill_like")
def _fill_like(w: Writer, node: Node) -> None:
    y = node.outputs[0]
    if any(type(n) is not int for n in y.type.shape):
        value = w.constant(np.asarray(node.attrs["value"], y.type.dtype.np))
        shape = w.step(Table("Shape"), [w.first(node.inputs[0])], np.int32, [y.type.rank])
        w.emit(y, Table("Fill"), [value, shape])
        return
    w.alias(y, w.constant(np.full(y.type.shape, node.attrs["value"], y.type.dtype.np)))


@rule("gather")
def _gather(w: Writer, node: Node) -> None:
    x, indices = node.inputs
    if node.attrs["batch_dims"]:
        raise w.fail(f"batch_dims {node.attrs['batch_dims']}")
    axis = node.attrs["axis"] % x.type.rank
    last = w.is_last(x) and indices.type.rank == 1  # images stay images
    tensor = w.last(x) if last else w.first(x)
    place = w.constant(np.asarray(LAST_AXIS[axis] if last else axis, np.int32))
    w.emit(node.outputs[0], Table("Gather"), [tensor, w.first(indices), place], last)


@rule("embedding")
def _embedding(w: Writer, node: Node) -> None:
    indices, table = node.inputs
    axis = w.constant(np.asarray(0, np.int32))
    w.emit(node.outputs[0], Table("Gather"), [w.first(table), w.first(indices), axis])


@rule("gather_nd")
def _gather_nd(w: Writer, node: Node) -> None:
    w.emit(node.outputs[0], Table("GatherNd"), [w.first(v) for v in node.inputs])


@rule("gather_d")
def _gather_d(w: Writer, node: Node) -> None:
    x, indices = node.inputs
    axis = w.constant(np.asarray(node.attrs["dim"] % x.type.rank, np.int32))
    w.emit(node.outputs[0], Table("GatherD"), [w.first(x), axis, w.first(indices)])


@rule("one_hot")
def _one_hot(w: Writer, node: Node) -> None:
    indices, on, off = node.inputs
    depth = w.sizes.vector([node.attrs["depth"]])
    axis = node.attrs["axis"] % node.outputs[0].type.rank
    w.emit(node.outputs[0], Table("OneHot", axis=axis), [w.first(indices), depth, w.first(on), w.first(off)])


_SIZED = {
    "broadcast_to": _broadcast_to,
    "one_hot": _one_hot,
    "reshape": _reshape,
    "strided_slice": _strided_slice,
    "tile": _tile,
}
