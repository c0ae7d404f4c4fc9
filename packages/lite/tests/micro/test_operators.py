"""Operators as C give the runtime's answers, those without C code are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.format import Table, write
from mycelia_lite.micro import generate

from ..converter import test_tflite_integer_products as products
from ..runtime import operator_cases
from .c_projects import compiled, run

REFUSED = (  # how the names of cases begin that have no C code yet, or whose results depend on data
    "All", "ArgMaxFusion", "ArgMinFusion", "ConstantOfShape", "CropAndResize", "DetectionPostProcess",
    "FillV2", "GatherD", "GatherNd", "InvertPermutation", "NonMaxSuppression", "NonZero", "OneHot",
    "ROIPooling", "RaggedRange", "RandomNormal", "RandomStandardNormal", "Range by inputs",
    "Range of integers by inputs", "Resize CUBIC", "Resize LINEAR", "Resize by", "ReverseSequence",
    "Scatter", "SparseReshape", "SparseSegmentSum", "SparseToDense", "TensorScatterAdd", "TopKFusion", "Tril",
    "Triu", "UniformReal", "Unique", "UnsortedSegmentSum", "Where of one",
)  # fmt: skip
KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def answers_in_c(paths: list[str], folder) -> None:
    """Fails unless C code of all these files answers as the runtime does."""
    generate(paths, folder)
    lines = run(compiled(folder, ("gcc", "-std=c99"), "-O0"))
    assert len(lines) >= len(paths)
    assert all(line.endswith("PASSED") for line in lines)


def test_each_operator_of_the_files_answers_as_in_the_runtime_or_is_refused(tmp_path):
    fine, refused = [], []
    for i, (name, case) in enumerate(operator_cases.CASES.items()):
        path = str(tmp_path / f"case{i}.ms")
        operator_cases.write_case(path, case)
        try:
            generate(path, tmp_path / "one")
            fine.append(path)
        except NotImplementedError as why:
            assert "Micro" in str(why), name
            refused.append(name)
    assert [name for name in refused if not name.startswith(REFUSED)] == []
    assert [begin for begin in REFUSED if not any(name.startswith(begin) for name in refused)] == []
    answers_in_c(fine, tmp_path / "all")


def converted_products(folder, wanted: str, kinds: tuple[str, ...]) -> list[str]:
    """Files of the TensorFlow Lite layers of these kinds and this type, but those that are cut into parts."""
    paths = []
    for name in products.CASES:
        kind, how, dtype, seed = name.split("/")
        if dtype != wanted or seed != "0" or kind not in kinds or how == "deep":
            continue
        source, _ = products.case(name)
        target = folder / f"case{len(paths)}"
        mslite.Converter().convert(mslite.FmkType.TFLITE, source.write(folder / "m.tflite"), str(target))
        paths.append(f"{target}.ms")
    return paths


def test_layers_of_8_bit_integers_give_every_integer(tmp_path):
    answers_in_c(converted_products(tmp_path, "int8", KINDS), tmp_path / "all")
    text = (tmp_path / "all/src/kernels.c").read_text()
    assert "micro_conv_i8" in text and "micro_depthwise_i8" in text and "micro_linear_i8" in text


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_by_zero_and_shifts_by_more_than_their_width_are_the_runtimes(tmp_path, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    second = operator_cases.fixed(
        [0, 0, 0, -1, -1, -1, 3, 3, bits, bits, bits + 1, bits + 1, bits - 1], dtype
    )
    paths = []
    for kind in ("bitwise_left_shift", "bitwise_right_shift", "FloorDiv", "FloorMod"):
        primitive = Table(kind) if kind[0].isupper() else Table("Custom", type=kind)
        made = operator_cases.Case(primitive, [np.ones(13, dtype), second], [dtype.upper()])
        paths.append(str(tmp_path / f"{kind}.ms"))
        operator_cases.write_case(paths[-1], made)
    answers_in_c(paths, tmp_path / "all")


def test_depthwise_layers_of_uint8_give_every_integer_by_sums_in_float32(tmp_path):
    paths = converted_products(tmp_path, "uint8", ("DEPTHWISE_CONV_2D",))
    assert len(paths) == 4
    answers_in_c(paths, tmp_path / "all")
    text = (tmp_path / "all/src/kernels.c").read_text()
    assert "micro_depthwise_f32" in text and "micro_rescale_columns_f32" in text


def test_all_that_has_no_c_code_is_told_at_once(tmp_path):
    def tensor(name, *dims):
        return Table("Tensor", name=name, dataType="FLOAT32", dims=list(dims), format="NCHW")

    tensors = [tensor("x", 2, 3, 3), tensor("y", 1, 2, 2), tensor("a", 2), tensor("b", 1)]
    nodes = []
    for name, given, made in (("first", 0, 2), ("second", 1, 3)):
        node = Table("CNode", name=name, primitive=Table("Custom", type="det"))
        node.inputIndex, node.outputIndex = [given], [made]
        nodes.append(node)
    write(
        tmp_path / "det.ms",
        Table("MetaGraph", nodes=nodes, allTensors=tensors, inputIndex=[0, 1], outputIndex=[2, 3]),
    )
    with pytest.raises(NotImplementedError, match="no C code for: det of float32 at 'first' .*, 'second'"):
        generate(tmp_path / "det.ms", tmp_path / "net")
    assert not (tmp_path / "net").exists()
