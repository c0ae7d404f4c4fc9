"""Operators as C give the runtime's answers, those without C code are refused by name."""

from __future__ import annotations

import ctypes
import re
import subprocess

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.format import Table, write
from mycelia_lite.micro import generate

from ..converter import test_tflite_integer_products as products
from ..runtime import operator_cases
from .c_projects import compiled, run

REFUSED = (  # how the names of cases begin whose results depend on data
    "ConstantOfShape", "FillV2", "InvertPermutation", "NonMaxSuppression", "NonZero", "RaggedRange",
    "RandomNormal", "RandomStandardNormal", "Range by inputs", "Range of integers by inputs", "SparseReshape",
    "UniformReal", "Unique", "Where of one",
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
            assert "depends on data" in str(why), name
            refused.append(name)
    assert [name for name in refused if not name.startswith(REFUSED)] == []
    assert [begin for begin in REFUSED if not any(name.startswith(begin) for name in refused)] == []
    answers_in_c(fine, tmp_path / "all")


def converted_products(folder, wanted: str, kinds: tuple[str, ...]) -> list[str]:
    """Files of the TensorFlow Lite layers of these kinds and this type."""
    paths = []
    for name in products.CASES:
        kind, how, dtype, seed = name.split("/")
        if dtype != wanted or seed != "0" or kind not in kinds:
            continue
        source, _ = products.case(name)
        target = folder / f"case{len(paths)}"
        mslite.Converter().convert(mslite.FmkType.TFLITE, source.write(folder / "m.tflite"), str(target))
        paths.append(f"{target}.ms")
    return paths


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_layers_of_8_bit_integers_give_every_integer(tmp_path, dtype):
    answers_in_c(converted_products(tmp_path, dtype, KINDS), tmp_path / "all")
    text, suffix = (tmp_path / "all/src/kernels.c").read_text(), {"int8": "i8", "uint8": "u8"}[dtype]
    for kind in ("conv", "depthwise", "linear"):
        assert f"micro_{kind}_{suffix}" in text


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


def test_uint64_by_zero_and_shifts_by_more_than_its_width_are_the_runtimes(tmp_path):
    second = operator_cases.fixed([0, 0, 0, 0, 1, 1, 3, 2**63, 63, 63, 64, 64, 65], np.uint64)
    paths = []
    for kind in ("bitwise_right_shift", "truncate_div", "truncate_mod"):
        made = operator_cases.Case(Table("Custom", type=kind), [np.ones(13, np.uint64), second], ["UINT64"])
        paths.append(str(tmp_path / f"{kind}.ms"))
        operator_cases.write_case(paths[-1], made)
    answers_in_c(paths, tmp_path / "all")


@pytest.mark.parametrize("fixed", [True, False])
def test_products_whose_batches_are_broadcast_along_several_axes(tmp_path, fixed):
    x, y = operator_cases.reals(2, 1, 3, 1, 4, 5), operator_cases.reals(1, 2, 1, 3, 5, 4)
    made = operator_cases.case("MatMulFusion", x, operator_cases.Fixed(y) if fixed else y)
    operator_cases.write_case(tmp_path / "m.ms", made)
    answers_in_c([str(tmp_path / "m.ms")], tmp_path / "c")
    text = (tmp_path / "c/src/model0/net0.c").read_text()
    assert text.count("micro_matmul_f32(&") == 4


def test_all_that_has_no_c_code_is_told_at_once(tmp_path):
    shape = Table("Tensor", name="shape", dataType="INT32", dims=[1], data=np.array([3], np.int32).tobytes())
    tensors = [shape, Table("Tensor", name="x", dataType="FLOAT32", dims=[3])]
    nodes = []
    for name, made in (("first", 2), ("second", 3)):
        node = Table("CNode", name=name, primitive=Table("RandomStandardNormal", seed=0, seed2=0))
        node.inputIndex, node.outputIndex = [0], [made]
        nodes.append(node)
        tensors.append(Table("Tensor", name=name, dataType="FLOAT32", dims=[3]))
    write(
        tmp_path / "random.ms",
        Table("MetaGraph", nodes=nodes, allTensors=tensors, inputIndex=[1], outputIndex=[2, 3]),
    )
    reason = "no C code for: random of seeds that are 0.* at 'first' .*, 'second'"
    with pytest.raises(NotImplementedError, match=reason):
        generate(tmp_path / "random.ms", tmp_path / "net")
    assert not (tmp_path / "net").exists()


def test_places_outside_of_a_tensor_end_the_run(tmp_path):
    places = np.array([[0, 2], [1, 0]], np.int32)
    case = operator_cases.case("GatherNd", operator_cases.CUBE, places)
    operator_cases.write_case(tmp_path / "gather.ms", case)
    generate(tmp_path / "gather.ms", tmp_path / "net")
    assert run(compiled(tmp_path / "net"))
    library = tmp_path / "gather.so"
    sources = [str(p) for p in (tmp_path / "net/src").rglob("*.c")]
    flags = ["-std=c99", "-shared", "-fPIC", f"-I{tmp_path}/net/include", f"-I{tmp_path}/net/src"]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", str(library)], check=True, timeout=300)
    head = (tmp_path / "net/src/model0/net0.h").read_text()
    at = {name: int(n) for name, n in re.findall(r"#define GATHER_(\w+) (\d+)", head)}
    arena = (ctypes.c_uint64 * -(-at["ARENA_BYTES"] // 8))()
    given = np.frombuffer(arena, np.uint8)[at["INPUT_1"] :][:16].view(np.int32)
    loaded = ctypes.CDLL(str(library))
    for place, failed in ((-3, False), (2, False), (3, True), (-4, True)):
        given[:] = [0, place, 1, 0]
        assert (loaded.gather_run(arena) != 0) == failed
