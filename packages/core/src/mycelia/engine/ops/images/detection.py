"""Boxes of detectors: suppression of overlapping ones, features of regions, random crops.

Boxes are given by two corners. The suppressions go through the boxes by falling score and drop each that
overlaps one that was kept.
"""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.random.draws import _check_key, _np_uniform

__all__: list[str] = []


def _np_overlap(box, others):
    """Intersection over union of one box [4] with others [n, 4], in any order of corners."""
    low, high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    lows, highs = np.minimum(others[:, :2], others[:, 2:]), np.maximum(others[:, :2], others[:, 2:])
    shared = np.clip(np.minimum(high, highs) - np.maximum(low, lows), 0, None).prod(1)
    union = (high - low).prod() + (highs - lows).prod(1) - shared
    with np.errstate(all="ignore"):
        return np.where(union > 0, shared / union, 0.0)


def _np_kept(order, overlaps, threshold, limit):
    """Those of `order` that overlap none kept before by more than `threshold`; `overlaps(i, kept)`."""
    kept = []
    for i in order:
        if len(kept) == limit:
            break
        if not kept or not (overlaps(i, np.array(kept)) > threshold).any():
            kept.append(int(i))
    return kept


@op(name="nms_with_mask", outputs=3, nondiff=True)
def _nms_with_mask(bboxes, *, iou_threshold: "float" = 0.5):
    """Boxes by falling score (their fifth number), their places in that order, and which of them are kept.

    Shapes: [n, 5] -> [n, 5], int32 [n], bool [n].  dtypes: floating.
    """
    rows = bboxes[np.argsort(-bboxes[:, 4], kind="stable")]
    boxes = rows[:, :4].astype(np.float64)
    mask, left = np.zeros(len(rows), bool), np.arange(len(rows))
    while len(left):
        first, left = left[0], left[1:]
        mask[first] = True
        left = left[_np_overlap(boxes[first], boxes[left]) <= iou_threshold]
    return rows, np.arange(len(rows), dtype=np.int32), mask


@_nms_with_mask.infer
def _nms_with_mask(bboxes, *, iou_threshold):
    if bboxes.rank != 2 or bboxes.shape[1] not in (5, 8):
        raise ValueError(f"bboxes must be [n, 5], but has shape {bboxes.shape}")
    n = bboxes.shape[0]
    return bboxes, TensorType(dtypes.int32, (n,)), TensorType(dtypes.bool_, (n,))


@_nms_with_mask.samples
def _nms_with_mask(rand):
    corners = rand.positive(6, 2)
    yield np.concatenate([corners, corners + rand.positive(6, 2), rand(6, 1)], 1)


@op(name="nms_by_overlaps", nondiff=True, dynamic=True)
def _nms_by_overlaps(overlaps, scores, limit, overlap_threshold, score_threshold):
    """Indices of the boxes kept, given the overlap of each pair.

    Shapes: overlaps [n, n], scores [n], three numbers -> int32 [kept].
    """
    order = [i for i in np.argsort(-scores, kind="stable") if scores[i] > score_threshold.reshape(())]
    threshold = overlap_threshold.reshape(())
    return np.array(_np_kept(order, lambda i, k: overlaps[i, k], threshold, int(limit.reshape(()))), np.int32)


@_nms_by_overlaps.infer
def _nms_by_overlaps(overlaps, scores, limit, overlap_threshold, score_threshold):
    n = scores.shape[0]
    if overlaps.shape != (n, n):
        raise ValueError(f"overlaps must be [{n}, {n}] for scores [{n}], but has shape {overlaps.shape}")
    return TensorType(dtypes.int32, (-1,))


@op(name="nms_by_boxes", nondiff=True, dynamic=True)
def _nms_by_boxes(boxes, scores, limit, iou_threshold, score_threshold):
    """Indices of the boxes kept. Shapes: boxes [n, 4], scores [n], three numbers -> int32 [kept]."""
    order = [i for i in np.argsort(-scores, kind="stable") if scores[i] > score_threshold.reshape(())]
    wide, threshold = boxes.astype(np.float64), iou_threshold.reshape(())
    overlaps = lambda i, k: _np_overlap(wide[i], wide[k])
    return np.array(_np_kept(order, overlaps, threshold, int(limit.reshape(()))), np.int32)


