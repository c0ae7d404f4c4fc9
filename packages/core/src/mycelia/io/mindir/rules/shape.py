"""Rules of shapes and indexing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir import TensorType
from mycelia.engine.ir.types import agree
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.rules.table import (
    Unsupported,
    attributes,
    cast_to,
    require_static,
    reshape_to,
    result_type,
    rule,
    scalar,
    shaped,
)
from mycelia.io.mindir.values import id_of_dtype

# ---- shapes ------------------------------------------------------------------------------------


@rule("reshape")
def _reshape(w, node, inputs):
    source, out = node.inputs[0].type, result_type(node)
    row = math.prod(source.shape[1:]) if -1 not in source.shape[1:] else None
    if source.rank > 2 and out.rank == 2 and out.shape == (source.shape[0], row):
        return w.op("Flatten", inputs[0], out=out)  # knows no sizes: the file takes any batch
    return w.op("Reshape", inputs[0], tuple(node.attrs["shape"]), out=out)


@rule("squeeze")
def _squeeze(w, node, inputs):
    return w.op("Squeeze", inputs[0], node.attrs["axis"] or (), out=result_type(node))


@rule("split")
def _split(w, node, inputs):
    source, types = node.inputs[0].type, tuple(v.type for v in node.outputs)
    axis = node.attrs["axis"] % source.rank
    if len(set(types)) == 1:
        name = w.op("Split", inputs[0], axis, len(types), out=types)
        return [w.item(name, i, t) for i, t in enumerate(types)]
    results, start = [], 0
    for type in types:
        begin = tuple(start if d == axis else 0 for d in range(source.rank))
        results.append(part_of(w, inputs[0], begin, type.shape, (1,) * source.rank, type))
        start += type.shape[axis]
    return results


def part_of(
    w: Any, x: Any, begin: Sequence[int], size: Sequence[int], stride: Sequence[int], out: TensorType
) -> Any:
    """A StridedSlice with steps forwards; sizes of -1 take the whole dimension."""
    whole = sum(1 << d for d, n in enumerate(size) if n < 0)
    ends = tuple(0 if n < 0 else b + n * s for b, n, s in zip(begin, size, stride))
    return w.op("StridedSlice", x, tuple(begin), ends, tuple(stride), whole, whole, 0, 0, 0, out=out)


@rule("strided_slice")
def _strided_slice(w, node, inputs):
    begin, size, stride, shape = attributes(node, "begin", "size", "stride", "shape")
    source, name = node.inputs[0].type, inputs[0]
    part = shaped(source, size)
    backwards = tuple(d for d, s in enumerate(stride) if s < 0)
    if backwards:
        require_static(node, source)
        name = w.op("ReverseV2", name, backwards, out=source)
        begin = tuple(n - 1 - b if s < 0 else b for b, s, n in zip(begin, stride, source.shape))
        stride = tuple(abs(s) for s in stride)
    whole = all(
        agree(b, 0) and agree(n, entire) and s == 1
        for b, n, s, entire in zip(begin, size, stride, source.shape)
    )
    if not whole:
        name = part_of(w, name, begin, size, stride, part)
    if len(shape) == len(size) and all(map(agree, shape, size)):
        return name
    return reshape_to(w, name, part, shape)


@rule("shape_of")
def _shape_of(w, node, inputs):
    return w.op("TensorShape", inputs[0], out=result_type(node))


@rule("roll")
def _roll(w, node, inputs):
    name, type = inputs[0], result_type(node)
    for shift, axis in zip(*attributes(node, "shifts", "dims")):
        axis %= type.rank
        if type.shape[axis] < 0:
            raise Unsupported("roll along a dimension whose size is not known")
        cut = -shift % max(type.shape[axis], 1)
        if cut:
            name = _rotated(w, name, type, axis, cut)
    return name


def _rotated(w: Any, name: Any, type: TensorType, axis: int, cut: int) -> Any:
    """What follows position `cut` of an axis, then what precedes it."""
    parts = []
    for start, length in ((cut, type.shape[axis] - cut), (0, cut)):
        begin = tuple(start if d == axis else 0 for d in range(type.rank))
        size = tuple(length if d == axis else n for d, n in enumerate(type.shape))
        parts.append(part_of(w, name, begin, size, (1,) * type.rank, shaped(type, size)))
    return w.op("Concat", w.tuple(parts), axis, out=type)


@rule("pad_constant")
def _pad_constant(w, node, inputs):
    source, type = node.inputs[0].type, result_type(node)
    pads, value = attributes(node, "pads", "value")
    begins, ends = pads[0::2], pads[1::2]
    name = inputs[0]
    if min(pads, default=0) < 0:  # negative padding cuts
        require_static(node, source)
        begin = tuple(max(-b, 0) for b in begins)
        size = tuple(n - max(-b, 0) - max(-e, 0) for n, b, e in zip(source.shape, begins, ends))
        name = part_of(w, name, begin, size, (1,) * source.rank, shaped(source, size))
        begins, ends = [max(b, 0) for b in begins], [max(e, 0) for e in ends]
    if not any((*begins, *ends)):
        return name
    contiguous = tuple(
        n for b, e in zip(reversed(begins), reversed(ends)) for n in (b, e)
    )  # last dimension first
    filler = scalar(value, type.dtype)
    return w.primitive("PadV3", name, contiguous, filler, out=type, mode="constant", paddings_contiguous=True)


# ---- indexing ----------------------------------------------------------------------------------


def _positions(
    shape: Sequence[int], begin: Sequence[int], size: Sequence[int], stride: Sequence[int]
) -> Tensor:
    """Flat positions [n, 1] of a strided part."""
    grid = np.arange(math.prod(shape)).reshape(shape)
    picks = np.ix_(*(b + s * np.arange(n) for b, n, s in zip(begin, size, stride)))
    return Tensor(grid[picks].reshape(-1, 1).astype(np.int32))


@rule("strided_assign")
def _strided_assign(w, node, inputs):
    source, value = (v.type for v in node.inputs)
    require_static(node, source, value)
    begin, size, stride = attributes(node, "begin", "size", "stride")
    data = inputs[1]
    if value.shape != size:
        data = w.op(
            "BroadcastTo",
            reshape_to(w, data, value, _trailing_shape(value, size)),
            size,
            out=shaped(value, size),
        )
    return _scattered(w, inputs[0], source, data, _positions(source.shape, begin, size, stride))


def _trailing_shape(value: TensorType, size: Sequence[int]) -> tuple[int, ...]:
    """The shape without leading ones beyond the rank of `size`."""
    return value.shape[max(value.rank - len(size), 0) :]


@rule("strided_place")
def _strided_place(w, node, inputs):
    type, part = result_type(node), node.inputs[0].type
    require_static(node, type, part)
    begin, stride = attributes(node, "begin", "stride")
    zeros = w.op("BroadcastTo", scalar(0, type.dtype), type.shape, out=type)
    return _scattered(w, zeros, type, inputs[0], _positions(type.shape, begin, part.shape, stride))


def _scattered(w: Any, x: Any, type: TensorType, values: Any, positions: Tensor) -> Any:
    """`x` with `values` at flat positions."""
    flat = w.op("Reshape", x, (-1,), out=shaped(type, (type.size,)))
    values = w.op("Reshape", values, (-1,), out=shaped(type, (positions.shape[0],)))
    flat = w.primitive("TensorScatterUpdate", flat, positions, values, out=shaped(type, (type.size,)))
    return w.op("Reshape", flat, type.shape, out=type)


@rule("embedding")
def _embedding(w, node, inputs):
    return w.op("Gather", inputs[1], inputs[0], 0, 0, out=result_type(node))


@rule("gather_d")
def _gather_d(w, node, inputs):
    return w.op("GatherD", inputs[0], node.attrs["dim"], inputs[1], out=result_type(node))


@rule("one_hot")
def _one_hot(w, node, inputs):
    indices, on, off = inputs
    return w.op("OneHot", indices, node.attrs["depth"], on, off, node.attrs["axis"], out=result_type(node))


@rule("linear_index")
def _linear_index(w, node, inputs):
    type, dims = result_type(node), node.attrs["dims"]
    total = None
    for i, (name, value) in enumerate(zip(inputs, node.inputs)):
        name = cast_to(w, name, value.type, type.dtype)
        name = w.op("FloorMod", name, scalar(dims[i], type.dtype))  # negative ones count from the end
        name = w.op("Mul", name, scalar(math.prod(dims[i + 1 :]), type.dtype))
        total = name if total is None else w.op("Add", total, name)
    return total


@rule("flat_nonzero")
def _flat_nonzero(w, node, inputs):
    flat = w.op("Reshape", inputs[0], (-1,))
    return cast_to(
        w,
        w.op("Reshape", w.op("NonZero", flat), (-1,)),
        TensorType(dtypes.int64, (-1,)),
        result_type(node).dtype,
    )


@rule("where")
def _where(w, node, inputs):
    type = result_type(node)
    names = list(inputs)
    for i, value in enumerate(node.inputs):
        if value.type.shape != type.shape:  # Select does not broadcast on every device
            require_static(node, type)
            names[i] = w.op("BroadcastTo", names[i], type.shape, out=shaped(value.type, type.shape))
    return w.op("Select", *names, out=type)


@rule("tensor_scatter")
def _tensor_scatter(w, node, inputs):
    return w.primitive(f"TensorScatter{node.attrs['reduction'].capitalize()}", *inputs, out=result_type(node))


@rule("scatter_elements")
def _scatter_elements(w, node, inputs):
    reduction = {"update": 0, "add": 1}.get(node.attrs["reduction"])
    if reduction is None:
        raise Unsupported(f"scatter_elements with reduction {node.attrs['reduction']!r}")
    return w.op("TensorScatterElements", *inputs, node.attrs["axis"], reduction, out=result_type(node))


@rule("searchsorted")
def _searchsorted(w, node, inputs):
    right, dtype = attributes(node, "right", "dtype")
    return w.op("SearchSorted", *inputs, None, id_of_dtype(dtype), right, out=result_type(node))


@rule("unique")
def _unique(w, node, inputs):
    value, index = (v.type for v in node.outputs)
    pair = w.primitive("Unique", w.op("Reshape", inputs[0], (-1,)))
    place = w.op("Cast", w.item(pair, 1), id_of_dtype(index.dtype))
    return [w.item(pair, 0, value), w.op("Reshape", place, index.shape, out=index)]


@rule("unique_consecutive")
def _unique_consecutive(w, node, inputs):
    types = [v.type for v in node.outputs]
    name = w.op("UniqueConsecutive", inputs[0], True, True, node.attrs["dim"])
    return [
        w.op("Cast", w.item(name, i), id_of_dtype(t.dtype), out=t) if i else w.item(name, 0, t)
        for i, t in enumerate(types)
    ]


@rule("sort")
def _sort(w, node, inputs):
    values, indices = (v.type for v in node.outputs)
    pair = w.primitive("Sort", inputs[0], axis=node.attrs["axis"], descending=node.attrs["descending"])
    return [
        w.item(pair, 0, values),
        cast_to(w, w.item(pair, 1), TensorType(dtypes.int32, indices.shape), indices.dtype),
    ]


@rule("topk")
def _topk(w, node, inputs):
    k, axis, largest, order = attributes(node, "k", "axis", "largest", "sorted")
    source, indices = node.inputs[0].type, node.outputs[1].type
    axis %= source.rank
    swap = tuple(range(axis)) + (source.rank - 1, *range(axis + 1, source.rank - 1), axis)
    last = axis == source.rank - 1
    name = inputs[0] if last else w.op("Transpose", inputs[0], swap)
    if not largest:
        name = w.op("Neg", name)
    pair = w.primitive("TopK", name, k, sorted=order)
    value, index = w.item(pair, 0), w.item(pair, 1)
    if not largest:
        value = w.op("Neg", value)
    if not last:
        value, index = (w.op("Transpose", n, swap) for n in (value, index))
    return [value, cast_to(w, index, TensorType(dtypes.int32, indices.shape), indices.dtype)]
