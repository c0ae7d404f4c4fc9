"""ONNX operators that make tensors or give them another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    as_tensor,
    cast,
    integers,
    is_number,
    known,
    known_shape,
    larger,
    need_known,
    operator,
    positive_axis,
    same_size,
    scalar,
    shape_of,
    smaller,
)
from mycelia_lite.converter.importers.onnx.file import dtype_of
from mycelia_lite.converter.importers.onnx.sizes import objects, value_of
from mycelia_lite.converter.runtime_op import OPEN, at_run_time, custom
from mycelia_lite.converter.spelled import spell

_END = 2**31 - 1  # from here on, an end of a slice means that of the axis


@operator("Shape")
def _shape(call, x):
    part = slice(call.get("start", 0), call.get("end"))
    found = shape_of(x)[part]
    call.fixed = known(x) is None and any(map(is_number, found))
    return value_of(objects(found))


@operator("Size")
def _size(call, x):
    total = math.prod(shape_of(x))
    call.fixed = known(x) is None and is_number(total)
    return value_of(objects([total], ()))


@operator("Constant")
def _constant(call):
    names = ("value", "value_float", "value_floats", "value_int", "value_ints")
    given = [name for name in names if name in call.attributes]
    if len(given) != 1:
        raise call.fail(
            f"a constant with the attributes {sorted(call.attributes)}: one of {names} is imported"
        )
    value = call.get(given[0])
    if given[0] == "value":
        return value
    return ms.Tensor(np.asarray(value, np.float32 if "float" in given[0] else np.int64))


@operator("ConstantOfShape", sizes=(0,))
def _constant_of_shape(call, shape):
    value = call.get("value")
    value = ms.Tensor(np.zeros(1, np.float32)) if value is None else value
    if run_time.is_data(shape):
        return run_time.filled(call, value, shape)
    sizes = tuple(integers(call, shape, "input"))
    return ops.broadcast_to(ops.reshape(value, ()), sizes) if sizes else ops.reshape(value, ())


@operator("EyeLike")
def _eye_like(call, x):
    n, m = known_shape(call, x)
    call.fixed = known(x) is None
    call.require_room(n, m)
    dtype = x.dtype if call.get("dtype") is None else dtype_of(call.get("dtype"), f"node '{call.name}'")
    return cast(ms.Tensor(np.eye(n, m, call.get("k", 0), np.float32)), dtype)


@operator("Range")
def _range(call, start, limit, delta):
    """Numbers from start on, limit not included."""
    if run_time.is_data(start, limit, delta):
        return run_time.numbers_from(call, start, limit, delta)
    numbers = [
        need_known(call, v, name) for v, name in ((start, "start"), (limit, "limit"), (delta, "delta"))
    ]
    first, end, step = (n.reshape(()) for n in numbers)
    if step == 0:
        raise call.fail("its input 'delta' is 0")
    count = max(math.ceil((end.item() - first.item()) / step.item()), 0)
    call.require_room(count)
    values = first.item() + np.arange(count) * step.item()
    return cast(ms.Tensor(values.astype(first.dtype)), start.dtype)


@operator("Reshape", sizes=(1,))
def _reshape(call, x, shape=None):
    """0 keeps a size unless `allowzero`, one -1 stands for what is left."""
    if shape is None and not 0 < call.version < 5:
        raise call.fail("the shape is left out", Code.GRAPH_FILE_ERROR)
    if run_time.is_data(shape):
        return run_time.reshape(call, x, shape)
    wanted = list(call.need("shape")) if shape is None else integers(call, shape, "shape")
    given, text = shape_of(x), tuple(wanted)
    if not call.get("allowzero", 0):
        if any(is_number(n) and n == 0 and i >= len(given) for i, n in enumerate(wanted)):
            raise call.misfit(
                f"shape {wanted} keeps a size that the input of {len(given)} axes does not have"
            )
        wanted = [given[i] if is_number(n) and n == 0 else n for i, n in enumerate(wanted)]
    elif any(is_number(n) and n == 0 for n in wanted):
        if -1 in wanted:
            raise call.fail(f"shape {wanted} has both 0 and -1")
        text = ()
    place = next((i for i, n in enumerate(wanted) if is_number(n) and n == -1), None)
    if place is not None:
        wanted[place] = _left_over(given, [n for i, n in enumerate(wanted) if i != place])
    return spell(ops.reshape(x, tuple(wanted)), text)


def _left_over(given: Any, others: list) -> int:
    """The size that -1 stands for beside `others`; -1 where it shows only when the model runs."""
    rest = list(given)
    open_sizes = [n for n in others if not is_number(n)]
    for size in open_sizes:  # an open size that stays cancels
        place = next((i for i, n in enumerate(rest) if n is size), None)
        if place is None:
            return -1
        del rest[place]
    product = math.prod(n for n in others if is_number(n))
    if not all(map(is_number, rest)) or not product:
        return -1
    if math.prod(rest) % product:
        raise ValueError(f"{list(given)} cannot be reshaped to {others} and one more size")
    return math.prod(rest) // product


@operator("Flatten")
def _flatten(call, x):
    """Two axes: those before `axis`, and those from it on."""
    axis, shape = call.get("axis", 1), shape_of(x)
    axis = axis if axis == len(shape) else positive_axis(call, axis, len(shape))
    ones = [*_ones(shape[:axis], 0), *_ones(shape[axis:], axis)]
    if 0 < axis < len(shape) == len(ones) + 2:  # other sizes than 1 may change when the model is resized
        return ops.squeeze(x, tuple(ones)) if ones else x
    before, after = math.prod(shape[:axis]), math.prod(shape[axis:])
    if is_number(after) and after and not is_number(before):
        before = -1
    if axis not in (0, 1, len(shape)):  # of which no Reshape tells how they are put together
        call.fixed = known(x) is None and any(map(is_number, shape))
    text = {len(shape): (-1, 1), 0: (1, -1), 1: (0, -1)}.get(axis, ())
    return spell(ops.reshape(x, (before, after)), text)


def _ones(sizes: Sequence[Any], begin: int) -> list[int]:
    """Which of some axes from `begin` on have the size 1, but for one that is left if all have."""
    found = [begin + i for i, n in enumerate(sizes) if is_number(n) and n == 1]
    return found[1:] if len(found) == len(sizes) else found


@operator("Transpose")
def _transpose(call, x):
    return ops.transpose(x, tuple(call.get("perm") or reversed(range(x.ndim))))


def _axes(call: Call, given: Any, name: str = "axes") -> list[int] | None:
    """Axes of an attribute, or from version 13 on of an input."""
    if call.version < 13:
        return call.get("axes")
    return None if given is None else integers(call, given, name)


@operator("Squeeze")
def _squeeze(call, x, axes=None):
    if run_time.is_data(axes):
        return run_time.squeeze(call, x, axes)
    axes = _axes(call, axes)
    shape = shape_of(x)
    if axes is None:
        axes = [axis for axis, n in enumerate(known_shape(call, x)) if n == 1]
    dropped = {positive_axis(call, axis, x.ndim) for axis in axes}
    if any(is_number(shape[axis]) and shape[axis] != 1 for axis in dropped):
        raise call.misfit(f"axes {sorted(dropped)} of sizes {list(shape)} are dropped, but not all are 1")
    if not all(is_number(shape[axis]) for axis in dropped):  # which the model relies on to be 1
        return ops.reshape(x, tuple(n for axis, n in enumerate(shape) if axis not in dropped))
    return ops.squeeze(x, tuple(sorted(dropped))) if dropped else x


@operator("Unsqueeze")
def _unsqueeze(call, x, axes=None):
    if run_time.is_data(axes):
        return run_time.unsqueeze(call, x, axes)
    axes = _axes(call, axes)
    if axes is None:
        raise call.fail("axes are missing")
    rank = x.ndim + len(axes)
    new = {positive_axis(call, axis, rank) for axis in axes}
    if len(new) != len(axes):
        raise call.misfit(f"axes {axes} name one twice")
    for axis in sorted(new):
        x = ops.expand_dims(x, axis)
    return x


@operator("Concat")
def _concat(call, *parts):
    parts = [as_tensor(p) for p in parts]
    axis = call.get("axis", 1) if 0 < call.version < 4 else call.need("axis")
    axis = positive_axis(call, axis, parts[0].ndim)
    return parts[0] if len(parts) == 1 else ops.concat(parts, axis)


@operator("Split")
def _split(call, x, split=None):
    axis = positive_axis(call, call.get("axis", 0), x.ndim)
    if run_time.is_data(split):
        return run_time.split(call, x, split, axis)
    n = shape_of(x)[axis]
    sizes = (
        call.get("split") if call.version < 13 else None if split is None else integers(call, split, "split")
    )
    count = call.get("num_outputs", len(call.outputs)) if call.version >= 18 else len(call.outputs)
    if not is_number(n):
        return _split_open(call, x, axis, sizes, count)
    call.fixed = sizes is None and known(x) is None
    if sizes is None:
        each = -(-n // count)
        if call.version < 18 and n % count:
            raise call.misfit(f"{n} elements do not split into {count} equal parts")
        sizes = [min(each, max(n - each * i, 0)) for i in range(count)]
    if sum(sizes) != n or min(sizes) < 0:
        raise call.misfit(f"parts of {sizes} elements of an axis of {n}")
    ends = np.cumsum(sizes).tolist()
    return [_part(x, axis, slice(end - size, end)) for size, end in zip(sizes, ends)]


def _split_open(call: Call, x: Any, axis: int, sizes: list[int] | None, count: int) -> list[Any]:
    """Parts along an axis of open size: of given sizes, or equal ones, of which the last may be shorter."""
    n = shape_of(x)[axis]
    if sizes is not None:
        return run_time.split(call, x, ms.Tensor(np.array(sizes, np.int64)), axis)
    each = n // count if call.version < 18 else (n + (count - 1)) // count
    parts = []
    for i in range(count):
        begin = smaller(i * each, n) if call.version >= 18 else i * each
        size = larger(smaller(each, n - begin), 0) if call.version >= 18 else each
        at = [begin if d == axis else 0 for d in range(x.ndim)]
        shape = tuple(size if d == axis else m for d, m in enumerate(shape_of(x)))
        parts.append(find("strided_slice")(x, tuple(at), shape, (1,) * x.ndim, shape))
    if call.version >= 18:
        return parts
    rest = as_tensor(value_of(objects([n - each * count])))
    return run_time.require(parts, ops.equal(rest, scalar(0, rest)))


def _part(x: Any, axis: int, part: slice) -> Any:
    return x[(slice(None),) * axis + (part,)]


@operator("Slice", sizes=(1, 2, 3, 4))
def _slice(call, x, starts=None, ends=None, axes=None, steps=None):
    if call.version < 10:
        starts, ends, axes = call.need("starts"), call.need("ends"), call.get("axes")
        steps = None
    else:
        if run_time.is_data(starts, ends, axes, steps):
            return run_time.slice_of(call, x, starts, ends, axes, steps)
        starts, ends = integers(call, starts, "starts"), integers(call, ends, "ends")
        axes = None if axes is None else integers(call, axes, "axes")
        steps = None if steps is None else integers(call, steps, "steps")
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise call.misfit(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} do not fit")
    shape = shape_of(x)
    begin, stride, size = [0] * x.ndim, [1] * x.ndim, list(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps):
        axis = positive_axis(call, axis, x.ndim)
        if all(map(is_number, (shape[axis], start, end))):
            places = _places(start, end, step, shape[axis])
            begin[axis], size[axis], stride[axis] = places.start if places else 0, len(places), step
            whole = start == 0 and step == 1 and end >= _END
            if known(x) is None and not whole and (start < 0 or end < 0 or step < 0 or end >= shape[axis]):
                call.fixed = True
            continue
        if not is_number(step):
            raise call.fail("a step that is an open size: give inputShape")
        x, begin[axis], size[axis], stride[axis] = open_slice(call, x, axis, start, end, step, lowest=0)
    if all(map(same_size, begin, [0] * x.ndim)) and set(stride) <= {1} and all(map(same_size, size, shape)):
        return x
    return find("strided_slice")(x, tuple(begin), tuple(size), tuple(stride), tuple(size))


def _places(start: int, end: int, step: int, n: int) -> range:
    """The places of n that a slice names; one from before the first place back begins there."""
    if step < 0 and start < -n:
        start = -n
    return range(*slice(start, end, step).indices(n))


def open_slice(call: Call, x: Any, axis: int, start: Any, end: Any, step: int, lowest: int = -1) -> tuple:
    """(x, begin, size, step) of a slice of which the size, or what is cut out of it, is open.

    `lowest`: to which a start before the first place is raised with a negative step.
    """
    n = shape_of(x)[axis]
    low, high = (0, n) if step > 0 else (-1, n - 1)
    start = smaller(larger(_from_front(call, start, n), max(low, lowest)), high)
    end = smaller(larger(_from_front(call, end, n), low), high)
    if step < 0:  # the same from the other side
        x, step = ops.flip(x, (axis,)), -step
        start, end = n - 1 - start, n - 1 - end
    length = end if is_number(start) and start == 0 else end - start
    return x, start, larger(length if step == 1 else (length + step - 1) // step, 0), step


def _from_front(call: Call, at: Any, n: Any) -> Any:
    """A place of an axis of n that is counted from the back if it is negative."""
    if is_number(at):  # beyond both ends is as good as at the end
        return n if at >= 2**31 - 1 else -1 if at <= -(2**31) + 1 else at if at >= 0 else n + at
    if at.positive:
        return at
    raise call.fail(
        f"whether the place {at.formula()} is negative is known only when the model runs: give inputShape"
    )


@operator("Pad", sizes=(1,))
def _pad(call, x, pads=None, value=None, axes=None):
    mode = call.choice("mode", "constant", ("constant", "reflect", "edge", "wrap"))
    if call.version >= 11 and run_time.is_data(pads, value, axes):
        return run_time.pad(call, x, pads, value, axes, mode)
    if call.version < 11:
        pads, fill = call.need("pads"), call.get("value", 0.0)
    elif pads is not None and not all(map(is_number, integers(call, pads, "pads"))):
        return run_time.pad(call, x, as_tensor(pads), value, axes, mode)  # they follow from open sizes
    else:
        pads = integers(call, pads, "pads")
        fill = 0 if value is None else need_known(call, value, "constant_value").reshape(()).item()
    axes = range(x.ndim) if axes is None else integers(call, axes, "axes")
    if len(pads) != 2 * len(axes):
        raise call.misfit(f"pads {pads} for {len(axes)} axes")
    begin, end = [0] * x.ndim, [0] * x.ndim
    for axis, before, after in zip(axes, pads, pads[len(axes) :]):
        axis = positive_axis(call, axis, x.ndim)
        begin[axis], end[axis] = before, after
    if mode == "constant":
        return _constant_pad(call, x, begin, end, fill)
    changed = [axis for axis in range(x.ndim) if begin[axis] or end[axis]]
    if not all(is_number(shape_of(x)[axis]) for axis in changed):
        return _open_pad(call, x, begin, end, mode)
    for axis, (before, after) in enumerate(zip(begin, end)):
        if before or after:
            n = known_shape(call, x, (axis,))[axis]
            call.fixed = True
            if mode == "reflect" and 0 <= min(before, after) and max(before, after) < n:
                x = _reflected(x, axis, n, before, after)
                continue
            places = np.arange(n)
            call.require_room(len(places) + max(before, 0) + max(after, 0))
            grown = np.pad(places, (max(before, 0), max(after, 0)), mode)
            kept = grown[max(-before, 0) : len(grown) - max(-after, 0)]
            x = ops.gather(x, ms.Tensor(kept), axis)
    return x


def _reflected(x: Any, axis: int, n: int, before: int, after: int) -> Any:
    """x, `n` long along the axis, between mirror images of its ends without the elements at the edges."""
    parts = [x]
    if before:
        parts.insert(0, ops.flip(_part(x, axis, slice(1, before + 1)), (axis,)))
    if after:
        parts.append(ops.flip(_part(x, axis, slice(n - 1 - after, n - 1)), (axis,)))
    return ops.cat(parts, axis)


def _open_pad(call: Call, x: Any, begin: list[int], end: list[int], mode: str) -> Any:
    """Padding from within along axes of open sizes, which are to be large enough for it."""
    if mode != "reflect" or min((*begin, *end)) < 0:
        return run_time.pad(call, x, ms.Tensor(np.array(begin + end, np.int64)), None, None, mode)
    sizes = [
        n if before == after == 0 else n + before + after if is_number(n) else OPEN
        for n, before, after in zip(shape_of(x), begin, end)
    ]
    sizes = [n if is_number(n) else OPEN for n in sizes]
    pads = ms.Tensor(np.stack((begin, end), 1).astype(np.int32))
    return at_run_time("PadFusion", (x, pads), [(x.dtype, sizes)], padding_mode="REFLECT")


def _constant_pad(call: Call, x: Any, begin: list[int], end: list[int], fill: Any) -> Any:
    cut = [axis for axis in range(x.ndim) if min(begin[axis], end[axis]) < 0]
    if not all(is_number(shape_of(x)[axis]) for axis in cut):
        value = cast(ms.Tensor(fill), x.dtype)
        return run_time.pad(call, x, ms.Tensor(np.array(begin + end, np.int64)), value, None, "constant")
    for axis, (before, after) in enumerate(zip(begin, end)):
        if before < 0 or after < 0:
            call.fixed = True
            n = known_shape(call, x, (axis,))[axis]
            x = _part(x, axis, slice(max(-before, 0), n - max(-after, 0)))
    if max((*begin, *end), default=0) <= 0:
        return x
    both = [max(n, 0) for axis in reversed(range(x.ndim)) for n in (begin[axis], end[axis])]
    if x.dtype != ms.bool_:
        return ops.pad(x, both, "constant", fill)
    return cast(ops.pad(cast(x, ms.uint8), both, "constant", int(fill)), ms.bool_)


@operator("Expand", sizes=(1,))
def _expand(call, x, shape):
    """Both the sizes of x and those given may be 1 where the others are not."""
    if run_time.is_data(shape):
        return run_time.expand(call, x, shape)
    wanted, given = integers(call, shape, "shape"), list(shape_of(x))
    rank = max(len(wanted), len(given))
    wanted, given = [1] * (rank - len(wanted)) + wanted, [1] * (rank - len(given)) + given
    sizes = tuple(map(_broadcast_size, wanted, given))
    if x.ndim == rank and all(map(same_size, sizes, given)):
        return x
    return ops.broadcast_to(x, sizes)


def _broadcast_size(a: Any, b: Any) -> Any:
    """What two sizes become, one of which is 1 or both are the same; one that is open may be 1."""
    if is_number(a) and is_number(b):
        return b if a == 1 else a
    for size, other in ((a, b), (b, a)):
        if is_number(size):
            return other if size == 1 else size
    return a if same_size(a, b) else larger(a, b)


@operator("Tile", sizes=(1,))
def _tile(call, x, repeats):
    if run_time.is_data(repeats):
        return run_time.tile(call, x, repeats)
    counts = tuple(integers(call, repeats, "repeats"))
    if len(counts) != x.ndim:
        raise call.misfit(f"repeats {list(counts)} for {x.ndim} axes")
    return ops.tile(x, counts)


@operator("Trilu")
def _trilu(call, x, k=None):
    data = k is not None and run_time.is_data(k)
    diagonal = 0 if k is None or data else integers(call, k, "k")[0]
    if not all(map(is_number, shape_of(x)[-2:])):
        side = "triu" if call.get("upper", 1) else "tril"
        types = [(x.dtype, run_time.opened(x))]
        if data:
            return at_run_time(side.capitalize(), (x, ops.reshape(cast(k, ms.int64), ())), types)
        return custom(side, [x], types, diagonal=diagonal)
    rows, columns = known_shape(call, x, (x.ndim - 2, x.ndim - 1))[-2:]
    call.fixed = known(x) is None
    call.require_room(rows, columns)
    mask = np.tri(rows, columns, diagonal if not call.get("upper", 1) else diagonal - 1, dtype=bool)
    kept = ms.Tensor(mask if not call.attributes.get("upper", 1) else ~mask)
    if data:
        above = ms.Tensor(np.arange(columns)[None] - np.arange(rows)[:, None])
        compare = ops.greater_equal if call.get("upper", 1) else ops.less_equal
        kept = compare(above, cast(ops.reshape(k, ()), ms.int64))
    return ops.where(kept, x, cast(ms.Tensor(0), x.dtype))
