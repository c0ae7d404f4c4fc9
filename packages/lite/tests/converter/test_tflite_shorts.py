"""Operators of TFLITE files on integers of 16 bits give LiteRT's integers; those without a rule are refused.

``python -m converter.test_tflite_shorts FOLDER`` in `packages/lite/tests` writes the models and their inputs;
what LiteRT (ai-edge-litert 2.3, its own kernels without delegates) answers is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, convert

from .tflite_models import Builder, answers, check_core, of_one, scaled, table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tflite_shorts.npz"
ACTIVATIONS = ("NONE", "RELU", "RELU6")
EVERY = np.append(np.arange(-(1 << 15), 1 << 15, 7), (1 << 15) - 1).astype(np.int16)

UNARY = ("ABS", "LEAKY_RELU", "LOGISTIC", "RELU", "RELU6", "TANH", "QUANTIZE", "QUANTIZE to int8")
BINARY = ("ADD", "SUB", "MUL", "ADD of powers", "SUB of powers")
OTHERS = (
    "QUANTIZE of int8",
    "QUANTIZE of float32",
    "DEQUANTIZE",
    "SOFTMAX",
    "AVERAGE_POOL_2D",
    "MAX_POOL_2D",
    "MAXIMUM",
)
PRODUCTS = {
    "CONV_2D": dict(kernel=(3, 2), stride=(2, 1)),
    "CONV_2D of groups": dict(kernel=(2, 2), stride=(1, 1), group=2),
    "CONV_2D, deep": dict(kernel=(3, 3), stride=(1, 1), channels=80, large=True),
    "DEPTHWISE_CONV_2D": dict(kernel=(3, 2), stride=(1, 2)),
    "TRANSPOSE_CONV": dict(kernel=(3, 3), stride=(2, 2)),
    "FULLY_CONNECTED": {},
    "FULLY_CONNECTED, deep": dict(large=True, channels=900),
    "BATCH_MATMUL": {},
}
BIASES = ("int64", "int32", "none")
CASES = [f"{kind}/{seed}" for kind in (*UNARY, *BINARY, *OTHERS) for seed in range(3)]
#: What no kernel of LiteRT takes.
_REFUSED = ("BATCH_MATMUL/int32", "BATCH_MATMUL/none", "DEPTHWISE_CONV_2D/int32")
CASES += [
    name
    for kind in PRODUCTS
    for name in (f"{kind}/{bias}" for bias in BIASES)
    if name not in _REFUSED and not (kind.startswith("CONV_2D") and name.endswith("none"))
]


def case(name):
    """A model of one operator and its inputs."""
    how, _, last = name.partition("/")
    rng = np.random.default_rng([*map(ord, name)])
    return product(how, last, rng) if how in PRODUCTS else single(how, int(last), rng)


def step(rng, around=3e-4):
    return float(np.float32(around * np.exp(rng.uniform(-1, 1))))


def single(how, seed, rng):
    kind = how.partition(" ")[0]
    x, y = step(rng), step(rng)
    images = rng.integers(-(1 << 15), 1 << 15, (2, 5, 6, 3)).astype(np.int16)
    one = [scaled(x)]
    if kind in ("LOGISTIC", "TANH"):
        x *= (1, 0.3, 7)[seed]
        return of_one(kind, [EVERY], [("int16", EVERY.shape, scaled(2.0**-15))], None, (), [scaled(x)]), [
            EVERY
        ]
    if how == "QUANTIZE to int8":
        return of_one(kind, [EVERY], [("int8", EVERY.shape, scaled(300 * x, 7))], None, (), one), [EVERY]
    if how == "QUANTIZE of int8":
        small = np.arange(-128, 128).astype(np.int8)
        return of_one(kind, [small], [("int16", small.shape, scaled(y))], None, (), [scaled(90 * x, 5)]), [
            small
        ]
    if how == "QUANTIZE of float32":
        reals = np.concatenate([rng.normal(size=500) * 9, np.arange(-40, 41) * y / 2]).astype(np.float32)
        return of_one(kind, [reals], [("int16", reals.shape, scaled(y))]), [reals]
    if how == "DEQUANTIZE":
        return of_one(kind, [EVERY], [("float32", EVERY.shape)], None, (), one), [EVERY]
    if how in UNARY:
        options = table("LeakyReluOptions", alpha=(0.1, 1.5, 0.3)[seed]) if kind == "LEAKY_RELU" else None
        y = x if kind == "ABS" and seed else y
        return of_one(kind, [EVERY], [("int16", EVERY.shape, scaled(y))], options, (), one), [EVERY]
    if kind == "SOFTMAX":
        x = (x, 20 * x, x / 50)[seed]
        rows = rng.integers(-(1 << 15), 1 << 15, (30, (5, 40, 700)[seed])).astype(np.int16)
        rows[0] = 0
        out = [("int16", rows.shape, scaled(2.0**-15))]
        return of_one(
            kind, [rows], out, table("SoftmaxOptions", beta=(1.0, 1.0, 0.5)[seed]), (), [scaled(x)]
        ), [rows]
    if kind.endswith("POOL_2D"):
        options = table(
            "Pool2DOptions", padding="SAME", stride_h=1, stride_w=2, filter_height=2,
            filter_width=(2, 3, 1)[seed], fused_activation_function=ACTIVATIONS[seed],
        )  # fmt: skip
        return of_one(kind, [images], [("int16", (2, 5, 3, 3), scaled(x))], options, (), one), [images]
    other = rng.integers(-(1 << 15), 1 << 15, (images.shape, (1, 1, 1, 3), (6, 1))[seed]).astype(np.int16)
    if kind == "MAXIMUM":
        made = of_one(kind, [images, other], [("int16", images.shape, scaled(x))], None, (), 2 * [scaled(x)])
        return made, [images, other]
    second, powers = step(rng), how.endswith("powers")
    if powers:
        other = rng.integers(-(1 << 15), 1 << 15, images.shape).astype(np.int16)
        x, second, y = 2.0**-11, (2.0**-11, 2.0**-13, 2.0**-12)[seed], 2.0**-11
    if kind == "MUL":
        y = x * second * 20000
    more = {} if kind == "MUL" else {"pot_scale_int16": powers}
    options = table(f"{kind.capitalize()}Options", fused_activation_function=ACTIVATIONS[seed], **more)
    made = of_one(
        kind, [images, other], [("int16", images.shape, scaled(y))], options, (), [scaled(x), scaled(second)]
    )
    return made, [images, other]


def product(how, bias, rng):
    kind, given = how.partition(" ")[0].rstrip(","), PRODUCTS[how]
    made, x, large = Builder(), step(rng), given.get("large", False)

    def data(*shape):
        return rng.integers(32000 if large else -(1 << 15), 1 << 15, shape).astype(np.int16)

    if kind == "BATCH_MATMUL":
        a, b = data(2, 4, 30), data(2, 30, 5)
        for name, array in (("x", a), ("z", b)):
            made.tensor(name, "int16", array.shape, None, scaled(x))
        made.tensor("y", "int16", (2, 4, 5), None, scaled(x * x * 3e6))
        made.add(kind, ["x", "z"], ["y"], table("BatchMatMulOptions"), version=3)
        made.borders(["x", "z"], ["y"])
        return made, [a, b]
    group, channels = given.get("group", 1), given.get("channels", 6)
    if kind == "FULLY_CONNECTED":
        shape, columns, axis = (4, channels), 7, 0
        of_weights, out = (columns, channels), (4, columns)
        options = table("FullyConnectedOptions", fused_activation_function=ACTIVATIONS[int(rng.integers(3))])
    else:
        (h, w), (down, across) = (5, 7), given["stride"]
        shape, columns, axis = (2, h, w, channels), 4 * group, 0
        of_weights = (columns, *given["kernel"], channels // group)
        out = (2, -(-h // down), -(-w // across), columns)
        places = dict(padding="SAME", stride_h=down, stride_w=across)
        if kind == "DEPTHWISE_CONV_2D":
            columns, axis = channels * 2, 3
            of_weights, out = (1, *given["kernel"], columns), (*out[:3], columns)
            places["depth_multiplier"] = 2
        options = {"CONV_2D": "Conv2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions"}
        options = table(options.get(kind, "TransposeConvOptions"), **places)
        if kind == "TRANSPOSE_CONV":
            out = (2, h * down, w * across, columns)
            made.constant("o", np.array(out, np.int32))
    array = data(*shape)
    made.tensor("x", "int16", shape, None, scaled(x))
    several = kind != "FULLY_CONNECTED"
    steps = np.exp(rng.uniform(-6, -3, columns if several else 1)).astype(np.float32)
    zeros = np.zeros(len(steps), int)
    weights = rng.integers(100 if large else -127, 128, of_weights).astype(np.int8)
    made.constant("w", weights, scaled(steps, zeros, axis))
    names = ["o", "w", "x"] if kind == "TRANSPOSE_CONV" else ["x", "w"]
    terms = int(np.prod(of_weights)) // columns
    if bias == "int32":
        options.quantized_bias_type = "INT32"
    if bias != "none":
        made.constant(
            "b", rng.integers(-(10**6), 10**6, columns).astype(bias), scaled(steps * np.float32(x), zeros)
        )
        names.append("b")
    width = 100 * terms if large else 40 * terms**0.5
    made.tensor("y", "int16", out, None, scaled(x * float(steps.mean()) * width))
    made.add(kind, names, ["y"], options, version=5)
    made.borders(["x"], ["y"])
    return made, [array]


@pytest.mark.parametrize("name", CASES)
def test_the_integers_are_those_of_litert(name, tmp_path):
    source, inputs = case(name)
    (y,) = answers(tmp_path, source, *inputs)
    np.testing.assert_array_equal(y, np.load(FIXTURE)[name])


def test_core_computes_what_the_runtime_does(tmp_path):
    check_core(case, CASES[::4], FIXTURE, tmp_path)


def test_operators_without_a_rule_are_refused_by_name(tmp_path):
    for kind, more in (("EXP", None), ("MEAN", np.array([1], np.int32)), ("DIV", EVERY[:6].reshape(2, 3))):
        arrays = [EVERY[:6].reshape(2, 3), *([] if more is None else [more])]
        constants = (1,) if kind == "MEAN" else ()
        shape = (2,) if kind == "MEAN" else (2, 3)
        model = of_one(kind, arrays, [("int16", shape, scaled(0.1))], None, constants, [scaled(0.1)] * 2)
        with pytest.raises(ConversionError, match=rf"'y0' \({kind}\).*integers of 16 bits"):
            convert(mslite.FmkType.TFLITE, model.write(tmp_path / "m.tflite"), str(tmp_path / "m"))


if __name__ == "__main__":
    for name in CASES:
        source, inputs = case(name)
        place = Path(sys.argv[1]) / name.replace("/", ".")
        source.write(Path(f"{place}.tflite"))
        np.savez(f"{place}.npz", *inputs)
