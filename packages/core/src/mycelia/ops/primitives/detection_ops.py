"""Boxes of detectors."""

from mycelia import ops
from mycelia.engine.ops.images import detection as _detection
from mycelia.ops.primitives.checks import Misfit, boolean, integer, natural, positive, real, within
from mycelia.ops.primitives.define import primitive
from mycelia.ops.primitives.random_ops import next_key, own_stream


@primitive
def NMSWithMask(bboxes, *, iou_threshold: real = 0.5):
    """Boxes by falling score, their places, and which of them overlap none with a higher score too much."""
    return _detection._nms_with_mask(bboxes, iou_threshold=iou_threshold)


def _mode(value):
    if value not in ("iou", "iof"):
        raise KeyError(f"mode must be 'iou' or 'iof', but got {value!r}")
    return value


@primitive
def IOU(x, y, *, mode: _mode = "iou"):
    """Overlap of each pair of boxes, see `ops.iou`."""
    return ops.iou(x, y, mode)


def _four(value):
    if not isinstance(value, tuple) or not all(isinstance(v, (int, float)) for v in value):
        raise Misfit(TypeError, "a tuple of 4 floats")
    return value


def _size(value):
    if not isinstance(value, (tuple, list)):
        raise Misfit(TypeError, "a tuple of 2 ints")
    return tuple(value)


@primitive
def BoundingBoxEncode(
    anchor_box, groundtruth_box, *, means: _four = (0.0, 0.0, 0.0, 0.0), stds: _four = (1.0, 1.0, 1.0, 1.0)
):
    """Shift and growth from anchors to boxes, see `ops.bounding_box_encode`."""
    return ops.bounding_box_encode(anchor_box, groundtruth_box, means, stds)


@primitive
def BoundingBoxDecode(
    anchor_box, deltas,
    *, max_shape: _size, means: _four = (0.0, 0.0, 0.0, 0.0), stds: _four = (1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip: real = 0.016,
):  # fmt: skip
    """Boxes from anchors, shifts and growths, see `ops.bounding_box_decode`."""
    return ops.bounding_box_decode(anchor_box, deltas, max_shape, means, stds, wh_ratio_clip)


@primitive
def CheckValid(bboxes, img_metas):
    """Which boxes lie inside of an image, see `ops.check_valid`."""
    return ops.check_valid(bboxes, img_metas)


@primitive
def ROIAlign(
    features, rois,
    *, pooled_height: positive, pooled_width: positive, spatial_scale: real, sample_num: integer = 2,
    roi_end_mode: within(integer, 0, 1) = 1,
):  # fmt: skip
    """Means of interpolated samples in the cells of regions.

    Shapes: features [N, C, H, W], rois [R, 5] (image, x, y, x, y) -> [R, C, pooled_height, pooled_width].
    """
    pooled = (pooled_height, pooled_width)
    return _detection._roi_align(
        features, rois, pooled=pooled, scale=spatial_scale, samples=max(sample_num, 0), end_mode=roi_end_mode
    )


@primitive
def NonMaxSuppressionWithOverlaps(overlaps, scores, max_output_size, overlap_threshold, score_threshold):
    """Indices of the boxes kept, given all overlaps. Shapes: [n, n], [n], numbers -> int32 [k]."""
    return _detection._nms_by_overlaps(overlaps, scores, max_output_size, overlap_threshold, score_threshold)


@primitive
def NonMaxSuppressionV3(boxes, scores, max_output_size, iou_threshold, score_threshold):
    """Indices of the boxes kept. Shapes: [n, 4], [n], numbers -> int32 [k]."""
    return _detection._nms_by_boxes(boxes, scores, max_output_size, iou_threshold, score_threshold)


@primitive
def CombinedNonMaxSuppression(
    boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, score_threshold,
    *, pad_per_class: boolean = False, clip_boxes: boolean = True,
):  # fmt: skip
    """The boxes kept of each class, merged by score: boxes, scores, classes and counts.

    Shapes: boxes [B, n, q, 4], scores [B, n, C] -> [B, total, 4], [B, total] twice, int32 [B].
    """
    per_class, total = int(max_output_size_per_class), int(max_total_size)
    if pad_per_class:
        total = min(total, per_class * scores.shape[2])
    return _detection._nms_of_classes(
        boxes, scores, per_class=per_class, total=total, iou_threshold=float(iou_threshold),
        score_threshold=float(score_threshold), clip=clip_boxes,
    )  # fmt: skip


def _range(value):
    if not isinstance(value, (tuple, list)):
        raise Misfit(TypeError, "a tuple of 2 floats")
    if len(value) != 2 or not 0 < value[0] <= value[1]:
        raise Misfit(ValueError, "two positive floats, the smaller one first")
    return tuple(map(float, value))


@primitive(state=own_stream)
def SampleDistortedBoundingBoxV2(
    image_size, bounding_boxes, min_object_covered,
    *, seed: natural = 0, seed2: natural = 0, aspect_ratio_range: _range = (0.75, 1.33),
    area_range: _range = (0.05, 1.0), max_attempts: positive = 100,
    use_image_if_no_bounding_boxes: boolean = False, state,
):  # fmt: skip
    """A random crop that covers enough of one of the boxes: begin, size and the crop as a box."""
    return _detection._distorted_box(
        next_key(state), image_size, bounding_boxes, min_object_covered, aspect=aspect_ratio_range,
        area=area_range, attempts=max_attempts, whole_if_none=use_image_if_no_bounding_boxes,
    )  # fmt: skip
