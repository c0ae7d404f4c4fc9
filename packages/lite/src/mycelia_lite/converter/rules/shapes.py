"""Operators that move, cut out, repeat or pick elements."""

from __future__ import annotations

from copy import copy

import numpy as np

from mycelia.ir import Node
from mycelia_lite.converter.rules.table import along, in_layout, rule
from mycelia_lite.converter.writer import LAST_AXIS, TO_FIRST, TO_LAST, Writer
from mycelia_lite.format import Table


@rule("sized")
def _sized(w: Writer, node: Node) -> None:
    """An op with attributes that are open sizes, which rules for these ops write as what stands for them."""
    op, count = node.attrs["op"], len(node.inputs) - len(node.attrs["places"])
    if op.name not in _SIZED:
        raise w.fail(f"'{op.name}' with a size that is open: give inputShape")
    inner = copy(node)
    inner.op, inner.inputs, inner.attrs = op, node.inputs[:count], node.attrs["attrs"]
    _SIZED[op.name](w, inner)


@rule("reshape")
def _reshape(w: Writer, node: Node) -> None:
    shape = [-1 if type(n) is not int else n for n in node.outputs[0].type.shape]
    if shape.count(-1) > 1:
        raise w.fail(f"the shape {shape} with several open sizes")
    x = node.inputs[0]
    if not shape:  # a constant without elements cannot stand in a file
        w.emit(node.outputs[0], Table("Squeeze", axis=list(range(x.type.rank))), [w.first(x)])
        return
    target = w.constant(np.asarray(shape, np.int32))
    w.emit(node.outputs[0], Table("Reshape"), [w.first(x), target])


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
    x, attrs = node.inputs[0], node.attrs
    if not x.type.rank:
        _as_shape(w, node, w.first(x))
        return
    begin, stride, size, shape = (list(attrs[name]) for name in ("begin", "stride", "size", "shape"))
    if any(type(n) is not int for n in (*begin, *stride)):
        raise w.fail("a slice that begins at a place which is open: give inputShape")
    end = []
    for b, s, n, whole in zip(begin, stride, size, x.type.shape):
        if type(n) is not int:
            if (b, s) != (0, 1):
                raise w.fail("a slice whose size is open: give inputShape")
            end.append(np.iinfo(np.int32).max)
        else:  # right behind the last element; -1 would be the last one
            stop = b + (n - 1) * s + (1 if s > 0 else -1) if n else b
            end.append(stop if stop >= 0 else -int(whole) - 1)
    same = [type(n) is int or n for n in size] == [type(n) is int or n for n in shape] and size == shape
    last = w.is_last(x) and same
    if last:
        begin, end, stride = ([v[i] for i in TO_LAST] for v in (begin, end, stride))
    places = [w.constant(np.asarray(v, np.int32)) for v in (begin, end, stride)]
    inputs = [w.last(x) if last else w.first(x), *places]
    if same:
        w.emit(node.outputs[0], Table("StridedSlice"), inputs, last)
        return
    part = w.step(Table("StridedSlice"), inputs, x.type, size)
    _as_shape(w, node, part)


def _as_shape(w: Writer, node: Node, tensor: int) -> None:
    """The elements of a tensor in the shape of the node's result."""
    shape = [-1 if type(n) is not int else n for n in node.outputs[0].type.shape]
    if shape.count(-1) > 1:
        raise w.fail(f"the shape {shape} with several open sizes")
    if shape:
        w.emit(node.outputs[0], Table("Reshape"), [tensor, w.constant(np.asarray(shape, np.int32))])
    else:
        w.emit(node.outputs[0], Table("Squeeze", axis=list(range(w.rank(tensor)))), [tensor])


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
    x, shape = node.inputs[0], list(node.outputs[0].type.shape)
    lead = len(shape) - x.type.rank
    for i, n in enumerate(shape):
        if type(n) is not int:
            if i < lead or type(x.type.shape[i - lead]) is int:
                raise w.fail("a result whose size is open: give inputShape")
            shape[i] = -1
    if not shape:
        w.alias(node.outputs[0], w.first(x))
        return
    w.emit(node.outputs[0], Table("BroadcastTo", shape=shape), [w.first(x)])


@rule("tile")
def _tile(w: Writer, node: Node) -> None:
    x, times = node.inputs[0], list(node.attrs["dims"])
    times = [1] * (x.type.rank - len(times)) + times
    if len(times) > x.type.rank:
        raise w.fail(f"{len(times)} repetitions of {x.type}")
    primitive = Table("TileFusion", dims=list(range(len(times))))
    w.emit(node.outputs[0], primitive, [w.first(x), w.constant(np.asarray(times, np.int32))])


@rule("shape_of")
def _shape(w: Writer, node: Node) -> None:
    y = node.outputs[0]
    shape = w.step(Table("Shape"), [w.first(node.inputs[0])], np.int32, y.type.shape)
    w.cast(y, shape)


@rule("fill_like")
def _fill_like(w: Writer, node: Node) -> None:
    y = node.outputs[0]
    if any(type(n) is not int for n in y.type.shape):
        raise w.fail("a constant whose size is open: give inputShape")
    w.alias(y, w.constant(np.full(y.type.shape, node.attrs["value"], y.type.dtype.np)))


@rule("gather")
def _gather(w: Writer, node: Node) -> None:
    x, indices = node.inputs
    if node.attrs["batch_dims"]:
        raise w.fail(f"batch_dims {node.attrs['batch_dims']}")
    axis = w.constant(np.asarray(node.attrs["axis"] % x.type.rank, np.int32))
    w.emit(node.outputs[0], Table("Gather"), [w.first(x), w.first(indices), axis])


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
    depth = w.constant(np.asarray(node.attrs["depth"], np.int32))
    axis = node.attrs["axis"] % node.outputs[0].type.rank
    w.emit(node.outputs[0], Table("OneHot", axis=axis), [w.first(indices), depth, w.first(on), w.first(off)])


_SIZED = {"reshape": _reshape, "strided_slice": _strided_slice}
