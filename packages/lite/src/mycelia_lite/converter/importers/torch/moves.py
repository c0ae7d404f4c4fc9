"""ATen ops that move, join, pick or make elements."""

from __future__ import annotations

import sys

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.torch.calls import as_tensor, aten, cast, dtype_of, same_sizes, shape_of


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
    size = _known(call, x, dim)
    if not all(type(n) is int for n in (start, end, step)):
        raise call.fail("start, end or step follows from an open size")
    start, end = (max(0, min(n + size if n < 0 else n, size)) for n in (start, end))
    return x[(slice(None),) * dim + (slice(start, max(start, end), step),)]


@aten("select.int")
def _select(call, x, dim, index):
    dim %= len(shape_of(x))
    return x[(slice(None),) * dim + (index,)]


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


@aten("index.Tensor")
def _index(call, x, indices):
    places = [i for i, index in enumerate(indices) if index is not None]
    if len(places) != 1 or indices[places[0]].dtype == ms.bool_:
        raise call.fail("it picks by several indices or by a mask, which is not imported")
    axis, index = places[0], indices[places[0]]
    size = _known(call, x, axis)
    index = ops.where(ops.less(index, ms.Tensor(0, index.dtype)), index + size, index)
    return ops.gather(x, index, axis)


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
