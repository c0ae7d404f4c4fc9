"""Layers around one function of matrices or of special mathematics, as older scripts use them."""

from __future__ import annotations

import math

from mycelia.engine import ops
from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float16, float32
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell


def _require(cell: Cell, name: str, x, dtypes=(float16, float32)) -> None:
    if not isinstance(x, Tensor):
        raise errors.type_error(cell.cls_name, f"{name} must be a Tensor, but got {type(x).__name__}")
    if x.dtype not in dtypes:
        wanted = " or ".join(map(str, dtypes))
        raise errors.type_error(cell.cls_name, f"{name} must be {wanted}, but got {x.dtype}")


class LGamma(Cell):
    """Logarithm of the gamma function, elementwise."""

    def construct(self, x):
        _require(self, "x", x)
        return ops.lgamma(x)


class DiGamma(Cell):
    """Derivative of the logarithm of the gamma function, elementwise."""

    def construct(self, x):
        _require(self, "x", x)
        return ops.digamma(x)


class IGamma(Cell):
    """Regularized lower incomplete gamma function of a and x, broadcast."""

    def construct(self, a, x):
        _require(self, "a", a)
        _require(self, "x", x, (a.dtype,))
        return ops.igamma(a, x)


class LBeta(Cell):
    """Logarithm of the beta function of x and y, broadcast."""

    def construct(self, x, y):
        _require(self, "x", x)
        _require(self, "y", y, (x.dtype,))
        large, small = ops.maximum(x, y), ops.minimum(x, y)
        # lgamma(large) - lgamma(large + small) by Stirling's series, where the difference would cancel.
        together = large + small
        series = _stirling(large) - _stirling(together)
        tail = (large - 0.5) * ops.log1p(small / large) + small * ops.log(together) - small
        difference = ops.lgamma(large) - ops.lgamma(together)
        return ops.lgamma(small) + ops.where(large > 8, series - tail, difference)


def _stirling(x):
    """What Stirling's formula leaves out of lgamma, for x of 8 and more."""
    inverse = 1.0 / ops.maximum(x, 1.0)
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))


class MatMul(Cell):
    """Matrix product of the last two axes, one factor or both transposed."""

    def __init__(self, transpose_x1=False, transpose_x2=False):
        super().__init__()
        for name, value in (("transpose_x1", transpose_x1), ("transpose_x2", transpose_x2)):
            if not isinstance(value, bool):
                raise errors.type_error("MatMul", f"{name} must be a bool, but got {value!r}")
        self.transpose_x1, self.transpose_x2 = transpose_x1, transpose_x2

    def construct(self, x1, x2):
        x1 = ops.swapaxes(x1, -1, -2) if self.transpose_x1 and x1.ndim > 1 else x1
        x2 = ops.swapaxes(x2, -1, -2) if self.transpose_x2 and x2.ndim > 1 else x2
        return ops.matmul(x1, x2)


class MatInverse(Cell):
    """Inverse of symmetric positive definite matrices [..., n, n]."""

    def construct(self, a):
        _require(self, "input_a", a)
        return ops.inverse(a)


class MatDet(Cell):
    """Determinant of symmetric positive definite matrices [..., n, n] -> [...]."""

    def construct(self, a):
        _require(self, "input_a", a)
        return ops.det(a)


class Moments(Cell):
    """Mean and variance over `axis`; sums are made in float32."""

    def __init__(self, axis=None, keep_dims=None):
        super().__init__()
        if isinstance(axis, (tuple, list)):
            for item in axis:
                self._check_axis(item)
        elif axis is not None:
            self._check_axis(axis)
        if keep_dims is not None and not isinstance(keep_dims, bool):
            raise errors.type_error("Moments", f"keep_dims must be a bool, but got {keep_dims!r}")
        self.axis = () if axis is None else axis
        self.keep_dims = bool(keep_dims)

    @staticmethod
    def _check_axis(item) -> None:
        if isinstance(item, bool) or not isinstance(item, int):
            raise errors.type_error("Moments", f"axis must be an int or a tuple of ints, but got {item!r}")

    def construct(self, x):
        _require(self, "input_x", x)
        wide = ops.cast(x, float32)
        axis = tuple(range(x.ndim)) if self.axis == () else self.axis
        mean = ops.mean(wide, axis, True)
        variance = ops.mean(ops.square(wide - mean), axis, True)
        if not self.keep_dims:
            mean, variance = (ops.squeeze(m, axis) for m in (mean, variance))
        return ops.cast(mean, x.dtype), ops.cast(variance, x.dtype)


class MatrixDiag(Cell):
    """Vectors [..., n] on the diagonals of matrices [..., n, n]."""

    def construct(self, x):
        return ops.matrix_diag(x)


class MatrixDiagPart(Cell):
    """The main diagonals of matrices [..., m, n] -> [..., min(m, n)]."""

    def construct(self, input_x):
        return ops.diagonal(input_x, 0, -2, -1)


