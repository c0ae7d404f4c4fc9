"""Every ONNX operator that is imported, in a model that onnxruntime has answered.

``python -m converter.test_onnx_rows FOLDER`` in `packages/lite/tests` writes the models and their inputs;
what onnxruntime 1.32 answers is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia.io.onnx import onnx_pb2
from mycelia_lite.converter.importers.onnx import _CONTROL
from mycelia_lite.converter.importers.onnx.calls import OPERATORS

from .onnx_models import graph, model, node, write
from .tflite_models import run

FIXTURE = Path(__file__).parents[1] / "fixtures" / "onnx_rows.npz"
MICROSOFT = "com.microsoft"


def draw(*shape, seed=0, low=None):
    made = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return made if low is None else np.abs(made) + np.float32(low)


def whole(low, high, *shape, seed=0, dtype=np.int64):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def longs(*values):
    return np.array(values, np.int64)


def flags(*shape, seed=0):
    return draw(*shape, seed=seed) > 0


def one(kind, *arrays, count=1, constants=(), version=20, domain="", **attributes):
    """A model of one node, and its inputs; None is left out, a number in `constants` names a weight."""
    names = [f"x{i}" if a is not None else "-" for i, a in enumerate(arrays)]
    outputs = " ".join(f"y{i}" for i in range(count))
    nodes = [node(kind, " ".join(names), outputs, name="it", domain=domain, **attributes)]
    return whole_model(nodes, dict(zip(names, arrays)), outputs, constants, version)


def whole_model(nodes, arrays, outputs, constants=(), version=20):
    """A model of nodes, and the inputs that are no weights, by name."""
    given = {n: np.asarray(a) for n, a in arrays.items() if a is not None}
    weights = {n: a for i, (n, a) in enumerate(given.items()) if i in constants}
    inputs = {n: a for n, a in given.items() if n not in weights}
    message = model(nodes, {n: (a.dtype, a.shape) for n, a in inputs.items()}, outputs, weights, version)
    message.opset_import.append(onnx_pb2.OperatorSetIdProto(domain=MICROSOFT, version=1))
    return message, inputs


X, Y, UNIT, IMAGE = draw(2, 3, 4), draw(2, 3, 4, seed=1), np.tanh(draw(2, 3, 4)), draw(2, 4, 6, 5, seed=2)
ROWS, POSITIVE, WHOLE = draw(4, 3, seed=3), draw(2, 3, 4, low=0.2), whole(-9, 9, 2, 3, 4)
HOLES = np.float32([-np.inf, -1.5, -0.5, -0.0, 0, 0.5, 2.5, np.inf, np.nan])
INTS = whole(0, 200, 2, 3, 4, dtype=np.int32)
BYTES, STEP, ZERO = whole(0, 256, 3, 4, dtype=np.uint8), np.float32(0.03), np.uint8(120)
FINER, OTHER = np.float32(0.05), np.uint8(100)


def unary():
    """Functions of one input without attributes, by what they are defined on."""
    for kind in (
        "Abs", "Atan", "Asinh", "Cos", "Cosh", "Erf", "Exp", "Identity", "LeakyRelu", "Elu", "Celu", "Selu",
        "HardSigmoid", "Mish", "Neg", "Relu", "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh",
        "ThresholdedRelu", "Gelu", "HardSwish", "LogSoftmax", "Softmax", "Hardmax", "Shrink",
        "MeanVarianceNormalization", "LpNormalization",
    ):  # fmt: skip
        yield kind, one(kind, IMAGE if kind == "MeanVarianceNormalization" else X)
    for kind in ("Acos", "Asin", "Atanh"):
        yield kind, one(kind, UNIT)
    yield "Acosh", one("Acosh", draw(2, 3, low=1))
    for kind in ("Log", "Sqrt", "Reciprocal"):
        yield kind, one(kind, POSITIVE)
    for kind in ("Ceil", "Floor", "Round", "IsInf", "IsNaN"):
        yield kind, one(kind, HOLES)
    yield "Sign", one("Sign", HOLES[:-1])
    yield "Not", one("Not", flags(2, 3))
    yield "BitwiseNot", one("BitwiseNot", WHOLE)
    yield "Swish", one("Swish", X, version=24, alpha=1.5)


def binary():
    for kind in ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        yield kind, one(kind, X, Y[:, :1])
        yield f"{kind} of integers", one(kind, WHOLE, whole(1, 9, 3, 4, seed=1))
    for kind in ("Max", "Min", "Mean", "Sum"):
        yield kind, one(kind, X, Y[:, :1], Y[0])
    for kind in ("And", "Or", "Xor"):
        yield kind, one(kind, flags(2, 3), flags(3, seed=1))
    for kind in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield kind, one(kind, WHOLE, whole(-9, 9, 3, 4, seed=1))
    yield "BitShift", one("BitShift", whole(0, 99, 6, dtype=np.uint32), np.uint32([1]), direction="RIGHT")
    yield "Mod", one("Mod", WHOLE, whole(1, 9, 3, 4, seed=1) * longs(1, -1, 1, -1))
    yield "Mod of floats", one("Mod", X * 9, POSITIVE, fmod=1)
    yield "Pow", one("Pow", POSITIVE, Y)
    yield "PRelu", one("PRelu", X, Y[0, :, :1])
    yield "Where", one("Where", flags(2, 1, 4), X, Y)
    yield "Clip", one("Clip", X, np.float32(-0.5), np.float32(0.7))
    yield "CastLike", one("CastLike", X * 9, np.int32([0]))


def reductions():
    for kind in ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"):
        yield f"Reduce{kind}", one(f"Reduce{kind}", X, longs(0, 2), constants=(1,))
    yield "ReduceLogSum", one("ReduceLogSum", POSITIVE, longs(1), constants=(1,), keepdims=0)
    yield "ArgMax", one("ArgMax", np.round(X), axis=1)
    yield "ArgMin", one("ArgMin", np.round(X), axis=2, keepdims=0, select_last_index=1)
    yield "CumSum", one("CumSum", X, np.int32(1), constants=(1,), exclusive=1, reverse=1)
    yield "CumProd", one("CumProd", X, np.int64(2), constants=(1,), version=26)
    yield "TopK", one("TopK", X, longs(2), count=2, constants=(1,))
    yield "NonZero", one("NonZero", flags(3, 4))
    yield "Unique", one("Unique", longs(2, 1, 1, 4, 2), count=4, axis=0)
    yield "Det", one("Det", draw(2, 3, 3))
    yield "Einsum", one("Einsum", X, Y, equation="bij,bkj->bik")
    yield "Compress", one("Compress", X, np.array([True, False, True]), axis=1)


def shapes():
    yield "Cast", one("Cast", X * 9, to=6)
    yield "BitCast", one("BitCast", X, version=26, to=6)
    yield "Concat", one("Concat", X, Y, axis=2)
    yield (
        "Constant",
        whole_model([node("Constant", "", "c", value=ROWS), node("Add", "x c", "y")], {"x": ROWS}, "y"),
    )
    yield "ConstantOfShape", one("ConstantOfShape", longs(2, 3), value=np.float32([1.5]))
    yield "DepthToSpace", one("DepthToSpace", IMAGE, blocksize=2, mode="CRD")
    yield "SpaceToDepth", one("SpaceToDepth", IMAGE[:, :, :, :4], blocksize=2)
    yield "Expand", one("Expand", ROWS, longs(2, 1, 3), constants=(1,))
    yield "EyeLike", one("EyeLike", ROWS, k=1)
    yield "Flatten", one("Flatten", IMAGE, axis=2)
    yield "Gather", one("Gather", X, longs([0, -1], [1, 2]), axis=1)
    yield "GatherElements", one("GatherElements", X, whole(-3, 3, 2, 5, 4), axis=1)
    yield "GatherND", one("GatherND", X, longs([0, 2], [1, -1]))
    yield (
        "OneHot",
        one("OneHot", longs(1, -1, 5, 0), np.int64(4), np.float32([-1, 2]), constants=(1,), axis=0),
    )
    yield "Pad", one("Pad", X, longs(1, 0, 2, 0, 1, 1), np.float32(7), constants=(1,))
    yield "Range", one("Range", np.float32(1), np.float32(4), np.float32(0.7), constants=(0, 1, 2))
    yield "Reshape", one("Reshape", X, longs(0, -1), constants=(1,))
    yield "ReverseSequence", one("ReverseSequence", ROWS, longs(1, 4, 2), batch_axis=1, time_axis=0)
    for kind in ("ScatterElements", "Scatter"):
        how = dict(version=20) if kind == "ScatterElements" else dict(version=10)
        yield kind, one(kind, X, longs([[0, 2, 1, 1]]), draw(1, 1, 4), axis=1, **how)
    yield "ScatterND", one("ScatterND", X, longs([0, 2], [1, 1], [0, 2]), draw(3, 4), reduction="add")
    yield "Shape", one("Shape", X, start=1)
    yield "Size", one("Size", X)
    yield (
        "Slice",
        one("Slice", X, longs(2, 0), longs(-9, 3), longs(1, 2), longs(-1, 2), constants=(1, 2, 3, 4)),
    )
    yield "Split", one("Split", X, longs(1, 2), count=2, constants=(1,), axis=1)
    yield "Squeeze", one("Squeeze", X[:, :1], longs(1), constants=(1,))
    yield "Unsqueeze", one("Unsqueeze", X, longs(0, -1), constants=(1,))
    yield "TensorScatter", one("TensorScatter", IMAGE, draw(2, 4, 2, 5), longs(1, 3), version=24)
    yield "Tile", one("Tile", ROWS, longs(2, 3), constants=(1,))
    yield "Transpose", one("Transpose", X, perm=[2, 0, 1])
    yield "Trilu", one("Trilu", X, np.int64(1), constants=(1,), upper=0)
    yield "CenterCropPad", one("CenterCropPad", X, longs(5, 2), constants=(1,), axes=[1, 2])


def windows():
    weight, bias = draw(6, 2, 3, 2), draw(6)
    yield (
        "Conv",
        one("Conv", IMAGE, weight, bias, constants=(1, 2), group=2, strides=[2, 1], pads=[1, 0, 1, 1]),
    )
    turned = dict(constants=(1, 2), strides=[2, 2], output_padding=[1, 0])
    yield "ConvTranspose", one("ConvTranspose", IMAGE, draw(4, 3, 3, 2), draw(3), **turned)
    for kind in ("AveragePool", "MaxPool", "LpPool"):
        yield kind, one(kind, IMAGE, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    for kind in ("GlobalAveragePool", "GlobalMaxPool"):
        yield kind, one(kind, IMAGE)
    yield "MaxUnpool", one("MaxUnpool", draw(1, 1, 2, 2), longs([[[5, 7], [13, 15]]]).reshape(1, 1, 2, 2),
                           kernel_shape=[2, 2], strides=[2, 2])  # fmt: skip
    yield "Col2Im", one("Col2Im", draw(1, 8, 9), longs(4, 4), longs(2, 2), constants=(1, 2))
    offsets = 0.3 * draw(1, 8, 3, 3)
    yield (
        "DeformConv",
        one("DeformConv", draw(1, 2, 4, 4), draw(3, 2, 2, 2), offsets, constants=(1,), version=22),
    )
    yield "GridSample", one("GridSample", IMAGE, np.tanh(draw(2, 3, 4, 2)), mode="linear", align_corners=1)
    yield "AffineGrid", one("AffineGrid", draw(2, 2, 3), longs(2, 3, 4, 5), constants=(1,), align_corners=0)
    yield "Resize", one("Resize", IMAGE, None, np.float32([1, 1, 2, 1.5]), constants=(1,), mode="linear")
    yield (
        "Upsample",
        one("Upsample", IMAGE, np.float32([1, 1, 2, 3]), constants=(1,), version=9, mode="nearest"),
    )
    rois = np.float32([[0, 0, 3, 4], [1, 1, 4, 5]])
    yield (
        "RoiAlign",
        one("RoiAlign", IMAGE, rois, longs(0, 1), output_height=2, output_width=3, sampling_ratio=2),
    )
    boxes = np.float32([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11], [0, 10.1, 1, 11.1]]])
    scores = np.float32([[[0.9, 0.75, 0.6, 0.95]]])
    limits = longs(3), np.float32([0.5]), np.float32([0.1])
    yield "NonMaxSuppression", one("NonMaxSuppression", boxes, scores, *limits, constants=(2, 3, 4))


def layers():
    scale, shift = draw(4, low=0.3), draw(4, seed=1)
    yield (
        "BatchNormalization",
        one("BatchNormalization", IMAGE, scale, shift, draw(4), draw(4, low=0.5), constants=(1, 2, 3, 4)),
    )
    yield "InstanceNormalization", one("InstanceNormalization", IMAGE, scale, shift, constants=(1, 2))
    yield (
        "GroupNormalization",
        one("GroupNormalization", IMAGE, scale, shift, constants=(1, 2), version=21, num_groups=2),
    )
    yield "LayerNormalization", one("LayerNormalization", X, scale, shift, constants=(1, 2))
    yield "RMSNormalization", one("RMSNormalization", X, scale, constants=(1,), version=23)
    yield "LRN", one("LRN", IMAGE, size=3, alpha=0.3, beta=0.75, bias=1.5)
    yield (
        "Gemm",
        one("Gemm", draw(3, 4), draw(5, 4), draw(5), constants=(1, 2), transB=1, alpha=0.5, beta=2.0),
    )
    yield "MatMul", one("MatMul", X, draw(2, 4, 5))
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        arrays = X, draw(1, 5 * gates, 4), draw(1, 5 * gates, 5), draw(1, 10 * gates)
        yield kind, one(kind, *arrays, count=2, constants=(1, 2, 3), hidden_size=5)
    heads = dict(q_num_heads=2, kv_num_heads=2)
    yield "Attention", one("Attention", draw(2, 3, 8), draw(2, 5, 8), draw(2, 5, 8), version=23, **heads)
    turns = draw(6, 2), draw(6, 2, seed=1), longs([0, 1, 2], [3, 4, 5])
    yield "RotaryEmbedding", one("RotaryEmbedding", draw(2, 2, 3, 4), *turns, constants=(1, 2), version=23)
    yield "Dropout", one("Dropout", X, count=2)
    labels, weights = whole(0, 3, 2, 4), draw(3, low=0.1)
    for kind in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        yield kind, one(kind, X, labels, weights, reduction="mean", ignore_index=1)


def signals():
    for kind in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield kind, one(kind, np.int64(9), constants=(0,), periodic=0)
    numbers = [np.int64(v) for v in (8, 32, 8192)] + [np.float32(20), np.float32(4000)]
    yield "MelWeightMatrix", one("MelWeightMatrix", *numbers, constants=range(5))
    yield "DFT", one("DFT", draw(2, 6, 1), None, np.int64(1), constants=(1,), onesided=1)
    yield "STFT", one("STFT", draw(1, 32, 1), np.int64(8), draw(16, low=0.1), constants=(1, 2))
    yield "TfIdfVectorizer", one(
        "TfIdfVectorizer", whole(1, 4, 2, 8),
        mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=1,
        ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4], pool_int64s=[1, 2, 3, 1, 2, 2, 3],
    )  # fmt: skip


def drawn():
    """Other numbers than onnxruntime's: shapes and types alone are compared."""
    for kind in ("RandomNormal", "RandomUniform"):
        yield kind, one(kind, shape=[2, 3], seed=3.0)
        yield f"{kind}Like", one(f"{kind}Like", X, seed=3.0)
    yield "Bernoulli", one("Bernoulli", np.abs(UNIT), seed=3.0)
    yield "Multinomial", one("Multinomial", draw(2, 4), sample_size=5, seed=3.0)


