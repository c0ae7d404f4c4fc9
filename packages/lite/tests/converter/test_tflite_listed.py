"""Operators of TFLITE files, one a model, against LiteRT.

``python -m converter.test_tflite_listed FOLDER`` in `packages/lite/tests` writes the models and their inputs;
what LiteRT (ai-edge-litert 2.3) answers is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from .test_tflite import sparse_model, sparse_weights
from .test_tflite_graphs import branches, delay_line
from .tflite_models import Builder, answers, of_one, table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tflite_listed.npz"


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int32)


X, Y, IMAGE = draw(2, 3, 4), draw(2, 3, 4, seed=1), draw(2, 4, 6, 4, seed=2)
WHOLE = np.arange(-6, 18, dtype=np.int32).reshape(2, 3, 4)
FLAGS = X > 0
IDS = ints(0, 2, 2, 1)
ROWS = draw(4, 3, seed=3)


def reduced(kind, array, dtype="float32"):
    axes = ints(0, 2)
    return kind, [array, axes], [(dtype, (3,))], table("ReducerOptions"), (1,)


def plain(kind, *arrays, shape=None, dtype="float32", options=None, constants=()):
    return kind, list(arrays), [(dtype, arrays[0].shape if shape is None else shape)], options, constants


def cases():
    """(name, operator, arrays, outputs, options, which arrays are constants)."""
    yield (
        "PADV2",
        *plain("PADV2", X, ints([1, 0], [0, 2], [1, 1]), np.float32(7), shape=(3, 5, 6), constants=(1, 2)),
    )
    yield "FILL", *plain("FILL", ints(2, 3), np.float32(1.5), shape=(2, 3), constants=(0,))
    yield "BROADCAST_ARGS", *plain("BROADCAST_ARGS", ints(2, 1, 4), ints(3, 1), shape=(3,), dtype="int32")
    yield (
        "RANGE",
        *plain(
            "RANGE", np.int32(2), np.int32(11), np.int32(3), shape=(3,), dtype="int32", constants=(0, 1, 2)
        ),
    )
    options = table("ReverseSequenceOptions", seq_dim=1, batch_dim=0)
    yield "REVERSE_SEQUENCE", *plain("REVERSE_SEQUENCE", X, ints(2, 3), options=options)
    yield "MATRIX_DIAG", *plain("MATRIX_DIAG", ROWS, shape=(4, 3, 3))
    yield "MATRIX_SET_DIAG", *plain("MATRIX_SET_DIAG", X, ROWS[:2])
    yield "DYNAMIC_UPDATE_SLICE", *plain("DYNAMIC_UPDATE_SLICE", X, Y[:1, :2], ints(1, 2, 0))
    yield "DYNAMIC_UPDATE_SLICE beyond the end", *plain("DYNAMIC_UPDATE_SLICE", X, Y[:, :2], ints(0, 7, 0))
    yield "MATRIX_SET_DIAG of more rows", *plain("MATRIX_SET_DIAG", ROWS[None], draw(1, 3))
    yield "SPARSE_TO_DENSE of known ones", *plain(
        "SPARSE_TO_DENSE", ints([0, 1], [2, 0]), ints(3, 2), np.float32([5, 6]), np.float32(-1), shape=(3, 2),
        options=table("SparseToDenseOptions"), constants=(0, 1),
    )  # fmt: skip
    yield (
        "SPACE_TO_BATCH_ND",
        *plain(
            "SPACE_TO_BATCH_ND",
            IMAGE,
            ints(2, 3),
            ints([0, 0], [1, 2]),
            shape=(12, 2, 3, 4),
            constants=(1, 2),
        ),
    )
    yield (
        "BATCH_TO_SPACE_ND",
        *plain(
            "BATCH_TO_SPACE_ND",
            draw(12, 2, 3, 4),
            ints(2, 3),
            ints([1, 0], [1, 2]),
            shape=(2, 3, 6, 4),
            constants=(1, 2),
        ),
    )
    yield (
        "SPACE_TO_DEPTH",
        *plain(
            "SPACE_TO_DEPTH", IMAGE, shape=(2, 2, 3, 16), options=table("SpaceToDepthOptions", block_size=2)
        ),
    )
    yield (
        "DEPTH_TO_SPACE",
        *plain(
            "DEPTH_TO_SPACE", IMAGE, shape=(2, 8, 12, 1), options=table("DepthToSpaceOptions", block_size=2)
        ),
    )
    yield "ATAN2", *plain("ATAN2", X, Y)
    yield "BITWISE_XOR", *plain("BITWISE_XOR", WHOLE, WHOLE[::-1].copy(), dtype="int32")
    yield "RIGHT_SHIFT", *plain("RIGHT_SHIFT", WHOLE, np.full((2, 3, 4), 2, np.int32), dtype="int32")
    yield "ADD_N", *plain("ADD_N", X, Y, X * 2)
    yield "SELECT", *plain("SELECT", np.array([True, False]), X, Y, shape=X.shape)
    yield "SELECT_V2", *plain("SELECT_V2", FLAGS[:, :1], X, Y, shape=X.shape)
    yield "GATHER_ND", *plain("GATHER_ND", X, ints([0, 2], [1, 0], [1, 1]), shape=(3, 4))
    yield "SPARSE_TO_DENSE", *plain(
        "SPARSE_TO_DENSE", ints([0, 1], [2, 0]), ints(3, 2), np.float32([5, 6]), np.float32(-1), shape=(3, 2),
        options=table("SparseToDenseOptions"), constants=(1,),
    )  # fmt: skip
    yield "SEGMENT_SUM", *plain("SEGMENT_SUM", ROWS, ints(0, 0, 1, 2), shape=(3, 3), constants=(1,))
    yield "SEGMENT_SUM of data", *plain("SEGMENT_SUM", ROWS, ints(0, 0, 1, 2), shape=(3, 3))
    whole = WHOLE.reshape(4, 6)
    yield (
        "SEGMENT_SUM of integers",
        *plain("SEGMENT_SUM", whole, ints(0, 1, 1, 1), shape=(2, 6), dtype="int32"),
    )
    yield (
        "SEGMENT_SUM of known integers",
        *plain("SEGMENT_SUM", whole, ints(0, 1, 1, 1), shape=(2, 6), dtype="int32", constants=(1,)),
    )
    for way in ("SUM", "MAX", "MIN", "PROD"):
        kind = f"UNSORTED_SEGMENT_{way}"
        yield kind, *plain(kind, ROWS, IDS, np.int32(3), shape=(3, 3), constants=(2,))
        yield f"{kind} of known ones", *plain(kind, ROWS, IDS, np.int32(4), shape=(4, 3), constants=(1, 2))
    yield "WHERE", *plain("WHERE", FLAGS, shape=(int(FLAGS.sum()), 3), dtype="int64")
    yield (
        "FAKE_QUANT",
        *plain("FAKE_QUANT", X, options=table("FakeQuantOptions", min=-1.0, max=1.5, num_bits=8)),
    )
    yield "UNPACK", "UNPACK", [X], [("float32", (2, 4))] * 3, table("UnpackOptions", num=3, axis=1), ()
    yield (
        "SPLIT_V",
        "SPLIT_V",
        [X, ints(1, 3), np.int32(2)],
        [("float32", (2, 3, 1)), ("float32", (2, 3, 3))],
        table("SplitVOptions", num_splits=2),
        (1, 2),
    )
    yield (
        "PACK",
        *plain("PACK", X, Y, shape=(2, 2, 3, 4), options=table("PackOptions", values_count=2, axis=1)),
    )
    yield "TILE", *plain("TILE", X, ints(1, 2, 3), shape=(2, 6, 12), constants=(1,))
    yield "REVERSE_V2", *plain("REVERSE_V2", X, ints(1), constants=(1,))
    for kind in ("SIN", "COS", "CEIL", "ROUND", "ZEROS_LIKE", "L2_NORMALIZATION", "LOG_SOFTMAX"):
        yield kind, *plain(kind, X * 3)
    yield "GELU", *plain("GELU", X, options=table("GeluOptions", approximate=True))
    yield "LOGICAL_NOT", *plain("LOGICAL_NOT", FLAGS, dtype="bool")
    for kind in ("LOGICAL_AND", "LOGICAL_OR"):
        yield kind, *plain(kind, FLAGS, Y > 0, dtype="bool")
    yield "POW", *plain("POW", np.abs(X), Y)
    for kind in ("FLOOR_DIV", "FLOOR_MOD"):
        yield kind, *plain(kind, X, Y)
        yield f"{kind} of integers", *plain(kind, WHOLE, np.where(WHOLE % 5, WHOLE % 5, -3), dtype="int32")
    yield "DIV of integers", *plain("DIV", WHOLE, ints(3, -2, 5, 4), dtype="int32")
    yield (
        "ONE_HOT",
        *plain(
            "ONE_HOT",
            IDS,
            np.int32(3),
            np.float32(2),
            np.float32(-1),
            shape=(4, 3),
            options=table("OneHotOptions", axis=-1),
            constants=(1, 2, 3),
        ),
    )
    yield "REDUCE_PROD", *reduced("REDUCE_PROD", X)
    yield "REDUCE_MAX", *reduced("REDUCE_MAX", X)
    yield "REDUCE_MIN", *reduced("REDUCE_MIN", X)
    yield "REDUCE_ANY", *reduced("REDUCE_ANY", FLAGS, "bool")
    yield "REDUCE_ALL", *reduced("REDUCE_ALL", FLAGS, "bool")
    yield (
        "CUMSUM",
        *plain(
            "CUMSUM",
            X,
            np.int32(1),
            options=table("CumsumOptions", exclusive=True, reverse=True),
            constants=(1,),
        ),
    )
    for kind, name, axis, shape, dtype in (
        ("ARG_MAX", "ArgMaxOptions", 1, (2, 4), "int32"),
        ("ARG_MIN", "ArgMinOptions", 2, (2, 3), "int64"),
    ):
        options = table(name, output_type=dtype.upper())
        yield kind, *plain(kind, X, np.int32(axis), shape=shape, dtype=dtype, options=options, constants=(1,))
    yield "TOPK_V2", "TOPK_V2", [X, np.int32(2)], [("float32", (2, 3, 2)), ("int32", (2, 3, 2))], None, (1,)
    yield (
        "BATCH_MATMUL",
        *plain("BATCH_MATMUL", X, Y, shape=(2, 3, 3), options=table("BatchMatMulOptions", adj_y=True)),
    )
    options = table("TransposeConvOptions", padding="SAME", stride_h=2, stride_w=1)
    yield (
        "TRANSPOSE_CONV",
        *plain(
            "TRANSPOSE_CONV",
            ints(2, 8, 6, 3),
            draw(3, 3, 2, 4),
            IMAGE,
            shape=(2, 8, 6, 3),
            options=options,
            constants=(0, 1),
        ),
    )
    options = table("Pool2DOptions", padding="VALID", stride_h=2, stride_w=1, filter_height=2, filter_width=3)
    yield "L2_POOL_2D", *plain("L2_POOL_2D", IMAGE, shape=(2, 2, 4, 4), options=options)
    options = table("LocalResponseNormalizationOptions", radius=1, bias=1.5, alpha=0.3, beta=0.75)
    yield "LOCAL_RESPONSE_NORMALIZATION", *plain("LOCAL_RESPONSE_NORMALIZATION", IMAGE, options=options)
    yield (
        "MIRROR_PAD",
        *plain(
            "MIRROR_PAD",
            X,
            ints([0, 1], [1, 1], [2, 0]),
            shape=(3, 5, 6),
            options=table("MirrorPadOptions", mode="REFLECT"),
            constants=(1,),
        ),
    )
    options = table("StridedSliceOptions", begin_mask=1, shrink_axis_mask=2)
    yield (
        "STRIDED_SLICE",
        *plain(
            "STRIDED_SLICE",
            X,
            ints(0, 1, 3),
            ints(2, 2, 0),
            ints(1, 1, -2),
            shape=(2, 2),
            options=options,
            constants=(1, 2, 3),
        ),
    )
    yield (
        "RESIZE_NEAREST_NEIGHBOR",
        *plain(
            "RESIZE_NEAREST_NEIGHBOR",
            IMAGE,
            ints(7, 3),
            shape=(2, 7, 3, 4),
            options=table("ResizeNearestNeighborOptions", half_pixel_centers=True),
            constants=(1,),
        ),
    )
    yield "RANK", *plain("RANK", X, shape=(), dtype="int32")
    yield from more_cases()


BOXES = np.float32(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]
)
SCORES = np.float32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])
VOLUME = draw(1, 4, 5, 6, 2, seed=4)
HOLES = np.float32([-np.inf, -1.5, -0.0, 0, 0.5, 2.5, np.inf, np.nan])


def more_cases():
    """Rows of operators that other tests check by other means."""
    options = table("Pool2DOptions", padding="SAME", stride_h=2, stride_w=1, filter_height=3, filter_width=2)
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield kind, *plain(kind, IMAGE, shape=(2, 2, 6, 4), options=options)
    options = table("BucketizeOptions", boundaries=[-1.0, 0.0, 1.5])
    yield "BUCKETIZE", *plain("BUCKETIZE", HOLES, dtype="int32", options=options)
    for dtype in ("int32", "bool"):
        options = table("CastOptions", in_data_type="FLOAT32", out_data_type=dtype.upper())
        yield f"CAST to {dtype}", *plain("CAST", X * 9, dtype=dtype, options=options)
    options = table("CastOptions", in_data_type="INT32", out_data_type="FLOAT32")
    yield "CAST of integers", *plain("CAST", WHOLE, options=options)
    options = table(
        "Conv3DOptions", padding="SAME", stride_d=1, stride_h=2, stride_w=2, dilation_d_factor=1,
        dilation_h_factor=1, dilation_w_factor=1, fused_activation_function="RELU",
    )  # fmt: skip
    yield (
        "CONV_3D",
        *plain(
            "CONV_3D",
            VOLUME,
            draw(2, 3, 3, 2, 4),
            draw(4),
            shape=(1, 4, 3, 3, 4),
            options=options,
            constants=(1, 2),
        ),
    )
    options = table("Conv3DOptions", padding="VALID", stride_d=2, stride_h=2, stride_w=1, dilation_d_factor=1,
                    dilation_h_factor=1, dilation_w_factor=1)  # fmt: skip
    yield "CONV_3D_TRANSPOSE", *plain(
        "CONV_3D_TRANSPOSE", ints(1, 8, 11, 8, 3), draw(2, 3, 3, 3, 2), VOLUME, shape=(1, 8, 11, 8, 3),
        options=options, constants=(0, 1),
    )  # fmt: skip
    yield "DEQUANTIZE", "DEQUANTIZE", [np.float16(X)], [("float32", X.shape)], None, ()
    yield "EMBEDDING_LOOKUP", *plain("EMBEDDING_LOOKUP", IDS, ROWS, shape=(4, 3), constants=(1,))
    for kind in ("FLOOR", "SIGN", "SQUARE"):
        yield kind, *plain(kind, HOLES[:-1])
    for kind in ("MAXIMUM", "MINIMUM"):
        yield kind, *plain(kind, X, Y[:, :1])
        yield f"{kind} of integers", *plain(kind, WHOLE, -WHOLE, dtype="int32")
    numbers = [np.int32(4), np.float32(0.5), np.float32(0.4)]
    yield "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V4", [BOXES, SCORES, *numbers], [
        ("int32", (4,)), ("int32", ())
    ], None, (2, 3, 4)  # fmt: skip
    yield "NON_MAX_SUPPRESSION_V5", "NON_MAX_SUPPRESSION_V5", [BOXES, SCORES, *numbers, np.float32(0)], [
        ("int32", (4,)), ("float32", (4,)), ("int32", ())
    ], None, (2, 3, 4, 5)  # fmt: skip
    yield "PAD", *plain("PAD", X, ints([1, 0], [0, 2], [1, 1]), shape=(3, 5, 6), constants=(1,))
    yield (
        "SHAPE",
        *plain("SHAPE", X, shape=(3,), dtype="int32", options=table("ShapeOptions", out_type="INT32")),
    )
    yield (
        "UNIQUE",
        "UNIQUE",
        [ints(2, 1, 1, 2, 4, 4, 8)],
        [("int32", (0,)), ("int32", (7,))],
        table("UniqueOptions", idx_out_type="INT32"),
        (),
    )
    options = table("RandomOptions", seed=3, seed2=5)
    for kind in ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"):
        yield kind, *plain(kind, ints(5, 7), shape=(5, 7), options=options, constants=(0,))
    logits = np.log(np.float32([[0.5, 0.25, 0.25], [1e-9, 0.2, 0.8]]))
    yield (
        "MULTINOMIAL",
        *plain(
            "MULTINOMIAL", logits, np.int32(9), shape=(2, 9), dtype="int64", options=options, constants=(1,)
        ),
    )


def broadcast():
    """The operator's first version that LiteRT has is the second."""
    made = Builder()
    made.tensor("x", shape=ROWS.shape)
    made.constant("shape", ints(2, 4, 3))
    made.tensor("y", shape=(2, 4, 3))
    made.add("BROADCAST_TO", ["x", "shape"], ["y"], version=2)
    made.borders(["x"], ["y"])
    return made, [ROWS]


