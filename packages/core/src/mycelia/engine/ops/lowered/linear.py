"""Products with packed weights (`packed.py`), which a backend may compute by another algorithm."""

from functools import partial

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.define import op
from mycelia.engine.ops.lowered.packed import check_epilogue, need_float32, np_activated, padded


def _linear_pack_size(algorithm, inputs, outputs):
    """Elements of the pack of a matrix: Strassen's holds seven sums of its quarters."""
    if algorithm == "plain":
        return inputs * padded(outputs)
    if UNKNOWN in (inputs, outputs) or inputs % 2 or outputs % 2:
        raise errors.value_error(
            f"algorithm 'strassen' is for even numbers of inputs and outputs, got {inputs} and {outputs}"
        )
    return 7 * (inputs // 2) * padded(outputs // 2)


@op(name="linear_pack", nondiff=True, cost=0)
def linear_pack(w, *, transpose_w: "bool" = True, algorithm: "plain|strassen" = "plain"):
    """A matrix of weights in the form that `linear` reads by the same algorithm.

    Strassen's product has one multiplication in eight less, 7/4 of the memory and a larger error.
    Shapes: w [out, in], or [in, out] without `transpose_w` -> plain [in * padded(out)], strassen
    [7 * (in / 2) * padded(out / 2)].  dtypes: float32.  Errors: ValueError for strassen if a size is odd.
    Source: Winograd's form, Higham 2002, section 23.2.2.
    """
    w = w.T if transpose_w else w
    if algorithm == "plain":
        return _columns_padded(w).reshape(-1)
    (b11, b12), (b21, b22) = (np.hsplit(half, 2) for half in np.vsplit(w, 2))
    t1, t2 = b12 - b11, b22 - (b12 - b11)
    terms = (b11, b21, b22, t2 - b21, t1, t2, b22 - b12)
    return np.stack([_columns_padded(term) for term in terms]).reshape(-1)


def _columns_padded(matrix):
    pack = np.zeros((matrix.shape[0], padded(matrix.shape[1])), matrix.dtype)
    pack[:, : matrix.shape[1]] = matrix
    return pack


@linear_pack.infer
def linear_pack(w, *, transpose_w, algorithm):
    need_float32(w=w)
    if w.rank != 2:
        raise errors.value_error(f"w must be a matrix, got {w}")
    outputs, inputs = w.shape if transpose_w else w.shape[::-1]
    return TensorType(w.dtype, (_linear_pack_size(algorithm, inputs, outputs),))


@linear_pack.samples
def linear_pack(rand):
    yield rand(5, 3), dict(_value=False)
    yield rand(3, 17), dict(transpose_w=False, _value=False)
    yield rand(10, 6), dict(algorithm="strassen", _value=False)
    yield rand(6, 34), dict(algorithm="strassen", transpose_w=False, _value=False)


@op(name="linear", nondiff=True)
def linear(
    x, w, b: "tensor?" = None, residual: "tensor?" = None,
    *, channels: "int", algorithm: "plain|strassen" = "plain",
    activation: "none|relu|relu6|hardswish|silu|sigmoid|gelu|gelu_tanh" = "none",
):  # fmt: skip
    """Fully connected layer on packed weights: ``activation(x @ w.T + b + residual)``.

    Shapes: x [..., in], w what `linear_pack` made for `algorithm`, b [out], residual like the result ->
    [..., out] with out `channels`.  dtypes: float32.
    Errors: ValueError if the pack or the epilogue's shapes do not fit.
    """
    depth = x.shape[-1]
    if algorithm == "plain":
        y = x @ w.reshape(depth, padded(channels))[:, :channels]
    else:
        terms = w.reshape(7, depth // 2, padded(channels // 2))[:, :, : channels // 2]
        b11, b21, b22, b12 = *terms[:3], terms[2] - terms[6]
        y = x @ np.block([[b11, b12], [b21, b22]])
    y = y if b is None else y + b
    return np_activated(y if residual is None else y + residual, activation)


@linear.infer
def linear(x, w, b, residual, *, channels, algorithm, activation):
    need_float32(x=x, w=w)
    if x.rank < 1 or x.shape[-1] == UNKNOWN or channels < 0:
        raise errors.value_error(f"x must be [..., in] with a known in, got {x}, and channels {channels}")
    size = _linear_pack_size(algorithm, x.shape[-1], channels)
    if w.shape != (size,):
        raise errors.value_error(
            f"w must be the '{algorithm}' pack of {channels} x {x.shape[-1]} weights: [{size}], "
            f"got {list(w.shape)}"
        )
    y = TensorType(x.dtype, (*x.shape[:-1], channels))
    check_epilogue(y, b, residual)
    return y


@linear.samples
def linear(rand):
    def sample(x, w, b=None, residual=None, transpose_w=True, algorithm="plain", **how):
        prepare = {1: partial(linear_pack, transpose_w=transpose_w, algorithm=algorithm)}
        channels = w.shape[0 if transpose_w else 1]
        return x, w, b, residual, dict(channels=channels, algorithm=algorithm, _prepare=prepare, **how)

    yield sample(rand(2, 3), rand(4, 3), rand(4))
    yield sample(rand(2, 5, 3), rand(3, 4), rand(4), rand(2, 5, 4), transpose_w=False, activation="relu")
    yield sample(rand(3), rand(17, 3), activation="sigmoid")
    yield sample(rand(1, 67), rand(53, 67), rand(53), activation="gelu")
    yield sample(rand(7, 67), rand(67, 53), rand(53), transpose_w=False, activation="gelu_tanh")
    yield sample(rand(151, 19), rand(32, 19), rand(32), rand(151, 32), activation="silu")
    yield sample(rand(37, 131), rand(48, 131), rand(48), activation="hardswish")
    yield sample(rand(6, 16), rand(16, 16), activation="relu6")
    yield sample(rand(0, 3), rand(4, 3), rand(4))
    yield sample(rand(2, 0), rand(4, 0), rand(4))
    halved = dict(algorithm="strassen")
    yield sample(rand(5, 6), rand(34, 6), rand(34), rand(5, 34), activation="relu", **halved)
    yield sample(rand(2, 13, 10), rand(10, 40), rand(40), transpose_w=False, activation="gelu", **halved)


@linear.cost
def linear(inputs, outputs, **_):
    return _cost.product(outputs, inputs[0].shape[-1])
