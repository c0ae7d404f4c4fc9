"""ATen ops that move, join, pick or make elements."""

from __future__ import annotations

import math
import sys

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.torch.calls import as_tensor, aten, cast, dtype_of, same_sizes, shape_of
from mycelia_lite.converter.importers.torch.shared import as_onnx


@aten("sym_size.int")
def _sym_size(call, x, dim):
    return shape_of(x)[dim]


@aten("view", "reshape", "_unsafe_view")
def _view(call, x, shape):
    return ops.reshape(x, tuple(shape))


@aten("permute")
def _permute(call, x, dims):
    rank = len(shape_of(x))
    return ops.transpose(x, tuple(d % rank for d in dims))


@aten("transpose.int")
def _transpose(call, x, a, b):
    order = list(range(len(shape_of(x))))
    order[a], order[b] = order[b], order[a]
    return ops.transpose(x, tuple(order))


@aten("expand")
def _expand(call, x, size, implicit=False):
    given = shape_of(x)
    given = (1,) * (len(size) - len(given)) + given
    wanted = tuple(g if type(n) is int and n == -1 else n for n, g in zip(size, given))
    return x if same_sizes(wanted, shape_of(x)) else ops.broadcast_to(x, wanted)


@aten("squeeze.dims", "squeeze.dim", "squeeze")
def _squeeze(call, x, dims=None):
    shape = shape_of(x)
    rank = len(shape)
    named = range(rank) if dims is None else [d % rank for d in (dims if isinstance(dims, list) else [dims])]
    gone = {d for d in named if type(shape[d]) is int and shape[d] == 1}
    return ops.squeeze(x, tuple(sorted(gone))) if gone else x


@aten("unsqueeze")
def _unsqueeze(call, x, dim):
    return ops.expand_dims(x, dim)


@aten("cat")
def _cat(call, tensors, dim=0):
    kept = [
        t for t in tensors if not same_sizes(shape_of(t), (0,))
    ]  # torch lets empty vectors stand among others
    return (
        ops.concat([cast(t, call.dtype) for t in kept], dim) if len(kept) > 1 else cast(kept[0], call.dtype)
    )


@aten("stack")
def _stack(call, tensors, dim=0):
    return ops.stack([cast(t, call.dtype) for t in tensors], dim)


def _known(call, x, dim):
    size = shape_of(x)[dim]
    if type(size) is not int:
        raise call.fail(f"size {dim} of its input is open, but must be known")
    return size


@aten("slice.Tensor")
def _slice(call, x, dim=0, start=None, end=None, step=1):
    rank = len(shape_of(x))
    dim %= rank
    start, end = 0 if start is None else start, sys.maxsize if end is None else end
    if start == 0 and end == sys.maxsize and step == 1:
        return x
    if not all(type(n) is int for n in (start, end, step)):
        raise call.fail("start, end or step follows from an open size")
    size = shape_of(x)[dim]
    if type(size) is not int:
        numbers = [ms.Tensor(np.asarray([n], np.int64)) for n in (start, end, dim, step)]
        return as_onnx(call, "Slice", [x, *numbers])
    start, end = (max(0, min(n + size if n < 0 else n, size)) for n in (start, end))
    return x[(slice(None),) * dim + (slice(start, max(start, end), step),)]


@aten("select.int")
def _select(call, x, dim, index):
    dim %= len(shape_of(x))
    if type(shape_of(x)[dim]) is not int:
        return as_onnx(call, "Gather", [x, ms.Tensor(np.int64(index))], axis=dim)
    return x[(slice(None),) * dim + (index,)]


@aten("slice_scatter")
def _slice_scatter(call, x, src, dim=0, start=None, end=None, step=1):
    """x with `src` in the place of a slice."""
    dim %= len(shape_of(x))
    size = _known(call, x, dim)
    start, end = 0 if start is None else start, sys.maxsize if end is None else end
    if not all(type(n) is int for n in (start, end)):
        raise call.fail("start or end follows from an open size")
    call.need("step", step, 1)
    start, end = (max(0, min(n + size if n < 0 else n, size)) for n in (start, end))
    return _replaced(call, x, src, dim, start, max(start, end), size)


@aten("select_scatter")
def _select_scatter(call, x, src, dim, index):
    dim %= len(shape_of(x))
    size = _known(call, x, dim)
    index %= size
    return _replaced(call, x, ops.expand_dims(src, dim), dim, index, index + 1, size)


def _replaced(call, x, part, dim, start, end, size):
    """x with the elements from start to end of an axis replaced."""
    if start == end:
        return x
    parts = [_slice(call, x, dim, 0, start), cast(part, x.dtype), _slice(call, x, dim, end, size)]
    kept = [p for p, n in zip(parts, (start, end - start, size - end)) if n]
    return ops.concat(kept, dim) if len(kept) > 1 else kept[0]


@aten("split_with_sizes")
def _split_with_sizes(call, x, sizes, dim=0):
    made, start = [], 0
    for size in sizes:
        made.append(_slice(call, x, dim, start, start + size))
        start += size
    return made


@aten("split.Tensor")
def _split(call, x, size, dim=0):
    total = _known(call, x, dim)
    return [_slice(call, x, dim, at, min(at + size, total)) for at in range(0, total, size)]


@aten("unbind.int")
def _unbind(call, x, dim=0):
    return [_select(call, x, dim, i) for i in range(_known(call, x, dim))]


