"""The best boxes of a detector by their places against anchors: TFLite_Detection_PostProcess."""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.meanings.places import shared
from mycelia_lite.converter.meanings.table import meaning


def _selected(corners: np.ndarray, scores: np.ndarray, most: int, score: float, overlap: float) -> list[int]:
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable").tolist():
        if len(kept) >= most or scores[i] < score:
            break
        if all(shared(corners[k], corners[i]) <= overlap for k in kept):
            kept.append(i)
    return kept


@meaning("DetectionPostProcess")
def detected(
    boxes, scores, anchors, *, scale, nms_iou_threshold, nms_score_threshold, max_detections,
    detections_per_class, max_classes_per_detection, num_classes, use_regular_nms,
):  # fmt: skip
    """Corners, classes, scores, and how many; `scale` of height, width, x and y. Centers y before x."""
    codes = boxes[0].astype(np.float64) / [scale[3], scale[2], scale[0], scale[1]]
    anchors, of_classes = anchors.astype(np.float64), scores[0, :, scores.shape[2] - num_classes :]
    centers = codes[:, :2] * anchors[:, 2:] + anchors[:, :2]
    halves = np.exp(codes[:, 2:]) * anchors[:, 2:] / 2
    corners = np.concatenate((centers - halves, centers + halves), 1)
    limits = nms_score_threshold, nms_iou_threshold
    found: list[tuple[int, int]] = []  # box and class
    if use_regular_nms:
        for label in range(num_classes):
            own = of_classes[:, label]
            found += [(i, label) for i in _selected(corners, own, detections_per_class, *limits)]
            found = sorted(found, key=lambda pair: -of_classes[pair])[:max_detections]
    else:
        for i in _selected(corners, of_classes.max(1), max_detections, *limits):
            order = np.argsort(-of_classes[i], kind="stable")[: min(max_classes_per_detection, num_classes)]
            found += [(i, int(label)) for label in order]
    most, n = max_detections * max_classes_per_detection, len(found)
    made = [np.zeros((1, most, 4), np.float32), *(np.zeros((1, most), np.float32) for _ in range(2))]
    if found:
        which, labels = (list(v) for v in zip(*found))
        made[0][0, :n], made[1][0, :n], made[2][0, :n] = corners[which], labels, of_classes[which, labels]
    return (*made, np.float32([n]))
