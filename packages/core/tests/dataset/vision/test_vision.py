"""Image transforms: values of the native ones of MindSpore 2.10 on small images."""

from __future__ import annotations

import io

import numpy as np
import pytest

from mycelia.dataset import config, vision
from mycelia.dataset.vision import Border, ConvertMode, ImageBatchFormat, Inter, SliceMode

Image = pytest.importorskip("PIL.Image")

STEPS = (np.arange(48, dtype=np.int64) * 37 % 256).astype(np.uint8).reshape(4, 4, 3)
PLANE = np.arange(16, dtype=np.uint8).reshape(4, 4)


@pytest.fixture(autouse=True)
def _no_seed(monkeypatch):
    monkeypatch.setitem(config._state, "seed", None)


@pytest.mark.parametrize(
    "transform, expected",
    [
        (vision.Resize((2, 2)), [[3, 5], [11, 13]]),
        (vision.Resize((2, 2), Inter.NEAREST), [[0, 2], [8, 10]]),
        (vision.Crop((1, 2), 2), [[6, 7], [10, 11]]),
        (vision.CenterCrop(2), [[5, 6], [9, 10]]),
        (vision.HorizontalFlip(), PLANE[:, ::-1]),
        (vision.VerticalFlip(), PLANE[::-1]),
        (vision.Rotate(90), np.rot90(PLANE)),
        (vision.Pad((1, 0, 0, 0), padding_mode=Border.REFLECT), np.pad(PLANE, ((0, 0), (1, 0)), "reflect")),
        (vision.PadToSize((4, 6), None, 9), np.pad(PLANE, ((0, 0), (1, 1)), constant_values=9)),
        (vision.Posterize(6), PLANE & 0xFC),
        (vision.Solarize((3, 5)), np.where((PLANE >= 3) & (PLANE <= 5), 255 - PLANE, PLANE)),
    ],
)
def test_values_on_a_grey_image(transform, expected):
    result = transform(PLANE)
    assert result.dtype == np.uint8
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "transform, shape, dtype",
    [
        (vision.Resize(8, Inter.CUBIC), (8, 8, 3), np.uint8),
        (vision.Resize((6, 5), Inter.AREA), (6, 5, 3), np.uint8),
        (vision.Rotate(45, expand=True), (6, 6, 3), np.uint8),
        (vision.NormalizePad([1.0] * 3, [2.0] * 3), (4, 4, 4), np.float32),
        (vision.ToTensor(), (3, 4, 4), np.float32),
        (vision.ToTensor(np.float16), (3, 4, 4), np.float16),
        (vision.ConvertColor(ConvertMode.COLOR_RGB2RGBA), (4, 4, 4), np.uint8),
        (vision.ConvertColor(ConvertMode.COLOR_RGB2GRAY), (4, 4), np.uint8),
        (vision.GaussianBlur(3), (4, 4, 3), np.uint8),
        (vision.RandomCrop(6, 1), (6, 6, 3), np.uint8),
        (vision.RandomResizedCrop((3, 2)), (3, 2, 3), np.uint8),
        (vision.RandAugment(), (4, 4, 3), np.uint8),
        (vision.TrivialAugmentWide(), (4, 4, 3), np.uint8),
        (vision.AutoAugment(), (4, 4, 3), np.uint8),
    ],
)
def test_shapes_and_dtypes(transform, shape, dtype):
    result = transform(STEPS)
    assert (result.shape, result.dtype) == (shape, dtype)