def sequences():
    arrays = {"a": X, "b": Y}
    made = node("SequenceConstruct", "a b", "s")
    at = np.int64(1)
    yield "SequenceConstruct", whole_model([made, node("ConcatFromSequence", "s", "y", axis=1)], arrays, "y")
    yield "SequenceAt", whole_model([made, node("SequenceAt", "s i", "y")], {"i": at, **arrays}, "y", (0,))
    yield "SequenceLength", whole_model([made, node("SequenceLength", "s", "n")], arrays, "n")
    nodes = [made, node("SequenceErase", "s i", "t"), node("SequenceAt", "t o", "y")]
    yield "SequenceErase", whole_model(nodes, {"i": at, "o": np.int64(0), **arrays}, "y", (0, 1))
    nodes = [
        node("SequenceEmpty", "", "e"),
        node("SequenceInsert", "e a", "s"),
        node("SequenceAt", "s i", "y"),
    ]
    yield "SequenceInsert", whole_model(nodes, {"i": np.int64(0), "a": X}, "y", (0,))
    nodes = [node("SplitToSequence", "a", "s", axis=2), node("SequenceAt", "s i", "y")]
    yield "SplitToSequence", whole_model(nodes, {"i": at, "a": X}, "y", (0,))
    nodes = [node("OptionalHasElement", "a", "has"), node("OptionalGetElement", "a", "y")]
    yield "OptionalHasElement", whole_model(nodes, {"a": X}, "has y")