@aten("repeat")
def _repeat(call, x, repeats):
    extra = len(repeats) - len(shape_of(x))
    return ops.tile(ops.reshape(x, (1,) * extra + shape_of(x)) if extra else x, tuple(repeats))


@aten("flip")
def _flip(call, x, dims):
    return ops.flip(x, tuple(d % len(shape_of(x)) for d in dims))


@aten("clone", "alias", "detach", "lift_fresh_copy", "contiguous")
def _same(call, x, memory_format=None):
    return x


@aten("_to_copy", "to.dtype")
def _to_copy(call, x, *_, **more):
    return cast(x, call.dtype)


@aten("copy")
def _copy(call, x, source, non_blocking=False):
    return _expand(call, cast(source, call.dtype), list(shape_of(x)))


@aten("constant_pad_nd")
def _pad(call, x, pad, value=0):
    return ops.pad(x, tuple(pad), "constant", value)


@aten("gather")
def _gather(call, x, dim, index, sparse_grad=False):
    return ops.gather_elements(x, dim, index)


@aten("index_select")
def _index_select(call, x, dim, index):
    return ops.gather(x, index, dim % len(shape_of(x)))


@aten("embedding")
def _embedding(call, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return ops.gather(weight, indices, 0)


class _Picked:
    """Which elements of x several indices name. Errors: ConversionError for masks."""

    def __init__(self, call, x, indices):
        self.places = [i for i, index in enumerate(indices) if index is not None]
        if any(indices[place].dtype == ms.bool_ for place in self.places):
            raise call.fail("it picks by a mask, which is not imported")
        self.indices = []
        for axis in self.places:
            index, size = indices[axis], _known(call, x, axis)
            self.indices.append(ops.where(ops.less(index, ms.Tensor(0, index.dtype)), index + size, index))
        self.others = [axis for axis in range(len(shape_of(x))) if axis not in self.places]
        if len(self.places) == 1:
            self.shape = shape_of(self.indices[0])
        else:
            self.shape = _broadcast(call, [shape_of(index) for index in self.indices])
        # torch puts what was picked first where the axes are apart, else where they were
        together = self.places == list(range(self.places[0], self.places[-1] + 1))
        self.before = self.places[0] if together else 0

    @property
    def rows(self):
        return ops.stack([ops.broadcast_to(cast(i, ms.int64), self.shape) for i in self.indices], -1)

    def order(self):
        """Axes of the result in the order: what was picked, then the others."""
        rank = len(self.shape)
        axes = list(range(rank + len(self.others)))
        at = self.before
        return axes[at : at + rank] + axes[:at] + axes[at + rank :]


def _inverse(order):
    return tuple(int(n) for n in np.argsort(order))


@aten("index.Tensor")
def _index(call, x, indices):
    picked = _Picked(call, x, indices)
    if len(picked.places) == 1:
        return ops.gather(x, picked.indices[0], picked.places[0])
    y = ops.gather_nd(ops.transpose(x, (*picked.places, *picked.others)), picked.rows)
    return ops.transpose(y, _inverse(picked.order()))


@aten("index_put")
def _index_put(call, x, indices, values, accumulate=False):
    picked = _Picked(call, x, indices)
    first = (*picked.places, *picked.others)
    sizes = [shape_of(x)[axis] for axis in picked.others]
    at = picked.before
    wanted = (*sizes[:at], *picked.shape, *sizes[at:])
    values = ops.transpose(ops.broadcast_to(cast(values, x.dtype), wanted), tuple(picked.order()))
    inputs = [ops.transpose(x, first), picked.rows, values]
    y = as_onnx(call, "ScatterND", inputs, reduction="add" if accumulate else "none")
    return ops.transpose(y, _inverse(first))


def _broadcast(call, shapes):
    """The shape that shapes of numbers have together."""
    if not all(type(n) is int for shape in shapes for n in shape):
        raise call.fail("the shape of one of several indices is open, but must be known")
    return np.broadcast_shapes(*shapes)


@aten("sort")
def _sort(call, x, dim=-1, descending=False):
    dim %= len(shape_of(x))
    values, places = ops.sort(x, dim, descending)
    return [values, cast(places, ms.int64)]


@aten("sym_numel")
def _sym_numel(call, x):
    return math.prod(shape_of(x))


@aten("full")
def _full(call, size, value, dtype=None, layout=None, device=None, pin_memory=None):
    return _filled(call, tuple(size), value)


@aten("full_like")
def _full_like(call, x, value, **more):
    return _filled(call, shape_of(x), value)


def _filled(call, shape, value):
    made = as_tensor(value, call.dtype)
    return ops.broadcast_to(made, shape) if shape else made


@aten("scalar_tensor")
def _scalar_tensor(call, value, **more):
    return as_tensor(value, call.dtype)


@aten("arange.start_step")
def _arange(call, start, end, step=1, **more):
    if not all(isinstance(n, int | float) for n in (start, end, step)):
        raise call.fail("start, end or step follows from an open size")
    return ms.Tensor(ms.numpy.arange(start, end, step).asnumpy()).astype(
        dtype_of(call, call.node.meta["val"].dtype)
    )


@aten("pixel_shuffle")
def _pixel_shuffle(call, x, upscale_factor):
    return ops.pixel_shuffle(x, upscale_factor)
