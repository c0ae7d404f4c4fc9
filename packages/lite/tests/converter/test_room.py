"""Small ONNX files that ask for huge constants: an error that names the node, and no memory taken."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError

from .onnx_models import model, node, write

N = 1 << 30
LINE, ROW = np.zeros((1 << 15, 1), np.float32), np.zeros((1, 1 << 15), np.float32)
ONE = np.zeros(1, np.float32)


def _doubled():
    nodes = [node("Concat", f"v{i} v{i}", f"v{i + 1}", name="it", axis=0) for i in range(40)]
    return [*nodes, node("Identity", "v40", "y")]


CASES = {
    "Range": ([node("Range", "a b c", "y", "it")], {"a": np.int64(0), "b": np.int64(N), "c": np.int64(1)}),
    "small steps": (
        [node("Range", "a b c", "y", "it")],
        {"a": np.float32(0), "b": np.float32(1e30), "c": np.float32(1e-30)},
    ),
    "ConstantOfShape": ([node("ConstantOfShape", "a", "y", "it")], {"a": np.array([N])}),
    "Expand": ([node("Expand", "v a", "y", "it")], {"a": np.array([N]), "v": ONE}),
    "Tile": ([node("Tile", "v a", "y", "it")], {"a": np.array([N]), "v": ONE}),
    "OneHot": (
        [node("OneHot", "i d v", "y", "it")],
        {"i": np.array([1, 2]), "d": np.array([N]), "v": np.float32([0, 1])},
    ),
    "Pad": ([node("Pad", "v p", "y", "it")], {"p": np.array([0, N]), "v": ONE}),
    "edges": ([node("Pad", "v p", "y", "it", mode="edge")], {"p": np.array([0, N]), "v": ONE}),
    "Resize": ([node("Resize", "x - - s", "y", "it", mode="linear")], {"s": np.array([N])}),
    "nearest": ([node("Resize", "x - - s", "y", "it")], {"s": np.array([N])}),
    "Add": ([node("Add", "a b", "y", "it")], {"a": LINE, "b": ROW}),
    "MatMul": ([node("MatMul", "a b", "y", "it")], {"a": LINE, "b": ROW}),
    "Gather": ([node("Gather", "a b", "y", "it")], {"a": ROW, "b": np.zeros(1 << 15, np.int64)}),
    "Concat": (_doubled(), {"v0": ONE}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_constant_that_is_too_large_is_an_error_before_it_is_made(tmp_path, name):
    nodes, weights = CASES[name]
    path = write(tmp_path / "m.onnx", model(nodes, {"x": ("float32", (3,))}, "y", weights, 18))
    tracemalloc.start()
    try:
        with pytest.raises(ConversionError, match=r"node 'it'.*constants may have \d+"):
            mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "m.ms").exists()


@pytest.mark.fuzz(20)
def test_random_sizes_of_generators_are_made_or_refused(seed, tmp_path):
    choice = random.Random(seed)
    kind = choice.choice(["ConstantOfShape", "Expand", "Tile", "Range"])
    sizes = np.array([choice.choice([0, 1, 3, 1000, 1 << 20, N, 1 << 40]) for _ in range(2)])
    given = {"s": sizes, "v": np.ones((1, 1), np.float32), "n": sizes[0], "o": np.int64(0), "i": np.int64(1)}
    inputs = {"ConstantOfShape": "s", "Range": "o n i"}.get(kind, "v s")
    nodes = [node(kind, inputs, "y", "it")]
    path = write(tmp_path / "m.onnx", model(nodes, {"x": ("float32", (3,))}, "y", given, 18))
    size = int(sizes[0]) * 8 if kind == "Range" else int(np.prod(sizes.astype(object))) * 4
    if size <= 1 << 24:
        mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
        return
    with pytest.raises(ConversionError, match="node 'it'"):
        mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
