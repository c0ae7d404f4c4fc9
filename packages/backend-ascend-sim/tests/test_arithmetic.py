"""The device computes by its written rules, to the last bit: compared with an emulation of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mycelia as ms
from mycelia import dtypes, ops
from mycelia.ops.define import find
from mycelia.testing.comparison import on_backend
from mycelia_backend_ascend_sim import arithmetic, options
from mycelia_backend_ascend_sim import testing as emulation
from mycelia_backend_ascend_sim.backend import device

HALVES = st.floats(width=16, allow_nan=False, allow_infinity=False)
DTYPES = ("float16", "bfloat16", "float32")


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """0 ULP: equal bits, any NaN for NaN."""
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(want[~np.isnan(want)]))


def tensor(x: np.ndarray, dtype: str) -> ms.Tensor:
    return ms.Tensor(x).astype(getattr(ms, dtype))


def drawn(rng, *shape) -> np.ndarray:
    """Numbers of very different size, so that each order of additions has a sum of its own."""
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 5, shape)).astype(np.float32)


def seen(x: np.ndarray, dtype: str) -> np.ndarray:
    """The float32 values that the cube sees of a tensor of `dtype` by default."""
    return emulation.bfloat16(x) if dtype == "bfloat16" else x.astype(np.float16).astype(np.float32)


def stored(x: np.ndarray, dtype: str) -> np.ndarray:
    """float32 values as the host reads a result of `dtype`."""
    if dtype == "bfloat16":
        return emulation.bfloat16(x)
    with np.errstate(over="ignore"):
        return x.astype(np.float16) if dtype == "float16" else x


def read(x: ms.Tensor) -> np.ndarray:
    return (x.astype(ms.float32) if x.dtype is ms.bfloat16 else x).asnumpy()


@pytest.fixture(autouse=True)
def on_device():
    with on_backend("Ascend"):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, k, n", [(3, 40, 5), (1, 16, 1), (6, 7, 2), (2, 17, 9), (4, 64, 3)])
def test_matrix_products(dtype, m, k, n):
    rng = np.random.default_rng(m * k * n)
    x, y = drawn(rng, m, k), drawn(rng, k, n)
    want = emulation.product(seen(x, dtype), seen(y, dtype))
    for a, b, flags in ((x, y, {}), (x.T, y, {"transpose_a": True}), (x, y.T, {"transpose_b": True})):
        got = find("mat_mul")(tensor(a.copy(), dtype), tensor(b.copy(), dtype), **flags)
        same_bits(read(got), stored(want, dtype))


def test_the_order_of_additions_is_seen():
    rng = np.random.default_rng(0)
    x, y = drawn(rng, 8, 80), drawn(rng, 80, 8)
    want = emulation.product(seen(x, "float32"), seen(y, "float32"))
    assert (want != seen(x, "float32") @ seen(y, "float32")).any()


def test_float32_operands_may_stay_as_they_are():
    rng = np.random.default_rng(1)
    x, y = drawn(rng, 3, 35), drawn(rng, 35, 4)
    with options.context(precision_mode="must_keep_origin_dtype"):
        got = ms.Tensor(x) @ ms.Tensor(y)
    same_bits(got.asnumpy(), emulation.product(x, y))
    with options.context(precision_mode="allow_fp32_to_bf16"):
        got = ms.Tensor(x) @ ms.Tensor(y)
    same_bits(got.asnumpy(), emulation.product(emulation.bfloat16(x), emulation.bfloat16(y)))


def test_sums_in_float16():
    rng = np.random.default_rng(2)
    x, y = drawn(rng, 3, 50), drawn(rng, 50, 4)
    want = emulation.product(seen(x, "float16"), seen(y, "float16"), half=True).astype(np.float16)
    with options.context(accumulate="fp16"):
        got = tensor(x, "float16") @ tensor(y, "float16")
    same_bits(got.asnumpy(), want)
    assert (want != emulation.product(seen(x, "float16"), seen(y, "float16")).astype(np.float16)).any()


@given(x=arrays(np.float16, (2, 19), elements=HALVES), y=arrays(np.float16, (19, 2), elements=HALVES))
def test_products_of_any_float16(x, y):
    with np.errstate(all="ignore"):
        want = emulation.product(x.astype(np.float32), y.astype(np.float32)).astype(np.float16)
    same_bits((ms.Tensor(x) @ ms.Tensor(y)).asnumpy(), want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "c, o, k, stride, pad, dilation", [(3, 4, 3, 1, 1, 1), (18, 2, 2, 2, 1, 1), (1, 17, 3, 1, 0, 2)]
)
def test_convolutions_and_their_gradients(dtype, c, o, k, stride, pad, dilation):
    rng = np.random.default_rng(c + o)
    x, w, b = drawn(rng, 2, c, 6, 5), drawn(rng, o, c, k, k), drawn(rng, o)
    how = dict(stride=(stride,) * 2, pad=(pad,) * 4, dilation=(dilation,) * 2)
    bias = b if dtype == "float32" else seen(b, dtype)
    want = emulation.conv(seen(x, dtype), seen(w, dtype), bias, stride, pad, dilation)
    got = find("conv")(tensor(x, dtype), tensor(w, dtype), tensor(b, dtype), **how)
    same_bits(read(got), stored(want, dtype))
    dy = drawn(rng, *want.shape)
    got = find("conv_input_grad")(tensor(dy, dtype), tensor(w, dtype), size=(6, 5), **how)
    want = emulation.conv_input_grad(seen(dy, dtype), seen(w, dtype), (6, 5), stride, pad, dilation)
    same_bits(read(got), stored(want, dtype))
    got = find("conv_weight_grad")(tensor(x, dtype), tensor(dy, dtype), kernel=(k, k), **how)
    want = emulation.conv_weight_grad(seen(x, dtype), seen(dy, dtype), (k, k), stride, pad, dilation)
    same_bits(read(got), stored(want, dtype))


def test_weights_that_are_infinite_do_not_meet_padding():
    w = np.full((1, 1, 3, 3), np.inf, np.float16)
    got = find("conv")(ms.Tensor(np.ones((1, 1, 3, 3), np.float16)), ms.Tensor(w), pad=(1, 1, 1, 1))
    assert np.isposinf(got.asnumpy()).all()


def test_int8_products_are_summed_in_int32():
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-128, 128, s).astype(np.int8) for s in ((3, 300), (300, 4)))
    want = x.astype(np.int64) @ y.astype(np.int64)
    np.testing.assert_array_equal(arithmetic.integer_product(x, y), want.astype(np.int32))
    np.testing.assert_array_equal((ms.Tensor(x) @ ms.Tensor(y)).asnumpy(), want.astype(np.int8))


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(axes, dtype):
    rng = np.random.default_rng(4)
    x = drawn(rng, 3, 21, 5)
    values = x if dtype == "float32" else seen(x, dtype)
    moved = np.moveaxis(values, axes, range(len(axes))).reshape(-1, *np.delete(values.shape, axes))
    want = np.empty(moved.shape[1:], np.float32)
    for place in np.ndindex(*want.shape):
        want[place] = emulation.pairs_added(list(moved[(slice(None), *place)]))
    got = ops.sum(tensor(x, dtype), dim=axes)
    same_bits(read(got), stored(want, dtype))
    got = ops.mean(tensor(x, dtype), axis=axes)
    same_bits(read(got), stored(want * np.float32(1 / len(moved)), dtype))


@given(x=arrays(np.float16, 7, elements=HALVES), y=arrays(np.float16, 7, elements=HALVES))
def test_arithmetic_of_any_float16(x, y):
    with np.errstate(all="ignore"):
        for op, exact in (
            (ops.add, np.add),
            (ops.mul, np.multiply),
            (ops.sub, np.subtract),
            (ops.div, np.divide),
        ):
            want = exact(x.astype(np.float64), y.astype(np.float64)).astype(np.float16)  # rounded once
            same_bits(op(ms.Tensor(x), ms.Tensor(y)).asnumpy(), want)


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "sigmoid"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_are_rounded_from_float64(name, dtype):
    x = np.abs(drawn(np.random.default_rng(5), 4, 33))
    exact = {"sigmoid": lambda v: 1 / (1 + np.exp(-v))}.get(name, getattr(np, name, None))
    want = exact((x if dtype == "float32" else seen(x, dtype)).astype(np.float64)).astype(np.float32)
    same_bits(read(getattr(ops, name)(tensor(x, dtype))), stored(want, dtype))


def test_saturation_clamps_and_infnan_does_not():
    x = np.array([65504, -65504, 60000, 1], np.float16)
    y = np.array([32, -32, 1, 1], np.float16)
    assert (ms.Tensor(x) + ms.Tensor(y)).asnumpy().tolist() == [np.inf, -np.inf, 60000, 2]
    device().overflow.read_and_clear()
    with options.context(overflow_mode="SATURATION_MODE"):
        assert (ms.Tensor(x) + ms.Tensor(y)).asnumpy().tolist() == [65504, -65504, 60000, 2]
        infinite = ms.Tensor(np.array([np.inf, -np.inf, np.nan], np.float16)) * 1
        assert infinite.asnumpy()[:2].tolist() == [65504, -65504] and np.isnan(infinite.asnumpy()[2])
    status, records = device().overflow.read_and_clear()
    assert status == 1 and [r.op for r in records] == ["add"]


def test_denormals_are_kept_or_flushed():
    tiny = np.array([2.0**-24, -(2.0**-24), 2.0**-14], np.float16)
    assert (ms.Tensor(tiny) * 1).asnumpy().tolist() == tiny.tolist()
    with options.context(flush_denormals=True):
        flushed = (ms.Tensor(tiny) * 1).asnumpy()
        small = (ms.Tensor(np.array([2.0**-130], np.float32)) * 1).asnumpy()
    assert flushed.tolist() == [0, 0, 2.0**-14] and np.signbit(flushed).tolist() == [False, True, False]
    assert small.tolist() == [0]


def test_ties_are_rounded_to_even():
    x = np.array([2048, 2050, 2052], np.float16)
    assert (ms.Tensor(x) + ms.Tensor(np.float16(1))).asnumpy().tolist() == [2048, 2052, 2052]
    assert arithmetic.rounded(np.array([65519.99, 65520], np.float32), dtypes.float16).tolist() == [
        65504,
        np.inf,
    ]
