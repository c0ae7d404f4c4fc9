"""Fourier transforms, windows, mel filters and quantized products of ONNX against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_lite.converter import ConversionError

from .onnx_files import answers, close


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def parts(z):
    return np.stack([z.real, z.imag], -1).astype(np.float32)


@pytest.mark.parametrize("length", [None, 5, 12])
@pytest.mark.parametrize("onesided", [0, 1])
def test_transforms_of_real_signals(tmp_path, length, onesided):
    x = draw(2, 9, 3, 1)
    n = length or 9
    whole = np.fft.fft(x[..., 0], n, 1)
    wanted = parts(whole[:, : n // 2 + 1] if onesided else whole)
    given = [x, None if length is None else np.array(length), np.array(1)]
    constants = tuple(i for i in (1, 2) if given[i] is not None)
    close(answers(tmp_path, "DFT", given, opset=20, constants=constants, onesided=onesided)[0], wanted, 1e-5)


def test_transforms_back(tmp_path):
    x = draw(2, 8, 2)
    z = x[..., 0] + 1j * x[..., 1]
    close(answers(tmp_path, "DFT", [x], opset=17, axis=1, inverse=1)[0], parts(np.fft.ifft(z, axis=1)), 1e-5)
    for n in (7, 14):
        found = answers(
            tmp_path, "DFT", [x, np.array(n)], opset=17, constants=(1,), axis=1, inverse=1, onesided=1
        )[0]
        close(found, np.fft.irfft(z, n, 1)[..., None].astype(np.float32), 1e-5)


def test_short_time_transform(tmp_path):
    x, window = draw(2, 50), np.hanning(16).astype(np.float32)
    frames = np.stack([x[:, s : s + 16] for s in range(0, 35, 6)], 1) * window
    found = answers(
        tmp_path, "STFT", [x, np.array(6), window], opset=17, constants=(1, 2), onesided=1
    )[0]  # fmt: skip
    close(found, parts(np.fft.rfft(frames)), 1e-4)


def test_windows(tmp_path):
    at = 2 * np.pi * np.arange(10) / 10
    wanted = {
        "HannWindow": 0.5 - 0.5 * np.cos(at),
        "HammingWindow": 25 / 46 - 21 / 46 * np.cos(at),
        "BlackmanWindow": 0.42 - 0.5 * np.cos(at) + 0.08 * np.cos(2 * at),
    }
    for kind, values in wanted.items():
        close(answers(tmp_path, kind, [np.array(10)], constants=(0,))[0], values.astype(np.float32))
    symmetric = answers(tmp_path, "HannWindow", [np.array(10)], constants=(0,), periodic=0)[0]
    close(symmetric, np.hanning(10).astype(np.float32))


def test_mel_filters_are_triangles(tmp_path):
    sizes = [np.array(n) for n in (6, 64, 8000)] + [np.float32(100), np.float32(3500)]
    y = answers(tmp_path, "MelWeightMatrix", sizes, constants=range(5))[0]
    assert y.shape == (33, 6) and y.min() == 0 and (y.max(0) == 1).all()
    peaks = y.argmax(0)
    assert (np.diff(peaks) > 0).all() and (np.diff(peaks, 2) >= 0).all()  # wider and wider


def quantized(y, zero, dtype):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(y) + zero, limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_products_of_8_bit_integers(tmp_path, dtype):
    random = np.random.default_rng(0)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
    a, b = random.integers(low, high, (2, 3, 70), dtype), random.integers(low, high, (70, 4), dtype)
    za, zb = dtype(3), random.integers(low, high, 4, dtype)
    wanted = (a.astype(np.int32) - int(za)) @ (b.astype(np.int32) - zb.astype(np.int32))
    close(answers(tmp_path, "MatMulInteger", [a, b, za, zb], constants=(1, 3))[0], wanted)
    scales = [np.float32(0.02), np.float32(0.03), np.float32(0.7)]
    given = [a, scales[0], za, b, scales[1], zb, scales[2], dtype(5)]
    found = answers(tmp_path, "QLinearMatMul", given, constants=(1, 3, 4, 5, 6, 7))[0]
    exact = quantized(wanted * (0.02 * 0.03 / 0.7), 5, dtype)
    assert found.dtype == dtype and (np.abs(found.astype(int) - exact) <= 1).all()  # halves fall either way
    assert (found == exact).mean() > 0.9


def test_convolutions_of_8_bit_integers(tmp_path):
    random = np.random.default_rng(0)
    x, w = random.integers(0, 256, (1, 2, 5, 6), np.uint8), random.integers(-128, 128, (4, 2, 3, 3), np.int8)
    zero, zeros = np.uint8(7), np.array([1, 0, -3, 2], np.int8)
    wide = np.pad(x.astype(np.int64) - 7, ((0, 0), (0, 0), (1, 1), (1, 1)))
    filters = w.astype(np.int64) - zeros[:, None, None, None]
    sums = np.zeros((1, 4, 5, 6), np.int64)
    for i in range(3):
        for j in range(3):
            sums += np.einsum("nchw,oc->nohw", wide[:, :, i : i + 5, j : j + 6], filters[:, :, i, j])
    found = answers(tmp_path, "ConvInteger", [x, w, zero, zeros], constants=(1, 3), pads=[1, 1, 1, 1])[0]
    close(found, sums.astype(np.int32))
    scales = np.array([0.01, 0.02, 0.005, 0.01], np.float32)
    bias = np.array([100, -50, 0, 7], np.int32)
    given = [x, np.float32(0.1), zero, w, scales, zeros, np.float32(0.3), np.uint8(100), bias]
    exact = quantized((sums + bias[:, None, None]) * (0.1 * scales / 0.3)[:, None, None], 100, np.uint8)
    got = answers(tmp_path, "QLinearConv", given, constants=(1, 3, 4, 5, 6, 7, 8), pads=[1, 1, 1, 1])[0]
    assert got.dtype == np.uint8 and (np.abs(got.astype(int) - exact) <= 1).all()
    assert (got == exact).mean() > 0.9


def test_dynamic_quantization_has_zero_in_its_range(tmp_path):
    for x in (draw(4, 5), np.abs(draw(4, 5)) + 1, np.zeros((2, 2), np.float32)):
        y, scale, zero = answers(tmp_path, "DynamicQuantizeLinear", [x], 3)
        low, high = min(x.min(), 0), max(x.max(), 0)
        close(scale, np.float32((high - low) / 255))
        step = max(float(scale), 1e-30)
        assert zero == np.rint(-low / step) if high > low else zero == 0
        assert np.abs((y.astype(np.float64) - float(zero)) * float(scale) - x).max() <= step * 0.51


MICROSOFT = dict(domain="com.microsoft")


def test_norm_of_a_sum(tmp_path):
    x, skip, gamma, beta, bias = draw(2, 3, 8), draw(2, 3, 8, seed=1), *(draw(8, seed=k) for k in (2, 3, 4))
    total = x + skip + bias
    mean, deviation = total.mean(-1, keepdims=True), total.std(-1, keepdims=True)
    found = answers(tmp_path, "SkipLayerNormalization", [x, skip, gamma, beta, bias], **MICROSOFT)[0]
    close(found, (total - mean) / deviation * gamma + beta, 1e-4)


def _rounded(x):
    """x at the nearest number of DynamicQuantizeLinear."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32((high - low) / np.float32(255)) or np.float32(1)
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


