"""`fused_map`: the kernel against the body on random programs, special values, threads, limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelia import Tensor, config, dtypes
from mycelia.engine.ops.fusion import INT
from mycelia.engine.ops.lowered import fused_steps
from mycelia.engine.ops.lowered.fused import fused_map
from mycelia.engine.ops.lowered.fused_program import Program
from mycelia.engine.ops.lowered.fused_steps import FULL

DTYPES = {"float32": dtypes.float32, "int32": dtypes.int32, "bool": dtypes.bool_}
SMOOTH = ["tanh", "sigmoid", "sin", "cos", "erf", "relu", "abs", "neg", "hardsigmoid", "relu6"]
BINARY = ["add", "sub", "mul", "maximum", "minimum"]


def run(arrays, program):
    return fused_map([Tensor(a) for a in arrays], code=program.code())


def body(arrays, program):
    return fused_map.definition.body(tuple(arrays), code=program.code())


def assert_equal(arrays, program, rtol=2e-6, atol=2e-6):
    for found, want in zip(run(arrays, program), body(arrays, program), strict=True):
        assert found.shape == want.shape
        np.testing.assert_allclose(found.asnumpy(), want, rtol, atol)


@st.composite
def programs(draw):
    """A random program of float32 values with its inputs: shapes that broadcast, masks, rows and columns."""
    space = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 7, 16, 31, 130]), min_size=1, max_size=4)))
    rank = len(space)
    axes = draw(st.integers(0, rank - 1))
    program = Program(row_axes=axes, column_axes=axes)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    arrays, values = [rng.uniform(-2, 2, space).astype(np.float32)], [program.input(dtypes.float32)]
    for _ in range(draw(st.integers(0, 3))):
        shape = tuple(1 if draw(st.booleans()) else n for n in space)[draw(st.integers(0, rank)) :]
        arrays.append(rng.uniform(-2, 2, shape).astype(np.float32))
        values.append(program.input(dtypes.float32))
    arrays.append(rng.random(space[-1:]) > 0.5)
    inputs, masks = list(values), [program.input(dtypes.bool_)]
    for _ in range(draw(st.integers(1, 12))):
        a, b = (draw(st.sampled_from(values)) for _ in range(2))
        kind = draw(st.sampled_from(["unary", "binary", "constant", "compare", "select", "row"]))
        if kind == "unary":
            values.append(program.step(draw(st.sampled_from(SMOOTH)), a))
        elif kind == "binary":
            found = program.step(draw(st.sampled_from(BINARY)), a, b)
            values.append(program.step("clip", found, program.constant(-4), program.constant(4)))
        elif kind == "constant":
            values.append(program.step(draw(st.sampled_from(BINARY)), a, program.constant(0.5)))
        elif kind == "compare":  # of inputs: they are exact, so that no last place turns the result
            a, b = (draw(st.sampled_from(inputs)) for _ in range(2))
            masks.append(program.step(draw(st.sampled_from(["less", "less_equal", "not_equal"])), a, b))
        elif kind == "select":
            values.append(program.step("select", draw(st.sampled_from(masks)), a, b))
        elif axes:
            found = program.step(draw(st.sampled_from(["sum_row", "max_row", "min_row"])), a)
            values.append(program.step("tanh", found))
    for value in values[-3:]:
        program.output(value, FULL)
    program.output(masks[-1], FULL)
    bounded = program.step("tanh", values[-1])
    program.output(program.step("sum_all", bounded, program.constant(1.0)))
    if axes:
        program.output(program.step("sum_columns", bounded, program.constant(2.0)))
    return arrays, program


@settings(max_examples=100, deadline=None)
@given(programs())
def test_random_programs_equal_their_meaning(drawn):
    arrays, program = drawn
    if program.code() is None:  # past the limits
        return
    assert_equal(arrays, program, 2e-4, 2e-4)


def test_every_primitive_of_one_value_equals_its_meaning():
    x = np.concatenate([np.linspace(-5, 5, 77), [0.0, -0.0, 1e-3, -1e-3]]).astype(np.float32)
    for name, (arity, type, function) in fused_steps.PRIMITIVES.items():
        if arity != 1 or function is None or type is not None or name == "spread":
            continue
        program = Program()
        program.output(program.step(name, program.input(dtypes.float32)))
        positive = name in ("log", "sqrt", "rsqrt", "log1p")
        assert_equal([np.abs(x) + np.float32(0.1) if positive else x], program, 2e-6, 1e-6)


def test_nan_and_infinities_pass_through():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0] * 9, np.float32)
    program = Program()
    v = program.input(dtypes.float32)
    for name in ("relu", "neg", "exp", "tanh", "square"):
        program.output(program.step(name, v))
    program.output(program.step("clip", v, program.constant(-1.0), program.constant(1.0)))
    program.output(program.step("maximum", v, program.constant(0.0)))
    program.output(program.step("less", v, program.constant(0.0)))
    for found, want in zip(run([x], program), body([x], program), strict=True):
        np.testing.assert_allclose(found.asnumpy(), want, 1e-6)


def test_integers_and_casts():
    program = Program()
    i, f, m = (program.input(DTYPES[name]) for name in ("int32", "float32", "bool"))
    program.output(program.step("mul_int", i, program.constant(3, INT)))
    program.output(program.step("float_of_int", i))
    program.output(program.step("int_of_float", f))
    program.output(program.step("int_of_mask", m))
    program.output(program.step("less_equal_int", i, program.constant(2, INT)))
    program.output(program.step("xor", m, program.step("mask_of_float", f)))
    arrays = [
        np.arange(-7, 30, dtype=np.int32),
        np.linspace(-3, 3, 37, dtype=np.float32),
        np.arange(37) % 3 == 0,
    ]
    for found, want in zip(run(arrays, program), body(arrays, program), strict=True):
        assert found.asnumpy().dtype == want.dtype
        np.testing.assert_array_equal(found.asnumpy(), want)


@pytest.mark.parametrize("shape", [(100003,), (517, 773), (3, 70001), (1031, 5, 19)])
def test_results_have_the_same_bits_for_any_number_of_threads(shape):
    rng = np.random.default_rng(1)
    arrays = [
        rng.standard_normal(shape).astype(np.float32),
        rng.standard_normal(shape[-1:]).astype(np.float32),
    ]
    program = Program(column_axes=min(1, len(shape) - 1))
    x, y = program.input(dtypes.float32), program.input(dtypes.float32)
    product = program.step("exp", program.step("mul", x, y))
    program.output(product)
    program.output(program.step("sum_all", product, program.constant(1.0)))
    if program.column_axes:
        program.output(program.step("sum_columns", product, program.constant(1.0)))
    before = config.get("runtime_num_threads")
    found = []
    try:
        for threads in (1, 2, 3):
            config.set_value("runtime_num_threads", threads)
            found.append([t.asnumpy().tobytes() for t in run(arrays, program)])
    finally:
        config.set_value("runtime_num_threads", before)
    assert found[0] == found[1] == found[2]


def test_long_sums_keep_their_digits():
    x = np.full((3000, 1000), 0.1, np.float32)
    program = Program(column_axes=1)
    v = program.step("add", program.input(dtypes.float32), program.constant(0.0))
    program.output(program.step("sum_all", v, program.constant(float(x.size))))
    program.output(program.step("sum_columns", v, program.constant(1.0)))
    mean, columns = run([x], program)
    np.testing.assert_allclose(mean.asnumpy(), 0.1, 1e-6)
    np.testing.assert_allclose(columns.asnumpy(), 300.0, 2e-6)


def test_a_product_and_a_sum_become_one_step_that_rounds_twice():
    program = Program()
    x, y = program.input(dtypes.float32), program.input(dtypes.float32)
    program.output(program.step("add", program.step("mul", x, y), x))
    assert len(fused_steps.Code(program.code()).steps) == 1
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(1001).astype(np.float32) for _ in range(2)]
    np.testing.assert_array_equal(run(arrays, program)[0].asnumpy(), arrays[0] * arrays[1] + arrays[0])


def test_a_program_past_the_limits_has_no_code():
    program = Program()
    value = program.input(dtypes.float32)
    for _ in range(fused_steps.MAX_STEPS + 1):
        value = program.step("tanh", value)
    program.output(value)
    assert program.code() is None


def test_a_wrong_number_of_inputs_is_an_error():
    program = Program()
    program.output(program.step("neg", program.input(dtypes.float32)))
    with pytest.raises(ValueError, match="takes 1 inputs, but 2 were given"):
        fused_map([Tensor([1.0]), Tensor([2.0])], code=program.code())


def test_values_of_rows_are_spread_over_them():
    program = Program(row_axes=1)
    x = program.input(dtypes.float32)
    program.output(program.step("sub", x, program.step("max_row", x)))
    assert program.widths[-1] == FULL
    assert_equal([np.random.default_rng(0).standard_normal((257, 9)).astype(np.float32)], program)