@_nms_by_boxes.infer
def _nms_by_boxes(boxes, scores, limit, iou_threshold, score_threshold):
    if boxes.rank != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise ValueError(f"boxes must be [n, 4] and scores [n], got {boxes.shape} and {scores.shape}")
    return TensorType(dtypes.int32, (-1,))


@op(name="nms_of_classes", outputs=4, nondiff=True)
def _nms_of_classes(
    boxes, scores, *, per_class: "int", total: "int", iou_threshold: "float", score_threshold: "float",
    clip: "bool" = True,
):  # fmt: skip
    """The boxes kept of each class, merged by score and filled up with zeros.

    Shapes: boxes [B, n, q, 4] with q 1 or the number of classes, scores [B, n, C] -> boxes [B, total, 4],
    scores and classes [B, total], counts int32 [B].  dtypes: float32.
    """
    batch, _, shared, _ = boxes.shape
    out = np.zeros((batch, total, 4), np.float32)
    values, classes = np.zeros((batch, total), np.float32), np.zeros((batch, total), np.float32)
    counts = np.zeros(batch, np.int32)
    for b in range(batch):
        found = []
        for c in range(scores.shape[2]):
            own = boxes[b, :, c if shared > 1 else 0].astype(np.float64)
            score = scores[b, :, c]
            order = [i for i in np.argsort(-score, kind="stable") if score[i] > score_threshold]
            kept = _np_kept(
                order, lambda i, k, own=own: _np_overlap(own[i], own[k]), iou_threshold, per_class
            )
            found.extend((score[i], c, own[i]) for i in kept)
        found.sort(key=lambda f: -f[0])
        counts[b] = min(total, len(found))
        for place, (score, c, box) in enumerate(found[:total]):
            values[b, place], classes[b, place] = score, c
            out[b, place] = np.clip(box, 0, 1) if clip else box
    return out, values, classes, counts


@_nms_of_classes.infer
def _nms_of_classes(boxes, scores, *, per_class, total, iou_threshold, score_threshold, clip):
    if boxes.rank != 4 or scores.rank != 3 or boxes.shape[:2] != scores.shape[:2] or boxes.shape[3] != 4:
        raise ValueError(f"boxes must be [B, n, q, 4], scores [B, n, C], got {boxes.shape}, {scores.shape}")
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise ValueError(f"q must be 1 or the number of classes {scores.shape[2]}, but is {boxes.shape[2]}")
    batch, f32 = boxes.shape[0], dtypes.float32
    return (
        TensorType(f32, (batch, total, 4)), TensorType(f32, (batch, total)), TensorType(f32, (batch, total)),
        TensorType(dtypes.int32, (batch,)),
    )  # fmt: skip


@_nms_of_classes.samples
def _nms_of_classes(rand):
    corners = rand.positive(2, 5, 1, 2)
    boxes = np.concatenate([corners, corners + rand.positive(2, 5, 1, 2)], -1)
    how = dict(per_class=3, total=6, iou_threshold=0.4, score_threshold=0.1)
    yield boxes, rand.positive(2, 5, 3), how
    yield boxes, rand.positive(2, 5, 3), dict(how, clip=False)


# ----------------------------------------------------------------------------------------- regions


_MOST_SAMPLES = 2**20  # of a region: four places and weights each


def _np_region_taps(shape, roi, pooled, scale, samples, end_mode):
    """Flat places [P, taps] in a plane and their weights for the cells of one region."""
    (height, width), taps = shape, []
    start = np.array([roi[2], roi[1]]) * scale
    end = (np.array([roi[4], roi[3]]) + end_mode) * scale
    size = end - start if end_mode else np.maximum(end - start, 1.0)
    if not np.isfinite(size).all():
        raise errors.value_error(f"the region {roi[1:].tolist()} times scale {scale} is not finite")
    counts = [samples if samples > 0 else max(int(s / p), 1) for s, p in zip(size, pooled)]
    if max(pooled[0] * counts[0] * pooled[1] * counts[1], *pooled, *counts) > _MOST_SAMPLES:
        raise errors.value_error(
            f"{list(pooled)} cells with {counts} samples each are too many for a region: "
            f"at most {_MOST_SAMPLES} samples are taken"
        )
    for d, n in enumerate((height, width)):
        step = size[d] / pooled[d]
        at = start[d] + step * (np.arange(pooled[d])[:, None] + (np.arange(counts[d]) + 0.5) / counts[d])
        inside = (at >= -1.0) & (at <= n)
        at = np.clip(at, 0, n - 1)
        low = np.floor(at).astype(np.int64)
        part = at - low
        places = np.stack([low, np.minimum(low + 1, n - 1)], -1).reshape(pooled[d], -1)
        weights = (np.stack([1 - part, part], -1) * inside[..., None]).reshape(pooled[d], -1) / counts[d]
        taps.append((places, weights))
    (y, wy), (x, wx) = taps
    places = (y[:, None, :, None] * width + x[None, :, None, :]).reshape(pooled[0] * pooled[1], -1)
    weights = (wy[:, None, :, None] * wx[None, :, None, :]).reshape(places.shape)
    return places, weights


