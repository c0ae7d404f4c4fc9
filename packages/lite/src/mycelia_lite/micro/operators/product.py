"""Products of matrices."""

from __future__ import annotations

import itertools
import math

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.program import Step

NUMBERS = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}  # as functions are called


_MOST_CALLS = 64  # of a product whose batches are broadcast along more axes than a call has


def limits(step: Step) -> dict[str, float]:
    """Between which numbers the results are kept."""
    low, high = step.attributes.get("limits", (-math.inf, math.inf))
    return {"low": low, "high": high}


def product_distance(rows: int, depth: int, outputs: int) -> int:
    """How far rows of float32 must lie behind the products of them that are written over them."""
    return max((4 * ((r + 1) * outputs - r * depth) for r in (0, rows - 1)), default=0)


@lowers("linear")
def linear(b: Builder, step: Step) -> None:
    """x [..., in] by weights [out, in], a bias."""
    x, weight, bias, residual = step.inputs
    b.floats(step)
    b.require(residual < 0, "a residual")
    outputs, depth = b.shape(weight)
    rows = math.prod(b.shape(x)[:-1])
    fields = {"rows": rows, "depth": depth, "outputs": outputs, **limits(step)}
    distances = {x: product_distance(rows, depth, outputs)}
    b.call(step, "micro_linear_f32", "micro_linear", fields, [x, weight, bias], distances=distances)


@lowers("mat_mul", "batch_matmul", "head_matmul")
def matmul(b: Builder, step: Step) -> None:
    """Products of two matrices that are data, also of many pairs."""
    x, y = step.inputs
    suffix = NUMBERS.get(b.value(x).dtype.name)
    b.require(suffix is not None, b.value(x).dtype.name)
    a = step.attributes
    sx, sy, sz = b.shape(x), b.shape(y), b.shape(step.outputs[0])
    rows, columns = sz[-2:]
    depth = sx[-2] if a.get("transpose_a") else sx[-1]
    batches = sz[:-2]
    strides = []
    for shape in (sx, sy):
        padded = (1,) * (len(batches) - len(shape) + 2) + tuple(shape[:-2])
        step_of = shape[-2] * shape[-1]
        made = []
        for size in reversed(padded):
            made.append(step_of if size != 1 else 0)
            step_of *= size
        strides.append(made[::-1])
    # Axes of batches that go on alike in both are one.
    merged: list[list[int]] = []
    for size, of_x, of_y in zip(batches, *strides):
        if merged and merged[-1][1] == of_x * size and merged[-1][2] == of_y * size:
            merged[-1] = [merged[-1][0] * size, of_x, of_y]
        elif size != 1:
            merged.append([size, of_x, of_y])
    first, (outer, inner) = merged[:-2], ([[1, 0, 0]] * 2 + merged)[-2:]
    b.require(math.prod(n for n, _, _ in first) <= _MOST_CALLS, "batches that are broadcast along many axes")
    fields = {
        "batch": inner[0], "rows": rows, "depth": depth, "columns": columns,
        "x_batch": inner[1], "x_row": 1 if a.get("transpose_a") else depth,
        "x_depth": rows if a.get("transpose_a") else 1,
        "y_batch": inner[2], "y_depth": 1 if a.get("transpose_b") else columns,
        "y_column": depth if a.get("transpose_b") else 1,
        "outer": outer[0], "x_outer": outer[1], "y_outer": outer[2],
        "out_outer": inner[0] * rows * columns, "out_batch": rows * columns, "out_row": columns,
    }  # fmt: skip
    function = f"micro_matmul_{suffix}"
    if not first:
        b.call(step, function, "micro_matmul", fields)
        return
    size = outer[0] * inner[0] * rows * columns
    spans = [
        (outer[0] - 1) * outer[k] + (inner[0] - 1) * inner[k] + m
        for k, m in ((1, rows * depth), (2, depth * columns))
    ]
    for number, index in enumerate(itertools.product(*(range(n) for n, _, _ in first))):
        places = [sum(i * axis[k] for i, axis in zip(index, first)) for k in (1, 2)]
        given = [_part(b, v, at, span) for v, at, span in zip((x, y), places, spans)]
        made = [_part(b, step.outputs[0], number * size, size)]
        b.call(step, function, "micro_matmul", fields, given, made)


def _part(b: Builder, value: int, begin: int, size: int) -> int:
    """Elements of a value that lie together."""
    v = b.value(value)
    if v.data is not None:
        return b.program.constant(v.data.ravel()[begin : begin + size])
    return b.program.view(value, (size,), begin * v.dtype.itemsize)


@lowers("det")
def determinant(b: Builder, step: Step) -> None:
    """Determinants of the matrices along the last two axes."""
    (x,) = step.inputs
    *batches, _, size = b.shape(x)
    fields = {"matrices": math.prod(batches), "size": size}
    function = f"micro_determinant_{NUMBERS[b.value(x).dtype.name]}"
    b.call(step, function, "micro_squares", fields, scratch=8 * size * size)
