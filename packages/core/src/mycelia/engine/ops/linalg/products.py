"""Products of matrices and vectors: matmul, dense, batched and added forms, tensor contraction, einsum.

Three ops carry all of them: `mat_mul` (two matrices), `batch_matmul` (stacks of matrices) and `dense` (a
layer's product with its bias). Transposition is an attribute of the first two: no gradient copies a matrix.
Decompositions and solvers are in `decomposition`.
"""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.base.errors import shape_error
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.define import find, op
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import broadcast_shapes, unbroadcast
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.reductions import reduce as _reduce
from mycelia.engine.tensors.attach import attach


def _product(a, b):
    """``a @ b`` of arrays; half precision is summed up in float32, as kernels do."""
    if a.dtype == np.float16:
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    return np.matmul(a, b)


def _turned(array, transpose):
    return np.swapaxes(array, -1, -2) if transpose else array


def _product_dtype(x, y):
    if x.dtype.is_bool:
        raise errors.type_error(
            "bool tensors cannot be multiplied as matrices; cast them to a number type first"
        )
    if x.dtype is not y.dtype:
        raise errors.type_error(f"both inputs must have one dtype, but got {x.dtype.name} and {y.dtype.name}")
    return x.dtype


def _product_shape(x, y, transpose_a, transpose_b):
    """[m, n] of the product of the last two axes; ValueError when the inner sizes differ."""
    m, k = x.shape[-2:] if not transpose_a else x.shape[:-3:-1]
    k2, n = y.shape[-2:] if not transpose_b else y.shape[:-3:-1]
    if k != k2 and UNKNOWN not in (k, k2):
        turned = "".join(f", transpose_{c}=True" for c, t in (("a", transpose_a), ("b", transpose_b)) if t)
        raise shape_error(f"inner sizes differ: x is {list(x.shape)}, y is {list(y.shape)}{turned}")
    return m, n


# ------------------------------------------------------------------------------------------- two matrices


def _mat_mul_type(x, y, *, transpose_a, transpose_b):
    if len(x.shape) != 2 or len(y.shape) != 2:
        raise shape_error(f"both inputs must be matrices, but got shapes {list(x.shape)} and {list(y.shape)}")
    return TensorType(_product_dtype(x, y), _product_shape(x, y, transpose_a, transpose_b))


@op(infer=_mat_mul_type, promote=("x", "y"), mindir="MatMul", precision="short")
def mat_mul(x, y, *, transpose_a: "bool" = False, transpose_b: "bool" = False):
    """Product of two matrices, either of them transposed on the way: ``op(x) @ op(y)``.

    Shapes: x [m, k], or [k, m] with `transpose_a`; y [k, n], or [n, k] with `transpose_b` -> [m, n].
    dtypes: numbers, promoted.  Errors: MYC-SHAPE for other ranks or inner sizes; TypeError for bool.
    """
    return _product(_turned(x, transpose_a), _turned(y, transpose_b))


@mat_mul.vjp
def mat_mul(ct, x, y, needs, *, transpose_a, transpose_b):
    dx = dy = None
    if needs[0]:
        dx = mat_mul(y, ct, transpose_b, True) if transpose_a else mat_mul(ct, y, False, not transpose_b)
    if needs[1]:
        dy = mat_mul(ct, x, True, transpose_a) if transpose_b else mat_mul(x, ct, not transpose_a, False)
    return dx, dy


@mat_mul.samples
def mat_mul(rand):
    yield rand(2, 3), rand(3, 4)
    yield rand(3, 2), rand(3, 4), dict(transpose_a=True)
    yield rand(2, 3), rand(4, 3), dict(transpose_b=True)
    yield rand(3, 2), rand(4, 3), dict(transpose_a=True, transpose_b=True)
    yield rand(1, 1), rand(1, 1)
    yield rand(1, 5), rand(5, 3)
    yield rand(1, 5), rand(3, 5), dict(transpose_b=True)
    yield rand(3, 5), rand(5, 1)
    yield rand(5, 3), rand(5, 1), dict(transpose_a=True)
    yield rand(0, 3), rand(3, 2)
    yield rand(2, 0), rand(0, 3)
    yield rand(37, 41), rand(41, 29), dict(_grad=False)
    yield rand(41, 37), rand(29, 41), dict(transpose_a=True, transpose_b=True, _grad=False)
    yield rand(2, 3, dtype="float16"), rand(3, 2, dtype="float16"), dict(_grad=False)
    yield rand(2, 3), rand(3, 2, dtype="float64")
    yield rand.ints(-9, 9, (3, 4)), rand.ints(-9, 9, (4, 2)), dict(_grad=False)


