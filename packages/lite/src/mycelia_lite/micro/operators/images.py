"""Images of other sizes, regions of images, and the boxes of detectors."""

from __future__ import annotations

import math

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.program import Step


@lowers("resample")
def resample(b: Builder, step: Step) -> None:
    """Images of another size along an axis: sums of weighted slices."""
    x, places, _ = step.inputs
    b.floats(step, 0, 2)
    axis, shape = step.attributes["axis"], b.shape(x)
    fields = {
        "rows": math.prod(shape[:axis]), "from": shape[axis], "to": b.shape(step.outputs[0])[axis],
        "inner": math.prod(shape[axis + 1 :]), "each": b.shape(places)[1],
    }  # fmt: skip
    b.call(step, "micro_resample_f32", "micro_resampling", fields)


@lowers("crop_and_resize", "roi_pool")
def regions(b: Builder, step: Step) -> None:
    """Regions of images with the channels last, each of the same size."""
    b.floats(step, 0, 1)
    images, height, width, channels = b.shape(step.inputs[0])
    count, out_height, out_width, _ = b.shape(step.outputs[0])
    fields = {
        "regions": count, "images": images, "height": height, "width": width, "channels": channels,
        "out_height": out_height, "out_width": out_width, "number": step.attributes["number"],
    }  # fmt: skip
    name = "crop" if step.op == "crop_and_resize" else "pool_regions"
    b.call(step, f"micro_{name}_f32", "micro_regions", fields)


@lowers("roi_align")
def align_regions(b: Builder, step: Step) -> None:
    """Regions of images with the channels first: means or extremes of samples."""
    b.floats(step, 0, 1)
    images, channels, height, width = b.shape(step.inputs[0])
    count, _, out_height, out_width = b.shape(step.outputs[0])
    fields = step.attributes | {
        "regions": count, "images": images, "channels": channels, "height": height, "width": width,
        "out_height": out_height, "out_width": out_width,
    }  # fmt: skip
    b.call(step, "micro_align_regions_f32", "micro_aligning", fields)


@lowers("grid_sample")
def grid_sample(b: Builder, step: Step) -> None:
    """Elements of images at places of a grid."""
    b.floats(step)
    shape, grid = b.shape(step.inputs[0]), b.shape(step.inputs[1])
    fields = step.attributes | {
        "batch": shape[0], "channels": shape[1], "places": math.prod(grid[1:-1]), "rank": len(shape) - 2,
        "size": list(shape[2:]),
    }  # fmt: skip
    b.call(step, "micro_sample_grid_f32", "micro_grid", fields)


@lowers("deform_conv")
def deform_conv(b: Builder, step: Step) -> None:
    """A convolution whose taps lie off their places."""
    b.floats(step)
    (batch, channels, height, width), (_, outputs, out_height, out_width) = (
        b.shape(v) for v in (step.inputs[0], step.outputs[0])
    )
    fields = step.attributes | {
        "batch": batch, "channels": channels, "height": height, "width": width, "outputs": outputs,
        "out_height": out_height, "out_width": out_width,
    }  # fmt: skip
    inputs = (*step.inputs, -1, -1)[:5]
    b.call(step, "micro_conv_deformed_f32", "micro_deformed", fields, inputs)


@lowers("detections")
def detections(b: Builder, step: Step) -> None:
    """The boxes of a detector that remain where they overlap."""
    b.floats(step)
    a, scores = step.attributes, b.shape(step.inputs[1])
    fields = a | {"boxes": scores[1], "labels": scores[2], "scale": [a[f"scale{i}"] for i in range(4)]}
    scratch = 4 * 6 * scores[1]  # four places of a box, its largest score, which one is found
    b.call(step, "micro_detect_f32", "micro_detector", fields, scratch=scratch)
