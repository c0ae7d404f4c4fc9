"""Making tensors, their shapes, joining and cutting them."""

import math

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays import rearrange
from mycelia.engine.ops.arrays.shape import as_ints, constant
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitives.checks import (
    anything,
    boolean,
    choice,
    dtype,
    integer,
    integer_tuple,
    integers,
    natural,
    number,
    optional,
    positive,
    real,
    within,
)  # fmt: skip
from mycelia.ops.primitives.define import primitive, table

# ---- making ----------------------------------------------------------------------------------------------

table(ops, {"Eye": "eye", "Fills": "fills", "OnesLike": "ones_like", "ZerosLike": "zeros_like"})


@primitive
def Zeros(size, dtype=None):
    """Zeros, float32 unless `dtype` says otherwise."""
    return ops.zeros(size, dtype)


@primitive
def Ones(shape, dtype=None):
    """Ones, float32 unless `dtype` says otherwise."""
    return ops.ones(shape, dtype)


@primitive
def Fill(dtype, dims, x):
    """A tensor of the shape `dims` with `x` everywhere."""
    return ops.full(dims, x, dtype=dtype)


@primitive
def FillV2(shape, value):
    """The tensor `value` of one element in every place of a tensor of this shape."""
    return ops.broadcast_to(value.reshape(()), as_ints(shape, "shape"))


@primitive
def Range(start, end, step, *, maxlen: positive = 1000000):
    """Numbers from `start` to `end`, not included, in steps of `step`."""
    return ops.range(start, end, step, maxlen)


@primitive
def LinSpace(start, stop, num):
    """`num` numbers at equal distances from `start` to `stop`."""
    return ops.linspace(start, stop, num)


@primitive
def Shift(x, fill_value, *, periods: integer = 1, axis: integer = -1):
    """`x` moved by `periods` places along `axis`, with `fill_value` where nothing comes from."""
    if not periods:
        return ops.identity(x)
    size = x.shape[axis]
    kept = max(size - abs(periods), 0)
    edge = list(x.shape)
    edge[axis] = size - kept
    gap = ops.full(tuple(edge), fill_value, dtype=x.dtype)
    if not kept:
        return gap
    rest = ops.narrow(x, axis, 0 if periods > 0 else size - kept, kept)
    return ops.concat((gap, rest) if periods > 0 else (rest, gap), axis)


@primitive
def LogSpace(start, end, *, steps: natural = 10, base: natural = 10, dtype: dtype = dtypes.float32):
    """`steps` powers of `base` with exponents at equal distances from `start` to `end`."""
    return ops.logspace(start, end, steps, base, dtype=dtype)


@primitive
def OneHot(indices, depth, on_value, off_value, *, axis: integer = -1):
    """`on_value` where the index along the new `axis` is that of the input, `off_value` elsewhere."""
    return ops.one_hot(indices, depth, on_value, off_value, axis)


@primitive
def TrilIndices(*, row: natural, col: natural, offset: integer = 0, dtype: dtype = dtypes.int32):
    """Rows and columns of the lower triangle of a matrix."""
    return ops.tril_indices(row, col, offset, dtype=dtype)


@primitive
def TriuIndices(*, row: natural, col: natural, offset: integer = 0, dtype: dtype = dtypes.int32):
    """Rows and columns of the upper triangle of a matrix."""
    return ops.triu_indices(row, col, offset, dtype=dtype)


@primitive(extra={"max_length": 1000000})
def Expand(x, shape):
    """`x` broadcast to a shape; -1 keeps a size."""
    return ops.expand(x, shape)


# ---- what a tensor is ------------------------------------------------------------------------------------

table(ops, {"Rank": "rank", "Size": "size", "Shape": "shape", "Diag": "diag", "Trace": "trace"})
table(ops, {"TransposeView": "transpose", "TransposeExtView": "swapaxes"}, extra={"side_effect_mem": True})


@primitive
def DType(x):
    """The dtype of a tensor."""
    return x.dtype


@primitive
def TensorShape(input_x):
    """The shape as a tensor of int64."""
    return ops.dyn_shape(input_x)


