"""What a key of ``x[key]`` picks from a shape: a strided slice and index tensors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.sizes import is_open
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.ops.arrays.slicing import slice_axis

_Tensor = _C.Tensor


@dataclass(slots=True)
class _Selection:
    """A key read against a shape. The slice is given per axis of the source, `arrays` per axis of its
    result."""

    begin: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    shape: list[int] = field(
        default_factory=list
    )  # of the sliced tensor: without dropped axes, with new ones
    origin: list[int | None] = field(
        default_factory=list
    )  # source axis of each of its axes; None = a new one
    arrays: list[_Array] = field(default_factory=list)
    in_front: bool = False  # the indexed axes are not neighbours in the key: they come first in the result


@dataclass(slots=True)
class _Array:
    """One index tensor: `index` picks along `count` axes (merged into one if a mask names several) from
    `axis` on."""

    axis: int
    count: int
    index: _Tensor
    mask: _Tensor | None = None


def _is_plain(x):
    """Whether neither a gradient nor a graph follows this tensor."""
    return x._node is None and x.traced is None


def _first_axis(shape, key):
    """(begin, size, stride) for a key that is one int or one slice; None for all others."""
    kind = type(key)
    if (kind is int or kind is SymInt) and shape:
        n = shape[0]
        if not is_open(n) and not -n <= key < n:
            raise _out_of_bounds(key, 0, shape)
        rest = shape[1:]
        return (key + n if key < 0 else key, *(0,) * len(rest)), (1, *rest), (1,) * len(shape)
    if kind is slice and shape:
        begin, size, stride = _range(key, 0, shape)
        rest = shape[1:]
        return (begin, *(0,) * len(rest)), (size, *rest), (stride, *(1,) * len(rest))
    return None


_plans: dict[tuple, tuple] = {}  # basic tuple keys by shape: reading one takes longer than running it
_MAX_PLANS = 4096


def _remembered(shape, key):
    """(begin, size, stride, shape of the result) of a tuple of ints, slices, None and Ellipsis; None for all
    others."""
    if SymInt in map(type, shape):
        return None
    parts = []
    for k in key:
        kind = type(k)
        if kind is slice:
            limits = (k.start, k.stop, k.step)
            for limit in limits:
                if limit is not None and type(limit) is not int:
                    return None
            parts.append(limits)
        elif kind is int or k is None or k is Ellipsis:
            parts.append(k)
        else:
            return None
    parts = (shape, tuple(parts))
    found = _plans.get(parts)
    if found is None:
        s = _read(shape, key)
        found = tuple(s.begin), tuple(s.size), tuple(s.stride), tuple(s.shape)
        if len(_plans) >= _MAX_PLANS:
            _plans.clear()
        _plans[parts] = found
    return found


def _read(shape: tuple[int, ...], key) -> _Selection:
    if type(key) is list and len({v.shape if isinstance(v, _Tensor) else () for v in key}) > 1:
        key = tuple(key)  # Tensors of several shapes, or with numbers, are no one array
    items = [_classify(k) for k in (key if type(key) is tuple else (key,))]
    used = sum(consumed for _, _, consumed in items)
    if used > len(shape):
        raise IndexError(
            f"too many indices: the tensor has {len(shape)} axes of shape {shape}, but {used} were indexed"
        )
    dots = [i for i, (what, _, _) in enumerate(items) if what == "ellipsis"]
    if len(dots) > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    if not dots:
        items.append(("ellipsis", None, 0))
    result = _Selection()
    has_arrays = any(what in ("array", "mask", "flag") for what, _, _ in items)
    indexed = []  # for each item in order: does it take part in advanced indexing?
    axis = 0
    for what, k, consumed in items:
        if what == "ellipsis":
            # One that the key does not name stands behind everything and separates nothing.
            for _ in range(len(shape) - used):
                _keep(result, axis, 0, shape[axis], 1)
                axis += 1
            if dots:
                indexed.append(False)
            continue
        if what == "new":
            result.shape.append(1)
            result.origin.append(None)
        elif what == "int":
            n = shape[axis]
            if not is_open(n) and not -n <= k < n:
                raise _out_of_bounds(k, axis, shape)
            result.begin.append(k + n if k < 0 else k)
            result.size.append(1)
            result.stride.append(1)
        elif what == "slice":
            _keep(result, axis, *_range(k, axis, shape))
        elif what == "flag":  # True or False: a new axis, of which the flag picks its only element or nothing
            result.arrays.append(_Array(len(result.shape), 1, constant(np.zeros(int(k), np.int64))))
            result.shape.append(1)
            result.origin.append(None)
        else:
            if what == "mask" and tuple(k.shape) != shape[axis : axis + consumed]:
                raise IndexError(
                    f"a mask of shape {k.shape} does not match the axes {axis} to {axis + consumed - 1} "
                    f"of a tensor of shape {shape}"
                )
            mask = k if what == "mask" else None
            result.arrays.append(_Array(len(result.shape), consumed, k, mask))
            for i in range(axis, axis + consumed):
                _keep(result, i, 0, shape[i], 1)
        indexed.append(what in ("array", "mask", "flag", "int") if has_arrays else False)
        axis += consumed
    if has_arrays:
        first, last = indexed.index(True), len(indexed) - indexed[::-1].index(True)
        result.in_front = not all(indexed[first:last])
    return result


def _keep(result, axis, begin, size, stride):
    result.begin.append(begin)
    result.size.append(size)
    result.stride.append(stride)
    result.shape.append(size)
    result.origin.append(axis)


class SliceLimit(errors.MyceliaIndexError, TypeError):
    """A limit of a slice is no integer: a TypeError in Python and in graphs, a RuntimeError in MindSpore."""


def _classify(k):
    """(what it is, the value to use, number of axes that it consumes)."""
    kind = type(k)
    if kind is int or kind is SymInt:
        return "int", k, 1
    if kind is slice:
        return "slice", k, 1
    if k is None:
        return "new", None, 0
    if k is Ellipsis:
        return "ellipsis", None, 0
    if isinstance(k, (bool, np.bool_)):
        return "flag", bool(k), 0
    if isinstance(k, _Tensor):
        if k.dtype.is_bool:
            return ("flag", bool(k), 0) if k.ndim == 0 else ("mask", k, k.ndim)
        if k.dtype.is_integer:
            return "array", k, 1
        raise IndexError(f"a tensor index must be of integer or bool type, but got {k.dtype}")
    if isinstance(k, (list, range, np.ndarray)):
        return _classify_array(k)
    if hasattr(k, "__index__"):
        return "int", k if is_open(k) else k.__index__(), 1
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None, bool, tensors, lists and arrays of integers "
        f"or bools can be an index, but got {k!r} of type {kind.__name__}"
    )


def _classify_array(k):
    if isinstance(k, list):
        k = [v.asnumpy() if isinstance(v, _Tensor) else v for v in k]
    try:
        array = np.asarray(k)
    except ValueError:
        raise IndexError(f"a list index must be regular, but got {k!r}") from None
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)  # NumPy makes [] floating
    if array.dtype.kind == "b":
        return ("flag", bool(array), 0) if array.ndim == 0 else ("mask", constant(array), array.ndim)
    if array.dtype.kind not in "iu":
        raise IndexError(f"an index array must hold integers or bools, but got {array.dtype} from {k!r}")
    if array.ndim == 0:
        return "int", int(array), 1
    return "array", constant(array, dtypes.int64), 1


def _range(k: slice, axis: int, shape: tuple[int, ...]):
    n = shape[axis]
    if n < 0:
        if k == slice(None):
            return 0, n, 1
        raise IndexError(f"axis {axis} has a size that is known only at run time: it cannot be sliced by {k}")
    try:
        return slice_axis(k.start, k.stop, k.step, n)
    except ValueError:
        raise ValueError(f"the step of slice {k} on axis {axis} cannot be 0") from None
    except TypeError:
        text = f"the limits of a slice must be integers or None, but got {k} on axis {axis}"
        raise errors.error(SliceLimit, "Tensor index", text) from None


def _out_of_bounds(index: int, axis: int, shape: tuple[int, ...]) -> IndexError:
    return IndexError(
        f"index {index} is out of bounds for axis {axis} with size {shape[axis]} of a tensor of shape {shape}"
    )
