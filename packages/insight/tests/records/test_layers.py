"""Boxes and masks over images: those that core writes, and hostile ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from mycelia import Tensor
from mycelia.train.summary.annotations import annotated
from mycelia.train.summary.values import encoded
from mycelia_insight.records.images import decode
from mycelia_insight.records.layers import FIELD, MOST_BOXES, Box, layers, mask
from mycelia_insight.records.wire import Broken, plain
from mycelia_insight.runs.kinds import Dialect

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))
from event_files import field, number
from test_records import image_message, png

SCRIPT = "<script>alert(1)</script>"


def layer(told: object = None, *more: bytes, name: str = "a") -> bytes:
    """An image with one layer."""
    boxes = b"" if told is None else field(2, told if isinstance(told, bytes) else json.dumps(told))
    return image_message(png(8, 6), 8, 6) + field(FIELD, field(1, name) + boxes + b"".join(more))


def test_what_core_writes_is_read():
    (summary,) = encoded([("x", "image", np.zeros((1, 3, 6, 8), np.float32))])
    classes = np.arange(48).reshape(6, 8)
    made = annotated(
        summary, "x", (1, 3, 6, 8),
        {"found": {"boxes": [[1, 2, 4, 5.5]], "labels": [SCRIPT], "scores": [0.25]}, "bare": [[4, 4, 1, 2]]},
        {"found": {"mask": Tensor(classes), "labels": {7: "cat"}}},
    )  # fmt: skip
    value = dict(plain(dict(plain(made))[1]))
    found = layers(value[4])
    assert [(one.name, one.left_out, bool(one.mask), one.classes) for one in found] == [
        ("found", 0, True, {7: "cat"}), ("bare", 0, False, {}),
    ]  # fmt: skip
    assert found[0].boxes == [Box(1, 2, 3, 3.5, SCRIPT, 0.25)] and found[1].boxes == [
        Box(1, 2, 3, 2, "", None)
    ]
    picture = mask(value[4], 0)
    assert (picture.media_type, picture.width, picture.height) == ("image/png", 8, 6)
    assert decode(value[4], Dialect.MINDSPORE)[0].width == 8  # the image itself is as it was
    for place in (1, 2, -1):
        with pytest.raises(IndexError):
            mask(value[4], place)


@pytest.mark.parametrize(
    "told",
    [b"", b"[]", b"{", b"\xff", b'{"boxes": [[0, 0, 1, NaN]]}', b'{"boxes": [[0, 0, 1, 1e999]]}', 5 * b"[" ],
)  # fmt: skip
def test_what_is_no_object_is_refused(told):
    with pytest.raises(Broken):
        layers(layer(told))


@pytest.mark.parametrize(
    "rows",
    [
        [None], [[0, 0, 1]], [["0", 0, 1, 1]], [[True, 0, 1, 1]], [{"x": 1}], [[[0, 0, 1, 1]]], ["abcd"],
        [[]], [[0, 0, 1, None]],
    ],
)  # fmt: skip
def test_boxes_that_are_none_are_counted(rows):
    (found,) = layers(layer({"boxes": rows, "labels": ["x"] * len(rows)}))
    assert (found.boxes, found.left_out) == ([], len(rows))


def test_far_boxes_and_odd_labels_are_tamed():
    told = {
        "boxes": [[-1e300, 5, 1e300, 2], [0, 0, 1, 1], [2, 2, 3, 3]],
        "labels": [{"a": 1}, "x" * 1000], "scores": ["1", None, 0.5, 7],
    }  # fmt: skip
    (found,) = layers(layer(told, field(4, json.dumps({"1": SCRIPT, "-1": "a", "x": "b", "9999": "c"}))))
    assert found.boxes[0] == Box(-1e6, 2, 2e6, 3, "{'a': 1}", None)
    assert len(found.boxes[1].label) == 100 and found.boxes[2].label == "" and found.boxes[2].score == 0.5
    assert found.classes == {1: SCRIPT}
    assert layers(layer({"boxes": 1e9, "labels": "abc"}))[0].boxes == []


def test_of_too_many_boxes_the_best_are_shown():
    rows = np.tile([0, 0, 1, 1], (MOST_BOXES + 500, 1)).tolist()
    scores = np.arange(len(rows)).tolist()
    (found,) = layers(layer({"boxes": rows, "scores": scores}))
    assert len(found.boxes) == MOST_BOXES and found.left_out == 500
    assert min(box.score for box in found.boxes) == 500
    with pytest.raises(Broken, match="at most"):
        layers(layer(b'{"boxes": [' + b"[0,0,1,1]," * 900_000 + b"]}"))
    many = image_message(png(8, 6), 8, 6) + field(FIELD, field(1, "a")) * 1000
    assert len(layers(many)) == 32


def test_masks_that_are_no_images_are_refused():
    for data in (b"", b"<svg/>", png(100_000, 100_000)):
        with pytest.raises((Broken, IndexError)):
            mask(layer(None, field(3, data)), 0)
    with pytest.raises(Broken):
        layers(layer(None, number(3, 5)))
    assert layers(image_message(png(8, 6), 8, 6)) == []