@mat_mul.batch
def mat_mul(call):
    x, y = call.operands
    if call.batched[0] and not call.batched[1] and not call.attrs["transpose_a"]:
        rows = _batch.reshaped(x, (x.shape[0] * x.shape[1], x.shape[2]))
        return tuple(call.shaped(call.run([rows, y])))
    return (find("batch_matmul")(x, y, call.attrs["transpose_a"], call.attrs["transpose_b"]),)


@mat_mul.cost
def mat_mul(inputs, outputs, *, transpose_a, **_):
    return _cost.product(outputs, inputs[0].shape[-2 if transpose_a else -1])


# ------------------------------------------------------------------------------------- stacks of matrices


def _batch_matmul_type(x, y, *, transpose_a, transpose_b):
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise shape_error(
            f"both inputs must have at least 2 axes, but got shapes {list(x.shape)} and {list(y.shape)}"
        )
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return TensorType(_product_dtype(x, y), (*batch, *_product_shape(x, y, transpose_a, transpose_b)))


@op(infer=_batch_matmul_type, promote=("x", "y"), mindir="BatchMatMul", precision="short")
def batch_matmul(x, y, *, transpose_a: "bool" = False, transpose_b: "bool" = False):
    """Products of the matrices in the last two axes, either side transposed; the axes before them broadcast.

    Shapes: x [B.., m, k] (or [B.., k, m]), y [B.., k, n] (or [B.., n, k]) -> [B.., m, n].
    dtypes: numbers, promoted.  Errors: ValueError for inner sizes or batch axes that do not fit.
    """
    return _product(_turned(x, transpose_a), _turned(y, transpose_b))


@batch_matmul.vjp
def batch_matmul(ct, x, y, x_shape, y_shape, needs, *, transpose_a, transpose_b):
    dx = dy = None
    if needs[0]:
        dx = (
            batch_matmul(y, ct, transpose_b, True)
            if transpose_a
            else batch_matmul(ct, y, False, not transpose_b)
        )
        dx = unbroadcast(dx, x_shape)
    if needs[1]:
        dy = (
            batch_matmul(ct, x, True, transpose_a)
            if transpose_b
            else batch_matmul(x, ct, not transpose_a, False)
        )
        dy = unbroadcast(dy, y_shape)
    return dx, dy


@batch_matmul.samples
def batch_matmul(rand):
    yield rand(3, 2, 4), rand(3, 4, 5)
    yield rand(3, 4, 2), rand(3, 4, 5), dict(transpose_a=True)
    yield rand(3, 2, 4), rand(3, 5, 4), dict(transpose_b=True)
    yield rand(3, 4, 2), rand(3, 5, 4), dict(transpose_a=True, transpose_b=True)
    yield rand(2, 1, 2, 3), rand(4, 3, 2)
    yield rand(2, 3), rand(2, 3, 2)
    yield rand(2, 2, 3), rand(3, 2)
    yield rand(0, 2, 3), rand(3, 2)
    yield rand(2, 2, 0), rand(2, 0, 3)
    yield rand(5, 33, 17), rand(5, 17, 31), dict(_grad=False)
    yield rand(7, 3, 33, 8), rand(7, 1, 35, 8), dict(transpose_b=True, _grad=False)
    yield rand.ints(-9, 9, (2, 2, 3)), rand.ints(-9, 9, (2, 3, 2)), dict(_grad=False)


@batch_matmul.batch
def batch_matmul(call):
    return call.shaped(call.run(call.aligned(max(call.rank(0), call.rank(1)))))


@batch_matmul.cost
def batch_matmul(inputs, outputs, *, transpose_a, **_):
    return _cost.product(outputs, inputs[0].shape[-2 if transpose_a else -1])


