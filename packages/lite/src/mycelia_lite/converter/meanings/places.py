"""What is chosen by data, and what is written at places that are data."""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.meanings.table import meaning

_WRITERS = (None, np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum)


@meaning("nonzero")
def nonzero(x):
    return np.stack(np.nonzero(x)) if x.ndim else np.zeros((0, int(bool(x))), np.int64)


@meaning("compress")
def compressed(x, condition, *, axis):
    return np.compress(condition, x, axis[0] if axis else None)


@meaning("unique")
def distinct(x, *, axis, sorted):
    """The distinct elements or slices, the first place of each, which each is, how often each comes."""
    axis = axis[0] if axis else None
    made, first, which, counts = np.unique(x, True, True, True, axis=axis)
    which = which.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        made, first, counts = np.take(made, order, axis or 0), first[order], counts[order]
        which = np.argsort(order)[which]
    return made, first, which, counts


@meaning("nms")
def best_boxes(boxes, scores, most, overlap, score=None, *, center, with_score):
    """[image, class, box] of those that no better one covers: ONNX's NonMaxSuppression."""
    most, overlap = int(most.reshape(())), float(overlap.reshape(()))
    found = []
    for image, label in np.ndindex(*scores.shape[:2]):
        corners = corners_of(boxes[image].astype(np.float64), center)
        kept: list[int] = []
        for i in np.argsort(-scores[image, label], kind="stable").tolist():
            if len(kept) >= most or (score is not None and not scores[image, label, i] > score.reshape(())):
                break
            if all(shared(corners[k], corners[i]) <= overlap for k in kept):
                kept.append(i)
        found += [(image, label, i) for i in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def corners_of(boxes: np.ndarray, center: bool) -> np.ndarray:
    """[n, 4] as low and high corners, of two opposite corners or of centers and sizes."""
    if center:
        return np.concatenate((boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2), 1)
    return np.concatenate((np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])), 1)


def shared(a: np.ndarray, b: np.ndarray) -> float:
    """The area that two boxes share by that of both together; 0 for one without area."""
    areas = [np.prod(np.maximum(c[2:] - c[:2], 0)) for c in (a, b)]
    if min(areas) <= 0:
        return 0.0
    inner = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    return float(inner / (sum(areas) - inner))


def _written(x: np.ndarray, at: tuple[np.ndarray, ...], updates: np.ndarray, reduction: int) -> np.ndarray:
    made = x.copy()
    if reduction:
        _WRITERS[reduction].at(made, at, updates)
    else:
        for place in np.ndindex(*at[0].shape):  # the last of those at one place stays
            made[tuple(a[place] for a in at)] = updates[place]
    return made


@meaning("tensor_scatter")
def scattered(x, indices, updates, *, reduction):
    return _written(x, tuple(np.moveaxis(indices, -1, 0)), updates, reduction)


@meaning("scatter_elements")
def scattered_along(x, indices, updates, *, axis, reduction):
    at = list(np.indices(indices.shape))
    at[axis] = indices
    return _written(x, tuple(at), updates, reduction)


@meaning("UnsortedSegmentSum")
def summed_segments(x, ids, count):
    """Rows of negative numbers belong to no segment."""
    rows = x.reshape(ids.size, *x.shape[ids.ndim :])
    made = np.zeros((int(count.reshape(())), *rows.shape[1:]), x.dtype)
    kept = ids.reshape(-1) >= 0
    np.add.at(made, ids.reshape(-1)[kept], rows[kept])
    return made