@primitive(extra={"is_dynamic_shape": True})
def DynamicShape(x, *, dtype: anything = 9):
    """The shape as a tensor of int64."""
    return ops.dyn_shape(x)


@primitive
def Cast(input_x, dtype):
    """`input_x`, a tensor or a number, in another dtype."""
    if not isinstance(dtype, dtypes.DType):
        try:
            dtype = dtypes.as_dtype(dtype)
        except (TypeError, ValueError):
            raise errors.type_error("Cast", f"the input 'dtype' must be a dtype, but got {dtype!r}") from None
    if isinstance(input_x, (bool, int, float)):
        return constant(input_x, dtype)
    return ops.cast(input_x, dtype)


@primitive
def Identity(input_x):
    """A tensor of the same values."""
    return ops.reshape(input_x, input_x.shape)


@primitive
def IdentityN(x):
    """A tensor of the same values for each of a tuple."""
    return tuple(ops.reshape(one, one.shape) for one in x)


@primitive
def Reshape(input, shape):
    """The same elements in another shape; -1 stands for what is left."""
    return ops.reshape(input, as_ints(shape) if isinstance(shape, Tensor) else shape)


@primitive
def Flatten(input_x):
    """A matrix: all axes but the first as one."""
    if input_x.ndim == 0:
        raise errors.value_error("Flatten", "the input must have at least one axis, but its rank is 0")
    return ops.reshape(input_x, (input_x.shape[0], math.prod(input_x.shape[1:])))


# ---- forms -----------------------------------------------------------------------------------------------


@primitive
def Squeeze(input, *, axis: integers = ()):
    """Without the axes of size 1, all or those that are named."""
    return ops.squeeze(input, axis or None)


@primitive
def BroadcastTo(input, *, shape: integer_tuple):
    """`input` repeated to a shape; -1 keeps a size."""
    return ops.broadcast_to(input, shape)


@primitive
def ReverseV2(input, *, axis: integer_tuple):
    """Order of elements reversed along the axes."""
    return ops.flip(input, axis) if axis else input


@primitive
def ReverseSequence(x, seq_lengths, *, seq_dim: integer, batch_dim: integer = 0):
    """Order of the first elements along `seq_dim` reversed, `seq_lengths` of each part of the batch."""
    return ops.reverse_sequence(x, seq_lengths, seq_dim, batch_dim)


@primitive
def Roll(input, *, shifts: integers, dims: optional(integers) = None):
    """Elements moved round along the axes."""
    return ops.roll(input, shifts, dims)


@primitive
def Tril(x, *, diagonal: integer = 0):
    """Lower triangle."""
    return ops.tril(x, diagonal)


@primitive
def Triu(input, *, diagonal: integer = 0):
    """Upper triangle."""
    return ops.triu(input, diagonal)