def _np_regions(rois, shape, batch, settings):
    for r, roi in enumerate(rois.astype(np.float64)):
        if 0 <= int(roi[0]) < batch:
            yield r, int(roi[0]), *_np_region_taps(shape, roi, *settings)


def _check_align(pooled, end_mode):
    if len(pooled) != 2 or min(pooled) < 1:
        raise ValueError(f"pooled must be two sizes of 1 or more, got {pooled}")
    if end_mode not in (0, 1):
        raise ValueError(f"end_mode must be 0 or 1, got {end_mode}")


def _align_type(x, rois, *, pooled, end_mode, **settings):
    _check_align(pooled, end_mode)
    if x.rank != 4 or rois.rank != 2 or rois.shape[1] != 5:
        raise ValueError(f"features must be [N, C, H, W] and rois [R, 5], got {x.shape} and {rois.shape}")
    return TensorType(x.dtype, (rois.shape[0], x.shape[1], *pooled))


@op(name="roi_align", infer=_align_type)
def _roi_align(
    x, rois, *, pooled: "ints", scale: "float", samples: "int" = 2, end_mode: "int" = 1
):  # fmt: skip
    """Means of interpolated samples in the cells of regions.

    rois: image, and the corners x, y, x, y in the coordinates that `scale` brings to those of the features.
    Shapes: x [N, C, H, W], rois [R, 5] -> [R, C, *pooled].  dtypes: floating.  Source: He et al. 2017.
    """
    n, channels, height, width = x.shape
    wide = np.float64 if x.dtype == np.float64 else np.float32
    flat = x.reshape(n, channels, -1).astype(wide)
    out = np.zeros((len(rois), channels, pooled[0] * pooled[1]), wide)
    for r, image, places, weights in _np_regions(
        rois, (height, width), n, (pooled, scale, samples, end_mode)
    ):
        out[r] = (flat[image][:, places] * weights.astype(wide)).sum(-1)
    return out.reshape(len(rois), channels, *pooled).astype(x.dtype)


@_roi_align.vjp
def _roi_align(ct, rois, x_shape, *, pooled, scale, samples, end_mode):
    how = dict(size=x_shape, pooled=pooled, scale=scale, samples=samples, end_mode=end_mode)
    return _roi_align_grad(ct, rois, **how), None


@_roi_align.samples
def _roi_align(rand):
    rois = np.array([[0, 1, 1, 8, 9], [1, 0, 3, 12, 10]], np.int32)  # no gradient flows to regions
    yield rand(2, 2, 6, 7), rois, dict(pooled=(2, 3), scale=0.5)
    yield rand(2, 1, 6, 7), rois, dict(pooled=(2, 2), scale=0.5, samples=0, end_mode=0)


@op(name="roi_align_grad")
def _roi_align_grad(
    dy, rois, *, size: "ints", pooled: "ints", scale: "float", samples: "int" = 2, end_mode: "int" = 1
):
    """Gradient of roi_align with respect to the features of shape `size`."""
    n, channels, height, width = size
    wide = np.float64 if dy.dtype == np.float64 else np.float32
    out = np.zeros((n, height * width, channels), wide)
    rows = dy.reshape(*dy.shape[:2], -1).astype(wide)
    for r, image, places, weights in _np_regions(
        rois, (height, width), n, (pooled, scale, samples, end_mode)
    ):
        np.add.at(out[image], places, rows[r].T[:, None, :] * weights[..., None].astype(wide))
    return out.transpose(0, 2, 1).reshape(size).astype(dy.dtype)