CASES = {name: rest for name, *rest in cases()}
GRAPHS = {  # of several operators
    "IF of a positive one": lambda: (branches(), [np.float32([3])]),
    "IF of a negative one": lambda: (branches(), [np.float32([-3])]),
    "variables": lambda: (delay_line(), [draw(1, 2)]),
    "BROADCAST_TO": broadcast,
    "DENSIFY": lambda: (sparse_model(*sparse_weights()[:2]), [draw(2, 6)]),
}


def model(name):
    """The model and its inputs."""
    if name in GRAPHS:
        return GRAPHS[name]()
    kind, arrays, outputs, options, constants = CASES[name]
    inputs = [np.asarray(a) for i, a in enumerate(arrays) if i not in constants]
    return of_one(kind, arrays, outputs, options, constants), inputs


@pytest.mark.parametrize("name", [*CASES, *GRAPHS])
def test_it_answers_as_litert(name, tmp_path):
    source, inputs = model(name)
    expected = np.load(FIXTURE)
    for i, y in enumerate(answers(tmp_path, source, *inputs)):
        wanted = expected[f"{name}.{i}"]
        assert y.dtype == wanted.dtype and y.shape == wanted.shape
        np.testing.assert_allclose(y, wanted, rtol=2e-6, atol=2e-6)


if __name__ == "__main__":
    for name in (*CASES, *GRAPHS):
        source, inputs = model(name)
        source.write(Path(sys.argv[1]) / f"{name}.tflite")
        np.savez(Path(sys.argv[1]) / f"{name}.npz", *inputs)
