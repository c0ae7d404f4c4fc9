"""Softmax, normalizations and reductions along axes."""

from __future__ import annotations

import math

import numpy as np

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.operators.product import NUMBERS
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


_REDUCTIONS = {
    "sum": "sum", "mean": "sum", "reduce_max": "max", "reduce_min": "min", "prod": "prod", "all": "min",
    "l2_norm": "norm",
}  # fmt: skip
_TYPES = {
    "sum": ("f32", "f64", "u8", "i8", "i32", "i64"), "max": ("f32", "f64", "i32", "i64"),
    "min": ("f32", "f64", "i32", "i64", "u8"), "prod": ("f32",), "norm": ("f32",),
}  # fmt: skip
_SUFFIXES = {"bool": "u8", "uint8": "u8", "int8": "i8"} | NUMBERS


@lowers(*_REDUCTIONS)
def reduction(b: Builder, step: Step) -> None:
    """One number of all along some axes."""
    (x,), (y,) = step.inputs, step.outputs
    a = step.attributes
    shape = b.shape(x)
    axes = a.get("axis", a.get("dim", []))
    if not a.get("has_axis", a.get("has_dim")) or not axes:
        axes = list(range(len(shape)))
    axes = {n % max(1, len(shape)) for n in axes}
    dtype, result = b.value(x).dtype, b.value(y).dtype
    kind, suffix = _REDUCTIONS[step.op], _SUFFIXES.get(dtype.name, "")
    b.require(suffix in _TYPES[kind] and (dtype.kind != "b" or step.op in ("all", "sum")), dtype.name)
    wide = kind == "sum" and dtype.kind in "iub"
    b.require(result == (np.int64 if wide else dtype), f"{dtype.name} with a result of {result.name}")
    # Axes that stay and that go, as runs.
    runs: list[tuple[bool, int]] = []
    for d, size in enumerate(shape):
        gone = d in axes
        if size == 1:
            continue
        if runs and runs[-1][0] == gone:
            runs[-1] = (gone, runs[-1][1] * size)
        else:
            runs.append((gone, size))
    if not runs or runs[0][0]:
        runs.insert(0, (False, 1))
    while len(runs) < 4 or len(runs) % 2:
        runs.append((len(runs) % 2 == 1, 1))
    sizes = [size for _, size in runs]
    while sizes:  # a call for two runs that go, the last ones first
        outer, (first, inner, second) = math.prod(sizes[:-3]), sizes[-3:]
        sizes = [*sizes[:-4], sizes[-4] * inner, 1] if len(sizes) > 4 else []
        made = b.program.add(result, (outer * inner,)) if sizes else y
        fields = {"outer": outer, "first": first, "inner": inner, "second": second}
        fields["scale"] = 1.0 / max(1, first * second) if step.op == "mean" else 1.0
        # What is written lies on what was read, as long as it is no wider.
        distances = {x: 0} if result.itemsize <= b.value(x).dtype.itemsize else {}
        b.call(step, f"micro_reduce_{kind}_{suffix}", "micro_reduction", fields, [x], [made], 0, distances)
        x, suffix = made, _SUFFIXES[result.name]
