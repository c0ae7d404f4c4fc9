"""Primitives that MindSpore's own layers are written with, and that tests and older code call."""

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.shape import as_ints
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitives.checks import anything, boolean, integer
from mycelia.ops.primitives.define import primitive, table

table(ops, {"CopyWithSlice": "assign"})


@primitive
def ConvertToDynamic(x, *, is_dynamic_rank: boolean = False):
    """The input itself; where sizes may stay open, they stay open from here on."""
    return x


@primitive
def ClipByNorm(x, clip_norm, *, axis: anything = None):
    """`x` scaled down to the length `clip_norm` along `axis`, or as a whole, where it is longer."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    length = ops.sqrt(ops.sum(ops.square(x), axes, True))
    return x * clip_norm / ops.maximum(length, clip_norm)


@primitive
def SameTypeShape(x, y):
    """`x`, if `y` has the same dtype and shape. Errors: TypeError, ValueError."""
    if x.dtype is not y.dtype:
        raise errors.type_error("SameTypeShape", f"x and y must have one dtype, got {x.dtype} and {y.dtype}")
    if tuple(x.shape) != tuple(y.shape):
        raise errors.value_error("SameTypeShape", f"x and y must have one shape, got {x.shape} and {y.shape}")
    return x


@primitive
def IsInstance(inst, type_):
    """Whether `inst`, a value or tensor, is of a type or of one of several."""
    kinds = type_ if isinstance(type_, (tuple, list)) else (type_,)
    dtype = inst.dtype if isinstance(inst, Tensor) else None
    return any(isinstance(inst, k) if isinstance(k, type) else dtype is k for k in kinds)


@primitive
def IsSubClass(sub_type, type_):
    """Whether one type is another, or one of several."""
    kinds = type_ if isinstance(type_, (tuple, list)) else (type_,)
    return any(
        issubclass(sub_type, k) if isinstance(k, type) and isinstance(sub_type, type) else sub_type == k
        for k in kinds
    )


@primitive
def TensorCopySlices(x, value, begin, end, strides):
    """`x` with `value` in the place of the slice from `begin` to `end`."""
    places = tuple(slice(b, e, s) for b, e, s in zip(begin, end, strides))
    result = ops.identity(x)
    result[places] = value
    return result


@primitive
def MatrixDiag(x, assist):
    """Matrices with `x` on their diagonals."""
    return assist * ops.expand_dims(x, -1 if assist.shape[-2] == x.shape[-1] else -2)


@primitive
def MatrixDiagPart(x, assist):
    """The diagonals of matrices."""
    rows, columns = x.shape[-2:]
    return ops.sum(x * assist, -1 if rows <= columns else -2)


@primitive
def MatrixSetDiag(x, diagonal, assist):
    """Matrices with `diagonal` on their diagonals."""
    placed = ops.expand_dims(diagonal, -1 if x.shape[-2] == diagonal.shape[-1] else -2)
    return x * (1 - assist) + placed * assist


@primitive
def Load(parameter, u=None):
    """The value of a Parameter now, whatever is assigned to it later."""
    return ops.identity(parameter)


@primitive
def FlattenGrad(x, shape):
    """Gradient of `Flatten`: the elements in the shape they had."""
    return ops.reshape(x, as_ints(shape))


@primitive
def ConcatOffset(input_x, *, N: integer = 2, axis: integer = 0):
    """Where each of some tensors begins after they are joined along `axis`: a row of starts for each."""
    starts, place = [], 0
    for x in input_x:
        starts.append([place if i == axis % x.ndim else 0 for i in range(x.ndim)])
        place += x.shape[axis]
    return Tensor(starts, dtypes.int64)


@primitive
def ConcatOffsetV1(axis, x):
    """Where tensors of the sizes `x` begin after they are joined along `axis`: int32 [rank] for each."""
    sizes, axis = np.stack([one.asnumpy() for one in x]), int(axis)
    others = np.delete(sizes, axis, 1)
    if (others != others[0]).any():
        raise errors.runtime_error(
            "ConcatOffsetV1", f"sizes must differ along axis {axis} only, but are {sizes}"
        )
    starts = np.zeros_like(sizes)
    starts[1:, axis] = np.cumsum(sizes[:-1, axis])
    return tuple(Tensor(start, dtypes.int32) for start in starts)


# ---- sequences -------------------------------------------------------------------------------------------


@primitive
def TupleToTensor(input_x, dtype=None):
    """A tuple of numbers as a tensor."""
    return Tensor(list(input_x), dtype)


@primitive
def ListToTensor(input_x, dtype=None):
    """A list of numbers as a tensor."""
    return Tensor(list(input_x), dtype)


@primitive
def TensorToList(input_x):
    """The elements of a vector as a list of numbers."""
    return list(input_x.tolist())


@primitive
def SequenceAddN(input_x):
    """The sum of the tensors of a sequence."""
    return ops.addn(list(input_x))


@primitive
def SequenceConcat(x, *, axis: anything = 0):
    """The tensors of a sequence one after the other along `axis`."""
    return ops.concat(list(x), axis)


@primitive
def SequenceStack(x, *, axis: anything = 0):
    """The tensors of a sequence along a new axis."""
    return ops.stack(list(x), axis)


@primitive
def SequenceUnstack(x, *, axis: anything = 0):
    """The slices of a tensor along `axis`, as a tuple."""
    return ops.unstack(x, axis)


@primitive
def SequenceMul(sequence, scalar):
    """A sequence so many times over."""
    return sequence * scalar


@primitive
def SequenceAdd(sequence_0, sequence_1):
    """One sequence after another."""
    return sequence_0 + sequence_1


@primitive
def SequenceCount(sequence, target):
    """How often `target` is in a sequence."""
    return sum(bool(_same(value, target)) for value in sequence)


@primitive
def SequenceIndex(sequence, target, start=0, end=None):
    """The first place of `target` in a sequence. Errors: ValueError if it is not there."""
    stop = len(sequence) if end is None else end
    for index in range(len(sequence))[start:stop]:
        if _same(sequence[index], target):
            return index
    raise errors.value_error("SequenceIndex", f"{target} is not in the sequence")


@primitive
def InSequence(target, sequence):
    """Whether `target` is in a sequence."""
    return any(bool(_same(value, target)) for value in sequence)


@primitive
def SequenceSlice(sequence, start, stop, step):
    """A part of a sequence."""
    return sequence[start:stop:step]


@primitive
def SequenceMax(sequence):
    """The largest of a sequence."""
    return max(sequence)


@primitive
def SequenceMin(sequence):
    """The smallest of a sequence."""
    return min(sequence)


@primitive
def SequenceZerosLike(sequence):
    """A sequence of the same length, of zeros."""
    return type(sequence)(ops.zeros_like(v) if isinstance(v, Tensor) else type(v)(0) for v in sequence)


def _same(a, b):
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.shape == b.shape and bool((a == b).all())
    return a == b
