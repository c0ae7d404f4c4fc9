"""Operators of TensorFlow Lite that choose by their data: buckets, distinct elements, boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import cast, known, known_shape, need_known
from mycelia_lite.converter.importers.onnx.run_time import sizes
from mycelia_lite.converter.importers.tflite.calls import Call, operator, rank_of
from mycelia_lite.converter.runtime_op import OPEN, custom


@operator("BUCKETIZE")
def _bucketize(call, x):
    """How many of the boundaries, which rise, are not above each number; none is above NaN."""
    boundaries = np.asarray(call.get("BucketizeOptions", "boundaries"), np.float32)
    if (np.diff(boundaries) < 0).any():
        raise call.option("boundaries", boundaries.tolist(), "do not rise")
    wide = ops.expand_dims(x if x.dtype.is_floating else cast(x, ms.float64), -1)
    above = ops.less(wide, cast(ms.Tensor(boundaries), wide.dtype))
    return ops.sum(cast(ops.logical_not(above), ms.int32), -1, dtype=ms.int32)


@operator("UNIQUE")
def _unique(call, x):
    """The distinct elements in the order of their first places, and which of them each is."""
    if rank_of(x) != 1:
        raise call.fail(f"elements of {rank_of(x)} axes, 1 is needed")
    kind = call.name_of("UniqueOptions", "idx_out_type")
    if kind not in ("INT32", "INT64"):
        raise call.option("idx_out_type", kind, "is not imported")
    types = [(x.dtype, (OPEN,)), *[(ms.int64, (OPEN,))] * 3]
    found, _, which, _ = custom("unique", [x], types, axis=[], sorted=0)
    return found, cast(which, ms.int32 if kind == "INT32" else ms.int64)


def _boxes(call: Call, boxes: Any, scores: Any, most: Any, overlap: Any, score: Any) -> tuple[Any, int]:
    """The places of the best boxes [n], and how many there are at most."""
    count = known_shape(call, scores)[0] if rank_of(scores) == 1 else -1
    if known_shape(call, boxes) != (count, 4):
        raise call.fail(f"boxes {list(boxes.shape)} with scores {list(scores.shape)}")
    limit = int(need_known(call, most, "max_output_size").reshape(()))
    if not 0 <= limit <= 1 << 20:
        raise call.fail(f"{limit} boxes")
    inputs = [
        ops.expand_dims(boxes, 0), ops.reshape(scores, (1, 1, count)), ms.Tensor(limit, ms.int64),
        ops.reshape(overlap, ()), ops.reshape(score, ()),
    ]  # fmt: skip
    found = custom("nms", inputs, [(ms.int64, (OPEN, 3))], center=0, with_score=1)
    return ops.gather(found, ms.Tensor(2), 1), limit


def _filled(x: Any, count: int) -> Any:
    """x with zeros behind it."""
    return custom("pad_to", [x, ms.Tensor([count], ms.int64)], [(x.dtype, (count,))])


@operator("NON_MAX_SUPPRESSION_V4")
def _best_boxes(call, boxes, scores, most, overlap, score):
    found, limit = _boxes(call, boxes, scores, most, overlap, score)
    return _filled(cast(found, ms.int32), limit), cast(ops.reshape(sizes(found), ()), ms.int32)


@operator("NON_MAX_SUPPRESSION_V5")
def _best_boxes_and_scores(call, boxes, scores, most, overlap, score, sigma):
    """With a sigma of 0 alone, where what overlaps too much goes."""
    if known(sigma) is None or float(known(sigma).reshape(())) != 0:
        raise call.fail("soft_nms_sigma must be a constant of 0: scores that fade are not imported")
    found, limit = _boxes(call, boxes, scores, most, overlap, score)
    kept = _filled(ops.gather(scores, found, 0), limit)
    return _filled(cast(found, ms.int32), limit), kept, cast(ops.reshape(sizes(found), ()), ms.int32)
