"""SVDF of integers, SCATTER_ND and EMBEDDING_LOOKUP_SPARSE of TFLITE files against LiteRT, in three runs.

``python -m converter.test_tflite_integer_cells FOLDER`` in `packages/lite/tests` writes the models and their
inputs; what LiteRT (ai-edge-litert 2.3) answers, run after run, is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, convert

from .tflite_models import Builder, of_one, scaled, table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tflite_integer_cells.npz"
BATCH, UNITS, RUNS = 2, 4, 3


def svdf(seed=0, rank=1, memory=5, inputs=7, zero=3, bias=True, **other):
    """A filter of int8. `other`: what is not as usual, by name."""
    rng = np.random.default_rng(seed)
    made, count = Builder(), UNITS * rank
    made.tensor("x", "int8", (BATCH, inputs), None, scaled(0.04, zero))
    made.constant("f", rng.integers(-128, 128, (count, inputs)).astype(np.int8), scaled(0.007))
    times = rng.integers(-3000, 3000, (count, memory)).astype(np.int16)
    made.constant("t", times, scaled(other.get("of_times", [2.0**-14])))
    if bias:
        made.constant("b", rng.integers(-9000, 9000, UNITS).astype(np.int32), scaled(2.0**-26))
    kind = other.get("state", "int16")
    made.tensor("s", kind, (BATCH, count * memory), None, scaled(2.0**-12), is_variable=True)
    made.tensor("y", "int8", (BATCH, UNITS), None, scaled(0.004 * rank, zero))
    options = table("SVDFOptions", rank=rank, fused_activation_function="RELU")
    made.add("SVDF", ["x", "f", "t", "b" if bias else None, "s"], ["y"], options, version=3)
    made.borders(["x"], ["y"])
    draw = np.random.default_rng(seed + 99)
    runs = [[draw.integers(-128, 128, (BATCH, inputs)).astype(np.int8)] for _ in range(RUNS)]
    return made, runs


def sparse(combiner, rank=2):
    """Rows of a table [5, 3], added where they stand in a shape of `rank` sizes."""
    draw = np.random.default_rng(rank)
    shape = {1: (4,), 2: (4, 3), 3: (2, 3, 4)}[rank]
    places = np.unique(np.stack([draw.integers(0, n, 6) for n in shape], 1), axis=0).astype(np.int32)
    count = len(places)
    arrays = [
        draw.integers(0, 5, count).astype(np.int32), places, np.array(shape, np.int32),
        draw.uniform(0.2, 2, count).astype(np.float32), draw.normal(size=(5, 3)).astype(np.float32),
    ]  # fmt: skip
    options = table("EmbeddingLookupSparseOptions", combiner=combiner)
    made = of_one("EMBEDDING_LOOKUP_SPARSE", arrays, [("float32", (*shape[:-1], 3))], options, (2, 4))
    return made, [[a for i, a in enumerate(arrays) if i not in (2, 4)]] * RUNS


def scatter(dtype):
    """Rows at indices [4, 1], of which two are one."""
    arrays = [
        np.array([[1], [3], [1], [0]], np.int32), np.arange(70, 78).reshape(4, 2).astype(dtype),
        np.array([5, 2], np.int32),
    ]  # fmt: skip
    if dtype == "bool":
        arrays[1] = np.array([[0, 1], [0, 0], [0, 1], [1, 0]], bool)
    made = of_one("SCATTER_ND", arrays, [(dtype, (5, 2))], table("ScatterNdOptions"), (2,))
    return made, [arrays[:2]] * RUNS


CASES = {
    "svdf": lambda: svdf(),
    "svdf of two": lambda: svdf(1, rank=2, bias=False),
    "svdf of one run": lambda: svdf(2, memory=1, zero=-128),
    "svdf of many": lambda: svdf(3, inputs=700),
    **{f"scatter of {t}": lambda t=t: scatter(t) for t in ("float32", "int64", "int8", "uint8", "bool")},
    "sparse sum": lambda: sparse("SUM"),
    "sparse mean": lambda: sparse("MEAN"),
    "sparse sqrtn": lambda: sparse("SQRTN", 3),
    "sparse of one": lambda: sparse("MEAN", 1),
}


@pytest.mark.parametrize("name", CASES)
def test_it_answers_as_litert_and_keeps_its_state(name, tmp_path):
    source, runs = CASES[name]()
    path = convert(mslite.FmkType.TFLITE, source.write(tmp_path / "m.tflite"), str(tmp_path / "m")).path
    model = mslite.Model()
    model.build_from_file(path)
    for arrays, expected in zip(runs, np.load(FIXTURE)[name], strict=True):
        for tensor, array in zip(model.get_inputs(), arrays, strict=True):
            tensor.set_data_from_numpy(array)
        y = model.predict(model.get_inputs())[0].get_data_to_numpy()
        assert y.dtype == expected.dtype and y.shape == expected.shape
        np.testing.assert_allclose(y, expected, rtol=0 if y.dtype == np.int8 else 1e-6)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"state": "int8"}, "of other types than int8 with times and a state of int16"),
        ({"of_times": [2.0**-14, 2.0**-13, 0.1, 0.2]}, "without one scale for each tensor"),
    ],
)
def test_filters_of_other_kinds_are_refused_by_name(other, reason, tmp_path):
    path = svdf(**other)[0].write(tmp_path / "m.tflite")
    with pytest.raises(ConversionError, match=rf"'y' \(SVDF\): .*{reason}"):
        convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m"))


if __name__ == "__main__":
    for name, make in CASES.items():
        source, runs = make()
        source.write(Path(sys.argv[1]) / f"{name}.tflite")
        np.savez(
            Path(sys.argv[1]) / f"{name}.npz",
            **{f"{r}.{i}": a for r, v in enumerate(runs) for i, a in enumerate(v)},
        )