def control():
    then, other = graph([node("Neg", "x", "p")], {}, "p"), graph([node("Abs", "x", "q")], {}, "q")
    branch = node("If", "c", "y", then_branch=then, else_branch=other)
    yield "If", whole_model([branch], {"c": np.array(False), "x": X}, "y")
    nodes = [node("Add", "v x", "w"), node("Identity", "going", "more"), node("Identity", "w", "row")]
    body = graph(
        nodes, {"i": ("int64", ()), "going": ("bool", ()), "v": ("float32", (2, 3, 4))}, "more w row"
    )
    body.output[0].type.tensor_type.elem_type = 9
    loop = node("Loop", "n t x", "last rows", body=body)
    yield "Loop", whole_model([loop], {"n": np.int64(3), "t": np.array(True), "x": X}, "last rows", (1,))
    nodes = [node("Add", "s r", "t"), node("Identity", "t", "o")]
    inner = graph(nodes, {"s": ("float32", (3, 4)), "r": ("float32", (3, 4))}, "t o")
    scan = node("Scan", "first x", "last rows", body=inner, num_scan_inputs=1)
    yield "Scan", whole_model([scan], {"first": Y[0], "x": X}, "last rows")


def quantized():
    weights, signed = whole(-128, 128, 4, 5, dtype=np.int8), np.int8(3)
    yield "QuantizeLinear", one("QuantizeLinear", X * 3, STEP, ZERO, constants=(1, 2))
    yield "DequantizeLinear", one("DequantizeLinear", BYTES, STEP, ZERO, constants=(1, 2))
    yield "DynamicQuantizeLinear", one("DynamicQuantizeLinear", X, count=3)
    yield "MatMulInteger", one("MatMulInteger", BYTES, weights, ZERO, signed, constants=(1, 2, 3))
    image, kernel = whole(0, 256, 1, 2, 4, 5, dtype=np.uint8), whole(0, 256, 3, 2, 2, 2, dtype=np.uint8)
    yield "ConvInteger", one("ConvInteger", image, kernel, ZERO, constants=(1, 2))
    finer = np.float32(0.7), OTHER
    conv = kernel, FINER, OTHER, np.float32(9), ZERO
    yield "QLinearConv", one("QLinearConv", image, STEP, ZERO, *conv, constants=range(1, 8))
    product = weights.view(np.uint8), FINER, OTHER, *finer
    yield "QLinearMatMul", one("QLinearMatMul", BYTES, STEP, ZERO, *product, constants=range(1, 8))