@pytest.mark.parametrize(
    "make, kind",
    [
        (lambda: vision.Resize("4"), TypeError),
        (lambda: vision.Resize(0), ValueError),
        (lambda: vision.CenterCrop((1, 2, 3)), TypeError),
        (lambda: vision.Normalize([1.0], [0.0]), ValueError),
        (lambda: vision.Normalize(1.0, [1.0]), TypeError),
        (lambda: vision.Pad((1, 2, 3)), ValueError),
        (lambda: vision.RandomHorizontalFlip(1.5), ValueError),
        (lambda: vision.GaussianBlur(2), ValueError),
        (lambda: vision.RandomSelectSubpolicy([]), ValueError),
        (lambda: vision.UniformAugment([vision.Invert()], 2), ValueError),
        (lambda: vision.Invert()([1, 2]), TypeError),
        (lambda: vision.Crop((3, 3), 4)(PLANE), RuntimeError),
        (lambda: vision.Invert()(PLANE), RuntimeError),
        (lambda: vision.Grayscale()(STEPS), TypeError),
        (lambda: vision.Decode()(STEPS), TypeError),
        (lambda: vision.Decode()(np.zeros(9, np.uint8)), RuntimeError),
    ],
)
def test_wrong_arguments_have_the_real_types(make, kind):
    with pytest.raises(kind):
        make()


def test_draws_are_those_of_the_seed():
    config.set_seed(5)
    grid = np.arange(10000, dtype=np.int32).reshape(100, 100)
    assert vision.RandomCrop(2)(grid)[0, 0] == 521
    first, second = vision.RandomCrop(2)(grid, grid)
    np.testing.assert_array_equal(first, second)


def test_policies_draw_what_mindspore_draws():
    image = (np.arange(12 * 14 * 3).reshape(12, 14, 3) * 7 % 251).astype(np.uint8)
    one_step, wide = [], []
    for seed in (0, 1, 3, 4, 5, 7, 10, 13, 14):
        config._state["seed"] = seed
        one_step.append(int(vision.RandAugment(1, 12)(image).sum()))
        wide.append(int(vision.TrivialAugmentWide()(image).sum()))
    assert one_step == [62729, 62004, 62902, 64280, 62932, 79952, 33749, 33749, 57841]
    assert wide == [62902, 62757, 62777, 64280, 62757, 74937, 37701, 34811, 52172]


def test_array_and_pil_image_flip_alike():
    np.testing.assert_array_equal(
        vision.RandomHorizontalFlip(1.0)(STEPS),
        np.asarray(vision.RandomHorizontalFlip(1.0)(Image.fromarray(STEPS))),
    )


def test_hue_turns_red_to_green():
    pure = np.array([[[255, 0, 0], [0, 255, 0]]], np.uint8)
    np.testing.assert_array_equal(vision.AdjustHue(0.3)(pure), [[[54, 255, 0], [0, 54, 255]]])


def test_boxes_follow_the_image():
    boxes = np.array([[1, 0, 2, 3]], np.float32)
    _, flipped = vision.RandomHorizontalFlipWithBBox(1.0)(STEPS, boxes)
    np.testing.assert_array_equal(flipped, [[1, 0, 2, 3]])
    _, scaled = vision.ResizeWithBBox((8, 8))(STEPS, boxes)
    np.testing.assert_array_equal(scaled, [[2, 0, 4, 6]])
    cropped, kept = vision.RandomCropWithBBox(STEPS.shape[:2], padding=0)(STEPS, boxes)
    np.testing.assert_array_equal(cropped, STEPS)
    np.testing.assert_array_equal(kept, boxes)


@pytest.mark.parametrize("transform", [vision.MixUpBatch(), vision.CutMixBatch(ImageBatchFormat.NHWC)])
def test_mixed_labels_still_sum_to_one(transform):
    images, labels = transform(np.stack([STEPS, STEPS[::-1]]), np.eye(2, dtype=np.int32))
    assert images.dtype == np.uint8 and labels.dtype == np.float32
    np.testing.assert_allclose(labels.sum(1), 1.0, rtol=1e-6)


def test_patches_are_padded_or_dropped():
    padded = vision.SlicePatches(1, 3, SliceMode.PAD, 7)(PLANE)
    assert [p.shape for p in padded] == [(4, 2)] * 3 and (padded[2] == 7).all()
    assert [p.shape for p in vision.SlicePatches(1, 3, SliceMode.DROP)(PLANE)] == [(4, 1)] * 3


