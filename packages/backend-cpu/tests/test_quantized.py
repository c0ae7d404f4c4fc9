"""Quantized layers against whole numbers: every sum exact, odd sizes, extremes, zero points, threads."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import dtypes
from mycelia.engine.ops.nn_ops.quantized import quantized_conv, quantized_matmul, quantized_pack

LIMITS = {"int8": (-128, 128), "uint8": (0, 256)}


def numbers(dtype, *shape):
    return np.random.default_rng(sum(shape)).integers(*LIMITS[dtype], shape).astype(dtype)


@pytest.mark.parametrize("dtype, zero", [("int8", -128), ("int8", 7), ("uint8", 255), ("uint8", 0)])
@pytest.mark.parametrize(
    "size", [(1, 1, 1), (3, 2, 17), (7, 801, 31), (200, 33, 64), (55, 4607, 48)], ids=str
)
def test_sums_are_exact(size, dtype, zero, threads):
    rows, depth, channels = size
    x, w = numbers(dtype, rows, depth), numbers("int8", channels, depth)
    w_zero = np.random.default_rng(0).integers(-128, 128, channels).astype(np.int32)
    pack, one = (
        quantized_pack(ms.Tensor(w), ms.Tensor(w_zero)),
        ms.Tensor(np.full(channels, 2.0**-10, np.float32)),
    )
    y = quantized_matmul(ms.Tensor(x), pack, one, channels=channels, x_zero=zero, dtype=dtypes.float32)
    sums = (x.astype(np.int64) - zero) @ (w.astype(np.int64) - w_zero[:, None]).T
    np.testing.assert_array_equal(y.asnumpy(), sums.astype(np.float32) * np.float32(2.0**-10))


@pytest.mark.parametrize("x, w, zero", [(255, -128, 0), (-128, -128, 127), (0, 127, 255)])
def test_extreme_operands_do_not_saturate(x, w, zero):
    dtype = np.int8 if x < 0 else np.uint8
    pack = quantized_pack(ms.Tensor(np.full((3, 4000), w, np.int8)))
    y = quantized_matmul(
        ms.Tensor(np.full((2, 4000), x, dtype)),
        pack,
        ms.Tensor(np.ones(3, np.float32)),
        channels=3,
        x_zero=zero,
        dtype=dtypes.float32,
    )
    assert (y.asnumpy() == 4000 * (x - zero) * w).all()


@pytest.mark.parametrize("dtype, low, high", [("int8", -128, 127), ("int8", 3, 60), ("uint8", 0, 255)])
def test_results_are_rounded_and_clamped(dtype, low, high, threads):
    x, w = numbers("int8", 37, 90), numbers("int8", 35, 90)
    b = np.arange(35, dtype=np.int32) * 100
    scale = np.linspace(1e-4, 1e-2, 35, dtype=np.float32)
    y = quantized_matmul(
        ms.Tensor(x),
        quantized_pack(ms.Tensor(w)),
        ms.Tensor(scale),
        ms.Tensor(b),
        channels=35,
        y_zero=11,
        low=low,
        high=high,
        dtype=getattr(dtypes, dtype),
    )
    scaled = (x.astype(np.int64) @ w.astype(np.int64).T + b).astype(np.float32) * scale
    want = np.clip(np.rint(scaled).astype(np.int64) + 11, low, high)
    np.testing.assert_array_equal(y.asnumpy(), want.astype(dtype))


@pytest.mark.parametrize("kernel, stride, pad, dilation", [
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1)), ((7, 7), (2, 2), (3, 3, 3, 3), (1, 1)),
    ((1, 1), (2, 1), (0, 0, 0, 0), (1, 1)), ((2, 3), (1, 2), (3, 0, 0, 4), (2, 3)),
    ((3, 3), (1, 1), (9, 9, 9, 9), (1, 1)),
])  # fmt: skip
@pytest.mark.parametrize("channels", [1, 3, 34])
def test_convolution(kernel, stride, pad, dilation, channels, threads):
    x, w = numbers("uint8", 2, 13, 12, channels), numbers("int8", 19, channels, *kernel)
    y = quantized_conv(
        ms.Tensor(x),
        quantized_pack(ms.Tensor(w)),
        ms.Tensor(np.ones(19, np.float32)),
        channels=19,
        kernel=kernel,
        stride=stride,
        pad=pad,
        dilation=dilation,
        x_zero=100,
        dtype=dtypes.float32,
    )
    images = np.pad(x.astype(np.int64) - 100, ((0, 0), (pad[0], pad[2]), (pad[1], pad[3]), (0, 0)))
    spans = [dilation[d] * (kernel[d] - 1) + 1 for d in range(2)]
    windows = np.lib.stride_tricks.sliding_window_view(images, spans, (1, 2))
    windows = windows[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
    np.testing.assert_array_equal(y.asnumpy(), np.einsum("nhwcij,ocij->nhwo", windows, w.astype(np.int64)))


def test_errors_name_the_argument():
    x, w = ms.Tensor(numbers("int8", 2, 4)), quantized_pack(ms.Tensor(numbers("int8", 3, 4)))
    scale = ms.Tensor(np.ones(3, np.float32))
    with pytest.raises(ValueError, match="x_zero must be in"):
        quantized_matmul(x, w, scale, channels=3, x_zero=128)
    with pytest.raises(ValueError, match="pack of 17 x 4"):
        quantized_matmul(x, w, scale, channels=17)
    with pytest.raises(ValueError, match="low and high"):
        quantized_matmul(x, w, scale, channels=3, low=5, high=4)
    with pytest.raises(TypeError, match="x must be int8 or uint8"):
        quantized_matmul(ms.Tensor(np.ones((2, 4), np.float32)), w, scale, channels=3)
