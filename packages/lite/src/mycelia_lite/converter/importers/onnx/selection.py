"""ONNX operators whose results have sizes that depend on data."""

from __future__ import annotations

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    cast,
    known,
    operator,
    positive_axis,
    scalar,
    shape_of,
)
from mycelia_lite.converter.runtime_op import OPEN, custom


@operator("NonZero")
def _nonzero(call, x):
    numbers = known(x)
    if numbers is not None:
        return ms.Tensor(np.stack(np.nonzero(numbers)).astype(np.int64))
    return custom("nonzero", [x], [(ms.int64, (x.ndim, OPEN))])


def _along(call, x):
    """[the axis] that elements are found along, [] for all of them, and the shape of what is found."""
    axis = call.get("axis")
    if axis is None:
        return [], [OPEN]
    axis = positive_axis(call, axis, x.ndim)
    return [axis], [OPEN if d == axis else n for d, n in enumerate(shape_of(x))]


@operator("Compress")
def _compress(call, x, condition):
    given, shape = _along(call, x)
    return custom("compress", [x, cast(condition, ms.bool_)], [(x.dtype, shape)], axis=given)


@operator("Unique")
def _unique(call, x):
    """The distinct elements or slices, the first place of each, which of them each is, their counts."""
    given, shape = _along(call, x)
    types = [(x.dtype, shape), *[(ms.int64, (OPEN,))] * 3]
    return custom("unique", [x], types, axis=given, sorted=call.choice("sorted", 1, (0, 1)))


@operator("NonMaxSuppression")
def _nms(call, boxes, scores, most=None, overlap=None, score=None):
    center = call.choice("center_point_box", 0, (0, 1))
    most = ms.Tensor(0, ms.int64) if most is None else most
    inputs = [boxes, scores, most, scalar(0.0, boxes) if overlap is None else ops.reshape(overlap, ())]
    if score is not None:
        inputs.append(ops.reshape(score, ()))
    attributes = dict(center=center, with_score=int(score is not None))
    return custom("nms", inputs, [(ms.int64, (OPEN, 3))], **attributes)
