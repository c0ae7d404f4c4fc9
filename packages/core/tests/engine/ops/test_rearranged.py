"""Blocks of space, reversed sequences, stripes of diagonals, boxes, segments, fractional pools, small
functions.
"""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops

rng = np.random.default_rng(8)


def T(values, dtype=None):
    return ms.Tensor(
        np.asarray(values, np.float32 if np.asarray(values).dtype == np.float64 else None), dtype
    )


def same(got, want):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-6)


# ---- sequences and blocks ---------------------------------------------------------------------------------


def test_reverse_sequence():
    x = np.arange(24).reshape(2, 3, 4)
    want = x.copy()
    want[:, 1, :2], want[:, 2, :4] = x[:, 1, :2][:, ::-1], x[:, 2, ::-1]
    same(ops.reverse_sequence(T(x), T([0, 2, 4]), 2, 1), want)
    for axes in ((2, 2), (3, 0), (-1, 0)):
        with pytest.raises(ValueError, match="reverse_sequence"):
            ops.reverse_sequence(T(x), T([0, 2, 4]), *axes)


@pytest.mark.parametrize("block, paddings", [((2, 2), ((0, 0), (1, 1))), ((3, 1), ((1, 1), (0, 0)))])
def test_blocks_of_space_and_back(block, paddings):
    x = T(rng.normal(size=(2, 3, 4, 2)))
    spread = ops.space_to_batch_nd(x, list(block), paddings)
    sizes = [(n + sum(p)) // b for n, p, b in zip((4, 2), paddings, block)]
    assert spread.shape == (2 * block[0] * block[1], 3, *sizes)
    same(ops.batch_to_space_nd(spread, list(block), paddings), x.asnumpy())
    for i in range(block[0]):
        padded = np.pad(x.asnumpy(), ((0, 0), (0, 0), *paddings))
        same(spread[2 * i * block[1] : 2 * i * block[1] + 2], padded[:, :, i :: block[0], :: block[1]])


def test_blocks_that_do_not_divide():
    with pytest.raises(ValueError, match="divisible"):
        ops.space_to_batch_nd(T(np.zeros((1, 1, 3, 4))), [2, 2], [[0, 0], [0, 0]])


def test_mirror_pad_and_padding():
    x = np.arange(6.0).reshape(2, 3)
    same(ops.mirror_pad(T(x), T([[1, 0], [2, 1]]), "REFLECT"), np.pad(x, [(1, 0), (2, 1)], "reflect"))
    same(ops.mirror_pad(T(x), T([[1, 2], [0, 3]]), "SYMMETRIC"), np.pad(x, [(1, 2), (0, 3)], "symmetric"))
    same(ops.padding(T([[1.0], [2.0]]), 3), [[1, 0, 0], [2, 0, 0]])
    with pytest.raises(ValueError, match="mode"):
        ops.mirror_pad(T(x), T([[0, 0], [0, 0]]), "WRAP")


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, np.inf])
def test_pdist(p):
    x = rng.normal(size=(4, 3)).astype(np.float32)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    same(ops.pdist(T(x), p), [np.linalg.norm(x[i] - x[j], p) for i, j in pairs])
    assert ops.pdist(T(x[:1])).shape == (0,)


# ---- diagonals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("align", ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("k", [0, 2, -1, (-1, 2), (-2, -1), (1, 2)])
def test_stripes_there_and_back(k, align):
    x = rng.normal(size=(2, 3, 4)).astype(np.float32)
    k = T(k, ms.int32)
    stripe = ops.matrix_diag_part(T(x), k, T(7.0), align)
    low, high = int(k.asnumpy().min()), int(k.asnumpy().max())
    inside = (np.subtract.outer(np.arange(3), np.arange(4)) <= -low) & (
        np.subtract.outer(np.arange(3), np.arange(4)) >= -high
    )
    made = ops.matrix_diag(stripe, k, T(3, ms.int32), T(4, ms.int32), T(5.0), align)
    same(made, np.where(inside, x, 5))
    same(ops.matrix_set_diag(T(np.zeros_like(x)), stripe, k, align), np.where(inside, x, 0))


def test_alignment_of_short_diagonals():
    x = T(np.arange(1.0, 10).reshape(3, 3))
    same(ops.matrix_diag_part(x, T([0, 1]), 0.0, "RIGHT_LEFT"), [[0, 2, 6], [1, 5, 9]])
    same(ops.matrix_diag_part(x, T([-1, 0]), 0.0, "RIGHT_LEFT"), [[1, 5, 9], [4, 8, 0]])
    same(ops.matrix_diag(T([1.0, 2.0]), 1), [[0, 1, 0], [0, 0, 2], [0, 0, 0]])
    same(ops.matrix_band_part(x, 1, 0), [[1, 0, 0], [4, 5, 0], [0, 8, 9]])
    same(ops.matrix_band_part(x, -1, -1), x.asnumpy())
    for bad in (T([2, 1]), T([0, 5])):
        with pytest.raises(ValueError, match="'k'"):
            ops.matrix_diag_part(x, bad, 0.0)


