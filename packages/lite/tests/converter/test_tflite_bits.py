"""STABLEHLO_RNG_BIT_GENERATOR: bits that follow from a state, and the state after them.

``python -m converter.test_tflite_bits FOLDER`` in `packages/lite/tests` writes the models and their inputs;
what LiteRT (ai-edge-litert 2.3) answers is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError

from .tflite_models import Builder, answers, core_answers, run, table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tflite_bits.npz"
ALGORITHMS = ("DEFAULT", "PHILOX", "THREEFRY")
MOST = 2**64 - 1
STATES = {  # those whose counters run over 2^32 or 2^64 among them
    "DEFAULT": [(1, 2), (MOST, 2**32 - 2)],
    "PHILOX": [(7, 0, 5), (0, 2**40 - 1, MOST), (2**63, MOST - 1)],
    "THREEFRY": [(3, 2**32 - 1), (MOST, MOST)],
}
KINDS = {"int32": (5, 3), "uint32": (8,), "int64": (2, 3, 1), "uint64": (7,)}
CASES = {
    f"{name}/{i}/{dtype}": (name, state, dtype, shape)
    for name, states in STATES.items()
    for i, state in enumerate(states)
    for dtype, shape in KINDS.items()
}
CASES["none of them"] = ("PHILOX", (1, 2), "int32", (0, 4))


def model(algorithm, state, dtype, shape, kind="uint64"):
    made = Builder()
    made.tensor("state", kind, (len(state),))
    names = [made.tensor("after", kind, (len(state),)), made.tensor("bits", dtype, shape)]
    options = table("StablehloRngBitGeneratorOptions", algorithm=ALGORITHMS.index(algorithm))
    made.add("STABLEHLO_RNG_BIT_GENERATOR", ["state"], names, second=options)
    made.borders(["state"], names)
    return made


@pytest.mark.parametrize("name", CASES)
def test_the_bits_and_the_state_are_those_of_litert(name, tmp_path):
    algorithm, state, dtype, shape = CASES[name]
    found = answers(tmp_path, model(algorithm, state, dtype, shape), np.array(state, np.uint64))
    recorded = np.load(FIXTURE)
    for i, y in enumerate(found):
        expected = recorded[f"{name}/{i}"]
        assert y.dtype == expected.dtype
        np.testing.assert_array_equal(y, expected)


def test_a_generator_goes_on_from_the_state_that_it_gave(tmp_path):
    first = answers(tmp_path, model("PHILOX", (9, 4), "uint32", (8,)), np.array([9, 4], np.uint64))
    second = run(str(tmp_path / "m.ms"), first[0])
    whole = answers(tmp_path, model("PHILOX", (9, 4), "uint32", (16,)), np.array([9, 4], np.uint64))
    np.testing.assert_array_equal(np.concatenate([first[1], second[1]]), whole[1])
    np.testing.assert_array_equal(second[0], whole[0])


def test_core_computes_what_the_runtime_does(tmp_path):
    for name in ("PHILOX/1/uint64", "THREEFRY/0/uint32"):  # those with a sign the runtime alone reads anew
        algorithm, state, dtype, shape = CASES[name]
        source = model(algorithm, state, dtype, shape)
        after, bits = core_answers(tmp_path, source, np.array(state, np.uint64))
        np.testing.assert_array_equal(after, np.load(FIXTURE)[f"{name}/0"])
        np.testing.assert_array_equal(bits, np.load(FIXTURE)[f"{name}/1"])


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (("THREEFRY", (1, 2, 3), "int32", (2,)), "THREEFRY with a state UInt64 of 3"),
        (("PHILOX", (1,), "int32", (2,)), "PHILOX with a state UInt64 of 1"),
        (("PHILOX", (1, 2), "float32", (2,)), "bits as Float32"),
        (("PHILOX", (1, 2), "int8", (2,)), "bits as Int8"),
        (("PHILOX", (1, 2), "int32", (1 << 14, 1 << 14)), "bits as Int32"),
        (("PHILOX", (1, 2), "int32", (2,), "int64"), "with a state Int64 of 2"),
    ],
)
def test_what_litert_does_not_compute_is_refused(how, reason, tmp_path):
    path = model(*how).write(tmp_path / "m.tflite")
    with pytest.raises(ConversionError, match=reason):
        mslite.Converter().convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m"))


if __name__ == "__main__":
    for name, (algorithm, state, dtype, shape) in CASES.items():
        place = Path(sys.argv[1]) / name.replace("/", ".")
        model(algorithm, state, dtype, shape).write(Path(f"{place}.tflite"))
        np.savez(f"{place}.npz", np.array(state, np.uint64))
