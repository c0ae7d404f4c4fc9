"""Primitives on arrays: counts, extremes, medians, shifts, scatters, caches, products."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops


def floats(values):
    return Tensor(np.array(values, np.float32))


def test_counts_of_a_sparse_tensor():
    places = Tensor(np.array([[0, 1], [1, 0], [1, 1]]))
    values, weights = Tensor(np.array([1, 3, 3])), floats([2, 3, 4])
    shape = Tensor(np.array([2, 3]))

    def count(**settings):
        found = ops.operations.SparseCountSparseOutput(**settings)(places, values, shape, weights)
        return [part.asnumpy().tolist() for part in found]

    assert count() == [[[0, 1], [1, 3]], [2, 7], [2, 4]]
    assert count(binary_output=True, minlength=9) == [[[0, 1], [1, 3]], [1, 1], [2, 9]]
    assert count(maxlength=2) == [[[0, 1]], [2], [2, 2]]
    with pytest.raises(RuntimeError, match="shape"):
        ops.operations.SparseCountSparseOutput()(places, values, shape, weights[:2])


def test_what_is_refused():
    with pytest.raises(TypeError, match="dtype"):
        ops.nextafter(floats([1]), Tensor(np.array([2.0])))
    with pytest.raises(TypeError, match="floating"):
        ops.nanmean(Tensor([1, 2]))
    with pytest.raises(RuntimeError, match="empty"):
        ops.adaptive_max_pool3d(floats(np.zeros((0, 3, 3, 4))), 1)
    with pytest.raises(TypeError, match="shape"):
        Tensor([1, 2, 3]).reshape({3})
    with pytest.raises(ValueError, match="paddings"):
        ms.nn.Pad(((0, 0), (-1, -1)))(floats(np.ones((3, 3))))
    assert not ops.dropout2d(floats(np.ones((1, 2, 2, 2))), 1.0).asnumpy().any()


def test_sparse_and_dense_together():
    coo = ms.COOTensor(Tensor([[0, 1], [1, 0]]), floats([2, 3]), (2, 2))
    dense = floats([[1, 2], [3, 4]])
    for run in (lambda f: f, ms.jit):
        assert run(lambda d: d + coo)(dense).asnumpy().tolist() == [[1, 4], [6, 4]]
        assert run(lambda d: coo - d)(dense).asnumpy().tolist() == [[-1, 0], [0, -4]]
        assert run(lambda d: d - coo)(dense).asnumpy().tolist() == [[1, 0], [0, 4]]
        assert run(lambda d: (d * coo).values)(dense).asnumpy().tolist() == [4, 9]
    assert ops.dtype(coo) is ms.float32
    (gradient,) = ops.GradOperation(get_all=True)(lambda s: s.values * s.values)(coo)
    assert isinstance(gradient, ms.COOTensor) and gradient.values.asnumpy().tolist() == [4, 6]


def test_gradients_of_extremes_beside_nan_and_of_integers():
    x, y = floats([1, np.nan, 2, 3]), floats([1, 1, 5, np.nan])
    dx, dy = ms.grad(ops.maximum, (0, 1))(x, y)
    assert dx.asnumpy().tolist() == [0.5, 1, 0, 1] and dy.asnumpy().tolist() == [0.5, 1, 1, 1]
    counts = [Tensor(np.array(n, np.uint16)) for n in ([1, 2, 3], [3, 2, 1], [6, 7, 8])]
    dx, dy = ops.GradOperation(get_all=True, sens_param=True)(ops.Minimum())(*counts)
    assert dx.asnumpy().tolist() == [6, 3, 0] and dy.asnumpy().tolist() == [0, 3, 8]


def test_medians_of_the_whole():
    whole = ops.operations.Median(True)
    assert np.isnan(whole(floats(np.zeros((2, 0))))[0].asnumpy())
    assert int(whole(Tensor(np.zeros((2, 0), np.int32)))[0]) == 0
    x = floats([1, np.nan, 3, 4])
    assert np.isnan(whole(x)[0].asnumpy())
    assert float(ops.operations.Median(True, ignore_nan=True)(x)[0]) == 3


def test_rows_of_a_cache():
    table = ms.Parameter(Tensor(np.arange(8, dtype=np.int32).reshape(4, 2)))
    rows = Tensor(np.array([[9, 9], [8, 8], [7, 7]], np.int32))
    done = ops.operations.UpdateCache()(table, Tensor(np.array([[-1, 2, 4]], np.int32)), rows, 4)
    assert table.asnumpy().tolist() == [[0, 1], [2, 3], [8, 8], [6, 7]] and done.asnumpy().tolist() == [0]


def test_shifts():
    x = Tensor(np.arange(6).reshape(2, 3))
    shift = ops.operations.Shift
    assert shift(1)(x, 9).asnumpy().tolist() == [[9, 0, 1], [9, 3, 4]]
    assert shift(-2, 1)(x, 9).asnumpy().tolist() == [[2, 9, 9], [5, 9, 9]]
    assert shift(5, 0)(x, 9).asnumpy().tolist() == [[9] * 3] * 2
    assert shift(0)(x, 9).asnumpy().tolist() == x.asnumpy().tolist()


def test_equal_distances_between_tensors():
    def spread(a, b):
        return ops.linspace(a, b, 3)

    starts, ends = floats([1, 2]), floats([3, 8])
    for run in (lambda f: f, ms.jit):
        found = run(lambda a, b: ops.vmap(spread)(a, b))(starts, ends)
        assert found.asnumpy().tolist() == [[1, 2, 3], [2, 5, 8]]
    assert float(ms.grad(lambda a: spread(a, ends[0]).sum())(starts[0])) == 0


def test_scatters_refuse_other_indices():
    with pytest.raises(TypeError, match="int32"):
        ops.tensor_scatter_add(floats([1]), Tensor(np.array([[0]], np.int8)), floats([1]))
    with pytest.raises(ValueError, match="src"):
        ops.slice_scatter(floats(np.zeros((2, 3))), floats([1]), 0, 0, 1)
    with pytest.raises(TypeError, match="keepdim"):
        ops.sum(floats([1]), 0, 12)


def test_what_does_not_concatenate():
    def coo(shape, dtype=ms.int32):
        return ms.COOTensor(Tensor([[0, 1]]), Tensor([5], dtype), shape)

    assert ops.coo_concat((coo((2, 3)), coo((2, 4))), 1).shape == (2, 7)
    for other, axis, error in (
        (coo((2, 3)), 2, IndexError), (coo((2, 3)), 1.0, TypeError), (coo((3, 3)), 1, RuntimeError),
        (coo((2, 3), ms.float32), 1, TypeError),
    ):  # fmt: skip
        with pytest.raises(error, match="coo_concat"):
            ops.coo_concat((coo((2, 3)), other), axis)


def test_older_and_inner_names():
    from mycelia.ops import operations

    x = floats([1, 2])
    assert operations.AddV2()(x, x).asnumpy().tolist() == [2, 4]
    assert x.add([3, 4]).asnumpy().tolist() == [4, 6] and x.sub((3, 4)).asnumpy().tolist() == [-2, -2]
    sizes = [Tensor(np.array(n, np.int32)) for n in ([2, 3, 4], [2, 5, 4], [2, 1, 4])]
    starts = operations.ConcatOffsetV1()(Tensor(1, ms.int32), sizes)
    assert [s.asnumpy().tolist() for s in starts] == [[0, 0, 0], [0, 3, 0], [0, 8, 0]]
    with pytest.raises(RuntimeError, match="axis 0"):
        operations.ConcatOffsetV1()(Tensor(0, ms.int32), sizes)


def test_overloads_of_the_largest_element():
    x = floats([[0, 3], [2, 1]])
    values, places = x.max(0)
    assert values.asnumpy().tolist() == [2, 3] and places.asnumpy().tolist() == [1, 0]
    assert x.min(dim=1, keepdim=True)[1].asnumpy().tolist() == [[0], [1]]
    assert x.max(0, True, initial=None).asnumpy().tolist() == [[2, 3]]
    assert x.max(0, keepdims=True).asnumpy().tolist() == [[2, 3]]
    assert x.max(axis=0, return_indices=True)[1].asnumpy().tolist() == [1, 0]
    assert ms.jit(lambda x: x.max(0)[1])(x).asnumpy().tolist() == [1, 0]  # as eagerly
    assert ms.jit(lambda x: x.max(dim=0)[1])(x).asnumpy().tolist() == [1, 0]
    with pytest.raises(TypeError, match="positional"):
        x.max(0, True, None)
    with pytest.raises(TypeError, match="keyword"):
        x.max(dims=0)
    with pytest.raises(TypeError, match="rank"):
        ops.rank(1)


def test_products_of_complex_vectors_and_what_is_no_matrix():
    a, b = (Tensor(np.array(n, np.complex64)) for n in ([1 + 2j, 3 - 1j], [2 - 1j, 1j]))
    assert complex(ops.vecdot(a, b).asnumpy()) == -1 - 2j
    with pytest.raises(TypeError, match="mat2"):
        ops.mm(floats([[1]]), 3)
