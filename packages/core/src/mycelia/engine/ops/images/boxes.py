"""Boxes in images, given as (x0, y0, x1, y1) with both corners inside: overlap, encoding, validity."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.joining import stack, unstack
from mycelia.engine.ops.arrays.shape import constant, expand_dims
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import logic as _logic
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.clipping import clamp, maximum, minimum


def _columns(boxes):
    return unstack(boxes, -1)


def _need_boxes(name, **boxes):
    for argument, box in boxes.items():
        if len(box.shape) != 2 or box.shape[-1] != 4:
            raise errors.value_error(
                f"For '{name}', '{argument}' must have shape (n, 4), but has shape {box.shape}."
            )


def iou(anchor_boxes, gt_boxes, mode="iou"):
    """Intersection of each pair of boxes over their union, or (`mode` "iof") over the box in `gt_boxes`.

    Shapes: anchor_boxes [n, 4], gt_boxes [m, 4] -> [m, n].  dtypes: floating.
    Errors: KeyError for another mode, ValueError for other shapes.
    """
    if mode not in ("iou", "iof"):
        raise KeyError(f"For 'iou', 'mode' must be 'iou' or 'iof', but got {mode!r}.")
    _need_boxes("iou", anchor_boxes=anchor_boxes, gt_boxes=gt_boxes)
    a = [expand_dims(c, 0) for c in _columns(anchor_boxes)]
    g = [expand_dims(c, 1) for c in _columns(gt_boxes)]

    def extent(low, high):
        return maximum(high - low + 1.0, 0.0)

    overlap = extent(maximum(a[0], g[0]), minimum(a[2], g[2])) * extent(
        maximum(a[1], g[1]), minimum(a[3], g[3])
    )
    area = extent(g[0], g[2]) * extent(g[1], g[3])
    if mode == "iou":
        area = area + extent(a[0], a[2]) * extent(a[1], a[3]) - overlap
    return overlap / maximum(area, 1e-7 if area.dtype is not dtypes.float16 else 1e-4)


def _numbers(name, argument, value, dtype):
    if len(value) != 4:
        raise errors.value_error(f"For '{name}', '{argument}' must have 4 numbers, but got {value!r}.")
    return constant(np.asarray(value, np.float64), dtype)


def _centre_and_size(columns):
    x0, y0, x1, y1 = columns
    return (x0 + x1) * 0.5, (y0 + y1) * 0.5, x1 - x0 + 1.0, y1 - y0 + 1.0


def bounding_box_encode(anchor_box, groundtruth_box, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0)):
    """Shift and logarithm of growth from anchors to boxes, less `means`, over `stds`.

    Shapes: [n, 4], [n, 4] -> [n, 4].  dtypes: floating.  Source: Girshick et al. 2014, appendix C.
    """
    _need_boxes("bounding_box_encode", anchor_box=anchor_box, groundtruth_box=groundtruth_box)
    x, y, w, h = _centre_and_size(_columns(anchor_box))
    gx, gy, gw, gh = _centre_and_size(_columns(groundtruth_box))
    deltas = stack([(gx - x) / w, (gy - y) / h, _logarithms.log(gw / w), _logarithms.log(gh / h)], -1)
    means = _numbers("bounding_box_encode", "means", means, deltas.dtype)
    return (deltas - means) / _numbers("bounding_box_encode", "stds", stds, deltas.dtype)


def bounding_box_decode(
    anchor_box, deltas, max_shape, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0), wh_ratio_clip=0.016
):
    """Boxes from anchors and what `bounding_box_encode` gives, cut at the image of (height, width)
    `max_shape`.

    The growth is limited to 1 / `wh_ratio_clip`.  Shapes: [n, 4], [n, 4] -> [n, 4].  dtypes: floating.
    """
    _need_boxes("bounding_box_decode", anchor_box=anchor_box, deltas=deltas)
    stds = _numbers("bounding_box_decode", "stds", stds, deltas.dtype)
    dx, dy, dw, dh = _columns(deltas * stds + _numbers("bounding_box_decode", "means", means, deltas.dtype))
    x, y, w, h = _centre_and_size(_columns(anchor_box))
    limit = abs(float(np.log(wh_ratio_clip)))
    half_w = w * _powers.exp(clamp(dw, -limit, limit)) * 0.5 - 0.5
    half_h = h * _powers.exp(clamp(dh, -limit, limit)) * 0.5 - 0.5
    x, y = x + w * dx, y + h * dy
    height, width = (float(n) for n in max_shape)
    corners = (x - half_w, width), (y - half_h, height), (x + half_w, width), (y + half_h, height)
    return stack([clamp(c, 0.0, end) for c, end in corners], -1)


def check_valid(bboxes, img_metas):
    """Which boxes lie inside of an image; `img_metas`: its height, width and the ratio both are scaled with.

    Shapes: bboxes [n, 4], img_metas [3] -> [n].  dtypes: real -> bool.
    """
    _need_boxes("check_valid", bboxes=bboxes)
    x0, y0, x1, y1 = _columns(bboxes)
    height, width, ratio = unstack(img_metas, 0)
    inside = _logic.logical_and(_comparison.greater_equal(x0, 0), _comparison.greater_equal(y0, 0))
    for end, size in ((x1, width), (y1, height)):
        inside = _logic.logical_and(inside, _comparison.less_equal(end, size * ratio - 1))
    return inside


__all__ = ["bounding_box_decode", "bounding_box_encode", "check_valid", "iou"]
