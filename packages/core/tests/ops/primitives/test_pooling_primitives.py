"""Primitives of pools, windows and regions, with their gradients."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops


def floats(values):
    return Tensor(np.array(values, np.float32))


def test_position_sensitive_pooling_and_its_gradient():
    rois = floats([[[0], [1], [0], [5], [4]]])
    x = floats(np.arange(120).reshape(1, 4, 5, 6))
    pool = ops.operations.PSROIPooling(0.5, 2, 1)
    np.testing.assert_allclose(pool(x, rois).asnumpy(), [[[[1, 32], [67, 98]]]])
    weights = floats([[1, 2], [3, 4]])
    for run in (ms.grad, lambda f: ms.jit(ms.grad(f))):
        dx = run(lambda x: (pool(x, rois) * weights).sum())(x)
        np.testing.assert_allclose(dx.asnumpy().sum((2, 3)), [[1, 2, 3, 4]])
    found = ops.operations.PSROIPoolingGrad((5, 6), 0.5, 2, 1)(weights.reshape((1, 1, 2, 2)), rois)
    np.testing.assert_allclose(found.asnumpy(), dx.asnumpy())
    with pytest.raises(RuntimeError, match="features"):
        pool(x[:, :3], rois)
    with pytest.raises(ValueError, match="group_size"):
        ops.operations.PSROIPooling(0.5, -1, 1)


def test_fractional_max_pool_gradient_by_the_cells():
    x = floats([[1, 2, 0, 5], [4, 3, 7, 6], [0, 1, 9, 2], [8, 0, 3, 4]]).reshape((1, 4, 4, 1))
    begins = Tensor(np.array([0, 2, 4]))
    dy = floats([1, 2, 3, 4]).reshape((1, 2, 2, 1))
    apart = ops.operations.FractionalMaxPoolGrad()(x, dy, dy, begins, begins)
    wanted = [[0, 0, 0, 0], [1, 0, 2, 0], [0, 0, 4, 0], [3, 0, 0, 0]]
    assert apart.asnumpy()[0, :, :, 0].tolist() == wanted
    shared = ops.operations.FractionalMaxPoolGrad(overlapping=True)(x, dy, dy, begins, begins)
    wanted = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 10, 0], [0, 0, 0, 0]]
    assert shared.asnumpy()[0, :, :, 0].tolist() == wanted


def test_boxes_that_overlap_go():
    random = np.random.RandomState(3)
    low = random.randint(0, 30, (400, 2))
    rows = np.concatenate([low, low + random.randint(1, 20, (400, 2)), random.rand(400, 1)], 1)
    boxes, places, kept = ops.NMSWithMask(0.3)(floats(rows))
    boxes, kept = boxes.asnumpy(), kept.asnumpy()
    assert (np.diff(boxes[:, 4]) <= 0).all() and places.asnumpy().tolist() == list(range(400))

    def overlap(a, b):
        shared = np.clip(np.minimum(a[2:4], b[2:4]) - np.maximum(a[:2], b[:2]), 0, None).prod()
        return shared / ((a[2:4] - a[:2]).prod() + (b[2:4] - b[:2]).prod() - shared)

    for i in range(0, 400, 7):
        rivals = [j for j in range(i) if kept[j] and overlap(boxes[i], boxes[j]) > 0.3]
        assert kept[i] == (not rivals)


def test_bent_windows_of_a_part():
    from mycelia.ops import operations

    x = floats(np.arange(9)).reshape((1, 1, 3, 3))
    offsets = floats(np.arange(12) % 7 * 0.1).reshape((1, 12, 1, 1))
    how = (1, 1, 1, 1), (0, 0, 0, 0), (2, 2)
    dx, moves = operations.DeformableOffsetsGrad(*how)(floats(np.ones((1, 1, 2, 2))), x, offsets)
    np.testing.assert_allclose(dx.asnumpy()[0, 0, 0], [0.06, 0.09, 0.01], atol=1e-6)
    np.testing.assert_allclose(moves.asnumpy()[0, [0, -1], 0, 0], [0.1, 4.3], atol=1e-5)
    last = operations.DeformableOffsetsGrad(*how, data_format="NHWC")
    turned = last(floats(np.ones((1, 2, 2, 1))), x.reshape((1, 3, 3, 1)), offsets.reshape((1, 1, 1, 12)))
    np.testing.assert_allclose(turned[0].asnumpy().reshape(-1), dx.asnumpy().reshape(-1), atol=1e-6)
    np.testing.assert_allclose(turned[1].asnumpy().reshape(-1), moves.asnumpy().reshape(-1), atol=1e-6)


def test_gradient_of_fractional_means():
    from mycelia.ops import operations

    cells = Tensor(np.array([0, 2, 5])), Tensor(np.array([0, 3, 5]))
    dy = floats([1, 2, 3, 4]).reshape((1, 2, 2, 1))
    dx = operations.FractionalAvgPoolGrad()((1, 5, 5, 1), dy, *cells).asnumpy()[0, :, :, 0]
    np.testing.assert_allclose(dx[[0, 4]], [[1 / 6] * 3 + [0.5] * 2, [1 / 3] * 3 + [2 / 3] * 2], rtol=1e-6)


def test_samples_of_regions_by_their_size():
    x = floats(np.arange(36)).reshape((1, 1, 6, 6))
    rois = floats([[0, 1, 0.5, 4.3, 5.2]])
    found = [ops.ROIAlign(2, 2, 0.8, n)(x, rois).asnumpy() for n in (-1, 0)]
    np.testing.assert_allclose(found[0][0, 0], [[10.9, 12.62], [24.58, 26.3]], rtol=1e-5)
    np.testing.assert_array_equal(*found)
