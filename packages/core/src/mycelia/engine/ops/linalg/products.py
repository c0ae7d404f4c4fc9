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
from mycelia.engine.ops.infer import broadcast_shapes, unbroadcast
from mycelia.engine.ops.reductions import reduce as _reduce


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


__all__ = ["bias_add", "dense", "matmul"]
