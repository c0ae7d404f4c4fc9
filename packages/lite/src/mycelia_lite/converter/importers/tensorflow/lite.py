"""Operators that TensorFlow Lite has, too: they are imported as these, with attributes for options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers import tflite
from mycelia_lite.converter.importers.nodes import entry_of
from mycelia_lite.converter.importers.onnx.calls import need_known
from mycelia_lite.converter.importers.tensorflow.calls import Call, operator
from mycelia_lite.converter.importers.tflite import shapes
from mycelia_lite.converter.importers.tflite.calls import Call as LiteCall
from mycelia_lite.converter.importers.tflite.calls import as_tensor
from mycelia_lite.converter.importers.tflite.file import DTYPES, TFL3, TensorInfo
from mycelia_lite.format import Table

_ALL = range(1 << 10)  # inputs that may be open sizes; the operator of TensorFlow Lite tells which
_NAMES = {dtype: name for name, dtype in DTYPES.items() if name != "INT4"}


class _LiteCall(LiteCall):
    """A node as the operator of TensorFlow Lite that means the same; errors name the node itself."""

    def __init__(self, call: Call, kind: str, options: Any, dtypes: Sequence[Any]) -> None:
        results = [_info(dtype) for dtype in dtypes]
        super().__init__(kind, call.name, options, memoryview(b""), [], results)
        self.source = call

    def fail(self, why: str, code: Code = Code.NOT_SUPPORT) -> ConversionError:
        return self.source.fail(why, code)


def _info(dtype: Any) -> TensorInfo:
    return TensorInfo("", _NAMES[dtype], (), None, False, Table(TFL3.tables["Tensor"]))


def as_lite(
    call: Call, kind: str, inputs: Sequence[Any], dtypes: Sequence[Any], table: str = "", **options: Any
) -> Any:
    """The results of a node as the operator `kind`, of these `dtypes`. `options`: fields of its table."""
    made = Table(TFL3.tables[table], **options) if table else None
    lite = _LiteCall(call, kind, made, dtypes)
    given = list(inputs)
    entry = entry_of(lite, given, tflite.OPERATORS)
    result = shapes.fold(lite, given)
    if result is None:
        result = entry.function(lite, *entry.arguments(given, as_tensor))
    call.same |= lite.same
    return result


def _enter(names: str, kind: str, table: str = "", **fields: Any) -> None:
    """Operators of these names as `kind`, with inputs in the same order and results of the type of the first.

    `fields`: option of the table -> the attribute with its default, or the value that it must have: a text.
    """

    def run(call: Call, *inputs: Any) -> Any:
        options = {}
        for field, value in fields.items():
            if isinstance(value, tuple):
                options[field] = call.get(*value)
            else:
                call.choice(field, value, value)
        return as_lite(call, kind, inputs, [_dtype(inputs[0])], table, **options)

    for name in names.split():
        operator(name, sizes=_ALL)(run)


for _kind in (
    "Abs Neg Sqrt Rsqrt Exp Log Sin Cos Square Floor Ceil Round Sign Maximum Minimum Equal Less Greater Relu "
    "Relu6 Tanh Elu Pow Fill Range Rank Where"
).split():
    _enter(_kind, _kind.upper())
for _names, _kind in {
    "Rint": "ROUND", "LogicalNot": "LOGICAL_NOT", "ZerosLike": "ZEROS_LIKE", "NotEqual": "NOT_EQUAL",
    "LessEqual": "LESS_EQUAL", "GreaterEqual": "GREATER_EQUAL", "LogicalAnd": "LOGICAL_AND",
    "LogicalOr": "LOGICAL_OR", "Atan2": "ATAN2", "SquaredDifference": "SQUARED_DIFFERENCE",
    "Sigmoid": "LOGISTIC", "LogSoftmax": "LOG_SOFTMAX", "FloorDiv": "FLOOR_DIV", "FloorMod": "FLOOR_MOD",
    "AddN": "ADD_N", "Select": "SELECT", "SelectV2": "SELECT_V2", "Pad": "PAD", "PadV2": "PADV2",
    "BroadcastTo": "BROADCAST_TO", "BroadcastArgs": "BROADCAST_ARGS", "ReverseV2": "REVERSE_V2",
    "MatrixDiag": "MATRIX_DIAG", "MatrixSetDiag": "MATRIX_SET_DIAG", "GatherNd": "GATHER_ND",
    "ScatterNd": "SCATTER_ND", "UnsortedSegmentSum": "UNSORTED_SEGMENT_SUM",
    "UnsortedSegmentMax": "UNSORTED_SEGMENT_MAX", "UnsortedSegmentMin": "UNSORTED_SEGMENT_MIN",
    "UnsortedSegmentProd": "UNSORTED_SEGMENT_PROD", "SegmentSum": "SEGMENT_SUM", "Transpose": "TRANSPOSE",
    "BatchToSpaceND": "BATCH_TO_SPACE_ND", "SpaceToBatchND": "SPACE_TO_BATCH_ND", "Tile": "TILE",
    "Slice": "SLICE", "ExpandDims": "EXPAND_DIMS", "Reshape": "RESHAPE",
}.items():  # fmt: skip
    _enter(_names, _kind)
for _names, _kind, _table in (
    ("Add AddV2", "ADD", "AddOptions"), ("Sub", "SUB", "SubOptions"), ("Mul", "MUL", "MulOptions"),
    ("RealDiv Div TruncateDiv", "DIV", "DivOptions"),
):  # fmt: skip
    _enter(_names, _kind, _table)
for _name, _kind in {
    "Mean": "MEAN", "Sum": "SUM", "Prod": "REDUCE_PROD", "Max": "REDUCE_MAX", "Min": "REDUCE_MIN",
    "Any": "REDUCE_ANY", "All": "REDUCE_ALL",
}.items():  # fmt: skip
    _enter(_name, _kind, "ReducerOptions", keep_dims=("keep_dims", False))
_enter("LeakyRelu", "LEAKY_RELU", "LeakyReluOptions", alpha=("alpha", 0.2))
_enter("Cumsum", "CUMSUM", "CumsumOptions", exclusive=("exclusive", False), reverse=("reverse", False))
_enter("OneHot", "ONE_HOT", "OneHotOptions", axis=("axis", -1))
_enter("Gather", "GATHER", "GatherOptions")
_enter(
    "BatchMatMul BatchMatMulV2", "BATCH_MATMUL", "BatchMatMulOptions", adj_x=("adj_x", False),
    adj_y=("adj_y", False),
)  # fmt: skip
_enter(
    "StridedSlice", "STRIDED_SLICE", "StridedSliceOptions",
    **{f"{name}_mask": (f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis")},
    shrink_axis_mask=("shrink_axis_mask", 0),
)  # fmt: skip
_enter(
    "LRN", "LOCAL_RESPONSE_NORMALIZATION", "LocalResponseNormalizationOptions", radius=("depth_radius", 5),
    bias=("bias", 1.0), alpha=("alpha", 1.0), beta=("beta", 0.5),
)  # fmt: skip
for _name, _kind, _table in (
    ("ResizeBilinear", "RESIZE_BILINEAR", "ResizeBilinearOptions"),
    ("ResizeNearestNeighbor", "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
):
    _enter(
        _name, _kind, _table, align_corners=("align_corners", False),
        half_pixel_centers=("half_pixel_centers", False),
    )  # fmt: skip
for _name, _kind, _table in (
    ("SpaceToDepth", "SPACE_TO_DEPTH", "SpaceToDepthOptions"),
    ("DepthToSpace", "DEPTH_TO_SPACE", "DepthToSpaceOptions"),
):
    _enter(_name, _kind, _table, block_size=("block_size", 0), data_format="NHWC")


# ---- those whose inputs or options are others


@operator("Shape", "ShapeN", sizes=_ALL)
def _shape(call, *values):
    dtype = call.dtype("out_type", ms.int32)
    return tuple(as_lite(call, "SHAPE", [v], [dtype], "ShapeOptions") for v in values)


@operator("Size")
def _size(call, x):
    dtype = call.dtype("out_type", ms.int32)
    sizes = as_lite(call, "SHAPE", [x], [dtype], "ShapeOptions")
    return as_lite(call, "REDUCE_PROD", [sizes, ms.Tensor([0])], [dtype], "ReducerOptions", keep_dims=False)


@operator("Cast", sizes=_ALL)
def _cast(call, x):
    if call.get("Truncate", False):
        raise call.option("Truncate", True, "is not imported")
    return as_lite(call, "CAST", [x], [call.dtype("DstT")], "CastOptions")


@operator("Softmax")
def _softmax(call, x):
    return as_lite(call, "SOFTMAX", [x], [x.dtype], "SoftmaxOptions", beta=1.0)


@operator("Squeeze", sizes=_ALL)
def _squeeze(call, x):
    axes = call.get("squeeze_dims", []) or call.get("axis", [])
    return as_lite(call, "SQUEEZE", [x], [_dtype(x)], "SqueezeOptions", squeeze_dims=axes)


@operator("Pack", sizes=_ALL)
def _pack(call, *parts):
    options = dict(axis=call.get("axis", 0), values_count=len(parts))
    return as_lite(call, "PACK", parts, [_dtype(parts[0])], "PackOptions", **options)


@operator("Unpack", sizes=_ALL)
def _unpack(call, x):
    count = call.need("num", int)
    options = dict(axis=call.get("axis", 0), num=count)
    return as_lite(call, "UNPACK", [x], [_dtype(x)] * count, "UnpackOptions", **options)


@operator("ConcatV2", sizes=_ALL)
def _concat(call, *inputs):
    *parts, axis = inputs
    place = int(need_known(call, axis, "axis").reshape(()))
    return as_lite(call, "CONCATENATION", parts, [_dtype(parts[0])], "ConcatenationOptions", axis=place)


@operator("Concat", sizes=_ALL)
def _old_concat(call, axis, *parts):
    return _concat(call, *parts, axis)


@operator("Split")
def _split(call, axis, x):
    count = call.need("num_split", int)
    return as_lite(call, "SPLIT", [axis, x], [x.dtype] * count, "SplitOptions", num_splits=count)


@operator("SplitV")
def _split_v(call, x, sizes, axis):
    count = call.get("num_split", 0)
    return as_lite(call, "SPLIT_V", [x, sizes, axis], [x.dtype] * count, "SplitVOptions", num_splits=count)


@operator("GatherV2", sizes=_ALL)
def _gather(call, x, indices, axis):
    options = dict(axis=int(need_known(call, axis, "axis").reshape(())), batch_dims=call.get("batch_dims", 0))
    return as_lite(call, "GATHER", [x, indices], [_dtype(x)], "GatherOptions", **options)


@operator("ArgMax", "ArgMin")
def _extreme(call, x, axis):
    dtype = call.dtype("output_type", ms.int64)
    kind, table = ("ARG_MAX", "ArgMaxOptions") if call.kind == "ArgMax" else ("ARG_MIN", "ArgMinOptions")
    return as_lite(call, kind, [x, axis], [dtype], table)


@operator("TopKV2")
def _topk(call, x, k):
    call.get("sorted", True)  # in order they are right in any case
    return as_lite(call, "TOPK_V2", [x, k], [x.dtype, call.dtype("index_type", ms.int32)])


@operator("MirrorPad")
def _mirror_pad(call, x, pads):
    mode = call.choice("mode", "", "REFLECT", "SYMMETRIC")
    return as_lite(call, "MIRROR_PAD", [x, pads], [x.dtype], "MirrorPadOptions", mode=mode)


@operator("ReverseSequence")
def _reverse_sequence(call, x, lengths):
    options = dict(seq_dim=call.need("seq_dim", int), batch_dim=call.get("batch_dim", 0))
    return as_lite(call, "REVERSE_SEQUENCE", [x, lengths], [x.dtype], "ReverseSequenceOptions", **options)


def _dtype(value: Any) -> Any:
    """Open sizes are of int32."""
    return ms.int32 if isinstance(value, np.ndarray) else value.dtype
