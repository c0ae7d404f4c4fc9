"""Boxes that are turned: how much two of them overlap."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops


def t(values, dtype="float32"):
    return ms.Tensor(np.array(values, dtype))


def box(*numbers):
    return t([[[n] for n in numbers]])


@pytest.mark.parametrize(
    "first, second, settings, overlap",
    [
        ((10, 10, 4, 4, 0), (11, 10, 4, 4, 0), {}, 12 / 20),
        ((10, 10, 4, 4, 0), (11, 10, 4, 4, 0), dict(mode=1), 12 / 16),
        ((0, 0, 2, 2, 0), (0, 0, 2, 2, 90), {}, 1),
        ((0, 0, 2, 2, 0), (0, 0, 2, 2, 45), {}, 8 * (2**0.5 - 1) / (8 - 8 * (2**0.5 - 1))),
        ((0, 0, 4, 2, 0), (0, 0, 4, 2, 90), {}, 4 / 12),
        ((0, 0, 1, 1, 0), (5, 5, 1, 1, 30), {}, 0),
        ((0, 0, 2, 2, 0), (1, 1, 3, 3, 0), dict(trans=True), 1 / 7),
    ],
)
def test_overlap_of_turned_boxes(first, second, settings, overlap):
    found = ops.rotated_iou(box(*first), box(*second), **settings)
    assert found.shape == (1, 1, 1)
    np.testing.assert_allclose(found.asnumpy().item(), overlap, 1e-5, 1e-6)


def test_overlap_of_pairs_of_turned_boxes():
    boxes = t(np.random.default_rng(3).uniform(1, 4, (2, 5, 3)))
    every = ops.rotated_iou(boxes, boxes).asnumpy()
    np.testing.assert_allclose(np.diagonal(every, axis1=1, axis2=2), np.ones((2, 3)), 1e-5)
    np.testing.assert_allclose(every, every.swapaxes(1, 2), 1e-5, 1e-6)
    assert ops.rotated_iou(boxes, boxes, is_cross=False).shape == (2, 3, 1)
    with pytest.raises(ValueError):
        ops.rotated_iou(boxes, boxes, mode=2)
    with pytest.raises(ValueError):
        ops.rotated_iou(boxes[0], boxes[0])