def matmul(input, other):
    """Matrix product with NumPy's rules: rank 1 is a row (left) or a column (right), leading axes broadcast.

    Shapes: [B.., m, k] and [B.., k, n] -> [B.., m, n]; [k] and [k] -> [].  dtypes: numbers, promoted.
    Errors: ValueError for rank 0, different inner sizes, or leading axes that do not broadcast.
    """
    left, right = input.ndim, other.ndim
    if left == 2 and right == 2:
        return mat_mul(input, other)
    if left == 0 or right == 0:
        raise errors.value_error(
            f"For 'matmul', inputs must have at least 1 axis, but got ranks {left} and {right}"
        )
    if left == 1:
        product = matmul(_shape.expand_dims(input, 0), other if right > 1 else _shape.expand_dims(other, 1))
        return _shape.squeeze(product, (0, 1) if right == 1 else -2)
    if right == 1:
        return _shape.squeeze(matmul(input, _shape.expand_dims(other, 1)), -1)
    if right == 2 and input.shape[:-1].count(UNKNOWN) <= 1 and 0 not in input.shape:
        # One large product, and one for the gradient of `other`, instead of a sum over the stack.
        flat = mat_mul(_shape.reshape(input, (-1, input.shape[-1])), other)
        return _shape.reshape(flat, (*input.shape[:-1], other.shape[-1]))
    return batch_matmul(input, other)


# -------------------------------------------------------------------------------------------------- layers


def _dense_type(x, w, b):
    if len(x.shape) < 1 or len(w.shape) != 2:
        raise shape_error(
            f"x must have at least 1 axis and w exactly 2, but got {list(x.shape)} and {list(w.shape)}"
        )
    if x.shape[-1] != w.shape[1] and UNKNOWN not in (x.shape[-1], w.shape[1]):
        raise shape_error(
            f"x has {x.shape[-1]} input features, w has {w.shape[1]}: {list(x.shape)} and {list(w.shape)}"
        )
    if b is not None and b.shape != (w.shape[0],):
        raise shape_error(
            f"the bias must have shape [{w.shape[0]}], one entry per row of w, but has {list(b.shape)}"
        )
    return TensorType(_product_dtype(x, w), (*x.shape[:-1], w.shape[0]))


@op(name="dense", infer=_dense_type, promote=("x", "w", "b"), precision="short")
def dense_layer(x, w, b: "tensor?" = None):
    """Fully connected layer: ``x @ w.T + b``.

    Shapes: x [..., in], w [out, in], b [out] -> [..., out].  dtypes: numbers, promoted.
    Errors: ValueError if the feature counts differ.
    """
    y = _product(x, w.T)
    return y if b is None else y + b


@dense_layer.vjp
def dense_layer(ct, x, w, needs, x_shape):
    rows = len(x_shape) == 2
    flat_ct = ct if rows else _shape.reshape(ct, (_count(x_shape[:-1]), w.shape[0]))
    dx = dw = db = None
    if needs[0]:
        dx = mat_mul(flat_ct, w)
        dx = dx if rows else _shape.reshape(dx, x_shape)
    if needs[1]:
        dw = mat_mul(flat_ct, x if rows else _shape.reshape(x, (_count(x_shape[:-1]), x_shape[-1])), True)
    if needs[2]:
        db = _reduce.sum(flat_ct, 0)
    return dx, dw, db


@dense_layer.samples
def dense_layer(rand):
    yield rand(2, 3), rand(4, 3), rand(4)
    yield rand(2, 3), rand(4, 3)
    yield rand(3), rand(4, 3), rand(4)
    yield rand(2, 5, 3), rand(4, 3), rand(4)
    yield rand(1, 3), rand(1, 3), rand(1)
    yield rand(0, 3), rand(4, 3), rand(4)
    yield rand(2, 0), rand(4, 0), rand(4)
    yield rand(32, 84), rand(10, 84), rand(10), dict(_grad=False)
    yield rand(1, 67), rand(53, 67), rand(53), dict(_grad=False)
    yield rand(7, 67), rand(53, 67), rand(53), dict(_grad=False)
    yield rand(151, 19), rand(17, 19), dict(_grad=False)


