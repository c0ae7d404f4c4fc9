"""Images, histograms, tensors, texts and sounds of a service, by both interfaces."""

from __future__ import annotations

import json
import shutil
import sys
import urllib.request
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "runs"), str(HERE)]
from event_files import TENSORBOARD, event, field, framed, write  # noqa: E402
from test_records import EXPECTED, FIXTURE, image_message, png, tensorflow  # noqa: E402
from test_service import Command, until  # noqa: E402

WAVE = b"RIFF\x24\0\0\0WAVEfmt " + bytes(28)


def told(tag: str, plugin: str, message: bytes, step: int) -> bytes:
    """A record of TensorBoard's with a value of a plugin."""
    value = field(1, tag) + field(8, message) + field(9, field(1, field(1, plugin)))
    return framed(event(step, 1.7e9 + step, field(5, field(1, value))))


def recorded(number: int, tag: str, message: bytes, step: int) -> bytes:
    """A record of MindSpore's with a value in field `number`."""
    return framed(event(step, 1.7e9 + step, field(5, field(1, field(1, tag) + field(number, message)))))


BOXES = '{"boxes": [[1, 2, 3, 4], [null, 0, 0, 0]], "labels": ["<script>"], "scores": [0.5]}'


def layered(boxes: str, more: bytes = b"") -> bytes:
    """An image with a layer."""
    return image_message(png(4, 4), 4, 4) + field(100, field(1, "found") + field(2, boxes) + more)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    base = tmp_path_factory.mktemp("media") / "runs"
    shutil.copytree(FIXTURE / "run1", base / "run1")
    huge = image_message(png(100_000, 100_000))
    odd = np.float32([np.nan] * 3 + [np.inf]).tobytes()
    bad = [
        recorded(4, "huge", huge, 0), recorded(4, "script", image_message(b"<script>1</script>"), 0),
        recorded(8, "short", b"\x08\x05\x1a\x04\0\0\0\0", 0), recorded(9, "nothing", b"\x0a\x02\x09\x00", 0),
        recorded(4, "layers", layered('{"boxes": [[0, 0, 1, 1e999]]}'), 0),
        recorded(4, "over", image_message(png(4, 4), 4, 4), 0),
        recorded(4, "over", layered(BOXES, field(3, png(4, 4)) + field(4, '{"2": "<b>"}')), 1),
        recorded(8, "nan", b"\x08\x02\x08\x02\x10\x0b" + field(3, odd), 0),
    ]  # fmt: skip
    write(base / "bad", bad)
    board = [
        told("note", "text", tensorflow(7, [], field(8, f"step {step} <b>")), step) for step in range(30)
    ] + [
        told("wave", "audio", tensorflow(7, [1, 2], field(8, WAVE), field(8, "")), 3),
        told("photo", "images", tensorflow(7, [4], *(field(8, x) for x in (b"2", b"1", png(), png(3)))), 3),
    ]
    write(base / "board", board, first=TENSORBOARD)
    made = Command(tmp_path_factory.mktemp("service"))
    assert made.start(base).returncode == 0
    until(lambda: not made.get("/api/v1/runs")["loading"])
    yield made
    made("stop", "--port", str(made.port))