@primitive
def DiagPart(x):
    """The diagonal of a tensor of shape [a.., a..]: its shape is [a..]."""
    half = x.shape[: x.ndim // 2]
    n = int(ops.size(x) ** 0.5 + 0.5)
    return ops.diagonal(x.reshape((n, n))).reshape(half)


@primitive
def FillDiagonal(input_x, *, fill_value: number, wrap: boolean = False):
    """`fill_value` on the main diagonal; with `wrap` again below it in tall matrices."""
    return rearrange.fill_diagonal(input_x, fill_value, wrap)


@primitive
def MatrixBandPart(x, lower, upper):
    """What is at most `lower` below and `upper` above the diagonal; a negative number keeps all."""
    return ops.matrix_band_part(x, lower, upper)


_ALIGN = choice("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


@primitive
def MatrixDiagV3(x, k, num_rows, num_cols, padding_value, *, align: _ALIGN = "RIGHT_LEFT"):
    """Matrices with these diagonals."""
    return ops.matrix_diag(x, k, num_rows, num_cols, padding_value, align)


@primitive(extra={"max_length": 200000000})
def MatrixDiagPartV3(x, k, padding_value, *, align: _ALIGN = "RIGHT_LEFT"):
    """Diagonals of matrices."""
    return ops.matrix_diag_part(x, k, padding_value, align)


@primitive(extra={"max_length": 200000000})
def MatrixSetDiagV3(x, diagonal, k, *, align: _ALIGN = "RIGHT_LEFT"):
    """Matrices with their diagonals replaced."""
    return ops.matrix_set_diag(x, diagonal, k, align)


@primitive
def ConjugateTranspose(x, perm):
    """Axes in another order, and the conjugate of complex numbers."""
    turned = ops.transpose(x, as_ints(perm, "perm"))
    return ops.conj(turned) if turned.dtype.kind == "c" else turned


# ---- joining and cutting ---------------------------------------------------------------------------------


@primitive
def Concat(tensors, *, axis: integer = 0):
    """Tensors one after the other along `axis`."""
    return ops.concat(tensors, axis)


@primitive
def ParallelConcat(values):
    """Tensors of first size 1 one after the other."""
    return ops.concat(values, 0)


@primitive
def Stack(x, *, axis: integer = 0):
    """Tensors of one shape along a new axis."""
    return ops.stack(x, axis)


@primitive
def Unstack(x, *, axis: integer = 0, num: optional(positive) = None):
    """The parts along `axis`, without it."""
    return ops.unstack(x, axis)


@primitive
def Split(input_x, *, axis: integer = 0, output_num: within(integer, 1) = 1):
    """`output_num` equal parts along `axis`."""
    size = input_x.shape[axis]
    if size % output_num:
        raise errors.value_error(
            "Split", f"the size {size} of axis {axis} must be a multiple of output_num, which is {output_num}"
        )
    return ops.split(input_x, size // output_num, axis)


@primitive
def SplitV(input_x, *, size_splits: integer_tuple, split_dim: integer, num_split: positive):
    """Parts of the given sizes along `split_dim`; one of them may be -1."""
    sizes = list(size_splits)
    if -1 in sizes:
        sizes[sizes.index(-1)] = input_x.shape[split_dim] - sum(sizes) - 1
    return ops.split(input_x, sizes, split_dim)


@primitive
def Slice(input, begin, size):
    """The part from `begin` of the given size; -1 is all the rest."""
    return ops.slice(input, begin, size)


@primitive
def StridedSlice(
    input_x, begin, end, strides, *, begin_mask: natural = 0, end_mask: natural = 0,
    ellipsis_mask: natural = 0, new_axis_mask: natural = 0, shrink_axis_mask: natural = 0,
):  # fmt: skip
    """The part from `begin` to `end` in steps; bits of the masks change single entries."""
    return ops.strided_slice(
        input_x, begin, end, strides, begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    )


@primitive(shows={"indexing": lambda value: 1 if value == "xy" else 0})
def Meshgrid(inputs, *, indexing: choice("xy", "ij") = "xy"):
    """Grids of coordinates from vectors."""
    return ops.meshgrid(*inputs, indexing=indexing)


@primitive
def Pack(x, *, axis: integer = 0):
    """`Stack` under its older name."""
    return ops.stack(x, axis)


@primitive
def Unpack(x, *, axis: integer = 0):
    """`Unstack` under its older name."""
    return ops.unstack(x, axis)


# ---- windows ---------------------------------------------------------------------------------------------


def _length(window_length):
    return int(window_length.asnumpy().reshape(())) if isinstance(window_length, Tensor) else window_length


@primitive(extra={"max_length": 1000000})
def BartlettWindow(window_length, *, periodic: boolean = True, dtype: dtype = dtypes.float32):
    """A window that rises and falls in straight lines."""
    return ops.bartlett_window(_length(window_length), periodic, dtype=dtype)


@primitive(extra={"max_length": 1000000})
def BlackmanWindow(window_length, *, periodic: boolean = True, dtype: dtype = dtypes.float32):
    """A sum of three cosines."""
    return ops.blackman_window(_length(window_length), periodic, dtype=dtype)


@primitive
def HammingWindow(
    length, *, periodic: boolean = True, alpha: real = 0.54, beta: real = 0.46, dtype: dtype = dtypes.float32
):
    """A raised cosine: ``alpha - beta * cos``."""
    return ops.hamming_window(_length(length), periodic, alpha, beta, dtype=dtype)