@dense_layer.batch
def dense_layer(call):
    x, w, b = call.operands
    if call.only(0) and call.rank() > 0:
        return call.shaped(call.run([x, w, b]))
    rows = math.prod(call.in_types[0].shape[:-1])
    inner = call.in_types[0].shape[-1]
    x = _batch.reshaped(x, (call.size, rows, inner)) if call.batched[0] else _batch.reshaped(x, (rows, inner))
    y = find("batch_matmul")(x, w, False, True)
    if y.ndim == 2:
        y = _batch.broadcast_to(y, (call.size, *y.shape))
    if b is not None:
        y = y + (_batch.reshaped(b, (call.size, 1, b.shape[-1])) if call.batched[2] else b)
    return call.shaped((y,))


@dense_layer.cost
def dense_layer(inputs, outputs, **_):
    return _cost.product(outputs, inputs[0].shape[-1])


def _count(shape):
    """Product of sizes; -1 as soon as one is unknown."""
    return -1 if UNKNOWN in shape else math.prod(shape)


def dense(input, weight, bias=None):
    """Fully connected layer: ``input @ weight.T + bias``.

    Shapes: input [..., in], weight [out, in], bias [out] -> [..., out]; weight [in], bias [] -> [...].
    dtypes: numbers, promoted.  Errors: ValueError if the feature counts differ.
    """
    if weight.ndim == 1:
        y = matmul(input, weight)
        return y if bias is None else _math.add(y, bias)
    return dense_layer(input, weight, bias)


def _bias_axis(rank, data_format):
    return 1 if data_format != "NHWC" else rank - 1


def _bias_add_type(input_x, bias, *, data_format):
    rank = len(input_x.shape)
    if rank < 2 or len(bias.shape) != 1:
        raise shape_error(
            f"input_x must have at least 2 axes and bias 1, but got {list(input_x.shape)}, {list(bias.shape)}"
        )
    axis = _bias_axis(rank, data_format)
    if input_x.shape[axis] != bias.shape[0] and UNKNOWN not in (input_x.shape[axis], bias.shape[0]):
        raise shape_error(
            f"bias has {bias.shape[0]} entries, axis {axis} of input_x has {input_x.shape[axis]}: "
            f"shape {list(input_x.shape)}, {data_format}"
        )
    return input_x


@op(
    infer=_bias_add_type,
    promote=("input_x", "bias"),
    mindir="BiasAdd",
    batch=_batch.joined(0),
    layout=_layout.formatted((0,), (0,)),
)
def bias_add(input_x, bias, *, data_format: "NCHW|NHWC|NCDHW" = "NCHW"):
    """Add one number per channel; the channels are axis 1, with `data_format` "NHWC" the last axis.

    Shapes: input_x [N, C, ...], bias [C] -> same.  dtypes: numbers, promoted.  Errors: MYC-SHAPE.
    """
    shape = [1] * input_x.ndim
    shape[_bias_axis(input_x.ndim, data_format)] = bias.shape[0]
    return input_x + bias.reshape(shape)


@bias_add.vjp
def bias_add(ct, bias_shape, needs, *, data_format):
    channels = _bias_axis(ct.ndim, data_format)
    others = tuple(d for d in range(ct.ndim) if d != channels)
    return ct if needs[0] else None, _reduce.sum(ct, others) if needs[1] else None


@bias_add.samples
def bias_add(rand):
    yield rand(2, 3), rand(3)
    yield rand(2, 3, 4, 5), rand(3)
    yield rand(2, 3, 4), rand(4), dict(data_format="NHWC")
    yield rand(2, 3, 2, 1, 2), rand(3), dict(data_format="NCDHW")
    yield rand(0, 3), rand(3)
    yield rand(5, 7, 33), rand(7), dict(_grad=False)
    yield rand(2, 3, dtype="float64"), rand(3, dtype="float64")


# ------------------------------------------------------------------------------------- named special cases


def _ranks(name, expected, **tensors):
    """TypeError naming the first that is no tensor, ValueError the first whose rank is not `expected`."""
    for argument, tensor in tensors.items():
        if not hasattr(tensor, "asnumpy"):
            kind = type(tensor).__name__
            raise errors.type_error(f"For '{name}', '{argument}' must be a Tensor, but got {kind}")
        if tensor.ndim != expected:
            raise errors.value_error(
                f"For '{name}', '{argument}' must have {expected} axes, but has shape {tuple(tensor.shape)}"
            )


def mm(input, mat2):
    """Product of two matrices. Shapes: [m, k] and [k, n] -> [m, n]. Errors: ValueError for other ranks."""
    _ranks("mm", 2, input=input, mat2=mat2)
    return mat_mul(input, mat2)


