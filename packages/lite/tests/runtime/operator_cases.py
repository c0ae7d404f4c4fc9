"""One `.ms` file per operator and form of it, to hold this runtime against answers of MindSpore Lite 2.0.0.

`python operator_cases.py FOLDER` writes the files with their inputs. `fixtures/operators.npz` has the answers
of MindSpore Lite, but for cases that it does not run or answers otherwise than the operator is defined. New
cases go to the end: all inputs come from one generator.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table, write

RNG = np.random.default_rng(15)


@dataclass
class Fixed:
    """An input that is a constant of the file."""

    array: np.ndarray


@dataclass
class Case:
    primitive: Table
    inputs: list  # arrays, or Fixed ones
    outputs: list  # types of results, by name


def case(primitive, *inputs, outputs=("FLOAT32",), **attributes):
    return Case(Table(primitive, **attributes), list(inputs), list(outputs))


def reals(*shape, low=-3, high=3):
    return RNG.uniform(low, high, shape).astype(np.float32)


def fixed(values, dtype=np.int32):
    return Fixed(np.asarray(values, dtype))


def write_case(path, case):
    """The file; the arrays that a run gives it."""
    tensors, given, inputs, fed = [], [], [], []
    for i, value in enumerate(case.inputs):
        array = value.array if isinstance(value, Fixed) else value
        kind = DataType.of(array.dtype)
        tensor = Table("Tensor", name=f"in{i}", dataType=int(kind), dims=list(array.shape), format="NHWC")
        if isinstance(value, Fixed):
            tensor.data, tensor.nodeType = array.tobytes(), 0
        else:
            tensor.nodeType = 1
            given.append(array)
            fed.append(i)
        inputs.append(i)
        tensors.append(tensor)
    outputs = []
    for i, kind in enumerate(case.outputs):
        outputs.append(len(tensors))
        tensors.append(Table("Tensor", name=f"out{i}", dataType=kind, nodeType=2, format="NHWC"))
    node = Table("CNode", name="node", primitive=case.primitive, inputIndex=inputs, outputIndex=outputs)
    graph = Table(
        "SubGraph",
        name="main",
        inputIndices=fed,
        outputIndices=outputs,
        nodeIndices=[0],
        tensorIndices=list(range(len(tensors))),
    )
    write(
        path,
        Table(
            "MetaGraph",
            name="net",
            version="MindSpore Lite 2.0.0",
            nodes=[node],
            allTensors=tensors,
            inputIndex=fed,
            outputIndex=outputs,
            subGraph=[graph],
        ),
    )
    return given


IMAGE = reals(2, 5, 7, 3)
CUBE = reals(2, 3, 4)
CASES: dict[str, Case] = {}

# ---- images
for method in ("LINEAR", "NEAREST", "CUBIC"):
    for mode in ("ASYMMETRIC", "ALIGN_CORNERS", "HALF_PIXEL"):
        for h, w in ((9, 4), (3, 15), (5, 7), (2, 14)):
            CASES[f"Resize {method} {mode} {h}x{w}"] = case(
                "Resize",
                IMAGE,
                format="NHWC",
                method=method,
                coordinate_transform_mode=mode,
                new_height=h,
                new_width=w,
                cubic_coeff=-0.75,
            )
CASES["Resize by sizes"] = case(
    "Resize", IMAGE, fixed([4, 9]), format="NHWC", method="LINEAR", coordinate_transform_mode="HALF_PIXEL"
)
CASES["Resize by four sizes"] = case(
    "Resize",
    IMAGE,
    fixed([2, 4, 9, 3]),
    format="NHWC",
    method="LINEAR",
    coordinate_transform_mode="HALF_PIXEL",
)
CASES["Resize by scales"] = case(
    "Resize",
    IMAGE,
    fixed([1.5, 2.2], np.float32),
    format="NHWC",
    method="LINEAR",
    coordinate_transform_mode="ASYMMETRIC",
)
CASES["Resize by four scales"] = case(
    "Resize",
    IMAGE,
    fixed([1, 1.5, 2.2, 1], np.float32),
    format="NHWC",
    method="NEAREST",
    coordinate_transform_mode="ASYMMETRIC",
)
CASES["Resize by zoom"] = case(
    "Resize", IMAGE, fixed([3]), format="NHWC", method="LINEAR", coordinate_transform_mode="ALIGN_CORNERS"
)
boxes = np.array([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0.5, 0.4, 0.9, 0.6]], np.float32)
CASES["CropAndResize"] = case(
    "CropAndResize",
    IMAGE,
    fixed(boxes, np.float32),
    fixed([0, 1, 1]),
    fixed([4, 3]),
    method="LINEAR",
    extrapolation_value=0.0,
)
CASES["CropAndResize one row"] = case(
    "CropAndResize",
    IMAGE,
    fixed(boxes, np.float32),
    fixed([0, 1, 1]),
    fixed([1, 3]),
    method="LINEAR",
    extrapolation_value=0.0,
)
CASES["CropAndResize outside"] = case(
    "CropAndResize",
    IMAGE,
    fixed(boxes * 2 - 0.5, np.float32),
    fixed([0, 1, 1]),
    fixed([4, 3]),
    method="LINEAR",
    extrapolation_value=-5.0,
)
CASES["InstanceNorm"] = case("InstanceNorm", IMAGE, Fixed(reals(3)), Fixed(reals(3)), epsilon=1e-3)
CASES["GroupNormFusion"] = case(
    "GroupNormFusion",
    reals(2, 6, 4, 5),
    Fixed(reals(6)),
    Fixed(reals(6)),
    num_groups=3,
    epsilon=1e-3,
    affine=True,
)
CASES["LRN"] = case("LRN", reals(1, 3, 4, 8), depth_radius=2, bias=1.0, alpha=0.1, beta=0.75)
CASES["SpaceToBatch"] = case("SpaceToBatch", reals(1, 4, 6, 2), block_size=[2, 3], paddings=[[0, 0], [1, 2]])
CASES["SpaceToBatchND"] = case(
    "SpaceToBatchND", reals(2, 3, 6, 2), block_shape=[2, 2], paddings=[[1, 0], [0, 2]]
)
CASES["SpaceToBatchND by inputs"] = case(
    "SpaceToBatchND", reals(2, 3, 6, 2), fixed([2, 2]), fixed([[1, 0], [0, 2]])
)
CASES["BatchToSpace"] = case("BatchToSpace", reals(12, 2, 3, 2), block_size=[2, 3], crops=[[0, 1], [1, 2]])
CASES["BatchToSpaceND"] = case(
    "BatchToSpaceND", reals(8, 2, 3, 2), block_shape=[2, 2], crops=[[0, 1], [1, 0]]
)
CASES["BatchToSpaceND by inputs"] = case(
    "BatchToSpaceND", reals(8, 2, 3, 2), fixed([2, 2]), fixed([[0, 1], [1, 0]])
)
CASES["SpaceToDepth"] = case("SpaceToDepth", reals(2, 4, 6, 3), block_size=2, format="NHWC")
CASES["DepthToSpace"] = case("DepthToSpace", reals(2, 2, 3, 12), block_size=2, format="NHWC")
CASES["Crop"] = case("Crop", IMAGE, reals(2, 2, 3, 3), axis=1, offsets=[1, 2, 0])
CASES["Crop one offset"] = case("Crop", IMAGE, reals(2, 2, 3, 2), axis=1, offsets=[1])
for flip in (False, True):
    CASES[f"PriorBox{' flipped' if flip else ''}"] = case(
        "PriorBox",
        reals(1, 3, 2, 4),
        reals(1, 30, 40, 3),
        min_sizes=[8],
        max_sizes=[16],
        aspect_ratios=[2.0],
        variances=[0.1, 0.1, 0.2, 0.2],
        flip=flip,
        offset=0.5,
    )
rois = np.array([[0, 0, 0, 3, 4], [1, 1, 2, 4, 6], [1, 3, 3, 3, 3]], np.float32)
CASES["ROIPooling"] = case("ROIPooling", IMAGE, Fixed(rois), pooled_h=2, pooled_w=3, scale=1.0)
CASES["ROIPooling scaled"] = case("ROIPooling", IMAGE, Fixed(rois), pooled_h=3, pooled_w=2, scale=0.5)
anchors = np.stack(
    [RNG.uniform(0.2, 0.8, 6), RNG.uniform(0.2, 0.8, 6), RNG.uniform(0.2, 0.4, 6), RNG.uniform(0.2, 0.4, 6)],
    1,
)
for regular in (False, True):
    CASES[f"DetectionPostProcess {'regular' if regular else 'fast'}"] = case(
        "DetectionPostProcess",
        reals(1, 6, 4, low=-1, high=1),
        RNG.uniform(0, 1, (1, 6, 4)).astype(np.float32),
        fixed(anchors, np.float32),
        outputs=["FLOAT32"] * 4,
        scale=[5.0, 4.0, 10.0, 8.0],
        nms_iou_threshold=0.4,
        nms_score_threshold=0.2,
        max_detections=5,
        detections_per_class=3,
        max_classes_per_detection=1 if regular else 2,
        num_classes=3,
        use_regular_nms=regular,
    )
nms_boxes = np.concatenate(
    [c := RNG.uniform(0, 0.6, (1, 8, 2)), c + RNG.uniform(0.2, 0.5, (1, 8, 2))], 2
).astype(np.float32)
nms_scores = RNG.uniform(0, 1, (1, 1, 8)).astype(np.float32)
CASES["NonMaxSuppression"] = case(
    "NonMaxSuppression",
    nms_boxes,
    nms_scores,
    fixed([3]),
    fixed([0.3], np.float32),
    fixed([0.2], np.float32),
    outputs=["INT32"],
    center_point_box=0,
)
CASES["NonMaxSuppression centers"] = case(
    "NonMaxSuppression",
    nms_boxes,
    nms_scores,
    fixed([4]),
    fixed([0.2], np.float32),
    fixed([0.1], np.float32),
    outputs=["INT32"],
    center_point_box=1,
)

# ---- element by element
for kind in (
    "SOFTSIGN",
    "SOFTPLUS",
    "SELU",
    "HARD_TANH",
    "SIGN",
    "GELU",
    "ABS",
    "ELU",
    "LEAKY_RELU",
    "HSWISH",
    "HSIGMOID",
    "SWISH",
    "THRESHOLDRELU",
    "RELU",
    "RELU6",
    "SIGMOID",
    "TANH",
):
    CASES[f"Activation {kind}"] = case(
        "Activation",
        reals(2, 3, 5, low=-6, high=6),
        activation_type=kind,
        alpha=0.3,
        min_val=-1.0,
        max_val=2.0,
    )
CASES["Activation GELU approximate"] = case(
    "Activation", reals(2, 30, low=-6, high=6), activation_type="GELU", approximate=True
)
CASES["Elu"] = case("Elu", CUBE, alpha=0.7)
CASES["LeakyRelu"] = case("LeakyRelu", CUBE, negative_slope=0.2)
CASES["AddN"] = case("AddN", CUBE, reals(2, 3, 4), reals(2, 3, 4))
for mode in ("PROD", "SUM", "MAXIMUM"):
    CASES[f"Eltwise {mode}"] = case("Eltwise", CUBE, reals(2, 3, 4), mode=mode)
CASES["SquaredDifference"] = case("SquaredDifference", CUBE, reals(3, 1))
CASES["Mod"] = case("Mod", CUBE, reals(2, 3, 4, low=0.5))
CASES["Mod negative"] = case("Mod", CUBE, -reals(2, 3, 4, low=0.5))
CASES["FloorMod"] = case("FloorMod", CUBE, -reals(2, 3, 4, low=0.5))
CASES["Mod integers"] = case(
    "Mod", np.array([7, -7, 9, -9], np.int32), np.array([4, 4, -4, -4], np.int32), outputs=["INT32"]
)
CASES["LogicalNot"] = case("LogicalNot", np.array([True, False, True]), outputs=["BOOL"])
CASES["IsFinite"] = case("IsFinite", np.array([1, np.inf, np.nan, -np.inf], np.float32), outputs=["BOOL"])
CASES["GLU"] = case("GLU", reals(2, 3, 6), axis=-1)
CASES["GLU axis 1"] = case("GLU", reals(2, 4, 3), axis=1)
CASES["OnesLike"] = case("OnesLike", CUBE)
CASES["ZerosLike"] = case("ZerosLike", CUBE)
CASES["Erf"] = case("Erf", CUBE)
CASES["Dropout"] = case("Dropout", CUBE, keep_prob=0.6)
CASES["Depend"] = case("Depend", CUBE, reals(2))
CASES["L2NormalizeFusion"] = case("L2NormalizeFusion", CUBE, axis=[-1], epsilon=1e-6)
CASES["LpNormalization"] = case("LpNormalization", CUBE, axis=1, p=2)

# ---- shapes and sizes
CASES["ConstantOfShape"] = case("ConstantOfShape", np.array([2, 3], np.int32), data_type=43, value=[1.5])
CASES["ConstantOfShape integers"] = case(
    "ConstantOfShape", np.array([2, 3], np.int32), data_type=34, value=[7.0], outputs=["INT32"]
)
CASES["Fill"] = case("Fill", np.array([2.5], np.float32), fixed([2, 3]))
CASES["FillV2"] = case("FillV2", np.array([2, 3], np.int32), fixed(2.5, np.float32))
CASES["Rank"] = case("Rank", CUBE, outputs=["INT32"])
CASES["Size"] = case("Size", CUBE, outputs=["INT32"])
CASES["Range"] = case("Range", d_type=34, start=2, limit=11, delta=3, outputs=["INT32"])
CASES["Range by inputs"] = case(
    "Range", np.array([1.0], np.float32), fixed([4.2], np.float32), fixed([0.5], np.float32)
)
CASES["Range of integers by inputs"] = case(
    "Range", np.array([9], np.int32), fixed([1]), fixed([-3]), outputs=["INT32"]
)
CASES["LinSpace"] = case("LinSpace", np.array([1.0], np.float32), fixed([4.0], np.float32), fixed([5]))
CASES["InvertPermutation"] = case("InvertPermutation", np.array([2, 0, 3, 1], np.int32), outputs=["INT32"])
CASES["BroadcastTo"] = case("BroadcastTo", reals(3, 1), shape=[2, 3, 4])
CASES["FormatTranspose"] = case("FormatTranspose", IMAGE, src_format="NHWC", dst_format="NCHW")
CASES["FormatTranspose back"] = case("FormatTranspose", IMAGE, src_format="NCHW", dst_format="NHWC")
CASES["ReverseV2"] = case("ReverseV2", CUBE, axis=[1, 2])
CASES["ReverseSequence"] = case("ReverseSequence", reals(3, 4, 2), fixed([2, 4, 1]), seq_dim=1, batch_dim=0)
CASES["ReverseSequence other axes"] = case(
    "ReverseSequence", reals(4, 2, 3), fixed([2, 4, 1]), seq_dim=0, batch_dim=2
)
CASES["Split"] = case(
    "Split", reals(2, 7), outputs=["FLOAT32"] * 3, output_num=3, size_splits=[2, 4, 1], axis=1
)
CASES["SplitWithOverlap"] = case(
    "SplitWithOverlap",
    reals(1, 8, 3),
    outputs=["FLOAT32"] * 2,
    split_dim=1,
    number_split=2,
    ratio=[1, 1],
    extend_top=[0, 1],
    extend_bottom=[1, 0],
)
CASES["Tile"] = case("TileFusion", CUBE, fixed([2, 1, 3]))
CASES["Tril"] = case("Tril", reals(2, 3, 4), fixed([0], np.int64))
CASES["Triu"] = case("Triu", reals(2, 3, 4), fixed([1], np.int64))
CASES["StridedSlice new axis"] = case(
    "StridedSlice", CUBE, fixed([0, 0, 1]), fixed([0, 2, 3]), fixed([1, 1, 1]), new_axis_mask=1
)
CASES["StridedSlice ellipsis"] = case(
    "StridedSlice", CUBE, fixed([0, 1]), fixed([0, 3]), fixed([1, 1]), ellipsis_mask=1
)
CASES["StridedSlice negative"] = case(
    "StridedSlice", CUBE, fixed([1, 2, 3]), fixed([0, 0, 0]), fixed([-1, -1, -2])
)
CASES["Softmax"] = case("Softmax", CUBE, axis=[1])
CASES["ArgMaxFusion"] = case("ArgMaxFusion", CUBE, axis=1, top_k=1, keep_dims=True, outputs=["INT32"])
CASES["ArgMaxFusion values"] = case("ArgMaxFusion", CUBE, axis=1, top_k=1, keep_dims=True, out_max_value=True)
CASES["ArgMaxFusion both"] = case(
    "ArgMaxFusion", CUBE, axis=2, top_k=1, keep_dims=True, outputs=["INT32", "FLOAT32"]
)
CASES["ArgMaxFusion three"] = case("ArgMaxFusion", CUBE, axis=2, top_k=3, keep_dims=True, outputs=["INT32"])
CASES["ArgMinFusion"] = case("ArgMinFusion", CUBE, axis=-1, top_k=1, keep_dims=False, outputs=["INT32"])
CASES["All"] = case("All", RNG.integers(0, 2, (3, 4)).astype(bool), fixed([1]), keep_dims=1, outputs=["BOOL"])

# ---- places
CASES["ScatterNd"] = case("ScatterNd", fixed([[0, 2], [1, 1]]), reals(2, 4), fixed([2, 3, 4]))
CASES["ScatterNdUpdate"] = case("ScatterNdUpdate", reals(4, 3), fixed([[2], [0]]), reals(2, 3))
CASES["TensorScatterAdd"] = case("TensorScatterAdd", reals(4, 3), fixed([[2], [0], [2]]), reals(3, 3))
CASES["ScatterElements"] = case(
    "ScatterElements", reals(3, 3), fixed([[1, 0, 2], [0, 2, 1]]), reals(2, 3), axis=0
)
CASES["SparseToDense"] = case(
    "SparseToDense",
    fixed([[0, 1], [1, 2]]),
    fixed([2, 3]),
    np.array([5, 6], np.float32),
    fixed(-1, np.float32),
)
CASES["SparseToDense one number"] = case(
    "SparseToDense", fixed([[0, 1], [1, 2]]), fixed([2, 3]), np.array([5], np.float32), fixed(0, np.float32)
)
CASES["SparseToDense vector"] = case(
    "SparseToDense", fixed([1, 3]), fixed([5]), np.array([5, 6], np.float32), fixed(0, np.float32)
)
CASES["EmbeddingLookupFusion"] = case(
    "EmbeddingLookupFusion", Fixed(reals(5, 3)), np.array([[3, 0], [1, 4]], np.int32)
)
CASES["EmbeddingLookupFusion bounded"] = case(
    "EmbeddingLookupFusion", Fixed(reals(5, 3)), np.array([[3, 0], [1, 4]], np.int32), max_norm=1.0
)
CASES["EmbeddingLookupFusion two tables"] = case(
    "EmbeddingLookupFusion", Fixed(reals(5, 3)), Fixed(reals(2, 3)), np.array([3, 6, 5], np.int32)
)
CASES["Gather"] = case("Gather", CUBE, fixed([1, 0]), fixed([1]))
CASES["GatherNd"] = case("GatherNd", CUBE, fixed([[1, 2], [0, 0]]))
CASES["GatherD"] = case("GatherD", CUBE, fixed([1]), fixed(RNG.integers(0, 3, (2, 2, 4))))
CASES["OneHot"] = case(
    "OneHot", np.array([2, 0, 5], np.int32), fixed([4]), fixed([0.25, 3], np.float32), axis=-1
)
CASES["UnsortedSegmentSum"] = case("UnsortedSegmentSum", reals(4, 2), fixed([2, 0, 2, 1]), fixed([3]))
CASES["Unique"] = case("Unique", np.array([3, 1, 3, 7, 1], np.float32), outputs=["FLOAT32", "INT32"])
CASES["Where of one"] = case("Where", RNG.integers(0, 2, (3, 4)).astype(bool), outputs=["INT32"])
CASES["Where"] = case("Where", np.array([True, False, True]), reals(3), reals(3))
CASES["NonZero"] = case("NonZero", RNG.integers(0, 2, (3, 4)).astype(bool), outputs=["INT32"])
CASES["TopKFusion"] = case(
    "TopKFusion", CUBE, fixed([2]), axis=-1, largest=1, sorted=True, outputs=["FLOAT32", "INT32"]
)
CASES["RaggedRange"] = case(
    "RaggedRange",
    np.array([0, 5, 8], np.int32),
    fixed([3, 5, 2]),
    fixed([1, 1, -2]),
    outputs=["INT32", "INT32"],
)
CASES["Splice"] = case(
    "Splice",
    reals(1, 5, 3),
    context=[-1, 0, 1],
    forward_indexes=[0, 0, 1, 0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 4],
    output_dim=9,
)
CASES["SparseFillEmptyRows"] = case(
    "SparseFillEmptyRows",
    fixed([[0, 1], [2, 0]]),
    np.array([5, 6], np.float32),
    fixed([4, 2]),
    fixed(-1, np.float32),
    outputs=["INT32", "FLOAT32", "BOOL", "INT32"],
)
CASES["SparseReshape"] = case(
    "SparseReshape",
    np.array([[0, 1], [1, 2]], np.int32),
    fixed([2, 3]),
    fixed([3, -1]),
    outputs=["INT32", "INT32"],
)
CASES["SparseSegmentSum"] = case("SparseSegmentSum", reals(4, 3), fixed([3, 0, 1]), fixed([0, 0, 1]))

# ---- recurrent layers
for two in (False, True):
    d, word = (2, " both ways") if two else (1, "")
    CASES[f"GRU{word}"] = case(
        "GRU",
        reals(3, 1, 4),
        Fixed(reals(d, 15, 4)),
        Fixed(reals(d, 15, 5)),
        Fixed(reals(d, 30)),
        Fixed(reals(d, 1, 5)),
        bidirectional=two,
        outputs=["FLOAT32"] * 2,
    )
    CASES[f"LSTM{word}"] = case(
        "LSTM",
        reals(3, 2, 4),
        Fixed(reals(d, 20, 4)),
        Fixed(reals(d, 20, 5)),
        Fixed(reals(d, 40)),
        Fixed(reals(d, 2, 5)),
        Fixed(reals(d, 2, 5)),
        bidirectional=two,
        has_bias=True,
        input_size=4,
        hidden_size=5,
        num_layers=1,
        num_directions=d,
        outputs=["FLOAT32"] * 3,
    )

# ---- random numbers
CASES["RandomStandardNormal"] = case("RandomStandardNormal", np.array([2, 5], np.int32), seed=3, seed2=0)
CASES["RandomStandardNormal second seed"] = case(
    "RandomStandardNormal", np.array([2, 5], np.int32), seed=3, seed2=9
)
CASES["RandomNormal"] = case("RandomNormal", np.array([2, 5], np.int32), seed=5.0, mean=1.0, scale=2.0)
CASES["UniformReal"] = case("UniformReal", np.array([2, 5], np.int32), seed=3, seed2=9)

# ---- speech
for turned in (False, True):
    CASES[f"Affine{' turned' * turned}"] = case(
        "Affine",
        reals(2, 6, 3),
        Fixed(reals(4, 9) if turned else reals(9, 4)),
        Fixed(reals(4)),
        context=[-2, 0, 1],
        output_dim=9,
        activation_type="RELU",
        transpose_b=turned,
    )

if __name__ == "__main__":
    for name, one in CASES.items():
        given = write_case(f"{sys.argv[1]}/{name}.ms", one)
        np.savez(f"{sys.argv[1]}/{name}.npz", *given)
