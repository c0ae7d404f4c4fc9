"""Values that are no scalars: MindSpore's real files, messages of both dialects, whole and broken."""

from __future__ import annotations

import json
import random
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import double, field, number, single, varint

from mycelia_insight.records import histograms, images, sounds, tensors, texts
from mycelia_insight.records.reading import Missing, at_step, entries, message, spread
from mycelia_insight.records.wire import Broken
from mycelia_insight.runs.discovery import find
from mycelia_insight.runs.kinds import Dialect, Kind
from mycelia_insight.runs.run import Run

FIXTURE = Path(__file__).parents[1] / "fixtures" / "summary"
EXPECTED = json.loads((FIXTURE / "run1.expected.json").read_text())
MS, TB = Dialect.MINDSPORE, Dialect.TENSORBOARD


def png(width: int = 2, height: int = 1) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(
        b"".join(b"\0" + b"\x40\x80\xc0" * width for _ in range(height)) if width < 999 else b""
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def image_message(data: bytes, width: int = 2, height: int = 1) -> bytes:
    return number(1, height) + number(2, width) + number(3, 3) + field(4, data)


def tensorflow(dtype: int, shape: list[int], *rest: bytes) -> bytes:
    return number(1, dtype) + field(2, b"".join(field(2, number(1, n)) for n in shape)) + b"".join(rest)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    (found,) = find(str(FIXTURE))
    made = Run(str(FIXTURE / found.name), found.name, str(tmp_path_factory.mktemp("workspace")))
    while made.refresh(found.files):
        pass
    return made


def test_images_of_mindspore(run):
    for tag, expected in EXPECTED["image"].items():
        found = entries(run, Kind.IMAGE, tag.removesuffix("/image"))
        assert [entry.step for entry in found] == expected["steps"]
        for entry in found:
            picture, count = images.decode(message(run, entry), entry.dialect)
            assert (picture.media_type, picture.width, picture.height, count) == (
                "image/png", expected["width"], expected["height"], 1,
            )  # fmt: skip


def test_histograms_of_mindspore(run):
    for tag, expected in EXPECTED["histogram"].items():
        found = entries(run, Kind.HISTOGRAM, tag.removesuffix("/histogram"))
        assert [entry.step for entry in found] == expected["steps"]
        decoded = [histograms.decode(message(run, entry), entry.dialect) for entry in found]
        assert [one.counts.sum() for one in decoded] == [expected["count"]] * len(found)
        edges, counts = histograms.shared(decoded)
        assert counts.sum(1) == pytest.approx([expected["count"]] * len(found))
        assert counts.shape[1] == len(edges) - 1 == histograms._shown_count(expected["count"])


def test_tensors_of_mindspore(run):
    for tag, expected in EXPECTED["tensor"].items():
        found = entries(run, Kind.TENSOR, tag.removesuffix("/tensor"))
        assert [entry.step for entry in found] == expected["steps"]
        for entry in found:
            decoded = tensors.decode(message(run, entry), entry.dialect)
            assert (decoded.dtype, list(decoded.values.shape)) == ("float32", expected["dims"])
    # The same logits were recorded as a tensor and as a distribution.
    of_tensor = histograms.of_values(decoded.values)
    (last,) = [entry for entry in entries(run, Kind.HISTOGRAM, "logits_dist") if entry.step == found[-1].step]
    recorded = histograms.decode(message(run, last), last.dialect)
    assert of_tensor.left == pytest.approx(recorded.left, rel=1e-5)
    assert of_tensor.counts.tolist() == recorded.counts.tolist()


def test_what_is_not_there_is_named(run):
    with pytest.raises(Missing, match="no image 'none'"):
        entries(run, Kind.IMAGE, "none")
    found = entries(run, Kind.IMAGE, "batch")
    assert at_step(found, None).step == 15 and [one.step for one in spread(found, 2)] == [1, 15]
    with pytest.raises(Missing, match="no value at step 2"):
        at_step(found, 2)
    with pytest.raises(Broken, match="at most 10 are read"):
        message(run, found[0], 10)


def test_images_of_tensorboard():
    old, _ = images.decode(image_message(png(2, 7), 2, 7), TB)
    assert (old.width, old.height) == (2, 7)
    batch = tensorflow(7, [4], *(field(8, one) for one in (b"2", b"1", png(2, 1), png(3, 1))))
    new, count = images.decode(batch, TB, 1)
    assert (new.width, count) == (3, 2)
    with pytest.raises(IndexError, match="there are 2 images, got the index 2"):
        images.decode(batch, TB, 2)


@pytest.mark.parametrize(
    "data, expected",
    [
        (png(100_000, 100_000), "claims 100000 x 100000 pixels"),
        (png(0, 5), "claims 0 x 5 pixels"),
        (b"<svg onload='alert(1)'/>", "neither PNG, JPEG nor GIF"),
        (b"\x89PNG\r\n\x1a\n", "neither PNG, JPEG nor GIF"),
        (b"\xff\xd8\xff\xe0\x00\x02", "JPEG without a size"),
        (b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03", "claims 65535 x 65535"),
        (b"GIF89a" + b"\xff" * 4, "claims 65535 x 65535"),
        (b"", "neither PNG, JPEG nor GIF"),
    ],
)
def test_hostile_images_are_refused(data, expected):
    with pytest.raises(Broken, match=expected):
        images.decode(image_message(data), MS)


def test_histograms_of_tensorboard():
    values = np.array([[-1.0, 0.0, 4.0], [0.0, 2.0, 6.0]])
    old = b"".join(map(double, (1, 2, 3, 4), (-1.0, 2.0, 10, 5)))
    old += field(6, struct.pack("<3d", 0.0, 2.0, 1.797e308)) + field(7, struct.pack("<3d", 4, 6, 0))
    new = tensorflow(2, [2, 3], field(4, values.tobytes()))
    for message_ in (old, new):
        found = histograms.decode(message_, TB)
        kept = found.counts > 0
        assert found.left[kept].tolist() == [-1, 0] and found.right[kept].tolist() == [0, 2]
        assert found.counts[kept].tolist() == [4, 6]
        assert histograms.quantiles(found)[[0, 4, 8]] == pytest.approx([-1, 1 / 3, 2])


def bucket(left: float, width: float, count: int) -> bytes:
    return field(1, double(1, left) + double(2, width) + number(3, count))


def test_what_is_not_finite_is_counted():
    found = histograms.decode(number(2, 3) + number(3, 1) + number(4, 2) + number(8, 6), MS)
    assert (found.nan, found.positive, found.negative) == (3, 1, 2)
    assert histograms.quantiles(found) is None
    edges, counts = histograms.shared([found, histograms.decode(bucket(1, 0, 5), MS)])
    assert (edges[0], edges[-1]) == (0.5, 1.5) and counts.sum(1).tolist() == [0, 5]
    made = histograms.of_values(np.array([np.nan, np.inf, -np.inf, 2, 2, 3], np.float32))
    assert (made.nan, made.positive, made.negative, made.counts.sum()) == (1, 1, 1, 3)
    assert histograms.of_values(np.full(4, np.nan)).nan == 4


def test_buckets_that_steps_share_keep_what_lies_between():
    one = histograms.decode(bucket(0, 1, 10) + bucket(3, 1, 30), MS)
    other = histograms.decode(bucket(0, 4, 8), MS)
    edges, counts = histograms.shared([one, other], 4)
    assert edges.tolist() == [0, 1, 2, 3, 4]
    assert counts.tolist() == [[10, 0, 0, 30], [2, 2, 2, 2]]
    # Values that are all alike at the least end have a bucket without a width.
    _, counts = histograms.shared([histograms.decode(bucket(0, 0, 5) + bucket(1, 1, 3), MS)], 2)
    assert counts.tolist() == [[5, 3]]


@pytest.mark.parametrize(
    "data, expected",
    [
        (bucket(float("nan"), 1, 1), "not finite"),
        (bucket(0, -1, 1), "less than empty"),
        (field(1, b"\x09\x00"), "longer than its message"),
        (field(1, double(1, 0.0))[:-1], "longer than its message"),
        (b"\x0b", "unknown type 3"),
        (b"\x10" + b"\xff" * 11, "cut off"),
    ],
)
def test_broken_histograms_are_refused(data, expected):
    with pytest.raises(Broken, match=expected):
        histograms.decode(data, MS)


def test_buckets_need_a_width_that_is_a_number():
    with pytest.raises(Broken, match="have no buckets"):
        histograms.shared([histograms.decode(bucket(-1.7e308, 0, 1) + bucket(1.7e308, 0, 1), MS)])


@pytest.mark.parametrize("value", [1e20, -3.4e38])
def test_equal_values_lie_in_a_bucket_however_large(value):
    found = histograms.of_values(np.full(7, value))
    assert found.counts.sum() == 7 and found.left[0] < value < found.right[-1]


@pytest.mark.parametrize(
    "dtype, values, rest",
    [
        (1, np.float32([1, -2]), lambda v: field(5, v.tobytes())),
        (1, np.float32([1, -2]), lambda v: single(5, 1.0) + single(5, -2.0)),
        (2, np.float64([1, np.nan]), lambda v: field(6, v.tobytes())),
        (3, np.int32([1, -2]), lambda v: field(7, varint(1) + varint(-2))),
        (9, np.int64([2**40, -3]), lambda v: number(10, 2**40) + number(10, -3)),
        (19, np.float16([0.5, -2]), lambda v: field(13, b"".join(varint(int(n)) for n in v.view("u2")))),
        (14, np.float32([1.5, -2]), lambda v: field(4, (v.view("u4") >> 16).astype("<u2").tobytes())),
        (23, np.uint64([2**63, 1]), lambda v: field(17, varint(2**63) + varint(1))),
        (10, np.uint8([1, 0]), lambda v: field(4, v.tobytes())),
    ],
)
def test_tensors_of_tensorboard(dtype, values, rest):
    found = tensors.decode(tensorflow(dtype, [2], rest(values)), TB)
    assert np.array_equal(found.values, values, equal_nan=dtype == 2)


@pytest.mark.parametrize(
    "data, dialect, expected",
    [
        (
            number(1, 10**9) + number(1, 10**9) + field(3, b"\0" * 4),
            MS,
            "has 1 values, expected 1000000000000000000",
        ),
        (number(1, -1) + field(3, b""), MS, "is no shape"),
        (number(1, 2) + field(3, b"\0" * 7), MS, "cut off"),
        (tensorflow(1, [1 << 40], single(5, 1.0)), TB, "has 1 values, expected"),
        (tensorflow(1, [-3], single(5, 1.0)), TB, "is no shape"),
        (tensorflow(7, [1], field(8, b"text")), TB, "type 7 has no numbers"),
    ],
)
def test_hostile_tensors_are_refused(data, dialect, expected):
    with pytest.raises(Broken, match=expected):
        tensors.decode(data, dialect)


def test_slices_have_python_s_rules():
    values = np.arange(24).reshape(2, 3, 4)
    for text in ("[0, :, 2:5]", "[-1,-2:,:]", "1, 1:1, 0", "[0,0,-1]", "[:, 0, 1:]"):
        index = tensors.parse(text, values.shape)
        assert np.array_equal(values[index], eval(f"values[{text.strip('[]')}]"))
    for text, expected in {
        "[0]": "must have 3 indices", "[2,0,0]": "index 2 of 'dims' is outside", "[:,:,:]": "at most two",
        "[a,0,0]": "must be 'i', 'a:b' or ':'", "[0,0,1:2:3]": "must be 'i'",
        f"[0,0,{'9' * 5000}]": "40 characters",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=expected):
            tensors.parse(text, values.shape)
    assert tensors.first_view((2, 3, 400)) == "[0, :, 0:30]" and tensors.first_view(()) == "[]"


def test_statistics_see_what_is_not_finite():
    found = tensors.statistics(np.float32([np.nan, np.inf, -np.inf, 0, 2, -4]))
    assert found == {
        "max": 2, "min": -4, "avg": pytest.approx(-2 / 3), "count": 6, "nan_count": 1, "neg_inf_count": 1,
        "pos_inf_count": 1, "zero_count": 1, "pos_zero_count": 2, "neg_zero_count": 2,
    }  # fmt: skip
    assert tensors.statistics(np.full(3, np.nan))["max"] is None


def test_texts_and_sounds():
    assert texts.decode(tensorflow(7, [], field(8, "größer"))) == [["größer"]]
    cells = [field(8, c) for c in "abcd"]
    assert texts.decode(tensorflow(7, [2, 2], *cells)) == [["a", "b"], ["c", "d"]]
    with pytest.raises(Broken, match="not a tensor of texts"):
        texts.decode(tensorflow(7, [1 << 50], field(8, "a")))
    wave = b"RIFF\x24\0\0\0WAVEfmt "
    rows = (field(8, wave), field(8, "label"))
    assert sounds.decode(tensorflow(7, [1, 2], *rows)) == (wave, 1)
    assert sounds.decode(single(1, 8000.0) + field(4, wave)) == (wave, 1)
    with pytest.raises(Broken, match="no WAVE file"):
        sounds.decode(tensorflow(7, [1], field(8, b"<script>")))
    with pytest.raises(IndexError):
        sounds.decode(b"")


def test_damaged_messages_raise_broken_alone(run):
    # Each message with bytes that were changed or cut: an answer or Broken, nothing else.
    generator = random.Random(5)
    decoders = [
        (Kind.IMAGE, "batch", lambda m, d: images.decode(m, d)),
        (Kind.HISTOGRAM, "logits_dist", lambda m, d: histograms.shared([histograms.decode(m, d)])),
        (Kind.TENSOR, "logits", lambda m, d: histograms.of_values(tensors.decode(m, d).values)),
    ]
    refused = 0
    for kind, tag, decode in decoders:
        whole = message(run, entries(run, kind, tag)[0])
        for _ in range(1500):
            damaged = bytearray(whole)
            for _ in range(generator.randint(1, 3)):
                damaged[generator.randrange(min(len(damaged), 200))] = generator.randrange(256)
            damaged = damaged[: generator.randint(0, len(damaged))] if generator.random() < 0.3 else damaged
            for dialect in (MS, TB):
                try:
                    decode(bytes(damaged), dialect)
                except (Broken, IndexError):
                    refused += 1
    assert refused > 1000