def bmm(input_x, mat2):
    """Products of the matrices in the last two axes. Shapes: [B.., m, k] and [B.., k, n] -> [B.., m, n]."""
    return batch_matmul(input_x, mat2)


def mv(mat, vec):
    """Matrix times vector. Shapes: [m, k] and [k] -> [m]. Errors: ValueError for other ranks."""
    _ranks("mv", 2, mat=mat)
    _ranks("mv", 1, vec=vec)
    return matmul(mat, vec)


def _weighted_sum(input, product, beta, alpha):
    """``beta * input + alpha * product`` without needless multiplications."""
    product = product if _is_one(alpha) else _math.mul(product, alpha)
    return _math.add(input if _is_one(beta) else _math.mul(input, beta), product)


def _is_one(factor):
    return isinstance(factor, (int, float)) and factor == 1


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat1 @ mat2)``. Shapes: input like [m, n]; [m, k], [k, n] -> [m, n]."""
    _ranks("addmm", 2, mat1=mat1, mat2=mat2)
    return _weighted_sum(input, mat_mul(mat1, mat2), beta, alpha)


def addmv(input, mat, vec, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat @ vec)``. Shapes: input like [m]; [m, k], [k] -> [m]."""
    return _weighted_sum(input, mv(mat, vec), beta, alpha)


def addr(x, vec1, vec2, *, beta=1, alpha=1):
    """``beta * x + alpha * outer(vec1, vec2)``. Shapes: x like [m, n]; [m], [n] -> [m, n]."""
    _ranks("addr", 1, vec1=vec1, vec2=vec2)
    return _weighted_sum(x, outer(vec1, vec2), beta, alpha)