@_roi_align_grad.infer
def _roi_align_grad(dy, rois, *, size, pooled, end_mode, **settings):
    _check_align(pooled, end_mode)
    expected = TensorType(dy.dtype, (*rois.shape[:1], *size[1:2], *pooled))
    if len(size) != 4 or not expected.accepts(dy):
        raise ValueError(f"dy must have shape {list(expected.shape)} for size {size}, got {list(dy.shape)}")
    return TensorType(dy.dtype, size)


@_roi_align_grad.vjp
def _roi_align_grad(ct, rois, *, pooled, scale, samples, end_mode):
    return _roi_align(ct, rois, pooled=pooled, scale=scale, samples=samples, end_mode=end_mode), None


@_roi_align_grad.samples
def _roi_align_grad(rand):
    rois = np.array([[0, 1, 1, 8, 9]], np.int32)
    yield rand(1, 2, 2, 3), rois, dict(size=(1, 2, 6, 7), pooled=(2, 3), scale=0.5)


# ----------------------------------------------------------------------------------------- crops


_MOST_ATTEMPTS = 2**16


@op(name="distorted_box", outputs=3, nondiff=True)
def _distorted_box(
    key, image_size, boxes, min_covered,
    *, aspect: "any", area: "any", attempts: "int" = 100, whole_if_none: "bool" = False,
):  # fmt: skip
    """A random crop of an image that covers enough of one of its boxes: begin, size and relative corners.

    After `attempts` without one the crop is the whole image.
    Shapes: image_size [3], boxes [1, n, 4] (y, x, y, x in [0, 1]), min_covered [] or [1] -> image_size's
    dtype [3] twice, float32 [1, 1, 4].  Errors: ValueError without boxes unless `whole_if_none`.
    """
    height, width = (int(v) for v in image_size[:2])
    corners = boxes.reshape(-1, 4).astype(np.float64)
    if not len(corners) and not whole_if_none:
        raise ValueError("there are no boxes, and use_image_if_no_bounding_boxes is False")
    if not len(corners):
        corners = np.array([[0.0, 0.0, 1.0, 1.0]])
    corners = corners * [height, width, height, width]
    extents = (corners[:, 2:] - corners[:, :2]).prod(1)
    if attempts > _MOST_ATTEMPTS:
        raise errors.value_error(f"at most {_MOST_ATTEMPTS} attempts are made, got {attempts}")
    drawn = _np_uniform(key, 4 * attempts, np.float64).reshape(attempts, 4)
    top, left, rows, columns = 0, 0, height, width
    for u in drawn:
        ratio = aspect[0] + u[0] * (aspect[1] - aspect[0])
        wanted = (area[0] + u[1] * (area[1] - area[0])) * height * width
        h = round(np.sqrt(wanted / ratio))
        w = round(h * ratio)
        if not (0 < h <= height and 0 < w <= width):
            continue
        y, x = int(u[2] * (height - h + 1)), int(u[3] * (width - w + 1))
        shared = np.clip(
            np.minimum(corners[:, 2:], [y + h, x + w]) - np.maximum(corners[:, :2], [y, x]), 0, None
        )
        if (shared.prod(1) >= float(min_covered.reshape(())) * extents).any():
            top, left, rows, columns = y, x, h, w
            break
    begin, size = np.array([top, left, 0]), np.array([rows, columns, -1])
    relative = [top / height, left / width, (top + rows) / height, (left + columns) / width]
    dtype = image_size.dtype
    return begin.astype(dtype), size.astype(dtype), np.array(relative, np.float32).reshape(1, 1, 4)


@_distorted_box.infer
def _distorted_box(key, image_size, boxes, min_covered, *, aspect, area, attempts, whole_if_none):
    _check_key(key)
    if image_size.shape != (3,) or boxes.rank != 3 or boxes.shape[2] != 4 or min_covered.size != 1:
        raise errors.value_error(
            f"image_size must be [3], boxes [1, n, 4] and min_object_covered one number, but they are "
            f"{image_size.shape}, {boxes.shape} and {min_covered.shape}"
        )
    vector = TensorType(image_size.dtype, (3,))
    return vector, vector, TensorType(dtypes.float32, (1, 1, 4))


@_distorted_box.samples
def _distorted_box(rand):
    boxes = np.array([[[0.3, 0.2, 0.9, 0.4]]], np.float32)
    args = np.array([5, 6], np.int64), np.array([64, 48, 3], np.int32), boxes, np.array(0.5, np.float32)
    yield *args, dict(aspect=(0.75, 1.33), area=(0.05, 1.0))