# ---- boxes ------------------------------------------------------------------------------------------------


def test_overlap():
    anchors, truth = T([[0.0, 0, 9, 9], [0, 0, 4, 4]]), T([[5.0, 5, 9, 9], [20, 20, 29, 29]])
    same(ops.iou(anchors, truth), [[0.25, 0.0], [0.0, 0.0]])
    same(ops.iou(anchors, truth, "iof"), [[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(KeyError):
        ops.iou(anchors, truth, "giou")


def test_boxes_encoded_and_decoded():
    anchors = T([[0.0, 0, 9, 19], [5, 5, 14, 9]])
    truth = np.array([[1.0, 2, 8, 15], [4, 6, 10, 12]])
    means, stds = (0.1, 0.0, 0.2, 0.0), (0.5, 1.0, 2.0, 1.0)
    deltas = ops.bounding_box_encode(anchors, T(truth), means, stds)
    np.testing.assert_allclose(ops.bounding_box_decode(anchors, deltas, (30, 40), means, stds).asnumpy(),
    truth, atol=1e-4)  # fmt: skip
    cut = ops.bounding_box_decode(anchors, deltas, (10, 7), means, stds).asnumpy()
    np.testing.assert_allclose(cut, np.minimum(truth, [7, 10, 7, 10]), atol=1e-4)
    valid = ops.check_valid(T([[0.0, 0, 9, 4], [0, 0, 9, 5], [-1, 0, 2, 2]]), T([5.0, 10, 1]))
    assert valid.asnumpy().tolist() == [True, False, False]


# ---- segments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function, want",
    [
        (ops.unsorted_segment_sum, [[4, 6], [0, 0], [3, -4]]),
        (ops.unsorted_segment_prod, [[3, 8], [1, 1], [3, -4]]),
        (ops.unsorted_segment_max, [[3, 4], [-(2**31)] * 2, [3, -4]]),
        (ops.unsorted_segment_min, [[1, 2], [2**31 - 1] * 2, [3, -4]]),
    ],
)
def test_unsorted_segments(function, want):
    x = T([[1, 2], [3, -4], [3, 4], [9, 9]], ms.int32)
    assert function(x, T([0, 2, 0, -1]), 3).asnumpy().tolist() == want
    with pytest.raises(ValueError):
        function(x, T([0, 1]), 3)
    with pytest.raises(ValueError):
        function(x, T([0, 2, 0, -1]), 0)


def test_gradient_of_a_product_with_zeros():
    x = T([2.0, 0.0, 5.0, 0.0, 0.0, 3.0])
    g = ms.grad(lambda x: ops.unsorted_segment_prod(x, T([0, 0, 0, 1, 1, 2]), 3).sum())(x)
    assert g.asnumpy().tolist() == [0, 10, 0, 0, 0, 1]


def test_sparse_segment_mean():
    x = T([[2.0, 4], [6, 8], [1, 1]])
    same(ops.sparse_segment_mean(x, T([0, 1, 2, 2]), T([0, 0, 2, 2])), [[4, 6], [0, 0], [1, 1]])


# ---- pools ------------------------------------------------------------------------------------------------


def test_fractional_max_pool():
    x = np.arange(30.0).reshape(1, 1, 5, 6)
    samples = T([[[0.5, 0.0]]])  # of the width, of the height
    value, place = ops.fractional_max_pool2d(T(x), 2, (3, 3), return_indices=True, _random_samples=samples)
    rows, columns = [1, 2, 4], [1, 3, 5]  # where windows from 0, 1, 3 and 0, 2, 4 on end
    assert place.asnumpy()[0, 0].tolist() == [[6 * r + c for c in columns] for r in rows]
    same(value, x[:, :, rows][..., columns])
    g = ms.grad(lambda x: ops.fractional_max_pool2d(x, 2, (3, 3), _random_samples=samples).sum())(T(x))
    assert float(g.sum()) == 9 and g.asnumpy()[0, 0, 4, 5] == 1
    volume = ops.fractional_max_pool3d(T(np.zeros((2, 4, 5, 6))), 2, output_ratio=(0.5, 0.5, 0.5))
    assert volume.shape == (2, 2, 2, 3)
    with pytest.raises(ValueError, match="fractional_max_pool2d"):
        ops.fractional_max_pool2d(T(x), 2, (5, 3))


# ---- small functions --------------------------------------------------------------------------------------


def test_questions():
    assert ops.is_complex(ms.Tensor([1j])) and not ops.is_complex(T([1.0]))
    assert ops.is_floating_point(T([1.0])) and not ops.is_floating_point(T([1]))
    assert ops.is_nonzero(T([[3]])) and not ops.is_nonzero(ms.Tensor([False]))
    assert ops.dtype(T([1])) is ms.int64
    assert ops.eps(T([1.0], ms.float16)).asnumpy() == np.finfo(np.float16).eps
    with pytest.raises(ValueError, match="one element"):
        ops.is_nonzero(T([1, 2]))
    for function in (ops.is_complex, ops.is_floating_point, ops.is_nonzero, ops.dtype):
        with pytest.raises(TypeError):
            function(1.0)


def test_clip_by_norm():
    x = [T([3.0]), T([0.0, 4.0])]
    found = ops.clip_by_norm(x, 1.0)
    same(found[0], [0.6])
    same(found[1], [0.0, 0.8])
    same(ops.clip_by_norm(x[1], 10.0), [0.0, 4.0])
    same(ops.clip_by_norm(x[1], 2.0, float("inf")), [0.0, 2.0])
    with pytest.raises(RuntimeError, match="finite"):
        ops.clip_by_norm(T([np.nan]), 1.0, error_if_nonfinite=True)


def test_others():
    x, y, w = (rng.normal(size=s).astype(np.float32) for s in ((4, 2), (4, 3), (5, 2, 3)))
    same(ops.bidense(T(x), T(y), T(w), T(np.ones(5))), np.einsum("bi,kij,bj->bk", x, w, y) + 1)
    indices, values, shape = ops.coalesce(T([[1, 0, 1], [2, 1, 2]]), T([1.0, 5, 4]), T([2, 3]))
    assert indices.asnumpy().tolist() == [[0, 1], [1, 2]] and values.asnumpy().tolist() == [5, 5]
    padded, places = ops.unique_with_pad(T([4, 4, 1, 4]), -1)
    assert padded.asnumpy().tolist() == [4, 1, -1, -1] and places.asnumpy().tolist() == [0, 0, 1, 0]
    assert ops.approximate_equal(T([1.0, 2.0]), T([1.05, 2.5]), 0.1).asnumpy().tolist() == [True, False]
    halves = ops.mixed_precision_cast(ms.float16, (T([1.0]), {"a": T([1])}))
    assert halves[0].dtype is ms.float16 and halves[1]["a"].dtype is ms.int64
    same(ops.tensor_slice(T(np.arange(6).reshape(2, 3)), (0, 1), (-1, 2)), [[1, 2], [4, 5]])
    loss = ops.multilabel_margin_loss(T([0.1, 0.2, 0.4, 0.8]), T([3, 0, -1, 1], ms.int32))
    np.testing.assert_allclose(float(loss), 0.85, rtol=1e-5)
    same(ops.cond(T([[2.0, 0], [0, 0.5]])), 4.0)
    assert ops.stop_gradient(2.5) == 2.5


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.reverse_sequence(x, T([1, 3]), 1), lambda x: ops.space_to_batch_nd(x, [2], [[0, 1]]),
        lambda x: ops.matrix_diag_part(x, T([-1, 1]), 0.0), lambda x: ops.matrix_diag(x, 1), lambda x:
        ops.pdist(x), lambda x: ops.unsorted_segment_max(x, T([1, 0]), 2), lambda x: ops.clip_by_norm(x, 1.0),
        lambda x: ops.mirror_pad(x, T([[1, 1], [0, 2]]), "REFLECT"), lambda x: ops.bidense(x, x,
        T(np.ones((2, 3, 3)))), ],
)  # fmt: skip
def test_compiled_as_eager(function):
    x = T([[1.0, 2.0, 3.0], [-4.0, 0.5, 6.0]])
    same(ms.jit(lambda x: function(x))(x), function(x).asnumpy())
    want = ms.grad(lambda x: (function(x) ** 2).sum())(x).asnumpy()
    same(ms.jit(lambda x: ms.grad(lambda x: (function(x) ** 2).sum())(x))(x), want)


def test_ties_share_the_gradient_of_extremes():
    x, y = T([1.0, 2.0, 3.0]), T([1.0, 3.0, 2.0])
    for function, want in ((ops.maximum, [0.5, 0, 1]), (ops.minimum, [0.5, 1, 0]), (ops.fmax, [1, 0, 1])):
        assert ms.grad(lambda x, function=function: function(x, y).sum())(x).asnumpy().tolist() == want


def test_places_of_extremes_with_a_first_value():
    x, mask = T([[2, 5, 1], [3, -7, 4]]), ms.Tensor([[True, False, True], [False, False, True]])
    assert ops.min(x, 1, initial=0, where=mask)[1].asnumpy().tolist() == [0, 0]
    assert ops.max(x, 1, initial=4)[1].asnumpy().tolist() == [1, 0]


def test_functions_that_write_into_their_argument():
    x = T([0.5, 2.0])
    ops.tanh_(ops.clamp_(x, 0, 1))
    same(x, np.tanh([0.5, 1.0]))
    with pytest.raises(TypeError, match="erfinv_"):
        ops.erfinv_(0.5)