def baddbmm(input, batch1, batch2, beta=1, alpha=1):
    """``beta * input + alpha * (batch1 @ batch2)`` by matrices. Shapes: [B, m, k], [B, k, n] -> [B, m, n]."""
    if len(batch1.shape) == 2:  # MindSpore takes single matrices as well
        return _weighted_sum(input, mm(batch1, batch2), beta, alpha)
    _ranks("baddbmm", 3, batch1=batch1, batch2=batch2)
    return _weighted_sum(input, batch_matmul(batch1, batch2), beta, alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """``beta * input + alpha * sum over b of batch1[b] @ batch2[b]``. Shapes: [B, m, k], [B, k, n] -> [m, n].

    One product over the joined axes (b, k). Of single matrices the rows of the product are added.
    """
    if len(batch1.shape) == 2:
        return _weighted_sum(input, _reduce.sum(mm(batch1, batch2), 0), beta, alpha)
    _ranks("addbmm", 3, batch1=batch1, batch2=batch2)
    b, m, k = batch1.shape
    if batch2.shape[:2] != (b, k):
        raise errors.value_error(f"For 'addbmm', batch1 is {tuple(batch1.shape)}, "
                                 f"so batch2 must be ({b}, {k}, n), "
                         f"but is {tuple(batch2.shape)}")  # fmt: skip
    left = _shape.reshape(_shape.transpose(batch1, (1, 0, 2)), (m, b * k))
    return _weighted_sum(input, mat_mul(left, _shape.reshape(batch2, (b * k, batch2.shape[2]))), beta, alpha)


def outer(input, vec2):
    """All products of an element of `input` with one of `vec2`, flattened. Shapes: [m], [n] -> [m, n]."""
    return _math.mul(_shape.reshape(input, (-1, 1)), _shape.reshape(vec2, (1, -1)))


def ger(input, vec2):
    """All products of an element of `input` with one of `vec2`. Shapes: [m], [n] -> [m, n]."""
    _ranks("ger", 1, input=input, vec2=vec2)
    return outer(input, vec2)


def inner(input, other):
    """Sum of products over the last axes. Shapes: [A.., k] and [B.., k] -> [A.., B..]; a rank 0 input scales.

    Errors: ValueError if the last sizes differ.
    """
    if input.ndim == 0 or other.ndim == 0:
        return _math.mul(input, other)
    return tensor_dot(input, other, ((-1,), (-1,)))


def dot(input, other):
    """Sum of products over the last axis of `input` and the second to last of `other`.

    Shapes: [A.., k] and [B.., k, n] -> [A.., B.., n].  Errors: ValueError below rank 2 or for other sizes.
    """
    if input.ndim < 2 or other.ndim < 2:
        raise errors.value_error(
            f"For 'dot', both inputs must have at least 2 axes, but got ranks {input.ndim} and {other.ndim}"
        )
    return tensor_dot(input, other, ((-1,), (-2,)))


def vecdot(x, y, *, axis=-1):
    """Sum of products along `axis`, which both inputs share; the other axes broadcast.

    Of complex numbers the first factors are conjugated.
    """
    if x.dtype.is_complex:
        from mycelia.engine.ops.elementwise.complex_numbers import conj

        x = conj(x)
    return _reduce.sum(_math.mul(x, y), axis)


def _joined(x, axes_out, axes_in, in_first):
    """`x` as a matrix [out, in] (or [in, out]) by joining axes; no copy when they lie in order."""
    order = (*axes_in, *axes_out) if in_first else (*axes_out, *axes_in)
    moved = x if order == tuple(range(x.ndim)) else _shape.transpose(x, order)
    out, inside = (_count([x.shape[d] for d in axes]) for axes in (axes_out, axes_in))
    return _shape.reshape(moved, (inside, out) if in_first else (out, inside))


def tensor_dot(x1, x2, axes):
    """Contraction: sum of products over pairs of axes.

    `axes`: n = the last n axes of `x1` with the first n of `x2` in order, or a pair of axis lists.
    Shapes: the axes of `x1` that are left, then those of `x2`.
    Errors: ValueError if paired sizes differ or an axis is out of range.
    """
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise errors.value_error(
                f"For 'tensor_dot', axes must be in [0, {min(x1.ndim, x2.ndim)}], but got {axes}"
            )
        axes = (tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes)))
    first, second = ((a,) if isinstance(a, int) else tuple(a) for a in axes)
    first, second = (_shape.positive_axes(a, t.ndim, "axes") for a, t in ((first, x1), (second, x2)))
    sizes = [x1.shape[d] for d in first], [x2.shape[d] for d in second]
    if sizes[0] != sizes[1]:
        raise errors.value_error(
            f"For 'tensor_dot', paired axes must have equal sizes, but axes {first} of {tuple(x1.shape)} "
            f"and {second} of {tuple(x2.shape)} do not"
        )
    left = tuple(d for d in range(x1.ndim) if d not in first)
    right = tuple(d for d in range(x2.ndim) if d not in second)
    shape = (*(x1.shape[d] for d in left), *(x2.shape[d] for d in right))
    if not first:
        ones = (*x1.shape, *([1] * x2.ndim))
        return _math.mul(_shape.reshape(x1, ones), x2)
    # On whichever side the contracted axes lie: mat_mul transposes for free.
    turn_left = bool(left) and first[0] < left[0]
    turn_right = bool(right) and right[0] < second[0]
    product = mat_mul(
        _joined(x1, left, first, turn_left), _joined(x2, right, second, not turn_right), turn_left, turn_right
    )
    return _shape.reshape(product, shape)


def batch_dot(x1, x2, axes=None):
    """Contraction of one axis of each input, for every entry of the shared first axis.

    `axes`: an int or a pair; default: the last axis of `x1`, the second to last of `x2` (rank 2: the last).
    Shapes: [b, A.., k], [b, B.., k, n] -> [b, A.., B.., n]; a result of rank 1 gets a last axis of size 1.
    Errors: ValueError below rank 2, for axis 0, or if sizes differ.
    """
    if x1.ndim < 2 or x2.ndim < 2:
        raise errors.value_error(
            f"For 'batch_dot', both inputs must have at least 2 axes, but got ranks {x1.ndim} and {x2.ndim}"
        )
    if axes is None:
        axes = (x1.ndim - 1, max(x2.ndim - 2, 1))
    elif isinstance(axes, int):
        axes = (axes, axes)
    a, b = _shape.positive_axis(axes[0], x1.ndim, "axes"), _shape.positive_axis(axes[1], x2.ndim, "axes")
    if a == 0 or b == 0:
        raise errors.value_error(
            f"For 'batch_dot', axis 0 is the batch and cannot be contracted, but axes is {tuple(axes)}"
        )
    if x1.shape[0] != x2.shape[0] or x1.shape[a] != x2.shape[b]:
        raise errors.value_error(
            f"For 'batch_dot', axis 0 and the contracted axes must agree, but shapes are "
            f"{tuple(x1.shape)} and {tuple(x2.shape)}, axes {(a, b)}"
        )
    left = [d for d in range(1, x1.ndim) if d != a]
    right = [d for d in range(1, x2.ndim) if d != b]
    batch, k = x1.shape[0], x1.shape[a]
    m, n = (_count([t.shape[d] for d in rest]) for t, rest in ((x1, left), (x2, right)))
    lhs = _shape.reshape(_shape.transpose(x1, (0, *left, a)), (batch, m, k))
    rhs = _shape.reshape(_shape.transpose(x2, (0, b, *right)), (batch, k, n))
    shape = (batch, *(x1.shape[d] for d in left), *(x2.shape[d] for d in right))
    return _shape.reshape(batch_matmul(lhs, rhs), shape if len(shape) > 1 else (batch, 1))


