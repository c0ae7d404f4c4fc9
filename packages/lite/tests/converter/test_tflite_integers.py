"""Operators of TFLITE files on integers of 8 bits: those that have a rule give LiteRT's integers.

``python -m converter.test_tflite_integers FOLDER`` in `packages/lite/tests` writes the models and their
inputs; what LiteRT (ai-edge-litert 2.3, its own kernels without delegates) answers is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter.importers.tflite.fixed_point import Factor
from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.format import Table, write

from .tflite_models import answers, check_core, core_answers, of_one, scaled, table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tflite_integers.npz"
UNARY = (
    "ABS", "ELU", "EXP", "HARD_SWISH", "LEAKY_RELU", "LOG", "LOGISTIC", "NEG", "QUANTIZE", "RELU", "RELU6",
    "RELU_0_TO_1", "RELU_N1_TO_1", "SQRT", "TANH",
)  # fmt: skip
COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
BINARY = ("ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE", "PRELU", *COMPARISONS)
SIGNED = (
    "ABS",
    "ELU",
    "EXP",
    "LOG",
    "NEG",
    "REDUCE_PROD",
    "SQRT",
    "SQUARED_DIFFERENCE",
)  # those that LiteRT has for int8 alone
ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
SHAPE = (2, 3, 4, 5)


CASES = [
    f"{kind}/{dtype}/{seed}"
    for kind in (*UNARY, *BINARY, "L2_NORMALIZATION", "MEAN", "REDUCE_PROD", "RESIZE_BILINEAR")
    for dtype in (("int8",) if kind in SIGNED else ("int8", "uint8"))
    for seed in range(3)
]


def case(name):
    """A model of one operator and its inputs."""
    kind, dtype, seed = name.split("/")
    seed = int(seed)
    rng = np.random.default_rng([seed, *map(ord, kind + dtype)])
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    everything = np.arange(low, high + 1).astype(dtype)

    def scale(around=0.03):
        return float(np.float32(around * np.exp(rng.uniform(-1, 1)))), int(rng.integers(low, high + 1))

    x, y = scale(), scale()
    if kind in ("LOG", "SQRT"):
        x = (x[0], low)
    y = {"LOGISTIC": (1 / 256, low), "TANH": (1 / 128, low + 128)}.get(kind, y)
    if kind == "QUANTIZE" and seed:  # halves, those behind the last full vector among them
        everything, y = (
            np.concatenate([everything, rng.integers(low, high + 1, 13).astype(dtype)]),
            (2 * x[0], y[1]),
        )
    if kind in UNARY:
        options = table("LeakyReluOptions", alpha=(0.1, 1.5, 0.3)[seed]) if kind == "LEAKY_RELU" else None
        outputs = [(dtype, everything.shape, scaled(*y))]
        return of_one(kind, [everything], outputs, options, (), [scaled(*x)]), [everything]
    images = rng.integers(low, high + 1, SHAPE).astype(dtype)
    if kind == "L2_NORMALIZATION":
        rows = rng.integers(low, high + 1, (40, (2, 9, 30)[seed])).astype(dtype)
        rows[:3] = x[1]  # all zero, and one that is not
        rows[1, 0] = x[1] + (1 if x[1] < high else -1)
        how = scaled(1 / 128, low + 128)
        return of_one(kind, [rows], [(dtype, rows.shape, how)], table("L2NormOptions"), (), [scaled(*x)]), [
            rows
        ]
    if kind in ("MEAN", "REDUCE_PROD"):
        axes, keep = ((1, 2), (0, 3), (1, 2))[seed], seed != 1
        images = rng.integers(low, high + 1, (2, 3, 4, 21)).astype(dtype)
        kept = [1 if i in axes else n for i, n in enumerate(images.shape) if keep or i not in axes]
        made = of_one(
            kind, [images, np.array(axes, np.int32)], [(dtype, kept, scaled(*y))],
            table("ReducerOptions", keep_dims=keep), (1,), [scaled(*x)],
        )  # fmt: skip
        return made, [images]
    if kind == "RESIZE_BILINEAR":
        size = ((7, 5), (2, 9), (6, 3))[seed]
        options = table("ResizeBilinearOptions", align_corners=seed == 1, half_pixel_centers=seed == 2)
        made = of_one(
            kind, [images, np.array(size, np.int32)], [(dtype, (2, *size, 5), scaled(*x))], options, (1,),
            [scaled(*x)],
        )  # fmt: skip
        return made, [images]
    other = rng.integers(low, high + 1, ((2, 3, 4, 5), (1, 1, 1, 5), (4, 1))[seed]).astype(dtype)
    second = (x[0] * 1.3, x[1]) if kind in COMPARISONS else scale()
    if kind == "MUL":
        y = (x[0] * second[0] * 80, y[1])
    elif kind == "DIV":  # quotients so fine that LiteRT shifts by less than 32 bits
        y = (x[0] / second[0] / 100, y[1])
        other[other == second[1]] = low if second[1] > low else high
    elif kind == "PRELU":
        other = rng.integers(low, high + 1, (1, 1, 5) if seed else SHAPE[1:]).astype(dtype)
    out = ("bool", SHAPE) if kind in COMPARISONS else (dtype, SHAPE, scaled(*y))
    options = None
    if kind in ("ADD", "SUB", "MUL", "DIV"):
        options = table(f"{kind.capitalize()}Options", fused_activation_function=ACTIVATIONS[seed])
    constants = (1,) if kind == "PRELU" or seed == 1 else ()
    made = of_one(kind, [images, other], [out], options, constants, [scaled(*x), scaled(*second)])
    return made, [images] if constants else [images, other]


@pytest.mark.parametrize("name", CASES)
def test_the_integers_are_those_of_litert(name, tmp_path):
    source, inputs = case(name)
    (y,) = answers(tmp_path, source, *inputs)
    np.testing.assert_array_equal(y, np.load(FIXTURE)[name])


def test_core_computes_what_the_runtime_does(tmp_path):
    check_core(case, CASES[::3], FIXTURE, tmp_path)


SHAPES = [
    ((2, 3, 4, 5), (2, 1, 4, 1)), ((2, 1, 4, 1), (2, 3, 4, 5)), ((3, 1, 5), (1, 4, 5)), ((5,), (2, 3, 5)),
    ((1,), (7,)), ((6, 1), (6, 4)), ((1, 1), (1, 1)), ((3, 4, 1, 2), (4, 5, 2)), ((2, 1, 3000), (2, 3, 1)),
    ((), (4,)), ((3, 5000), (3, 1)), ((2, 3, 1, 1), (2, 3, 4, 5)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes_that_broadcast(shapes, tmp_path):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes)
    out = ("int8", np.broadcast_shapes(*shapes), scaled(0.06, 9))
    options = table("SubOptions", fused_activation_function="NONE")
    source = of_one("SUB", [a, b], [out], options, (), [scaled(0.05, 3), scaled(0.02, -7)])
    (y,) = answers(tmp_path, source, a, b)
    real = (a.astype(float) - 3) * 0.05 - (b.astype(float) + 7) * 0.02
    np.testing.assert_allclose(y, np.clip(np.round(real / 0.06) + 9, -128, 127), atol=1)
    (core,) = core_answers(tmp_path, source, a, b)
    np.testing.assert_array_equal(y, core)


def test_a_factor_is_a_multiplier_and_a_shift():
    assert Factor.of(0.75) == (0.75 * 2**31, 0) and Factor.of(1) == (2**30, 1) and Factor.of(0) == (0, 0)
    assert Factor.of(1 - 2**-40) == (2**30, 1)  # rounded up to one
    assert Factor.of(2.0**-40) == (0, 0)
    halves = np.array([-3, -1, 1, 3])
    assert Factor(2**30, -1).times(halves).tolist() == [-1, 0, 1, 1]  # -3 / 4 = -1.5 / 2 = -1 / 2
    assert Factor(2**30, 0).times(halves).tolist() == [-1, 0, 1, 2]  # the first rounding: halves up
    exact = Factor(2**30, 1)
    assert exact.times(halves).tolist() == [-3, -1, 1, 3]
    assert Factor(2**30, -3).times(np.array([-8, 8])).tolist() == [-1, 1]  # the second: away from 0


@pytest.mark.parametrize(
    ("kind", "dtype", "attributes", "rows", "reason"),
    [
        ("lookup", "INT32", {}, 256, "places i32"),
        ("lookup", "INT8", {}, 255, "a table i32"),
        ("pair", "INT8", {}, 255, "a table i32"),
        ("pair", "INT32", {}, 256, "places i32"),
        ("pair", "INT8", {"how": 3}, 256, "how"),
        ("pair", "INT8", {"dtype": 37, "low": 0}, 256, "other types than one of 8 bits"),
        ("rescale", "INT32", {"right": 32}, 0, "right"),
        ("rescale", "INT32", {"low": 5, "high": 4}, 0, "limits without a number between them"),
        ("rescale", "INT32", {"high": 200}, 0, "high"),
        ("rescale", "INT32", {"dtype": 43}, 0, "other types than int32"),
        ("rescale", "INT8", {}, 0, "other types than int32"),
    ],
)
def test_nodes_of_hostile_files_are_refused(kind, dtype, attributes, rows, reason, tmp_path):
    if kind != "lookup":
        usual = {"multiplier": 2**30, "left": 1, "right": 0, "up": 0, "zero": 0, "low": -128, "high": 127}
        attributes = usual | {"dtype": 32} | ({"how": 0} if kind == "pair" else {}) | attributes
    tensors = [Table("Tensor", name=n, dataType=dtype, dims=[4], nodeType=2) for n in ("x", "y")]
    if rows:
        data = np.zeros(rows, np.int32).tobytes()
        tensors.append(Table("Tensor", name="t", dataType="INT32", dims=[rows], nodeType=0, data=data))
    node = Table("CNode", name="mine", primitive=custom(kind, **attributes))
    node.inputIndex, node.outputIndex = {"lookup": [0, 2], "pair": [0, 0, 2, 2]}.get(kind, [0]), [1]
    write(
        tmp_path / "m.ms",
        Table("MetaGraph", nodes=[node], allTensors=tensors, inputIndex=[0], outputIndex=[1]),
    )
    with pytest.raises(RuntimeError, match=f"node 'mine'.*{reason}"):
        mslite.Model().build_from_file(str(tmp_path / "m.ms"))


if __name__ == "__main__":
    for name in CASES:
        source, inputs = case(name)
        place = Path(sys.argv[1]) / name.replace("/", ".")
        source.write(Path(f"{place}.tflite"))
        np.savez(f"{place}.npz", *inputs)
