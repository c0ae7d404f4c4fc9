"""ONNX weights of float8, bfloat16 and fewer than 8 bits are the numbers that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia.io.onnx import onnx_pb2
from mycelia_lite.converter import ConversionError
from mycelia_lite.converter.importers.onnx import small
from mycelia_lite.converter.importers.onnx.file import tensor_of

from .onnx_models import converted, model, node, write

FLOAT8 = {"float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20}
ONES = {17: 0x38, 18: 0x40, 19: 0x3C, 20: 0x40}
LARGEST = {17: (0x7E, 448), 18: (0x7F, 240), 19: (0x7B, 57344), 20: (0x7F, 57344)}
SMALLEST = {17: 2.0**-9, 18: 2.0**-10, 19: 2.0**-16, 20: 2.0**-17}


def weight(kind, data, dims, typed=False):
    message = onnx_pb2.TensorProto(name="w", dims=dims, data_type=kind)
    if typed:
        message.int32_data.extend(int(b) for b in data)
    else:
        message.raw_data = bytes(int(b) for b in data)
    return message


@pytest.mark.parametrize("kind", LARGEST)
def test_patterns_of_float8(kind):
    """Ends, 1, the smallest number, NaN and infinity, as the tables of ONNX's documentation have them."""
    found = tensor_of(weight(kind, range(256), (256,)), ".").asnumpy()
    assert found.dtype == np.float32 and found[0] == 0 and found[1] == SMALLEST[kind]
    assert found[ONES[kind]] == 1 and found[LARGEST[kind][0]] == LARGEST[kind][1]
    assert np.nanmax(found[np.isfinite(found)]) == LARGEST[kind][1]
    nan = {17: [127, 255], 18: [128], 19: [125, 126, 127, 253, 254, 255], 20: [128]}[kind]
    assert np.flatnonzero(np.isnan(found)).tolist() == nan
    assert np.flatnonzero(np.isinf(found)).tolist() == ([124, 252] if kind == 19 else [])
    half = found[:128][np.isfinite(found[:128])]
    assert (np.diff(half) > 0).all()  # patterns are in the order of their numbers


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_is_what_the_package_of_these_types_says(name):
    types = pytest.importorskip("ml_dtypes")
    kind = getattr(types, {17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2",
                           20: "float8_e5m2fnuz"}[FLOAT8[name]])  # fmt: skip
    wanted = np.arange(256).astype(np.uint8).view(kind).astype(np.float32)
    np.testing.assert_array_equal(small.numbers(FLOAT8[name], np.arange(256), 256), wanted)


@pytest.mark.parametrize("typed", [False, True])
def test_integers_below_8_bits_lie_side_by_side(typed):
    four, two = [0x21, 0xF8, 0x07], [0b11100100, 0b10]
    for kind, data, wanted, dtype in (
        (21, four, [1, 2, 8, 15, 7], np.uint8), (22, four, [1, 2, -8, -1, 7], np.int8),
        (25, two, [0, 1, 2, 3, 2], np.uint8), (26, two, [0, 1, -2, -1, -2], np.int8),
    ):  # fmt: skip
        found = tensor_of(weight(kind, data, (5,), typed), ".").asnumpy()
        assert found.dtype == dtype and found.tolist() == wanted
    with pytest.raises(ConversionError, match="needs 3 "):
        tensor_of(weight(21, four[:2], (5,), typed), ".")


@pytest.mark.parametrize("kind", [17, 18, 19, 20, 22])
def test_weights_are_scaled_and_multiplied(tmp_path, kind):
    data = np.random.default_rng(0).integers(0, 0x60, 12)
    message = model(
        [node("DequantizeLinear", "w s", "d", "back"), node("MatMul", "x d", "y")],
        {"x": ("float32", (2, 3))}, "y", {"s": np.float32(0.5)}, 21,
    )  # fmt: skip
    held = data[:6] if kind == 22 else data
    message.graph.initializer.append(weight(kind, held, (3, 4)))
    x = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
    (y,) = converted(tmp_path, message)(x)
    exact = small.numbers(kind, held.astype(np.uint8), 12).reshape(3, 4).astype(np.float32) / 2
    np.testing.assert_allclose(y, x @ exact, rtol=1e-5, atol=1e-4)


def refused(tmp_path, nodes, kind, reason):
    message = model(nodes, {"x": ("float32", (3,))}, "y", {"s": np.float32(0.5)}, 21)
    if kind is not None:
        message.graph.initializer.append(weight(kind, [0x12, 0x03], (3,) if kind == 22 else (2,)))
    with pytest.raises(ConversionError, match=reason):
        mslite.Converter().convert(
            mslite.FmkType.ONNX, write(tmp_path / "m.onnx", message), str(tmp_path / "m")
        )


def test_results_of_these_types_are_refused_by_name(tmp_path):
    refused(tmp_path, [node("Cast", "x", "y", "it", to=17)], None, "the output 'y' is of float8, bfloat16 or")
    refused(tmp_path, [node("Cast", "x", "y", "it", to=24)], None, "'it'.*float8e8m0")
    refused(tmp_path, [node("Identity", "w", "y")], 22, "the output 'y' is of float8, bfloat16 or below")
    sums = [node("Cast", "x", "q", to=16), node("Add", "q q", "y", "it")]
    refused(tmp_path, sums, None, "'it'.*bfloat16 or below 8 bits can be moved")
    like = [node("Identity", "w", "z"), node("CastLike", "x z", "y", "it")]
    refused(tmp_path, like, 22, "'it'.*a cast to integers below 8 bits")
    other = [
        node("Identity", "w", "z"),
        node("QuantizeLinear", "x s z", "q", "it", axis=0),
        node("Cast", "q", "y", to=1),
    ]
    refused(tmp_path, other, 17, "'it'.*a zero point of float8 other than 0")
    zero = [
        node("Identity", "w", "z"),
        node("QuantizeLinear", "x s z", "q", "it", axis=0),
        node("Neg", "q", "y", "behind"),
    ]
    # what computes with integers of 4 bits saturates at 7, not at 127
    refused(tmp_path, zero, 22, "'behind'.*moved, dequantized and cast only")


def test_moved_numbers_stay_what_they_are(tmp_path):
    message = model(
        [node("Reshape", "w n", "m"), node("Transpose", "m", "t", perm=[1, 0]), node("Cast", "t", "c", to=1),
         node("Add", "x c", "y")],
        {"x": ("float32", (2, 2))}, "y", {"n": np.array([2, 2])}, 21,
    )  # fmt: skip
    message.graph.initializer.append(weight(22, [0x21, 0xF8], (4,)))
    (y,) = converted(tmp_path, message)(np.zeros((2, 2), np.float32))
    np.testing.assert_array_equal(y, [[1, -8], [2, -1]])