def kron(input, other):
    """Kronecker product: blocks ``input[i, j] * other``; the shorter shape is padded with ones in front.

    Shapes: [a, b] and [c, d] -> [a * c, b * d].
    """
    rank = max(input.ndim, other.ndim)
    a = (*([1] * (rank - input.ndim)), *input.shape)
    b = (*([1] * (rank - other.ndim)), *other.shape)
    spread = _shape.reshape(input, tuple(n for size in a for n in (size, 1)))
    tiles = _shape.reshape(other, tuple(n for size in b for n in (1, size)))
    return _shape.reshape(_math.mul(spread, tiles), tuple(m * n for m, n in zip(a, b)))


def trace(input):
    """Sum of the main diagonal of a matrix, in its dtype. Shapes: [m, n] -> [].

    Errors: ValueError for other ranks.
    """
    from mycelia.engine.ops.arrays.masks import diagonal

    _ranks("trace", 2, input=input)
    return _reduce.sum(diagonal(input), dtype=input.dtype)


def cross(input, other, dim=None):
    """Cross product of vectors of 3 along `dim`; the default is the first axis of size 3.

    Shapes: broadcast.  dtypes: real; `other` is brought to that of `input`.  Errors: ValueError if the axis
    does not have size 3.
    """
    if dim is None:
        if 3 not in input.shape:
            raise errors.value_error(f"For 'cross', no axis has size 3 in shape {tuple(input.shape)}")
        dim = input.shape.index(3)
    axis = _shape.positive_axis(dim, input.ndim, "dim")
    if input.shape[axis] != 3 or other.shape[axis - input.ndim] != 3:
        raise errors.value_error(f"For 'cross', axis {dim} must have size 3, "
                                 f"but shapes are {tuple(input.shape)} and "
                         f"{tuple(other.shape)}")  # fmt: skip
    other = other if other.dtype is input.dtype else cast(other, input.dtype)
    places = axis - input.ndim
    a1, b1 = _shape.roll(input, -1, places), _shape.roll(other, -1, places)
    a2, b2 = _shape.roll(input, -2, places), _shape.roll(other, -2, places)
    return _math.sub(_math.mul(a1, b2), _math.mul(a2, b1))


def adjoint(x):
    """The last two axes swapped; complex numbers conjugated too. Shapes: [.., m, n] -> [.., n, m]."""
    swapped = _shape.swapaxes(x, -1, -2)
    if x.dtype.is_complex:
        return ops.conj(swapped)
    return swapped


def _trace_method(self, offset=0, axis1=0, axis2=1, dtype=None):
    """Sum of a diagonal of the planes spanned by two axes."""
    from mycelia.engine.ops.arrays.masks import diagonal

    return _reduce.sum(diagonal(self, offset, axis1, axis2), -1, False, dtype)


for _function in (
    addbmm,
    addmm,
    addmv,
    addr,
    adjoint,
    baddbmm,
    bmm,
    cross,
    dot,
    ger,
    inner,
    matmul,
    mm,
    outer,
):
    attach(_function.__name__, _function)
attach("trace", _trace_method)

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "adjoint", "baddbmm", "batch_dot", "bias_add", "bmm", "cross",
    "dense", "dot", "ger", "inner", "kron", "matmul", "mm", "mv", "outer", "tensor_dot", "trace", "vecdot",
]  # fmt: skip