def _quantized_lstm(x, w, r, b):
    """All states of one direction; x as a whole and each state are rounded, as onnxruntime does."""
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    h = c = np.zeros((x.shape[1], len(r)), np.float32)
    states = []
    for x_t in _rounded(x):
        i, o, forget, cell = np.split(x_t @ w + _rounded(h) @ r + b[0] + b[1], 4, -1)
        c = sigmoid(forget) * c + sigmoid(i) * np.tanh(cell)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.stack(states), h, c


@pytest.mark.parametrize("steps", [4, None])
def test_a_dynamically_quantized_lstm_rounds_data_and_states_to_8_bits(tmp_path, steps):
    random = np.random.default_rng(0)
    x, b = draw(4, 2, 3), draw(2, 40)
    w, r = (random.integers(-128, 128, (2, n, 20), np.int8) for n in (3, 5))
    scales, zeros = np.array([0.01, 0.02], np.float32), np.array([3, -4], np.int8)
    given = [x, w, r, b, None, None, None, None, scales, zeros, scales, zeros]
    how = dict(constants=(1, 2, 3, 8, 9, 10, 11), hidden_size=5, direction="bidirectional")
    shapes = {"x0": (steps, 2, 3)}
    found = answers(tmp_path, "DynamicQuantizeLSTM", given, 3, shapes=shapes, **how, **MICROSOFT)
    for d in range(2):
        wide = [(q[d].astype(np.float32) - zeros[d]) * scales[d] for q in (w, r)]
        y, h, c = _quantized_lstm(x[::-1] if d else x, *wide, np.split(b[d], 2))
        close(found[0][:, d], y[::-1] if d else y, 1e-5)
        close(found[1][d], h, 1e-5)
        close(found[2][d], c, 1e-5)