FLOATS = {"float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "bfloat16": 16}
WIDE = np.concatenate([
    HOLES, -HOLES, np.float32([np.nan, 448, 449, 464, 465, 57344, 61439, 1e9, -1e9, 3e38, 2**-7]),
    2.0 ** np.arange(-20, 17) * 1.0625, draw(40), draw(20) * 2**-8, draw(20) * 2**8,
]).astype(np.float32)  # fmt: skip


def narrow():
    """Values of types that core lacks, made and widened again: halves, zeros and what is beyond, too."""
    for name, kind in FLOATS.items():
        for saturate in (0, 1) if kind > 16 else (1,):
            how = {} if saturate else {"saturate": 0}
            nodes = [node("Cast", "x", "q", to=kind, **how), node("Cast", "q", "y", to=1)]
            yield f"Cast to {name} {saturate}", whole_model(nodes, {"x": WIDE}, "y", version=21)
    nodes = [node("Cast", "b", "c", to=17), node("CastLike", "x c", "q"), node("Cast", "q", "y", to=1)]
    yield "CastLike a float8", whole_model(nodes, {"x": WIDE, "b": ROWS}, "y", version=21)
    for name, kind in (("float8e4m3fn", 17), ("float8e5m2", 19)):
        nodes = [node("QuantizeLinear", "x s", "q", output_dtype=kind), node("Reshape", "q n", "r"),
                 node("DequantizeLinear", "r s", "y")]  # fmt: skip
        arrays = {"s": STEP, "n": longs(4, 6), "x": X}
        yield f"QuantizeLinear to {name}", whole_model(nodes, arrays, "y", (0, 1), version=21)
    for name, kind in (("uint4", 21), ("int4", 22)):
        nodes = [node("QuantizeLinear", "x s", "q", output_dtype=kind), node("DequantizeLinear", "q s", "y")]
        arrays = {"s": np.float32(0.25), "x": X}
        yield f"QuantizeLinear to {name}", whole_model(nodes, arrays, "y", (0,), version=21)


def microsoft():
    def own(kind, *arrays, constants=(), **more):
        return f"{MICROSOFT}.{kind}", one(kind, *arrays, constants=constants, domain=MICROSOFT, **more)

    weights = whole(-128, 128, 4, 5, dtype=np.int8)
    steps = STEP, ZERO, FINER, OTHER
    yield own("Gelu", X)
    yield own("FastGelu", X)
    yield own("QuickGelu", X, alpha=1.5)
    yield own("BiasGelu", X, draw(4), constants=(1,))
    yield own("FusedMatMul", X, Y, transB=1, alpha=0.5)
    norm = draw(4, low=0.3), draw(4)
    yield own("SkipLayerNormalization", X, Y, *norm, constants=(2, 3))
    yield own("SkipSimplifiedLayerNormalization", X, Y, norm[0], constants=(2,))
    yield own("MatMulIntegerToFloat", BYTES, weights, STEP, FINER, ZERO, constants=range(1, 5))
    yield own("DynamicQuantizeMatMul", draw(3, 4), weights, STEP, constants=(1, 2))
    c = whole(-999, 999, 5, dtype=np.int32)
    gemm = weights.view(np.uint8), FINER, OTHER, c, np.float32(0.6), ZERO
    yield own("QGemm", BYTES, STEP, ZERO, *gemm, constants=range(1, 9))
    both = STEP, ZERO, BYTES[:1].copy(), FINER, OTHER
    for kind, step in (("QLinearAdd", 0.06), ("QLinearMul", 0.2)):
        yield own(kind, BYTES, *both, np.float32(step), ZERO, constants=(1, 2, 4, 5, 6, 7))
    yield own("QLinearSigmoid", BYTES, STEP, ZERO, np.float32(1 / 256), np.uint8(0), constants=range(1, 5))
    yield own("QLinearLeakyRelu", BYTES, *steps, constants=range(1, 5), alpha=0.2)
    yield own("QLinearSoftmax", BYTES, STEP, ZERO, np.float32(1 / 256), np.uint8(0), constants=range(1, 5),
              axis=-1, opset=13)  # fmt: skip
    yield own("QLinearConcat", FINER, OTHER, BYTES, STEP, ZERO, BYTES[:1], STEP, ZERO,
              constants=(0, 1, 3, 4, 6, 7), axis=0)  # fmt: skip
    image = whole(0, 256, 1, 2, 4, 5, dtype=np.uint8)
    yield own("QLinearAveragePool", image, *steps, constants=range(1, 5), kernel_shape=[2, 2])
    yield own("QLinearGlobalAveragePool", image, *steps, constants=range(1, 5))
    scales = np.full(20, 0.01, np.float32).reshape(1, 20), np.zeros((1, 20), np.int8)
    lstm = (
        whole(-99, 99, 1, 4, 20, dtype=np.int8),
        whole(-99, 99, 1, 5, 20, dtype=np.int8, seed=1),
        draw(1, 40),
    )
    yield own("DynamicQuantizeLSTM", X, *lstm, None, None, None, None, *scales, *scales, count=2,
              constants=range(1, 8), hidden_size=5)  # fmt: skip


LOOSE = {name for name, _ in drawn()}
PARTS = (
    unary,
    binary,
    reductions,
    shapes,
    windows,
    layers,
    signals,
    drawn,
    sequences,
    control,
    quantized,
    narrow,
    microsoft,
)
CASES = {name: row for part in PARTS for name, row in part()}


def kinds(nodes):
    """The operators of nodes, and of the graphs that they hold."""
    for each in nodes:
        yield f"{each.domain}.{each.op_type}" if each.domain else each.op_type
        for attribute in each.attribute:
            yield from kinds(attribute.g.node)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_answers_as_onnxruntime(name, tmp_path):
    message, inputs = CASES[name]
    path = write(tmp_path / "m.onnx", message)
    report = mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
    recorded = np.load(FIXTURE)
    for i, y in enumerate(run(report.path, *inputs.values())):
        expected = recorded[f"{name}/{i}"]
        assert y.dtype == expected.dtype and y.shape == expected.shape
        if name in LOOSE:
            continue
        if y.dtype.kind == "f":
            tolerance = 1e-3 if "DynamicQuantizeLSTM" in name else 2e-5  # a state may be a step of 8 bits off
            np.testing.assert_allclose(y, expected, rtol=2e-5, atol=tolerance)
        else:
            np.testing.assert_array_equal(y, expected)


def test_every_operator_has_a_row():
    """Those of ONNX-ML have theirs in test_onnx_learned.py."""
    found = {kind for message, _ in CASES.values() for kind in kinds(message.graph.node)}
    assert {kind for kind in (*OPERATORS, *_CONTROL) if not kind.startswith("ai.onnx.ml.")} == found


if __name__ == "__main__":
    for name, (message, inputs) in CASES.items():
        place = Path(sys.argv[1]) / name
        write(Path(f"{place}.onnx"), message)
        np.savez(f"{place}.npz", **inputs)
