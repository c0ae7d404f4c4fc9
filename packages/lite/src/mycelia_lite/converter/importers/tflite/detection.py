"""What stands behind networks that find objects: boxes by their places against anchors, the best of them."""

from __future__ import annotations

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.onnx.calls import known_shape, scalar
from mycelia_lite.converter.importers.tflite.calls import Call, operator
from mycelia_lite.converter.importers.tflite.flexbuffer import numbers
from mycelia_lite.converter.runtime_op import at_run_time

_GREATEST = float(np.finfo(np.float32).max)
_OPTIONS = {  # option -> its default, None if it must be there
    "max_detections": None, "max_classes_per_detection": None, "detections_per_class": 100,
    "use_regular_nms": False, "nms_score_threshold": None, "nms_iou_threshold": None, "num_classes": None,
    "y_scale": None, "x_scale": None, "h_scale": None, "w_scale": None, "_output_quantized": False,
    "_support_output_type_float_in_quantized_op": False,
}  # fmt: skip


@operator("CUSTOM.TFLite_Detection_PostProcess")
def _detection(call, boxes, scores, anchors):
    """Corners, classes and scores of the best boxes, and how many were found."""
    options = _read(call)
    shapes = [known_shape(call, v) for v in (boxes, scores, anchors)]
    count = shapes[0][1] if len(shapes[0]) == 3 else -1
    if shapes[0] != (1, count, 4) or shapes[1][:2] != (1, count) or shapes[2] != (count, 4):
        raise call.fail(f"boxes, scores and anchors of shapes {[list(s) for s in shapes]}")
    if len(shapes[1]) != 3 or shapes[1][2] - options["num_classes"] not in (0, 1):
        raise call.fail(f"{options['num_classes']} classes with scores {list(shapes[1])}")
    most = int(options["max_detections"]) * int(options["max_classes_per_detection"])
    if not 0 < most <= 1 << 20:
        raise call.fail(f"{most} detections")
    *found, count = at_run_time(
        "DetectionPostProcess",
        (boxes, scores, anchors),
        [(ms.float32, (1, most, 4)), (ms.float32, (1, most)), (ms.float32, (1, most)), (ms.float32, (1,))],
        # MindSpore Lite reads the numbers from the back.
        scale=tuple(float(options[f"{axis}_scale"]) for axis in "hwxy"),
        nms_iou_threshold=float(options["nms_iou_threshold"]),
        nms_score_threshold=float(options["nms_score_threshold"]),
        max_detections=int(options["max_detections"]),
        detections_per_class=int(options["detections_per_class"]),
        max_classes_per_detection=int(options["max_classes_per_detection"]),
        num_classes=int(options["num_classes"]),
        use_regular_nms=bool(options["use_regular_nms"]),
    )
    each = (
        1 if options["use_regular_nms"] else min(options["max_classes_per_detection"], options["num_classes"])
    )
    if each > 1:  # the file's operator counts results, TensorFlow Lite boxes
        count = ops.div(count, scalar(each, count))
    return (*found, count)


def _read(call: Call) -> dict:
    try:
        given = numbers(call.custom)
    except ValueError as error:
        raise call.fail(str(error), Code.GRAPH_FILE_ERROR) from error
    for name, value in given.items():
        if name not in _OPTIONS:
            raise call.option(name, value, "is not imported")
        if not abs(value) <= _GREATEST:
            raise call.option(name, value, "is no number of float32")
    for name, default in _OPTIONS.items():
        if default is None and name not in given:
            raise call.fail(f"the attribute '{name}' is missing", Code.INVALID_OP_ATTR)
    return _OPTIONS | given
