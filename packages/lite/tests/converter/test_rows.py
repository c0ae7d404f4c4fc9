"""Every operator that is listed as convertible has a row in a test against recorded answers of its engine."""

from __future__ import annotations

from pathlib import Path

from mycelia_lite.converter.importers.tflite.calls import OPERATORS
from mycelia_lite.converter.importers.tflite.file import File

from . import (
    test_tflite_bits,
    test_tflite_detection,
    test_tflite_integer_cells,
    test_tflite_integer_products,
    test_tflite_integers,
    test_tflite_listed,
    test_tflite_recurrent,
    test_tflite_spectra,
    test_tflite_stablehlo,
)

FILES = Path(__file__).parents[1] / "fixtures" / "tflite"


def kinds_of(path):
    """The operators of a TFLITE file."""
    file = File(str(path))
    return {file.kind_of(o) for graph in file.model.subgraphs for o in graph.operators}


def tflite_rows(tmp_path):
    """The operators of all models whose answers by LiteRT are recorded."""
    built = [m.built() for m in test_tflite_stablehlo.MODELS.values()]
    built += [test_tflite_integers.case(n)[0] for n in test_tflite_integers.CASES]
    built += [test_tflite_integer_products.case(n)[0] for n in test_tflite_integer_products.CASES]
    built += [test_tflite_listed.model(n)[0] for n in (*test_tflite_listed.CASES, *test_tflite_listed.GRAPHS)]
    built += [test_tflite_spectra.MODELS[n]() for n in test_tflite_spectra.MODELS]
    built += [*test_tflite_recurrent.CASES.values(), test_tflite_detection.case("fast")[0]]
    built += [make()[0] for make in test_tflite_integer_cells.CASES.values()]
    built.append(test_tflite_bits.model(*test_tflite_bits.CASES["PHILOX/0/int32"]))
    paths = [*FILES.glob("*.tflite")]
    for number, made in enumerate(built):
        paths.append(tmp_path / f"{number}.tflite")
        made.write(paths[-1])
    return set().union(*map(kinds_of, paths))


def test_every_operator_of_tflite_has_a_row(tmp_path):
    without = {
        "CUSTOM.Convolution2DTransposeBias",
        "CALL",
    }  # MediaPipe's and an older one: LiteRT has neither
    assert set(OPERATORS) - tflite_rows(tmp_path) == without
