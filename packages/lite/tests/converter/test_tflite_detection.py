"""The operator behind networks that find objects, against LiteRT; FlexBuffers, its options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, convert
from mycelia_lite.converter.importers.tflite.flexbuffer import numbers

from .tflite_models import Builder, run

# What LiteRT (ai-edge-litert 2) answers for the models that `detector` builds, and the options of these,
# as the package flatbuffers writes them.
FILES = np.load(Path(__file__).parents[1] / "fixtures" / "tflite" / "detection.npz")
NAMES = ("boxes", "classes", "scores", "count")
CASES = ("fast", "regular", "no_background")


def detector(options, anchors, classes, most):
    made = Builder()
    count = len(anchors)
    made.tensor("places", shape=(1, count, 4))
    made.tensor("likely", shape=(1, count, classes))
    made.constant("anchors", anchors)
    for name, shape in zip(NAMES, ((1, most, 4), (1, most), (1, most), (1,))):
        made.tensor(name, shape=shape)
    made.add("CUSTOM.TFLite_Detection_PostProcess", ["places", "likely", "anchors"], NAMES, custom=options)
    made.borders(["places", "likely"], NAMES)
    return made


def case(name):
    parts = {key: FILES[f"{name}.{key}"] for key in ("options", "anchors", "places", "likely")}
    most = FILES[f"{name}.boxes"].shape[1]
    return detector(parts["options"].tobytes(), parts["anchors"], parts["likely"].shape[2], most), parts


@pytest.mark.parametrize("name", CASES)
def test_boxes_are_found_as_by_litert(name, tmp_path):
    model, parts = case(name)
    path = convert(mslite.FmkType.TFLITE, model.write(tmp_path / "m.tflite"), str(tmp_path / "m")).path
    found = dict(zip(NAMES, run(path, parts["places"], parts["likely"])))
    count = int(FILES[f"{name}.count"][0])
    assert 1 < count and found["count"] == [count]
    count *= numbers(memoryview(parts["options"]))["max_classes_per_detection"]
    for key in NAMES[:3]:
        expected = FILES[f"{name}.{key}"]
        assert found[key].shape == expected.shape
        assert np.allclose(found[key][:, :count], expected[:, :count], rtol=1e-5, atol=1e-6)


def test_options_that_are_not_imported_are_named(tmp_path):
    model, parts = case("fast")
    cut = parts["options"].tobytes()
    renamed = cut.replace(b"use_regular_nms", b"use_another_nms")
    for options, reason in (
        (cut[:-3], "its options"),
        (renamed, r"attribute 'use_another_nms' is False, which is not imported"),
        (cut.replace(b"num_classes", b"num_classez"), r"attribute 'num_classez'"),
    ):
        model = detector(options, parts["anchors"], 4, 12)
        with pytest.raises(ConversionError, match=rf"'boxes' \(CUSTOM.TFLite_Detection.*{reason}"):
            convert(mslite.FmkType.TFLITE, model.write(tmp_path / "m.tflite"), str(tmp_path / "m"))
    huge = cut.replace(np.float64(10).tobytes(), np.float64(1e300).tobytes())
    model = detector(huge, parts["anchors"], 4, 12)
    with pytest.raises(ConversionError, match=r"scale' is 1e\+300, which is no number of float32"):
        convert(mslite.FmkType.TFLITE, model.write(tmp_path / "m.tflite"), str(tmp_path / "m"))
    model = detector(cut, parts["anchors"], 7, 12)
    with pytest.raises(ConversionError, match=r"3 classes with scores \[1, 20, 7\]"):
        convert(mslite.FmkType.TFLITE, model.write(tmp_path / "m.tflite"), str(tmp_path / "m"))


def test_damaged_flexbuffers_are_refused_or_read():
    rng = np.random.default_rng(2)
    whole = FILES["fast.options"]
    assert numbers(memoryview(whole))["max_classes_per_detection"] == 2
    refused = 0
    for _ in range(2000):
        data = whole.copy()
        data[rng.integers(len(data), size=rng.integers(1, 4))] = rng.integers(256)
        data = data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data
        try:
            numbers(memoryview(data))
        except ValueError as error:
            assert "its option" in str(error)
            refused += 1
    assert refused > 100
