"""Primitives that gradients and sparse matrices are written with, by their values."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.ops import operations as P

X = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
ROWS, SEGMENTS = Tensor([0, 2, 3], ms.int32), Tensor([0, 0, 1], ms.int32)
COO = (Tensor([[0, 1], [1, 2]], ms.int64), Tensor([1.0, 2.0]), Tensor([2, 3], ms.int64))
OTHER = (Tensor([[0, 1], [1, 0]], ms.int64), Tensor([5.0, -2.0]), Tensor([2, 3], ms.int64))
# [[0, 3, 0], [0, 0, 4]]
CSR = tuple(Tensor(v, ms.int32) for v in ([2, 3], [0, 2], [0, 1, 2], [1, 2])) + (Tensor([3.0, 4.0]),)


def arrays(result):
    parts = result if isinstance(result, tuple) else (result,)
    return [part.asnumpy().tolist() for part in parts]


@pytest.mark.parametrize(
    ("made", "inputs", "expected"),
    [
        (P.SparseSegmentSum(), (X, ROWS, SEGMENTS), [[[6, 8, 10], [9, 10, 11]]]),
        (P.SparseSegmentMeanWithNumSegments(), (X, ROWS, SEGMENTS, 3), [[[3, 4, 5], [9, 10, 11], [0, 0, 0]]]),
        (
            P.SparseReorder(),
            (Tensor([[1, 2], [0, 1]]), Tensor([1.0, 2.0]), COO[2]),
            [[[0, 1], [1, 2]], [2, 1]],
        ),
        (P.SparseReshape(), (COO[0], COO[2], Tensor([3, -1])), [[[0, 1], [2, 1]], [3, 2]]),
        (P.SparseAdd(), (*COO, *OTHER, Tensor(0.0)), [[[0, 1], [1, 0], [1, 2]], [6, -2, 2], [2, 3]]),
        (P.SparseSparseMaximum(), (*COO, *OTHER), [[[0, 1], [1, 0], [1, 2]], [5, 0, 2]]),
        (P.SparseDenseCwiseMul(), (*COO, Tensor([[1.0, 2, 3], [4, 5, 6]])), [[2, 12]]),
        (
            P.SparseConcat(1),
            tuple(zip(COO, OTHER)),
            [[[0, 1], [0, 4], [1, 2], [1, 3]], [1, 5, 2, -2], [2, 6]],
        ),
        (
            P.SparseFillEmptyRows(),
            (Tensor([[0, 1], [2, 2]]), Tensor([1.0, 2.0]), Tensor([3, 3]), Tensor(9.0)),
            [[[0, 1], [1, 0], [2, 2]], [1, 9, 2], [False, True, False], [0, 2]],
        ),
        (P.CSRSparseMatrixToDense(), CSR, [[[0, 3, 0], [0, 0, 4]]]),
        (P.CSRSparseMatrixToSparseTensor(), CSR, [[[0, 1], [1, 2]], [3, 4], [2, 3]]),
        (P.SparseMatrixNNZ(), CSR, [[2]]),
        (P.SparseMatrixTranspose(), CSR, [[3, 2], [0, 2], [0, 0, 1, 2], [0, 1], [3, 4]]),
        (
            P.SparseMatrixAdd(),
            (*CSR, *CSR, Tensor(1.0), Tensor(2.0)),
            [[2, 3], [0, 2], [0, 1, 2], [1, 2], [9, 12]],
        ),
        (P.SparseMatrixMatMul(), (*CSR, Tensor([[1.0], [2], [3]])), [[[6], [12]]]),
        (P.SliceGrad(), (Tensor([[5.0, 6.0]]), X[:2], (0, 1), (1, 2)), [[[0, 5, 6], [0, 0, 0]]]),
        (P.ConcatOffset(2, 0), ([X, X],), [[[0, 0], [4, 0]]]),
        (P.TensorCopySlices(), (X[:1], Tensor([[7.0]]), (0, 1), (1, 2), (1, 1)), [[[0, 7, 2]]]),
        (P.ClipByNorm(), (Tensor([3.0, 4.0]), Tensor(1.0)), [[np.float32(0.6), np.float32(0.8)]]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ops.Primitive) else "",
)
def test_values(made, inputs, expected):
    for found, wanted in zip(arrays(made(*inputs)), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def close(a, b):
    np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-5)


def test_gradients_of_layers_are_those_of_their_functions():
    rng = np.random.default_rng(0)

    def random(*shape):
        return Tensor(rng.random(shape, np.float32))

    x, dy = random(2, 3, 4, 4), random(2, 3, 4, 4)
    close(P.LRNGrad()(dy, x, P.LRN()(x)), ms.vjp(P.LRN(), x)[1](dy)[0])
    image, grown = random(1, 2, 3, 3), random(1, 2, 6, 6)
    resize = P.ResizeBilinearV2()
    close(P.ResizeBilinearGrad()(grown, image), ms.vjp(lambda v: resize(v, (6, 6)), image)[1](grown)[0])
    pooled, places = P.MaxPoolWithArgmaxV2(kernel_size=2, strides=2)(x)
    given = random(2, 3, 2, 2)
    by_rule = ms.vjp(P.MaxPool(kernel_size=2, strides=2), x)[1](given)[0]
    close(P.MaxPoolGradWithArgmaxV2(kernel_size=2, strides=2)(x, given, places), by_rule)

    scale, bias = random(3), random(3)
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    deviation = 1 / ops.sqrt(variance + 1e-5)

    def normalized(x, scale, bias):
        m, v = x.mean((0, 2, 3), True), x.var((0, 2, 3), keepdims=True)
        along = (1, 3, 1, 1)
        return (x - m) / ops.sqrt(v + 1e-5) * scale.reshape(along) + bias.reshape(along)

    found = P.BatchNormGrad(is_training=True)(dy, x, scale, mean, deviation, None)
    for one, other in zip(found, ms.vjp(normalized, x, scale, bias)[1](dy)):
        close(one, other)
