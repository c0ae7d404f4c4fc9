"""Softmax, normalizations and reductions along axes."""

from __future__ import annotations

import math

import numpy as np

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.program import Step


def along(shape: tuple[int, ...], axis: int) -> dict[str, int]:
    """The fields of `micro_axis`."""
    axis %= max(1, len(shape))
    sizes = shape or (1,)
    return {"outer": math.prod(sizes[:axis]), "size": sizes[axis], "inner": math.prod(sizes[axis + 1 :])}


@lowers("softmax", "log_softmax")
def softmax(b: Builder, step: Step) -> None:
    """Exponentials of a row by their sum."""
    b.floats(step)
    fields = along(b.shape(step.inputs[0]), step.attributes["axis"])
    distances = {step.inputs[0]: 0} if fields["inner"] == 1 else {}
    b.call(step, f"micro_{step.op}_f32", "micro_axis", fields, distances=distances)


@lowers("layer_norm")
def layer_norm(b: Builder, step: Step) -> None:
    """Rows by mean and deviation; what the step tells of these is not read."""
    b.floats(step)
    x = step.inputs[0]
    shape, begin = b.shape(x), step.attributes["begin_norm_axis"]
    fields = {
        "rows": math.prod(shape[:begin]),
        "size": math.prod(shape[begin:]),
        "epsilon": step.attributes["epsilon"],
    }
    b.call(step, "micro_layer_norm_f32", "micro_rows", fields, outputs=step.outputs[:1], distances={x: 0})


_REDUCTIONS = {"sum": "sum", "mean": "sum", "reduce_max": "max", "reduce_min": "min", "prod": "prod"}


@lowers("sum", "mean", "reduce_max", "reduce_min", "prod", "all", "l2_norm")
def reduction(b: Builder, step: Step) -> None:
    """One number of all along some axes."""
    (x,) = step.inputs
    a = step.attributes
    value = b.value(x)
    axes = a.get("axis", a.get("dim", []))
    if not a.get("has_axis", a.get("has_dim")) or not axes:
        axes = list(range(len(value.shape)))
    axes = sorted(n % max(1, len(value.shape)) for n in axes)
    kind = _REDUCTIONS.get(step.op)
    names = {"float32": "f32", "int32": "i32", "int64": "i64"}
    b.require(kind is not None and value.dtype.name in names, value.dtype.name)
    b.require(
        not a.get("has_dtype") or b.value(step.outputs[0]).dtype == value.dtype, "another dtype of the result"
    )
    # Axes that stay and that go, as runs: at most two of each.
    runs: list[list[int]] = []
    for d, size in enumerate(value.shape):
        gone = d in axes
        if size == 1:
            continue
        if runs and runs[-1][0] == gone:
            runs[-1][1] *= size
        else:
            runs.append([gone, size])
    if not runs or not runs[0][0] == 0:
        runs.insert(0, [0, 1])
    while len(runs) < 4:
        runs.append([len(runs) % 2, 1])
    b.require(len(runs) == 4, "axes in more than two places")
    outer, first, inner, second = (size for _, size in runs)
    fields = {"outer": outer, "first": first, "inner": inner, "second": second}
    if value.dtype == np.float32:
        fields["scale"] = 1.0 / max(1, first * second) if step.op == "mean" else 1.0
        b.call(step, f"micro_reduce_{kind}_f32", "micro_reduction", fields)
        return
    b.require(step.op != "mean", f"the mean of {value.dtype.name}")
    b.call(step, f"micro_reduce_{kind}_{names[value.dtype.name]}", "micro_reduction", fields | {"scale": 1.0})
