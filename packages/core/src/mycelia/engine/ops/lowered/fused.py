"""One pass over memory for many elementwise ops: `fused_map`, made by the compiler only.

Its attribute is a program (`fused_program.py`) of the steps in `fused_steps.py`. Which op becomes which
steps, its block says (`ops/fusion.py`).
"""

import struct

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import broadcast_shapes
from mycelia.engine.ops.lowered.fused_program import Program
from mycelia.engine.ops.lowered.fused_steps import (
    COLUMN,
    DTYPES,
    FULL,
    NAMES,
    PRIMITIVES,
    ROW,
    Code,
    step_count,
)


def _output_shape(space: tuple, kind: int, kept: int, row_axes: int, column_axes: int) -> tuple:
    if kind == FULL:
        return space
    if kind == ROW:
        return space[: len(space) - row_axes] + (1,) * kept
    return (1,) * kept + (space[len(space) - column_axes :] if kind == COLUMN else ())


def _fused_type(xs, *, code):
    parts = Code(code)
    if len(xs) != parts.n_in:
        raise ValueError(f"the program takes {parts.n_in} inputs, but {len(xs)} were given")
    space = broadcast_shapes(*(x.shape for x in xs))
    return tuple(
        TensorType(DTYPES[type], _output_shape(space, kind, kept, parts.row_axes, parts.column_axes))
        for kind, kept, type in parts.outputs
    )


@op(infer=_fused_type, outputs=None, nondiff=True)
def fused_map(xs: "tensors", *, code: "code"):
    """The results of a program of elementwise steps and reductions, see `Program`.

    Shapes: any that broadcast -> the space, its rows, its columns or one element.
    dtypes: float32, int32, bool, float16, bfloat16.
    Errors: ValueError if the number of inputs differs from the program's.
    """
    parts = Code(code)
    space = broadcast_shapes(*(x.shape for x in xs))
    rows = tuple(range(len(space) - parts.row_axes, len(space)))
    leading = tuple(range(len(space) - parts.column_axes))
    values = dict(enumerate(xs))
    for i, bits in enumerate(parts.constants):
        values[parts.n_in + i] = struct.pack("<I", bits)  # its type shows at its use
    with np.errstate(all="ignore"):
        for number, _, target, *operands in parts.steps:
            name = NAMES[number]
            arity, _, function = PRIMITIVES[name]
            kind = "i4" if name.endswith("_int") else "f4"
            given = [values[k] for k in operands[:arity]]
            given = [np.frombuffer(v, kind)[0] if isinstance(v, bytes) else v for v in given]
            if name in ("sum_row", "max_row", "min_row"):
                reduce = {"sum_row": np.sum, "max_row": np.max, "min_row": np.min}[name]
                result = reduce(np.broadcast_to(given[0], space), axis=rows, keepdims=True)
            elif name in ("sum_all", "sum_columns"):
                axes = leading if name == "sum_columns" else None
                result = np.sum(np.broadcast_to(given[0], space), axis=axes, dtype=np.float64) / given[1]
            else:
                result = function(*given)
            values[target] = result
    results = []
    for i, (kind, kept, type) in enumerate(parts.outputs):
        shape = _output_shape(space, kind, kept, parts.row_axes, parts.column_axes)
        value = np.asarray(values[parts.first_output + i])
        if kind == FULL:
            value = np.broadcast_to(value, space)
        elif kind == ROW:
            value = np.broadcast_to(value, space[: len(space) - parts.row_axes] + (1,) * parts.row_axes)
        results.append(value.reshape(shape).astype(DTYPES[type].np))
    return tuple(results)


# ---- samples -----------------------------------------------------------------------------------------------


def _sample(shapes_or_dtypes, build, **axes):
    p = Program(**axes)
    build(p, *(p.input(d) for d in shapes_or_dtypes))
    return dict(code=p.code())


@fused_map.samples
def fused_map(rand):
    f32 = dtypes.float32

    def chain(p, x, y):
        p.output(p.step("mul", p.step("tanh", p.step("add", x, y)), p.constant(0.5)))

    code = _sample((f32, f32), chain)
    for left, right in (
        ((3, 4), (3, 4)), ((1,), (1,)), ((), ()), ((0, 4), (4,)), ((67, 31), (31,)), ((67, 31), (67, 1)),
        ((2, 3, 5, 7), (3, 1, 1)), ((5, 1, 7), (3, 1)), ((4099,), ()), ((3, 2111), (2111,)),
        ((3, 2111), (3, 1)), ((2, 4, 3, 1, 5), (4, 1, 6, 1)),
    ):  # fmt: skip
        yield [rand(*left), rand(*right)], code

    def masks(p, x, y, m):
        smaller = p.step("less", x, y)
        p.output(p.step("and", smaller, m))
        p.output(p.step("select", m, x, p.step("float_of_mask", smaller)))

    code = _sample((f32, f32, dtypes.bool_), masks)
    yield [rand(5, 37), rand(37), rand.bools(5, 1)], code
    yield [rand(5, 37), rand(5, 37), rand.bools(5, 37)], code

    def norm(p, x, gain):
        mean = p.step("mul", p.step("sum_row", x), p.constant(1 / 33))
        centred = p.step("sub", x, mean)
        variance = p.step("mul", p.step("sum_row", p.step("square", centred)), p.constant(1 / 33))
        scale = p.step("rsqrt", p.step("add", variance, p.constant(1e-5)))
        p.output(p.step("mul", p.step("mul", centred, scale), gain))
        p.output(mean, kept=1)
        p.output(variance)

    for rows in (1, 2, 129):
        yield [rand(rows, 33), rand(33)], _sample((f32, f32), norm, row_axes=1)

    def sums(p, x, y):
        product = p.step("mul", x, y)
        p.output(p.step("sum_all", product, p.constant(1.0)))
        p.output(p.step("sum_columns", product, p.constant(2.0)))
        p.output(product)

    for shape in ((7, 5), (1, 1), (300, 17), (3, 2111), (40, 3, 5)):
        yield [rand(*shape), rand(shape[-1])], _sample((f32, f32), sums, column_axes=1)


@fused_map.cost
def fused_map(inputs, outputs, *, code):
    return step_count(code) * max(t.size for t in inputs if t is not None)
