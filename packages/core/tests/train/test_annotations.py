"""Boxes and masks over images in event files."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from mycelia import Tensor
from mycelia.train import SummaryRecord
from mycelia.train.summary import summary_pb2
from mycelia.train.summary.annotations import FIELD

sys.path.insert(0, str(Path(__file__).parent))
from test_summary import decoded, records

IMAGE = Tensor(np.linspace(0, 1, 3 * 4 * 6, dtype=np.float32).reshape(1, 3, 4, 6))


def image_of(folder, pattern="*.summary.*_MS") -> dict:
    (path,) = folder.glob(pattern)
    (value,) = decoded(records(path)[-1][5][0])[1]
    return decoded(decoded(value)[4][0])


def test_layers_stand_beside_the_image(tmp_path):
    mask = np.zeros((4, 6), np.int64)
    mask[1:3, 2:5] = 255
    with SummaryRecord(str(tmp_path), tensorboard=True) as record:
        record.add_value(
            "image", "seen", IMAGE,
            boxes={
                "found": {
                    "boxes": [[0, 1, 2.5, 3], [np.nan, 0, 1, 1]], "labels": ["<b>", "x"], "scores": [0.5, 1],
                },
                "none": np.zeros((0, 4)),
            },
            masks={"found": {"mask": Tensor(mask), "labels": {255: "sky"}}, "bare": mask > 0},
        )  # fmt: skip
        record.record(1)
    found = image_of(tmp_path)
    assert (found[1], found[2]) == ([4], [6]) and found[4][0][:4] == b"\x89PNG"
    layers = {decoded(one)[1][0]: decoded(one) for one in found[FIELD]}
    assert set(layers) == {b"found", b"none", b"bare"}
    # What is not finite has no place.
    assert json.loads(layers[b"found"][2][0]) == {
        "boxes": [[0.0, 1.0, 2.5, 3.0]], "labels": ["<b>"], "scores": [0.5],
    }  # fmt: skip
    assert json.loads(layers[b"found"][4][0]) == {"255": "sky"}
    assert json.loads(layers[b"none"][2][0]) == {"boxes": []} and 4 not in layers[b"bare"]
    images = pytest.importorskip("PIL.Image")
    assert (np.asarray(images.open(io.BytesIO(layers[b"found"][3][0]))) == mask).all()
    assert (np.asarray(images.open(io.BytesIO(layers[b"bare"][3][0]))) == (mask > 0)).all()
    # Readers that know nothing of layers have the image.
    assert image_of(tmp_path, "*tfevents*")[4] == found[4]
    message = summary_pb2.Event()
    (path,) = tmp_path.glob("*.summary.*_MS")
    raw = path.read_bytes()
    at = 12 + int.from_bytes(raw[:8], "little") + 4
    message.ParseFromString(raw[at + 12 : at + 12 + int.from_bytes(raw[at : at + 8], "little")])
    assert message.summary.value[0].image.encoded_image == found[4][0]


@pytest.mark.parametrize(
    "more, error, text",
    [
        ({"boxes": [[0, 0, 1, 1]]}, TypeError, "boxes must be a dict"),
        ({"boxes": {"a": [[0, 0, 1]]}}, ValueError, r"x0, y0, x1, y1, but the shape is \(1, 3\)"),
        ({"boxes": {"a": {"boxes": [[0, 0, 1, 1]], "labels": []}}}, ValueError, "must be 1, one a box"),
        ({"boxes": {"a": {"labels": []}}}, ValueError, "has boxes, labels and scores"),
        ({"boxes": {"a": {"boxes": [], "colour": 1}}}, ValueError, "has boxes, labels and scores"),
        ({"boxes": {"a": [["x", 0, 0, 0]]}}, TypeError, "must be numbers"),
        ({"boxes": {1: []}}, TypeError, "name of boxes must be a text"),
        ({"boxes": {"a": {"boxes": [[0, 0, 1, 1], [1]]}}}, ValueError, "array of numbers"),
        ({"masks": {"a": np.zeros((6, 4), int)}}, ValueError, r"image's \[4, 6\], but has \[6, 4\]"),
        ({"masks": {"a": np.full((4, 6), 256)}}, ValueError, "0 to 255"),
        ({"masks": {"a": np.full((4, 6), -1)}}, ValueError, "0 to 255"),
        ({"masks": {"a": np.full((4, 6), 0.5)}}, ValueError, "whole numbers"),
        (
            {"masks": {"a": {"mask": np.zeros((4, 6), int), "labels": {"b": 1}}}},
            TypeError,
            "classes to texts",
        ),
    ],
)
def test_what_does_not_fit_is_refused(more, error, text, tmp_path):
    with SummaryRecord(str(tmp_path)) as record, pytest.raises(error, match=text):
        record.add_value("image", "seen", IMAGE, **more)


def test_layers_are_for_one_image(tmp_path):
    with SummaryRecord(str(tmp_path)) as record:
        with pytest.raises(ValueError, match="for one image"):
            record.add_value("image", "x", Tensor(np.zeros((2, 3, 4, 6), np.float32)), boxes={"a": []})
        with pytest.raises(ValueError, match="a scalar has no boxes"):
            record.add_value("scalar", "x", Tensor(1.0), boxes={"a": []})
