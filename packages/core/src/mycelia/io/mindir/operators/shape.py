"""Shapes, indexing, creation."""

from __future__ import annotations

from typing import Any

from mycelia.engine import ops
from mycelia.engine.base import dtypes
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.operators.arguments import as_dtype, axes_or_all, ints, number, one_axis, text
from mycelia.io.mindir.operators.table import operator, simple

# ---- shapes ------------------------------------------------------------------------------------


@operator
def Reshape(x, shape):
    return ops.reshape(x, ints(shape))


@operator
def Flatten(x):
    return ops.flatten(x)


@operator
def FlattenExt(x, start_dim=0, end_dim=-1):
    return ops.flatten(x, start_dim=start_dim, end_dim=end_dim)


@operator
def Transpose(x, dims):
    return ops.transpose(x, ints(dims))


@operator
def TExt(x):
    return ops.swapaxes(x, 0, 1) if x.ndim > 1 else x


@operator
def ExpandDims(x, axis):
    return ops.expand_dims(x, one_axis(axis))


@operator
def Squeeze(x, *, axis=()):
    return ops.squeeze(x, axes_or_all(axis))


@operator
def BroadcastTo(x, shape):
    return ops.broadcast_to(x, ints(shape))


@operator
def Tile(x, dims):
    return ops.tile(x, ints(dims))


@operator
def Concat(items, *, axis=0):
    return ops.concat(items, axis)


operator(Concat, "SequenceConcat")


@operator
def Stack(items, *, axis=0):
    return ops.stack(items, axis)


operator(lambda items, *, dim=0: ops.stack(items, dim), "StackExt")


@operator
def Unstack(x, *, axis=0):
    return ops.unstack(x, axis)


operator(Unstack, "Unpack")
operator(Stack, "Pack")