class MatrixSetDiag(Cell):
    """Matrices [..., m, n] with the diagonals [..., min(m, n)] in place of their own."""

    def construct(self, input_x, diagonal):
        m, n = input_x.shape[-2:]
        rows, columns = ops.arange(0, m).reshape((m, 1)), ops.arange(0, n).reshape((1, n))
        least = min(m, n)
        if tuple(diagonal.shape) != (*input_x.shape[:-2], least):
            raise errors.shape_error(
                "MatrixSetDiag",
                f"diagonal must be {[*input_x.shape[:-2], least]} for {list(input_x.shape)}, "
                f"but its shape is {list(diagonal.shape)}",
            )
        spread = ops.pad(ops.expand_dims(diagonal, -1), (0, 0, 0, m - least))
        return ops.where(rows == columns, spread, input_x)


class Tril(Cell):
    """The lower triangle of matrices, up to the k-th diagonal; zeros elsewhere."""

    def construct(self, x, k=0):
        return ops.tril(x, k)


class Triu(Cell):
    """The upper triangle of matrices, from the k-th diagonal; zeros elsewhere."""

    def construct(self, x, k=0):
        return ops.triu(x, k)


class Norm(Cell):
    """Euclidean norm over `axis`."""

    def __init__(self, axis=(), keep_dims=False):
        super().__init__()
        if not isinstance(keep_dims, bool):
            raise errors.type_error("Norm", f"keep_dims must be a bool, but got {keep_dims!r}")
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x):
        axis = tuple(range(x.ndim)) if self.axis == () else self.axis
        found = ops.sqrt(ops.sum(ops.square(x), axis, True))
        return found if self.keep_dims else ops.squeeze(found, axis)

    def extend_repr(self) -> str:
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


class Range(Cell):
    """The numbers from `start` to `limit` in steps of `delta`, as a constant: int32 or float32."""

    def __init__(self, start, limit=None, delta=1):
        super().__init__()
        import numpy as np

        if delta == 0:
            raise errors.value_error("Range", "delta must not be 0")
        start, limit = (0, start) if limit is None else (start, limit)
        values = np.arange(start, limit, delta)
        wanted = np.int32 if values.dtype.kind in "iu" else np.float32
        self.result_tensor = Tensor(values.astype(wanted))

    def construct(self):
        return self.result_tensor


class Roll(Cell):
    """Elements moved around along axes: `shift` places along each `axis`."""

    def __init__(self, shift, axis):
        super().__init__()
        for name, value in (("shift", shift), ("axis", axis)):
            if isinstance(value, bool) or not isinstance(value, (int, tuple, list)):
                raise errors.type_error("Roll", f"{name} must be an int or a tuple, but got {value!r}")
        self.shift = list(shift) if isinstance(shift, (tuple, list)) else [shift]
        self.axis = list(axis) if isinstance(axis, (tuple, list)) else [axis]
        if len(self.shift) != len(self.axis):
            raise errors.value_error(
                "Roll", f"shift and axis must be of one length, but got {self.shift} and {self.axis}"
            )

    def construct(self, input_x):
        for axis in self.axis:
            if not -input_x.ndim <= axis < input_x.ndim:
                raise errors.value_error("Roll", f"axis {axis} is out of range for rank {input_x.ndim}")
        return ops.roll(input_x, tuple(self.shift), tuple(self.axis))


class L1Regularizer(Cell):
    """``scale * sum(|weights|)``."""

    def __init__(self, scale):
        super().__init__()
        if isinstance(scale, bool) or not isinstance(scale, (int, float)):
            raise errors.type_error("L1Regularizer", f"scale must be a number, but got {scale!r}")
        if not 0 < scale < math.inf:
            raise errors.value_error("L1Regularizer", f"scale must be positive and finite, but got {scale}")
        self.scale = Tensor(scale, float32)

    def construct(self, weights):
        return self.scale * ops.sum(ops.abs(weights))


class SparseToDense(Cell):
    """A COOTensor as an ordinary Tensor."""

    def construct(self, coo_tensor):
        return coo_tensor.to_dense()


class SparseTensorDenseMatmul(Cell):
    """Product of a sparse matrix, given by `indices` [n, 2], `values` [n] and its shape, with a dense one.

    `adjoint_st`, `adjoint_dt`: the sparse or the dense factor is transposed (and conjugated).
    """

    def __init__(self, adjoint_st=False, adjoint_dt=False):
        super().__init__()
        for name, value in (("adjoint_st", adjoint_st), ("adjoint_dt", adjoint_dt)):
            if not isinstance(value, bool):
                raise errors.type_error(
                    "SparseTensorDenseMatmul", f"{name} must be a bool, but got {value!r}"
                )
        self.adjst, self.adjdt = adjoint_st, adjoint_dt

    def construct(self, indices, values, sparse_shape, dense):
        rows, columns = indices[:, 0], indices[:, 1]
        shape = tuple(int(n) for n in sparse_shape)
        if self.adjst:
            rows, columns, shape = columns, rows, shape[::-1]
        if self.adjdt:
            dense = ops.swapaxes(dense, 0, 1)
        picked = ops.gather(dense, columns, 0) * ops.expand_dims(values, -1).astype(dense.dtype)
        return ops.unsorted_segment_sum(picked, rows, shape[0])