def fetch(service, path: str) -> tuple[str, bytes, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{service.port}{path}", timeout=20) as answer:
        return answer.headers["Content-Type"], answer.read(), answer.headers["X-Content-Type-Options"]


def test_images(service):
    listed = service.get("/api/v1/runs/run1/media?kind=image&tag=batch")
    expected = EXPECTED["image"]["batch/image"]
    assert listed["steps"] == expected["steps"] and listed["samples"] == 1
    assert listed["sizes"] == [[expected["width"], expected["height"]]] * 6
    own = fetch(service, "/api/v1/runs/run1/image?tag=batch&step=3")
    assert own[0] == "image/png" and own[1][:4] == b"\x89PNG" and own[2] == "nosniff"
    prefix = "/v1/mindinsight/datavisual/image"
    assert fetch(service, f"{prefix}/single-image?train_id=./run1&tag=batch/image&step=3")[1] == own[1]
    found = service.get(f"{prefix}/metadata?train_id=./run1&tag=batch/image")["metadatas"]
    assert [one["step"] for one in found] == expected["steps"] and found[0].keys() == {
        "step", "wall_time", "width", "height",
    }  # fmt: skip
    assert service.get("/api/v1/runs/board/media?kind=image&tag=photo")["samples"] == 2
    assert fetch(service, "/api/v1/runs/board/image?tag=photo&sample=1")[1] == png(3)


def test_histograms(service):
    for tag, expected in EXPECTED["histogram"].items():
        path = f"train_id=./run1&tag={quote(tag)}"
        found = service.get(f"/v1/mindinsight/datavisual/histograms?{path}")
        assert [one["step"] for one in found["histograms"]] == expected["steps"]
        for one in found["histograms"]:
            held = sum(count for _, _, count in one["buckets"])  # each is rounded up
            assert expected["count"] - 1e-6 <= held < expected["count"] + len(one["buckets"])
        own = service.get(f"/api/v1/runs/run1/histograms?tag={quote(tag.removesuffix('/histogram'))}")
        assert np.sum(own["counts"], 1) == pytest.approx([expected["count"]] * 6)
        assert np.array(own["quantiles"]).shape == (6, 9) and own["nan"] == [0] * 6
    of_tensor = service.get("/api/v1/runs/run1/histograms?tag=logits&tensor=true&steps=3")
    assert np.shape(of_tensor["counts"])[0] == 3 and of_tensor["count"] == 6


def test_consecutive_steps_of_histograms(service):
    def asked(more: str) -> tuple[int, list[int]]:
        found = service.get(f"/api/v1/runs/run1/histograms?tag=logits&tensor=true&steps=3&{more}")
        return found["begin"], found["steps"]

    steps = service.get("/api/v1/runs/run1/tensor?tag=logits")["steps"]
    assert asked("") == (0, [steps[0], steps[2], steps[5]])
    assert asked("begin=0") == (0, steps[:3]) and asked("begin=2") == (2, steps[2:5])
    assert asked("begin=100") == (3, steps[3:])
    assert service.refused("/api/v1/runs/run1/histograms?tag=logits&tensor=true&begin=-2")[0] == 400


def test_tensors(service):
    prefix = "/v1/mindinsight/datavisual/tensors?train_id=./run1&tag=logits/tensor"
    (found,) = service.get(f"{prefix}&detail=stats")["tensors"]
    assert [one["step"] for one in found["values"]] == EXPECTED["tensor"]["logits/tensor"]["steps"]
    assert found["values"][0]["value"]["statistics"]["overall_count"] == 16
    (part,) = service.get(f"{prefix}&detail=data&step=3&dims=%5B1,1:3%5D")["tensors"][0]["values"]
    own = service.get("/api/v1/runs/run1/tensor?tag=logits&step=3")
    assert own["shape"] == [4, 4] and own["dtype"] == "float32" and own["dims"] == "[:, :]"
    assert part["value"]["data"] == own["rows"][1][1:3] and part["value"]["statistics"]["count"] == 2
    (hist,) = service.get(f"{prefix}&detail=histogram&step=3")["tensors"][0]["values"]
    assert sum(count for *_, count in hist["value"]["histogram_buckets"]) == 16
    part = service.get("/api/v1/runs/run1/tensor?tag=logits&step=3&dims=%5B-1,1:3%5D")
    assert part["rows"] == [own["rows"][3][1:3]] and part["free"] == [{"dimension": 1, "start": 1, "size": 2}]
    assert part["statistics"]["count"] == 2 and part["overall"]["count"] == 16
    odd = service.get("/api/v1/runs/bad/tensor?tag=nan")
    assert odd["rows"] == [["NaN", "NaN"], ["NaN", "Infinity"]] and odd["statistics"]["max"] is None


def test_boxes_and_masks_over_images(service):
    asked = "/api/v1/runs/bad/image"
    assert service.get("/api/v1/runs/bad/media?kind=image&tag=over")["layers"] is True
    assert service.get("/api/v1/runs/run1/media?kind=image&tag=batch")["layers"] is False
    found = service.get(f"{asked}/layers?tag=over")
    box = {"x": 1.0, "y": 2.0, "width": 2.0, "height": 2.0, "label": "<script>", "score": 0.5}
    layer = {"name": "found", "boxes": [box], "left_out": 1, "mask": True, "classes": {"2": "<b>"}}
    assert (found["step"], found["layers"]) == (1, [layer])
    assert service.get(f"{asked}/layers?tag=over&step=0")["layers"] == []
    kind, data, sniffed = fetch(service, f"{asked}/mask?tag=over&step=1")
    assert (kind, data, sniffed) == ("image/png", png(4, 4), "nosniff")
    assert fetch(service, f"{asked}?tag=over&step=1")[1] == png(4, 4)


def test_texts_and_sounds(service):
    found = service.get("/api/v1/runs/board/texts?tag=note&limit=2")
    assert (found["count"], found["first"]) == (30, 28)
    assert [one["rows"] for one in found["values"]] == [[["step 28 <b>"]], [["step 29 <b>"]]]
    assert service.get("/api/v1/runs/board/texts?tag=note&before=5&limit=9")["values"][-1]["step"] == 4
    kind, data, _ = fetch(service, "/api/v1/runs/board/audio?tag=wave&step=3")
    assert (kind, data) == ("audio/wav", WAVE)


@pytest.mark.parametrize(
    "path, status, expected",
    [
        ("run1/image?tag=none", 404, "has no image 'none'"),
        ("run1/image?tag=batch&step=2", 404, "no value at step 2"),
        ("run1/image?tag=batch&sample=1", 404, "there are 1 images, got the index 1"),
        ("run1/media?tag=batch&kind=x", 400, "'kind' must be one of image, audio, got 'x'"),
        ("bad/image?tag=huge", 422, "claims 100000 x 100000 pixels"),
        ("bad/image?tag=script", 422, "neither PNG, JPEG nor GIF"),
        ("bad/image/layers?tag=layers", 422, "a layer cannot be read"),
        ("bad/image/mask?tag=over&layer=1", 404, "there is no mask 1"),
        ("bad/image/mask?tag=over&step=0", 404, "there is no mask 0"),
        ("bad/image/layers?tag=none", 404, "has no image 'none'"),
        ("bad/tensor?tag=short", 422, "has 1 values, expected 5"),
        ("bad/histograms?tag=nothing", 422, "longer than its message"),
        ("run1/tensor?tag=logits&dims=9,9", 400, "index 9 of 'dims' is outside of a dimension of 4"),
        ("run1/histograms?tag=logits_dist&bins=501", 400, "'bins' must be integer of 0..500"),
    ],
)
def test_what_is_wrong_is_named(service, path, status, expected):
    found, text = service.refused(f"/api/v1/runs/{path}")
    assert found == status and expected in json.loads(text)["error"]
    assert service.get("/api/v1/runs")["runs"]


@pytest.mark.parametrize(
    "path, code",
    [
        ("image/metadata?train_id=./run1&tag=none", "5054500D"),
        ("image/single-image?train_id=./run1&tag=batch/image&step=2", "5054500D"),
        ("image/single-image?train_id=./bad&tag=huge/image&step=0", "50540002"),
        ("image/single-image?train_id=./run1&tag=batch/image", "50540003"),
        ("histograms?train_id=./run1&tag=none", "5054500F"),
        ("tensors?train_id=./run1&tag=none&detail=stats", "50545012"),
        ("tensors?train_id=./run1&tag=logits/tensor&detail=stats&step=2", "50545014"),
        ("tensors?train_id=./run1&tag=logits/tensor&detail=all", "50540002"),
        ("tensors?train_id=./run1&tag=logits/tensor&detail=data&step=3&dims=[:]", "50540002"),
        ("tensors?train_id=./none&tag=x&detail=stats", "50545005"),
    ],
)
def test_codes_of_mindinsight(service, path, code):
    status, text = service.refused(f"/v1/mindinsight/datavisual/{path}")
    assert status == 400 and json.loads(text)["error_code"] == code
