"""Operators of TensorFlow Lite that make tensors, or give them another shape or order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.arrays import open_slice
from mycelia_lite.converter.importers.onnx.calls import (
    cast,
    integers,
    is_number,
    known,
    known_shape,
    need_known,
    positive_axis,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.sizes import objects
from mycelia_lite.converter.importers.tflite.calls import (
    Call,
    activated,
    as_tensor,
    axes_of,
    operator,
    rank_of,
)
from mycelia_lite.converter.importers.tflite.shapes import sizes_value, strided
from mycelia_lite.converter.spelled import spell

_FAR = 2**31 - 1  # beyond the end of any axis
_strided_op = find("strided_slice")


@operator("SHAPE", raw=True)
def _shape(call, x):
    call.get("ShapeOptions", "out_type")
    found = shape_of(x)
    call.fixed = known(x) is None and any(map(is_number, found))
    made = sizes_value(objects(found))
    return made if isinstance(made, np.ndarray) else cast(made, call.outputs[0].dtype)


@operator("RANK", raw=True)
def _rank(call, x):
    return ms.Tensor(np.int32(rank_of(x)))


@operator("RESHAPE", sizes=(1,))
def _reshape(call, x, shape=None):
    """One -1 stands for what is left; without a second input the options have the shape."""
    wanted = (
        list(call.get("ReshapeOptions", "new_shape") or [])
        if shape is None
        else integers(call, shape, "shape")
    )
    if shape is not None:
        call.get("ReshapeOptions", "new_shape")
    if shape is None and wanted == [0]:  # how old files write a scalar
        wanted = []
    text = () if any(is_number(n) and n == 0 for n in wanted) else tuple(wanted)
    return spell(ops.reshape(x, tuple(_filled(call, shape_of(x), wanted))), text)


def _filled(call: Call, given: tuple, wanted: list) -> list:
    """`wanted` with the size for -1 where it is known."""
    places = [i for i, n in enumerate(wanted) if is_number(n) and n == -1]
    if len(places) > 1 or any(is_number(n) and n < -1 for n in wanted):
        raise call.fail(f"a shape {wanted}")
    if not places:
        return wanted
    rest, others = list(given), [n for i, n in enumerate(wanted) if i != places[0]]
    for size in [n for n in others if not is_number(n)]:  # an open size that stays cancels
        place = next((i for i, n in enumerate(rest) if n is size), None)
        if place is None:
            return wanted
        del rest[place]
    product = math.prod(n for n in others if is_number(n))
    count, opened = math.prod(n for n in rest if is_number(n)), [n for n in rest if not is_number(n)]
    if not product or opened and count % product:
        return wanted
    if count % product:
        raise call.fail(f"{list(given)} cannot be reshaped to {wanted}")
    left = count // product
    wanted[places[0]] = math.prod(opened if opened and left == 1 else [*opened, left])
    return wanted


@operator("SQUEEZE")
def _squeeze(call, x):
    axes = call.get("SqueezeOptions", "squeeze_dims")
    shape = shape_of(x)
    if not len(axes):
        axes = [axis for axis, n in enumerate(known_shape(call, x)) if n == 1]
    chosen = axes_of(call, axes, len(shape))
    if any(is_number(shape[a]) and shape[a] != 1 for a in chosen):
        raise call.fail(f"axes {chosen} of {list(shape)} are not 1")
    return ops.squeeze(x, tuple(chosen)) if chosen else x


@operator("EXPAND_DIMS")
def _expand_dims(call, x, axis):
    place = positive_axis(call, int(need_known(call, axis, "axis").reshape(())), rank_of(x) + 1)
    return ops.expand_dims(x, place)


@operator("TRANSPOSE")
def _transpose(call, x, order):
    order = [a % max(rank_of(x), 1) for a in integers(call, order, "perm")]
    if sorted(order) != list(range(rank_of(x))):
        raise call.fail(f"the order {order} of {rank_of(x)} axes")
    return ops.transpose(x, tuple(order)) if order != sorted(order) else x


@operator("CONCATENATION")
def _concat(call, *parts):
    axis = positive_axis(call, call.get("ConcatenationOptions", "axis"), rank_of(parts[0]))
    parts = [as_tensor(p) for p in parts]
    return activated(call, "ConcatenationOptions", ops.concat(parts, axis) if len(parts) > 1 else parts[0])


@operator("PACK")
def _pack(call, *parts):
    call.get("PackOptions", "values_count")
    axis = positive_axis(call, call.get("PackOptions", "axis"), rank_of(parts[0]) + 1)
    return ops.stack([as_tensor(p) for p in parts], axis)


@operator("UNPACK")
def _unpack(call, x):
    axis = positive_axis(call, call.get("UnpackOptions", "axis"), rank_of(x))
    if call.get("UnpackOptions", "num") != known_shape(call, x, (axis,))[axis]:
        raise call.fail(f"{call.get('UnpackOptions', 'num')} parts of {list(shape_of(x))}")
    return tuple(ops.unstack(x, axis))


def _parts(call: Call, x: Any, sizes: list[int], axis: int) -> tuple:
    n = known_shape(call, x, (axis,))[axis]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = n - sum(s for s in sizes if s >= 0)
    if sum(sizes) != n or min(sizes, default=0) < 0:
        raise call.fail(f"parts of {sizes} of {n} elements")
    return tuple(ops.split(x, sizes, axis)) if len(sizes) > 1 else (x,)


@operator("SPLIT")
def _split(call, axis, x):
    axis = positive_axis(call, int(need_known(call, axis, "axis").reshape(())), rank_of(x))
    count, n = call.get("SplitOptions", "num_splits"), known_shape(call, x, (axis,))[axis]
    if count < 1 or count != len(call.outputs) or n % count:
        raise call.fail(f"{count} parts of {n} elements for {len(call.outputs)} results")
    return _parts(call, x, [n // count] * count, axis)


@operator("SPLIT_V")
def _split_v(call, x, sizes, axis):
    call.get("SplitVOptions", "num_splits")
    axis = positive_axis(call, int(need_known(call, axis, "axis").reshape(())), rank_of(x))
    return _parts(call, x, integers(call, sizes, "size_splits"), axis)


@operator("SLICE", sizes=(1, 2))
def _slice(call, x, begin, size):
    """A size of -1 goes on to the end."""
    if run_time.is_data(begin, size):
        return _slice_of_data(call, x, begin, size)
    begin, size, shape = integers(call, begin, "begin"), integers(call, size, "size"), shape_of(x)
    if not len(begin) == len(size) == len(shape):
        raise call.fail(f"a slice from {begin} on of size {size} of {list(shape)}")
    counts = []
    for first, count, n in zip(begin, size, shape):
        if not is_number(first):
            raise call.fail("a slice that begins at an open size: give inputShape")
        if is_number(count) and count == -1:
            count = n - first if is_number(n) or first else n
        if not is_number(n) and is_number(count):
            raise call.fail("a slice of an axis whose size is open: give inputShape")
        if is_number(n) and not (is_number(count) and 0 <= first <= first + count <= n):
            raise call.fail(f"a slice from {first} on of {count} elements of {n}")
        counts.append(count)
    return cut(x, begin, [1] * len(begin), counts)


def _slice_of_data(call: Call, x: Any, begin: Any, size: Any) -> Any:
    """A slice whose place or size shows when the model runs; one that does not lie inside fails there."""
    rank = rank_of(x)
    (begin, first), (size, count) = (
        run_time.vector(call, v, n) for v, n in ((begin, "begin"), (size, "size"))
    )
    if not first == count == rank:
        raise call.fail(f"{first} begins and {count} sizes for {rank} axes")
    n = run_time.sizes(x)
    end = ops.where(ops.less(size, scalar(0, size)), n, ops.add(begin, size))
    inside = ops.logical_and(ops.less_equal(end, n), ops.greater_equal(begin, scalar(0, begin)))
    (x,) = run_time.require([x], ops.all(ops.logical_and(inside, ops.greater_equal(end, begin))))
    return run_time.slice_of(call, x, begin, end, None, None)


@operator("STRIDED_SLICE")
def _strided_slice(call, x, begin, end, stride):
    lists = [integers(call, v, n) for v, n in ((begin, "begin"), (end, "end"), (stride, "strides"))]
    parts = strided(call, x, *lists)
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > rank_of(x):
        raise call.fail(f"{used} parts of {rank_of(x)} axes")
    if Ellipsis not in parts:
        parts = (*parts, Ellipsis)
    where = parts.index(Ellipsis)
    whole = (slice(None),) * (rank_of(x) - used)
    parts = (*parts[:where], *whole, *parts[where + 1 :])
    begin, stride, size, kept, axis = [], [], [], [], 0
    for part in parts:
        if part is None:
            kept.append(1)
            continue
        n = shape_of(x)[axis]
        axis += 1
        if not isinstance(part, slice):
            if is_number(n) and not -n <= part < n:
                raise call.fail(f"element {part} of {n}")
            first, step, count = part if part >= 0 else n + part, 1, 1
        elif is_number(n):
            first, last, step = part.indices(n)
            count = len(range(first, last, step))
            first = first if count else 0
            kept.append(count)
        elif part.start in (None, 0) and part.stop is None and part.step in (None, 1):
            first, step, count = 0, 1, n
            kept.append(count)
        else:
            step = 1 if part.step is None else part.step
            ends = (0, _FAR) if step > 0 else (_FAR, -_FAR)
            first, last = (e if v is None else v for v, e in zip((part.start, part.stop), ends))
            x, first, count, step = open_slice(call, x, axis - 1, first, last, step)
            kept.append(count)
        begin.append(first)
        stride.append(step)
        size.append(count)
    return cut(x, begin, stride, size, kept)


def cut(x: Any, begin: list, stride: list, size: list, kept: list | None = None) -> Any:
    """`size` elements from `begin` on along each axis, in the shape `kept`."""
    kept = tuple(size if kept is None else kept)
    same = all(
        is_number(b) and b == 0 and s == 1 and n is m for b, s, n, m in zip(begin, stride, size, shape_of(x))
    )
    if same or all(is_number(n) and n == m for n, m in zip(size, shape_of(x))) and set(stride) <= {1}:
        return x if len(kept) == rank_of(x) and kept == tuple(size) else ops.reshape(x, kept)
    begin, stride, size = tuple(begin), tuple(stride), tuple(size)
    return _strided_op(x, begin=begin, size=size, stride=stride, shape=kept)


def _pad_rows(call: Call, x: Any, pads: Any) -> list[tuple[int, int]]:
    rows = need_known(call, pads, "paddings")
    if rows.shape != (rank_of(x), 2) or (rows < 0).any():
        raise call.fail(f"paddings {rows.tolist()} of {rank_of(x)} axes")
    rows = [(int(a), int(b)) for a, b in rows]
    call.limit([n + sum(r) if is_number(n) else n for n, r in zip(shape_of(x), rows)], x)
    return rows


@operator("PAD", "PADV2")
def _pad(call, x, pads, value=None):
    rows = _pad_rows(call, x, pads)
    fill = 0 if value is None else need_known(call, value, "constant_values").reshape(()).item()
    if not any(map(any, rows)):
        return x
    both = [n for row in reversed(rows) for n in row]
    if x.dtype == ms.bool_:
        return cast(ops.pad(cast(x, ms.uint8), both, "constant", int(fill)), ms.bool_)
    return ops.pad(x, both, "constant", fill)


@operator("MIRROR_PAD")
def _mirror_pad(call, x, pads):
    """The elements at the ends, turned round; of REFLECT without the last one itself."""
    rows = _pad_rows(call, x, pads)
    mode = call.name_of("MirrorPadOptions", "mode")
    for axis, (before, after) in enumerate(rows):
        if before or after:
            n = known_shape(call, x, (axis,))[axis]
            if max(before, after) > n - (mode == "REFLECT"):
                raise call.fail(f"paddings of {before} and {after} elements mirror {n}")
            first = mode == "REFLECT"
            ends = [_reversed(x, axis, before - 1 + first, before), _reversed(x, axis, n - 1 - first, after)]
            x = ops.concat([part for part in (ends[0], x, ends[1]) if part is not None], axis)
    return x


def _reversed(x: Any, axis: int, begin: int, count: int) -> Any:
    """`count` elements along an axis, backwards from `begin` on; None for none."""
    if not count:
        return None
    size, rank = [count if i == axis else n for i, n in enumerate(shape_of(x))], rank_of(x)
    return cut(
        x, [begin * (i == axis) for i in range(rank)], [1 - 2 * (i == axis) for i in range(rank)], size
    )


@operator("TILE", sizes=(1,))
def _tile(call, x, times):
    counts = integers(call, times, "multiples")
    if len(counts) != rank_of(x):
        raise call.fail(f"multiples {counts} of {rank_of(x)} axes")
    call.limit([n * c if is_number(n) and is_number(c) else -1 for n, c in zip(shape_of(x), counts)], x)
    return ops.tile(x, tuple(counts))


@operator("FILL", sizes=(0,))
def _fill(call, dims, value):
    sizes = tuple(integers(call, dims, "dims"))
    call.limit(sizes, value)
    return ops.broadcast_to(value, sizes) if sizes else value


@operator("BROADCAST_TO", sizes=(1,))
def _broadcast_to(call, x, shape):
    sizes = tuple(integers(call, shape, "shape"))
    call.limit(sizes, x)
    return ops.broadcast_to(x, sizes)


@operator("BROADCAST_ARGS")
def _broadcast_args(call, a, b):
    if known(a) is None or known(b) is None:
        rank = max(known_shape(call, v, (0,))[0] for v in (a, b))
        a, b = (ops.concat((ops.ones(rank - shape_of(v)[0], v.dtype), v)) for v in (a, b))
        return ops.where(ops.equal(a, scalar(1, a)), b, a)
    shapes = [need_known(call, v, n).reshape(-1).tolist() for v, n in ((a, "s0"), (b, "s1"))]
    return ms.Tensor(np.asarray(np.broadcast_shapes(*shapes), call.outputs[0].dtype.np))


@operator("RANGE")
def _range(call, start, limit, delta):
    first, end, step = (
        need_known(call, v, n).reshape(()) for v, n in ((start, "start"), (limit, "limit"), (delta, "delta"))
    )
    if not step:
        raise call.fail("a step of 0")
    count = max(math.ceil((end.item() - first.item()) / step.item()), 0)
    call.limit((count,), start)
    values = first.item() + np.arange(count) * step.item()
    return ms.Tensor(values.astype(first.dtype))


@operator("REVERSE_V2")
def _reverse(call, x, axes):
    return ops.flip(x, tuple(axes_of(call, integers(call, axes, "axis"), rank_of(x))))


@operator("REVERSE_SEQUENCE")
def _reverse_sequence(call, x, lengths):
    seq, batch = (call.get("ReverseSequenceOptions", n) for n in ("seq_dim", "batch_dim"))
    return ops.reverse_sequence(x, lengths, seq, batch)


@operator("MATRIX_DIAG")
def _matrix_diag(call, x):
    """Vectors along the last axis as matrices with these on the diagonal."""
    n = known_shape(call, x, (rank_of(x) - 1,))[-1]
    return ops.where(ms.Tensor(np.eye(n, dtype=bool)), ops.expand_dims(x, -1), scalar(0, x))


@operator("MATRIX_SET_DIAG")
def _matrix_set_diag(call, x, diagonal):
    rows, columns = known_shape(call, x, (rank_of(x) - 2, rank_of(x) - 1))[-2:]
    if rows > columns:  # the diagonal ends before the rows do
        pads = (0, rows - columns)
        diagonal = ops.pad(diagonal, pads)
    return ops.where(ms.Tensor(np.eye(rows, columns, dtype=bool)), ops.expand_dims(diagonal, -1), x)


@operator("DYNAMIC_UPDATE_SLICE")
def _dynamic_update_slice(call, x, update, start):
    """A part of x replaced; the place is moved so that it lies inside."""
    shape, part = known_shape(call, x), known_shape(call, update)
    if shape_of(start) != (len(shape),) or len(part) != len(shape) or any(p > n for p, n in zip(part, shape)):
        raise call.fail(f"{list(part)} elements at {list(shape_of(start))} numbers of {list(shape)}")
    if known(start) is None:
        return _updated_rows(x, cast(update, x.dtype), start, shape, part)
    begin = known(start).reshape(-1).tolist()
    begin = [min(max(b, 0), n - p) for b, n, p in zip(begin, shape, part)]
    ends = [n - p - b for b, n, p in zip(begin, shape, part)]
    both = [n for row in reversed(list(zip(begin, ends))) for n in row]
    inside = np.zeros(shape, bool)
    inside[tuple(slice(b, b + p) for b, p in zip(begin, part))] = True
    grown = ops.pad(cast(update, x.dtype), both)
    return ops.where(ms.Tensor(inside), grown, x)


def _updated_rows(x, update, start, shape, part):
    """The same where the model finds the place: rows, along the last axes that are replaced whole."""
    leading = max((axis + 1 for axis, (n, p) in enumerate(zip(shape, part)) if n != p), default=0)
    if not leading:
        return update
    steps = np.array([math.prod(shape[axis + 1 : leading]) for axis in range(leading)])
    most = ms.Tensor(np.array([n - p for n, p in zip(shape, part)][:leading]))
    begin = ops.minimum(ops.maximum(cast(start[:leading], ms.int64), scalar(0, most)), most)
    rows = np.indices(part[:leading]).reshape(leading, -1).T @ steps
    rows = ops.add(ms.Tensor(rows), ops.sum(ops.mul(begin, ms.Tensor(steps))))
    flat = ops.reshape(x, (math.prod(shape[:leading]), *shape[leading:]))
    parts = ops.reshape(update, (len(rows), *shape[leading:]))
    return ops.reshape(ops.tensor_scatter_update(flat, ops.expand_dims(rows, -1), parts), shape)