def of_8_bits(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def real(q, scale, zero):
    return (q.astype(np.float32) - zero) * np.float32(scale)


def in_steps(y, scale, zero):
    return np.clip(np.rint(y / np.float32(scale)) + zero, 0, 255)


A, ZERO = (np.float32(0.02), np.uint8(120)), np.uint8(0)


def near(found, wanted):
    """Equal to one step, and not all at an end."""
    assert found.dtype == np.uint8 and found.shape == wanted.shape and np.ptp(wanted) > 20
    assert np.abs(found.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("turned", [0, 1])
def test_quantized_gemm(tmp_path, turned):
    a, b = of_8_bits(3, 5), of_8_bits(5, 4, seed=1)
    c = np.array([300, -900, 0, 50], np.int32)
    b_scale, b_zero = np.array([0.01, 0.02, 0.03, 0.01], np.float32), np.array([100, 110, 130, 128], np.uint8)
    product = 0.5 * (real(a, *A) @ real(b, b_scale, b_zero) + c * A[0] * b_scale)
    given = [a.T.copy() if turned else a, *A, b.T.copy() if turned else b, b_scale, b_zero, c]
    how = dict(constants=range(1, 7), alpha=0.5, transA=turned, transB=turned, **MICROSOFT)
    close(answers(tmp_path, "QGemm", given, **how)[0], product.astype(np.float32), 1e-4)
    y = answers(tmp_path, "QGemm", [*given, np.float32(0.05), np.uint8(90)], **how)[0]
    near(y, in_steps(product, 0.05, 90))


def test_quantized_softmax_means_and_parts_side_by_side(tmp_path):
    x, y = of_8_bits(2, 4, 3, 6), of_8_bits(2, 4, 3, 2, seed=1)
    small, wide = (np.float32(1 / 256), ZERO), real(x, *A)
    e = np.exp(wide - wide.max(1, keepdims=True))
    found = answers(tmp_path, "QLinearSoftmax", [x, *A, *small], axis=1, **MICROSOFT)[0]
    near(found, in_steps(e / e.sum(1, keepdims=True), *small))
    found = answers(
        tmp_path, "QLinearGlobalAveragePool", [x, *A, np.float32(0.005), ZERO + 100], **MICROSOFT
    )[0]
    near(found, in_steps(wide.mean((2, 3), keepdims=True), 0.005, 100))
    given = [x, *A, np.float32(0.01), ZERO + 100]
    found = answers(tmp_path, "QLinearAveragePool", given, kernel_shape=[3, 2], strides=[1, 2], **MICROSOFT)[
        0
    ]
    near(found, in_steps(wide.reshape(2, 4, 3, 3, 2).mean((2, 4))[:, :, None], 0.01, 100))
    given = [np.float32(0.03), ZERO + 128, x, *A, y, np.float32(0.01), ZERO + 50]
    found = answers(tmp_path, "QLinearConcat", given, constants=(0, 1, 3, 4, 6, 7), axis=3, **MICROSOFT)[0]
    near(found, in_steps(np.concatenate([wide, real(y, 0.01, 50)], 3), 0.03, 128))


def test_a_scale_that_is_infinite_is_refused(tmp_path):
    with pytest.raises(ConversionError, match=r"'it' \(QuantizeLinear\): its scale is not finite"):
        answers(tmp_path, "QuantizeLinear", [draw(3), np.float32(np.inf), np.int8(0)], constants=(1, 2))