def test_png_files_keep_every_value(tmp_path):
    name = str(tmp_path / "a.png")
    vision.write_png(name, STEPS)
    np.testing.assert_array_equal(vision.read_image(name), STEPS)
    np.testing.assert_array_equal(vision.Decode()(vision.read_file(name)), STEPS)
    assert vision.read_image(name, vision.ImageReadMode.GRAYSCALE).shape == (4, 4, 1)


def test_decode_takes_bytes_and_gives_pil_images():
    data = io.BytesIO()
    Image.fromarray(STEPS).save(data, "PNG")
    np.testing.assert_array_equal(vision.Decode()(data.getvalue()), STEPS)
    assert isinstance(vision.Decode(to_pil=True)(data.getvalue()), Image.Image)


# ---- read_image: [H, W, C] and first values as MindSpore 2.10 gives them -----------------------------------

PICTURES = {  # name: mode UNCHANGED, GRAYSCALE, COLOR
    "rgba.png": ((3, [95, 130, 194, 207]), (1, [126, 201, 160, 186]), (3, [95, 130, 194, 207])),
    "rgb.png": ((3, [95, 130, 194, 207]), (1, [126, 201, 160, 186]), (3, [95, 130, 194, 207])),
    "rgb.bmp": ((3, [95, 130, 194, 207]), (1, [127, 202, 161, 187]), (3, [95, 130, 194, 207])),
    "la.png": ((3, [95, 95, 95, 207]), (1, [95, 207, 33, 248]), (3, [95, 95, 95, 207])),
    "la.tiff": ((1, [95, 207, 33, 248]), (1, [95, 207, 33, 248]), (3, [95, 95, 95, 207])),
    "l.png": ((1, [95, 207, 33, 248]), (1, [95, 207, 33, 248]), (3, [95, 95, 95, 207])),
    "one.png": ((1, [0, 255, 0, 255]), (1, [0, 255, 0, 255]), (3, [0, 0, 0, 255])),
    "i16.png": ((1, [24418, 53202, 8484, 63739]), (1, [95, 207, 33, 248]), (3, [95, 95, 95, 207])),
}


def picture(name):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 4), dtype=np.uint8)
    grey = pixels[..., 0]
    arrays = {
        "rgba": pixels,
        "rgb": pixels[..., :3],
        "la": pixels[..., :2],
        "l": grey,
        "one": grey > 128,
        "i16": grey.astype(np.uint16) * 257 + 3,
    }
    return image.fromarray(arrays[name.split(".")[0]])


@pytest.mark.parametrize("name", PICTURES)
def test_read_image_gives_the_channels_of_each_mode(tmp_path, name):
    path = str(tmp_path / name)
    picture(name).save(path)
    modes = vision.ImageReadMode
    for mode, (channels, first) in zip((modes.UNCHANGED, modes.GRAYSCALE, modes.COLOR), PICTURES[name]):
        found = vision.read_image(path, mode)
        assert found.shape == (4, 5, channels) and found.reshape(-1)[:4].tolist() == first, mode
    decoded = vision.Decode()(np.fromfile(path, np.uint8))
    assert decoded.reshape(-1)[:4].tolist() == PICTURES[name][2][1]


def test_read_image_says_that_colours_of_16_bits_are_missing(tmp_path):
    import struct
    import zlib

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    raw = b"\0" + (np.arange(6) * 3001).astype(">u2").tobytes()
    head = struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b"")
    (tmp_path / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    with pytest.raises(NotImplementedError, match="c.png.*16 bits"):
        vision.read_image(str(tmp_path / "c.png"))
    found = vision.read_image(str(tmp_path / "c.png"), vision.ImageReadMode.COLOR)
    assert found.ravel().tolist() == [0, 11, 23, 35, 46, 58]
