"""Fourier transforms of TFLITE files against LiteRT."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, convert

from .tflite_models import Builder, table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tflite_spectra.npz"
HEIGHT, WIDTH = 5, 12
X = np.random.default_rng(4).normal(size=(2, HEIGHT, WIDTH)).astype(np.float32)
# (rows, columns) of a transform: powers of 2, as LiteRT wants them
LENGTHS = {"of rows": (1, 8), "filled": (1, 16), "of images": (4, 8), "of filled images": (8, 16)}


def spectrum(lengths, *between, results=("REAL", "IMAG", "COMPLEX_ABS")):
    """A model of x with these results of its transform; `between`: (operator, constants, shape, options)."""
    made = Builder()
    x = made.tensor("x", shape=X.shape)
    shape = (2, 1 if lengths[0] == 1 and not between else HEIGHT, lengths[1] // 2 + 1)
    if lengths[0] > 1:
        shape = (2, lengths[0], lengths[1] // 2 + 1)
    made.add(
        "RFFT2D",
        [x, made.constant("lengths", np.array(lengths, np.int32))],
        [made.tensor("z", "COMPLEX64", shape)],
        table("Rfft2dOptions"),
    )
    last = "z"
    for i, (kind, constants, shape, options) in enumerate(between):
        names = [made.constant(f"c{i}{j}", c) for j, c in enumerate(constants)]
        made.add(kind, [last, *names], [made.tensor(f"z{i}", "COMPLEX64", shape)], options)
        last = f"z{i}"
    outputs = []
    for kind in results:
        outputs.append(made.tensor(kind.lower(), shape=shape))
        made.add(kind, [last], [outputs[-1]])
    made.borders(["x"], outputs)
    return made


def frames():
    """Rows as frames of a signal: an axis of size 1 in front of the last one goes behind the transform."""
    made = Builder()
    made.tensor("x", shape=X.shape)
    made.add(
        "EXPAND_DIMS",
        ["x", made.constant("axis", np.array(2, np.int32))],
        [made.tensor("apart", shape=(2, HEIGHT, 1, WIDTH))],
        table("ExpandDimsOptions"),
    )
    lengths = made.constant("lengths", np.array([1, 16], np.int32))
    made.add(
        "RFFT2D",
        ["apart", lengths],
        [made.tensor("z", "COMPLEX64", (2, HEIGHT, 1, 9))],
        table("Rfft2dOptions"),
    )
    made.add(
        "SQUEEZE",
        ["z"],
        [made.tensor("rows", "COMPLEX64", (2, HEIGHT, 9))],
        table("SqueezeOptions", squeeze_dims=[2]),
    )
    made.add(
        "RESHAPE",
        ["rows", made.constant("shape", np.array([-1, 9], np.int32))],
        [made.tensor("all", "COMPLEX64", (2 * HEIGHT, 9))],
        table("ReshapeOptions", new_shape=[-1, 9]),
    )
    made.add("COMPLEX_ABS", ["all"], [made.tensor("y", shape=(2 * HEIGHT, 9))])
    made.borders(["x"], ["y"])
    return made


MODELS = {
    **{name: lambda lengths=lengths: spectrum(lengths) for name, lengths in LENGTHS.items()},
    "frames": frames,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_transform_answers_as_litert(name, tmp_path):
    answers = np.load(FIXTURE)
    path = MODELS[name]().write(tmp_path / "m.tflite")
    model = mslite.Model()
    model.build_from_file(convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m")).path)
    model.get_inputs()[0].set_data_from_numpy(X)
    found = model.predict(model.get_inputs())
    assert len(found) == sum(key.startswith(f"{name}/") for key in answers.files)
    for i, tensor in enumerate(found):
        expected = answers[f"{name}/{i}"]
        assert tensor.shape == list(expected.shape)
        np.testing.assert_allclose(tensor.get_data_to_numpy(), expected, atol=1e-5 * np.abs(expected).max())


def negated():
    made = spectrum((1, 8), ("NEG", [], (2, 1, 5), table("NegOptions")))
    return made, r"'z0' \(NEG\): complex numbers, of which REAL, IMAG, COMPLEX_ABS"


def an_output():
    made = spectrum((1, 8))
    made.borders(["x"], ["z"])
    return made, "the output 'z' is of complex numbers"


def an_input():
    made = Builder()
    made.tensor("x", "COMPLEX64", (2, 3))
    made.add("REAL", ["x"], [made.tensor("y", shape=(2, 3))])
    made.borders(["x"], ["y"])
    return made, "'x' has the data type COMPLEX64, which is not read"


@pytest.mark.parametrize("make", [negated, an_output, an_input])
def test_complex_numbers_elsewhere_are_refused(make, tmp_path):
    made, reason = make()
    with pytest.raises(ConversionError, match=reason):
        convert(mslite.FmkType.TFLITE, made.write(tmp_path / "m.tflite"), str(tmp_path / "m"))


if __name__ == "__main__":  # writes the models into a folder, for LiteRT
    for key, make_model in MODELS.items():
        make_model().write(Path(sys.argv[1]) / f"{key}.tflite")