@operator
def Split(x, *, axis=0, output_num=1):
    axis = axis % x.ndim
    return ops.split(x, x.shape[axis] // output_num, axis)


@operator
def SplitTensor(x, split_size, dim=0):
    return ops.split(x, split_size, dim)


@operator
def SplitWithSize(x, split_size, dim=0):
    return ops.split(x, list(split_size), dim)


@operator
def SplitV(x, *, size_splits, split_dim, num_split=None):
    return ops.split(x, list(size_splits), split_dim)


@operator
def Chunk(x, chunks, dim=0):
    return ops.chunk(x, chunks, dim)


@operator
def ReverseV2(x, *, axis):
    return ops.flip(x, ints(axis))


@operator
def Roll(x, *, shifts, dims=None):
    return ops.roll(x, shifts, dims)


@operator
def RepeatInterleaveInt(x, repeats, dim=None, output_size=None):
    return ops.repeat_interleave(x, repeats, dim)


operator(RepeatInterleaveInt, "RepeatInterleaveTensor")


@operator
def Meshgrid(items, *, indexing="xy"):
    return ops.meshgrid(*items, indexing=text(indexing, ("ij", "xy")))


@operator
def Pad(x, *, paddings):
    return ops.pad(x, [n for pair in reversed(paddings) for n in pair])


@operator
def PadV3(x, paddings, value=None, *, mode="constant", paddings_contiguous=True):
    pads = ints(paddings)
    if not paddings_contiguous:
        pads = tuple(n for pair in zip(pads[: len(pads) // 2], pads[len(pads) // 2 :]) for n in pair)
    return _padded(x, pads, text(mode, ("constant", "reflect", "symmetric", "edge")), value)


def _padded(x: Tensor, pads: tuple[int, ...], mode: str, value: Any) -> Tensor:
    names = {"edge": "replicate", "wrap": "circular"}
    if mode == "constant":
        return ops.pad(x, pads, "constant", 0 if value is None else number(value))
    return ops.pad(x, pads, names.get(mode, mode))


@operator
def MirrorPad(x, paddings, *, mode="REFLECT"):
    pairs = paddings.asnumpy().tolist() if isinstance(paddings, Tensor) else paddings
    return ops.pad(x, [n for pair in reversed(pairs) for n in pair], mode.lower())


@operator
def ConstantPadND(x, padding, value=0.0):
    return ops.pad(x, ints(padding), "constant", value)


for _rank in (1, 2, 3):
    operator(lambda x, padding: ops.pad(x, ints(padding), "reflect"), f"ReflectionPad{_rank}D")
    operator(lambda x, padding: ops.pad(x, ints(padding), "replicate"), f"ReplicationPad{_rank}D")


@operator
def DepthToSpace(x, *, block_size):
    n, c, h, w = x.shape
    y = ops.reshape(x, (n, block_size, block_size, c // block_size**2, h, w))
    return ops.reshape(
        ops.transpose(y, (0, 3, 4, 1, 5, 2)), (n, c // block_size**2, h * block_size, w * block_size)
    )


@operator
def SpaceToDepth(x, *, block_size):
    n, c, h, w = x.shape
    y = ops.reshape(x, (n, c, h // block_size, block_size, w // block_size, block_size))
    return ops.reshape(
        ops.transpose(y, (0, 3, 5, 1, 2, 4)), (n, c * block_size**2, h // block_size, w // block_size)
    )


# ---- indexing ----------------------------------------------------------------------------------


@operator
def StridedSlice(
    x, begin, end, strides, *, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0
):
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return ops.strided_slice(x, ints(begin), ints(end), ints(strides), *masks)


@operator
def Slice(x, begin, size):
    return ops.slice(x, ints(begin), ints(size))


@operator
def SliceExt(x, dim, start, end, step):
    key = [slice(None)] * x.ndim
    key[dim] = slice(start, end, step)
    return x[tuple(key)]


@operator
def Narrow(x, dim, start, length):
    return ops.narrow(x, dim, start, length)


@operator
def Gather(x, indices, axis, *, batch_dims=0):
    return ops.gather(x, indices, one_axis(axis), batch_dims)


@operator
def EmbeddingLookup(x, indices, offset):
    return ops.gather(x, ops.sub(indices, offset), 0)


@operator
def Embedding(ids, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    return ops.embedding(ids, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)


@operator
def IndexSelect(x, dim, index):
    return ops.index_select(x, dim, index)


@operator
def Index(x, indices):
    return x[tuple(indices)]


@operator
def GatherD(x, dim, index):
    return ops.gather_d(x, one_axis(dim), index)


operator(GatherD, "GatherDExt")


@operator
def OneHot(ids, depth, on_value=1, off_value=0, *, axis=-1):
    return ops.one_hot(ids, depth, on_value, off_value, axis)


operator(OneHot, "OneHotExt")


@operator
def ScatterNd(indices, updates, shape):
    return ops.scatter_nd(indices, updates, ints(shape))


@operator
def TensorScatterUpdate(x, indices, updates):
    return ops.tensor_scatter_update(x, indices, updates)


for _name in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
    simple(**{f"TensorScatter{_name}": f"tensor_scatter_{_name.lower()}"})


@operator
def TensorScatterElements(x, indices, updates, *, axis=0, reduce=0):
    return ops.tensor_scatter_elements(
        x, indices, updates, axis, text(reduce, ("none", "add", "mul", "update"))
    )


@operator
def SearchSorted(sorted_sequence, values, sorter=None, *, dtype=35, right=False):
    narrow = as_dtype(dtype) == dtypes.int32
    return ops.searchsorted(sorted_sequence, values, out_int32=narrow, right=bool(right), sorter=sorter)


@operator
def Diag(x):
    return ops.diag(x)


@operator
def DiagExt(x, diagonal=0):
    return ops.diagflat(x, diagonal) if x.ndim == 1 else ops.diagonal(x, diagonal)


@operator
def NonZero(x):
    return ops.nonzero(x)


@operator
def NonZeroTuple(x):
    return ops.nonzero(x, as_tuple=True)


@operator
def TopK(x, k, *, sorted=True):
    return ops.topk(x, int(number(k)), sorted=sorted)


@operator
def TopkExt(x, k, dim=-1, largest=True, sorted=True):
    return ops.topk(x, int(number(k)), dim, largest, sorted)


@operator
def Sort(x, *, axis=-1, descending=False):
    return ops.sort(x, axis, descending)


@operator
def SortExt(x, dim=-1, descending=False, stable=False):
    return ops.sort(x, dim, descending)


@operator
def ArgSort(x, dim=-1, descending=False, stable=False):
    return ops.argsort(x, dim, descending)


@operator
def Unique(x):
    return ops.unique(x)


@operator
def UniqueConsecutive(x, *, return_inverse=False, return_counts=False, dim=None):
    return ops.unique_consecutive(x, True, True, dim)


# ---- creation ----------------------------------------------------------------------------------


@operator
def Zeros(size, dtype=None):
    return ops.zeros(ints(size), as_dtype(dtype) or dtypes.float32)


@operator
def Ones(size, dtype=None):
    return ops.ones(ints(size), as_dtype(dtype) or dtypes.float32)


@operator
def FillScalar(size, value, dtype=None):
    return ops.full(ints(size), number(value), dtype=as_dtype(dtype))


operator(FillScalar, "FillTensor")


@operator
def Fill(dtype, size, value):
    return ops.full(ints(size), number(value), dtype=as_dtype(dtype))


@operator
def FillV2(size, value):
    return ops.broadcast_to(value, ints(size))


@operator
def FullLike(x, value, dtype=None):
    return ops.full_like(x, value, dtype=as_dtype(dtype))


@operator
def ZerosLikeExt(x, dtype=None):
    return ops.zeros_like(x, dtype=as_dtype(dtype))


@operator
def OnesLikeExt(x, dtype=None):
    return ops.ones_like(x, dtype=as_dtype(dtype))


@operator
def Eye(n, m, dtype):
    return ops.eye(n, m, as_dtype(dtype))


@operator
def Range(start, end, step, *, maxlen=1000000):
    return ops.arange(number(start), number(end), number(step))


@operator
def Arange(start, end, step, dtype=None):
    return ops.arange(number(start), number(end), number(step), dtype=as_dtype(dtype))


@operator
def LinSpace(start, stop, num):
    return ops.linspace(number(start), number(stop), num)


operator(LinSpace, "LinSpaceExt")
