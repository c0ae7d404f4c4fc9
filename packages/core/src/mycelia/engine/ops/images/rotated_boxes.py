"""Overlap of boxes that are turned by an angle."""

import itertools

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.base.errors import shape_error
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op

__all__: list[str] = []


def _corners(box, turned_right):
    """The four corners, counter-clockwise, of a box (x, y, w, h, angle in degrees)."""
    x, y, w, h, angle = box
    angle = np.deg2rad(-angle if turned_right else angle)
    c, s = np.cos(angle), np.sin(angle)
    half = np.array([[-w, -h], [w, -h], [w, h], [-w, h]]) / 2
    return half @ np.array([[c, s], [-s, c]]) + (x, y)


def _area(polygon):
    if len(polygon) < 3:
        return 0.0
    x, y = np.transpose(polygon)
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def _clipped(polygon, window):
    """The part of a polygon inside a convex one, edge by edge. Source: Sutherland and Hodgman 1974."""
    for a, b in zip(window, np.roll(window, -1, 0)):
        sides = [(b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) for p in polygon]
        kept = []
        for i, (p, side) in enumerate(zip(polygon, sides)):
            before, last = polygon[i - 1], sides[i - 1]
            if side * last < 0:
                kept.append(before + (p - before) * (last / (last - side)))
            if side >= 0:
                kept.append(p)
        polygon = kept
    return polygon


def _rotated_type(boxes, query_boxes, trans, mode, is_cross):
    for x in (boxes, query_boxes):
        if len(x.shape) != 3 or x.shape[1] != 5:
            raise shape_error(f"boxes must be [B, 5, N], but have shape {list(x.shape)}")
    n, k = boxes.shape[2], query_boxes.shape[2]
    if not is_cross and n != k:
        raise shape_error(f"without is_cross there must be as many of both, but there are {n} and {k}")
    return TensorType(boxes.dtype, (boxes.shape[0], n, k if is_cross else 1))


@op(name="rotated_iou", infer=_rotated_type, nondiff=True)
def _rotated_iou(boxes, query_boxes, *, trans: "bool" = False, mode: "int" = 0, is_cross: "bool" = True):
    """Overlap of turned boxes over their union (mode 0) or the area of the first (mode 1).

    A box is x, y, w, h and an angle in degrees; with `trans` x0, y0, x1, y1 and the angle.
    Shapes: [B, 5, N], [B, 5, K] -> [B, N, K], without `is_cross` [B, N, 1].  dtypes: floating.
    """

    def shaped(x):
        rows = np.swapaxes(x, 1, 2).astype(np.float64)
        if trans:
            low, high = rows[..., :2], rows[..., 2:4]
            rows = np.concatenate([(low + high) / 2, high - low, rows[..., 4:]], -1)
        return rows

    first, second = shaped(boxes), shaped(query_boxes)
    batch, n, k = len(first), first.shape[1], second.shape[1]
    found = np.zeros((batch, n, k if is_cross else 1))
    for b, i, j in itertools.product(range(batch), range(n), range(k if is_cross else 1)):
        one, two = first[b, i], second[b, j if is_cross else i]
        shared = _area(_clipped(list(_corners(one, False)), _corners(two, False)))
        own = one[2] * one[3]
        whole = own if mode else own + two[2] * two[3] - shared
        found[b, i, j] = shared / whole if whole > 0 else 0.0
    return found.astype(boxes.dtype)


@_rotated_iou.samples
def _rotated_iou(rand):
    boxes = np.array([[[5, 6], [5, 5], [4, 2], [2, 4], [0, 30]]], np.float32)
    yield boxes, boxes + np.float32(0.5)
    yield boxes, boxes + np.float32(0.5), dict(mode=1, is_cross=False)


def rotated_iou(boxes, query_boxes, trans=False, mode=0, is_cross=True, v_threshold=0.0, e_threshold=0.0):
    """Overlap of turned boxes (x, y, w, h, degrees) over their union, `mode` 1: over the area of the first.

    `trans`: they are given by two corners and the angle. Both thresholds are of Ascend's kernel, exact
    arithmetic needs none. Shapes: [B, 5, N], [B, 5, K] -> [B, N, K], without `is_cross` [B, N, 1].
    """
    del v_threshold, e_threshold  # exact arithmetic needs none
    if mode not in (0, 1):
        raise errors.value_error("rotated_iou", f"mode must be 0 or 1, but got {mode!r}")
    return _rotated_iou(boxes, query_boxes, bool(trans), mode, bool(is_cross))
