"""Operators on dtypes that kernels do not have are computed in wider ones and mean the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError

from . import onnx_models as om
from .onnx_files import answers, close, run

INTEGERS = [np.int8, np.int16, np.uint8, np.uint16, np.uint32, np.uint64]


def pair(dtype):
    limits = np.iinfo(dtype)
    a = np.array([[limits.min, limits.max, 7, limits.max // 2, 100, 1]], dtype)
    b = np.array([[3], [limits.max], [5]], dtype)
    return a, b


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_all_sizes(tmp_path, dtype):
    a, b = pair(dtype)
    with np.errstate(over="ignore"):
        for kind, wanted in {
            "Add": a + b, "Sub": a - b, "Mul": a * b, "Max": np.maximum(a, b), "Min": np.minimum(a, b),
            "Less": a < b, "GreaterOrEqual": a >= b, "Equal": a == b, "BitwiseXor": a ^ b,
            "BitwiseNot": ~a, "Div": (a.astype(object) // b if limits_are_positive(dtype) else None),
        }.items():  # fmt: skip
            if wanted is None:
                wanted = np.trunc(a.astype(np.float64) / b).astype(dtype)
            arrays = [a] if kind == "BitwiseNot" else [a, b]
            kept = wanted.dtype if wanted.dtype == bool else dtype
            close(answers(tmp_path, kind, arrays)[0], wanted.astype(kept))


def limits_are_positive(dtype):
    return np.iinfo(dtype).min == 0


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
def test_shifts_and_remainders_of_unsigned_integers(tmp_path, dtype):
    a, b = pair(dtype)
    few = np.array([0, 1, 3, 5, 6, 7], dtype)
    close(answers(tmp_path, "BitShift", [a, few], direction="RIGHT")[0], a >> few)
    close(answers(tmp_path, "BitShift", [a, few], direction="LEFT")[0], a << few)
    close(answers(tmp_path, "Mod", [a, b])[0], a % b)


def test_float16_is_computed_in_float32_and_rounded_once(tmp_path):
    x = np.random.default_rng(0).normal(size=(4, 9)).astype(np.float16)
    wide = x.astype(np.float32)
    close(answers(tmp_path, "Exp", [x])[0], np.exp(wide).astype(np.float16), 1e-3)
    close(
        answers(tmp_path, "ReduceSum", [x], opset=11, axes=[1], keepdims=0)[0],
        wide.sum(1).astype(np.float16),
        1e-3,
    )
    close(answers(tmp_path, "MatMul", [x, x.T.copy()])[0], (wide @ wide.T).astype(np.float16), 1e-3)


def test_products_of_float64_and_integers_keep_all_digits(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 3, 4)), random.normal(size=(4, 5))
    close(answers(tmp_path, "MatMul", [x, y])[0], x @ y, 1e-14)
    a, b = (random.integers(-(2**40), 2**40, size) for size in ((3, 4), (4, 2)))
    close(answers(tmp_path, "MatMul", [a, b])[0], a @ b)
    close(answers(tmp_path, "Det", [x[:, :, :3]])[0], np.linalg.det(x[:, :, :3]), 1e-12)


def test_convolution_of_float16_with_weights_that_are_constants_or_data(tmp_path):
    random = np.random.default_rng(0)
    x, w = (random.normal(size=s).astype(np.float16) for s in ((1, 3, 6, 6), (4, 3, 3, 3)))
    wide = x.astype(np.float32)
    wanted = np.zeros((1, 4, 4, 4), np.float32)
    for i in range(3):
        for j in range(3):
            wanted += np.einsum(
                "nchw,oc->nohw", wide[:, :, i : i + 4, j : j + 4], w[:, :, i, j].astype(np.float32)
            )
    for constants in ((1,), ()):
        close(answers(tmp_path, "Conv", [x, w], constants=constants)[0], wanted.astype(np.float16), 2e-3)


def test_bfloat16_is_refused_as_numpy_has_only_its_bits(tmp_path):
    with pytest.raises(ConversionError, match="bfloat16"):
        answers(tmp_path, "Cast", [np.ones((2, 2), np.float32)], to=16)


def _softmax(x):
    parts = np.exp(x - x.max(-1, keepdims=True))
    return parts / parts.sum(-1, keepdims=True)


def test_float64_keeps_its_digits_in_activations_norms_and_means(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 3, 4)) * 3
    special = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e300, np.inf, -np.inf, np.nan])
    gamma, beta = rng.normal(size=4), rng.normal(size=4)
    centred = x - x.mean(-1, keepdims=True)
    norm = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta
    sigmoid = 1 / (1 + np.exp(-x))
    for kind, arrays, wanted, more in (
        ("Relu", [x], np.maximum(x, 0), {}),
        ("LeakyRelu", [x], np.where(x < 0, x * np.float32(0.25), x), {"alpha": 0.25}),
        ("Elu", [x], np.where(x < 0, np.expm1(x), x), {}),
        ("Sigmoid", [x], sigmoid, {}),
        ("Gelu", [x], x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2))), {"opset": 20}),
        ("Softmax", [x], _softmax(x), {}),
        ("LogSoftmax", [x], np.log(_softmax(x)), {}),
        ("ReduceMean", [x], x.mean(1, keepdims=True), {"opset": 13, "axes": [1]}),
        ("ReduceLogSumExp", [x], np.log(np.exp(x).sum(1, keepdims=True)), {"opset": 13, "axes": [1]}),
        ("LayerNormalization", [x, gamma, beta], norm, {}),
        ("Round", [special], np.round(special), {}),
        ("IsNaN", [special], np.isnan(special), {}),
    ):
        (found,) = answers(tmp_path, kind, arrays, **more)
        assert found.dtype == wanted.dtype, kind
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-14, err_msg=kind)


def test_float64_of_an_operator_that_is_computed_in_float32_alone_is_refused(tmp_path):
    with pytest.raises(ConversionError, match="max_pool in float64 is not computed, only in float32"):
        answers(tmp_path, "MaxPool", [np.ones((1, 2, 4, 4))], kernel_shape=[2, 2])


def of_model(tmp_path, message, **arrays):
    path = om.write(tmp_path / "m.onnx", message)
    mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
    return run(tmp_path / "m.ms", arrays)


@pytest.mark.parametrize("chained", [False, True])
def test_bits_become_elements_of_another_type(tmp_path, chained):
    """Also between ops that are computed together, and the memory of which may be used over and over."""
    x = np.array([[1.5, -0.0, np.inf, 1e-42], [2.25, 3, -7, 0.1]], np.float32)
    nodes, first = [], "x"
    if chained:
        nodes, first = [om.node("Neg", "x", "n"), om.node("Abs", "n", "a")], "a"
    nodes += [
        om.node("BitCast", first, "b", to=6),
        om.node("Add", "b one", "c"),
        om.node("BitCast", "c", "y", to=1),
    ]
    model = om.model(nodes, {"x": (np.float32, x.shape)}, "y b", {"one": np.int32(1)}, opset=26)
    y, b = of_model(tmp_path, model, x=x)
    bits = (np.abs(x) if chained else x).view(np.int32)
    assert b.tobytes() == bits.tobytes() and y.tobytes() == (bits + 1).tobytes()


def test_bits_of_constants_and_flags(tmp_path):
    flags = np.array([True, False])
    nodes = [om.node("BitCast", "w", "b", to=13), om.node("BitCast", "x", "y", to=2)]
    model = om.model(nodes, {"x": (np.bool_, (2,))}, "y b", {"w": np.array([-1.0, 2.0])}, opset=26)
    y, b = of_model(tmp_path, model, x=flags)
    np.testing.assert_array_equal(y, flags.astype(np.uint8))
    np.testing.assert_array_equal(b, np.array([-1.0, 2.0]).view(np.uint64))


@pytest.mark.parametrize(
    ("dtype", "to", "reason"),
    [
        (np.float32, 11, "the bits of Float32 as Float64, which has another width"),
        (np.uint8, 9, "the bits of UInt8 as bool"),
        (np.uint8, 17, "its result has the data type float8e4m3fn, which is not read"),
    ],
)
def test_bits_that_do_not_fit_are_refused(tmp_path, dtype, to, reason):
    with pytest.raises(ConversionError, match=reason):
        answers(tmp_path, "BitCast", [np.zeros(4, dtype)], opset=26, to=to)


def test_the_sign_of_no_number_is_none(tmp_path):
    x = np.array([np.nan, -2, 0, np.inf], np.float32)
    np.testing.assert_array_equal(answers(tmp_path, "Sign", [x])[0], np.sign(x))