class TimeDistributed(Cell):
    """A layer used for each step along `time_axis`.

    `reshape_with_axis`: fold time and this axis into one and call the layer once.
    """

    def __init__(self, layer, time_axis, reshape_with_axis=None):
        super().__init__()
        if not callable(layer):
            raise errors.type_error(
                "TimeDistributed", f"layer must be a Cell or Primitive, but got {type(layer).__name__}"
            )
        for name, value in (("time_axis", time_axis), ("reshape_with_axis", reshape_with_axis)):
            optional = value is None and name == "reshape_with_axis"
            if not optional and (isinstance(value, bool) or not isinstance(value, int)):
                raise errors.type_error("TimeDistributed", f"{name} must be an int, but got {value!r}")
        self.layer, self.time_axis, self.reshape_with_axis = layer, time_axis, reshape_with_axis

    def construct(self, inputs):
        if not isinstance(inputs, Tensor):
            raise errors.type_error(
                "TimeDistributed", f"inputs must be a Tensor, but got {type(inputs).__name__}"
            )
        if inputs.ndim < 3:
            raise errors.value_error(
                "TimeDistributed", f"inputs must have a rank of at least 3, but have {inputs.ndim}"
            )
        time = self.time_axis % inputs.ndim
        if self.reshape_with_axis is None:
            steps = ops.unbind(inputs, time)
            return ops.stack(tuple(self.layer(step) for step in steps), time)
        return self._at_once(inputs, time, self.reshape_with_axis % inputs.ndim)

    def _at_once(self, inputs, time: int, other: int):
        rank = inputs.ndim
        # Time moves beside the other axis; then the two are one.
        beside = rank - 2 if other == rank - 1 else other + 1 if time > other else other - 1
        order = [axis for axis in range(rank) if axis != time]
        order.insert(beside, time)
        moved = ops.transpose(inputs, tuple(order))
        first = min(beside, other)
        shape = moved.shape
        outputs = self.layer(moved.reshape((*shape[:first], -1, *shape[first + 2 :])))
        back = (*outputs.shape[:first], *shape[first : first + 2], *outputs.shape[first + 1 :])
        return outputs.reshape((-1, *back[1:]))


class Unfold(Cell):
    """Patches of images: `ksizes`, `strides` and `rates` are ``[1, rows, columns, 1]``.

    Shapes: [N, C, H, W] -> [N, rows * columns * C, places down, places across].
    """

    def __init__(self, ksizes, strides, rates, padding="valid"):
        super().__init__()
        for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if not isinstance(value, (tuple, list)):
                raise errors.type_error("Unfold", f"{name} must be a tuple or list, but got {value!r}")
            sizes = value[1:3] if len(value) == 4 and value[0] == value[3] == 1 else ()
            if not sizes or not all(isinstance(s, int) and s > 0 for s in sizes):
                raise errors.value_error("Unfold", f"{name} must be [1, rows, columns, 1], but got {value}")
        if not isinstance(padding, str) or padding.lower() not in ("same", "valid"):
            raise errors.one_of(padding, ["same", "valid"], subject="Unfold", what="padding")
        self.ksizes, self.strides, self.rates = tuple(ksizes[1:3]), tuple(strides[1:3]), tuple(rates[1:3])
        self.padding = padding.lower()

    def construct(self, input_x):
        n, channels, *size = input_x.shape
        spans = [(k - 1) * r + 1 for k, r in zip(self.ksizes, self.rates)]
        if self.padding == "same":
            pads: list[int] = []
            for length, span, stride in zip(size, spans, self.strides):
                missing = max(0, (-(-length // stride) - 1) * stride + span - length)
                pads = [missing // 2, missing - missing // 2, *pads]
            input_x = ops.pad(input_x, tuple(pads))
            size = input_x.shape[2:]
        down, across = ((s - k) // t + 1 for s, k, t in zip(size, spans, self.strides))
        patches = []
        for i in range(self.ksizes[0]):
            for j in range(self.ksizes[1]):
                top, left = i * self.rates[0], j * self.rates[1]
                bottom = top + (down - 1) * self.strides[0] + 1
                right = left + (across - 1) * self.strides[1] + 1
                patches.append(input_x[:, :, top : bottom : self.strides[0], left : right : self.strides[1]])
        return ops.cat(patches, 1).reshape((n, len(patches) * channels, down, across))
