"""Image transforms as one step are equal to the steps, bit for bit; native decoding is equal to Pillow's."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import mycelia.dataset as ds
from mycelia.dataset import transforms, vision
from mycelia.dataset.execution import rng_streams
from mycelia.dataset.execution.fuse import Fused, fused
from mycelia.dataset.vision import Inter, native
from mycelia.engine import _data

Image = pytest.importorskip("PIL.Image")

MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]


def picture(width: int, height: int, seed: int = 0):
    """A smooth picture with noise."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (max(1, height // 9) + 1, max(1, width // 9) + 1, 3), np.uint8)
    smooth = np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))
    noisy = smooth.astype(np.int16) + rng.integers(-9, 10, smooth.shape)
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def jpeg(image, **options) -> np.ndarray:
    """The bytes of a JPEG file."""
    data = io.BytesIO()
    image.save(data, "JPEG", **{"quality": 88, **options})
    return np.frombuffer(data.getvalue(), np.uint8)


def by_pillow(data: np.ndarray) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data.tobytes())).convert("RGB"))


def rotated_exif() -> bytes:
    exif = Image.Exif()
    exif[0x112] = 6
    return exif.tobytes()


KINDS = {
    "4:4:4": lambda im: jpeg(im, subsampling=0),
    "4:2:2": lambda im: jpeg(im, subsampling=1),
    "4:2:0": lambda im: jpeg(im, subsampling=2),
    "progressive": lambda im: jpeg(im, progressive=True),
    "restarts": lambda im: jpeg(im, restart_marker_blocks=3),
    "grey": lambda im: jpeg(im.convert("L")),
    "cmyk": lambda im: jpeg(im.convert("CMYK")),
    "rgb": lambda im: jpeg(im, keep_rgb=True),
    "turned": lambda im: jpeg(im, exif=rotated_exif()),
    "no end": lambda im: jpeg(im)[:-2],
    "junk": lambda im: np.concatenate([jpeg(im), np.full(40, 7, np.uint8)]),
}
FLIP, MIRROR, CHW = vision.VerticalFlip(), vision.HorizontalFlip(), vision.ToTensor()
EVAL = [
    vision.Decode(), vision.Resize(40), vision.CenterCrop(32), vision.Normalize(MEAN, STD), vision.HWC2CHW(),
]  # fmt: skip
TRAIN = [
    vision.RandomCropDecodeResize(32), vision.RandomHorizontalFlip(), vision.Normalize(MEAN, STD),
    vision.HWC2CHW(),
]  # fmt: skip


def step_by_step(operations, value, row: int):
    """What the operations give one after the other, with the random numbers of a row."""
    rng_streams.enter(5, row)
    try:
        for operation in operations:
            value = operation(value)
        return value
    finally:
        rng_streams.leave()


def at_once(operations, value, row: int):
    """The same through the fused operations."""
    return step_by_step(fused(operations), value, row)


@pytest.mark.skipif(not native.jpeg(), reason="there is no libjpeg here")
@pytest.mark.parametrize("size", [(151, 97), (16, 16), (17, 33), (8, 8), (1, 1), (64, 200)])
@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("cmyk", "no end")])
def test_decoding_is_that_of_pillow(kind, size):
    data = KINDS[kind](picture(*size))
    pixels = native.decoded(data)
    assert pixels is not None
    np.testing.assert_array_equal(pixels, by_pillow(data))
    np.testing.assert_array_equal(vision.Decode()(data), pixels)


@pytest.mark.skipif(not native.jpeg(), reason="there is no libjpeg here")
@pytest.mark.parametrize("kind", ["4:4:4", "4:2:2", "4:2:0", "progressive", "grey"])
def test_a_part_of_a_jpeg_is_that_part_of_the_whole(kind):
    rng = np.random.default_rng(3)
    for width, height in [(151, 97), (33, 70), (16, 16), (9, 40)]:
        data = KINDS[kind](picture(width, height))
        whole = by_pillow(data)
        for _ in range(25):
            rows, columns = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
            top, left = int(rng.integers(0, height - rows + 1)), int(rng.integers(0, width - columns + 1))
            part = native.changed(data, box=(top, left, rows, columns))
            np.testing.assert_array_equal(part, whole[top : top + rows, left : left + columns])


@pytest.mark.parametrize("size", [(151, 97), (64, 64), (40, 61), (300, 50), (35, 30)])
@pytest.mark.parametrize("kind", KINDS)
def test_fused_is_equal_to_the_steps(kind, size):
    if kind == "no end" and not native.jpeg():
        pytest.skip("Pillow refuses a file without its end")
    data = KINDS[kind](picture(*size))
    for operations in (EVAL, TRAIN):
        for row in range(4):
            result = at_once(operations, data, row)
            assert result.dtype == np.float32 and result.shape == (3, 32, 32)
            np.testing.assert_array_equal(result, step_by_step(operations, data, row))


@pytest.mark.parametrize(
    "operations",
    [
        [vision.Resize((20, 30), Inter.NEAREST), vision.HWC2CHW()],
        [vision.Resize((45, 70), Inter.CUBIC), vision.CenterCrop((21, 33)), vision.Rescale(1 / 255, 0.5)],
        [vision.Resize((13, 17), Inter.AREA), vision.ToTensor()],
        [vision.Resize((24, 32)), vision.HWC2CHW()],
        [vision.Crop((3, 5), (40, 50)), FLIP, MIRROR, vision.Crop((1, 2), (9, 8))],
        [vision.RandomCrop((30, 20)), vision.RandomVerticalFlip(), vision.RandomHorizontalFlip(), CHW],
        [vision.RandomResizedCrop((19, 23), interpolation=Inter.CUBIC), vision.RandomHorizontalFlip()],
        [vision.ResizedCrop(2, 4, 30, 33, (50, 20)), vision.RandomHorizontalFlip(1.0), vision.CenterCrop(20)],
        [vision.RandomResize((30, 31)), vision.HWC2CHW()],
        [vision.Rescale(1 / 127.5, -1.0), vision.HWC2CHW(), transforms.TypeCast(np.float16)],
        [vision.ToTensor(), vision.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4], is_hwc=False)],
        [vision.Posterize(3), vision.Invert(), vision.Solarize((20, 90)), vision.HWC2CHW()],
        [vision.AdjustBrightness(1.3), vision.AdjustGamma(0.7), vision.ToTensor()],
        [vision.HWC2CHW(), vision.ToType(np.int64)],
        [transforms.Compose([vision.Resize(20), vision.CenterCrop(16)]), vision.HWC2CHW()],
        [vision.RandomHorizontalFlip(), vision.Resize((20, 21)), vision.HWC2CHW()],
    ],
)  # fmt: skip
def test_runs_on_arrays_are_equal_to_the_steps(operations):
    assert any(isinstance(op, Fused) for op in fused(operations))
    image = np.asarray(picture(64, 48))
    for row in range(5):
        result, expected = at_once(operations, image, row), step_by_step(operations, image, row)
        assert result.dtype == expected.dtype and result.flags.c_contiguous
        np.testing.assert_array_equal(result, expected)


def test_grey_pictures_and_strided_views():
    operations = [vision.Resize((32, 32)), vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
    grey = np.asarray(picture(28, 28).convert("L"))
    for image in (grey, grey[:, :, None], np.asarray(picture(60, 60))[5:50:2, 7:44], grey.T[:, :, None]):
        np.testing.assert_array_equal(at_once(operations, image, 0), step_by_step(operations, image, 0))


def names(operations) -> list[str]:
    return [getattr(op, "__name__", type(op).__name__) for op in fused(operations)]


def test_which_transforms_join():
    assert names(EVAL) == ["Decode, Resize, CenterCrop, Normalize, HWC2CHW"]
    assert names([vision.Decode(), vision.Resize(9), vision.Resize(8)]) == ["Decode, Resize", "Resize"]
    assert names([vision.Decode(to_pil=True), vision.ToTensor()]) == ["Decode", "ToTensor"]
    assert names([vision.Normalize([0.0], [1.0]), vision.Resize(8)]) == ["Normalize", "Resize"]
    assert names([transforms.TypeCast(np.int32), transforms.TypeCast(np.int64)]) == ["TypeCast", "TypeCast"]
    function = lambda image: image
    assert fused([function]) == [function] and fused([]) == []
    assert len(fused([*EVAL[:2], function, *EVAL[2:]])) == 3


def test_what_does_not_fit_goes_step_by_step_with_the_same_random_numbers():
    image = np.asarray(picture(20, 12))
    operations = [vision.RandomHorizontalFlip(), vision.RandomCrop(16, padding=4), vision.CenterCrop(18)]
    for row in range(6):
        np.testing.assert_array_equal(at_once(operations, image, row), step_by_step(operations, image, row))
    picture_file = io.BytesIO()
    picture(40, 40).save(picture_file, "PNG")
    data = np.frombuffer(picture_file.getvalue(), np.uint8)
    for row in range(3):
        np.testing.assert_array_equal(at_once(TRAIN, data, row), step_by_step(TRAIN, data, row))


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
def test_a_file_that_is_cut_off_fails_wherever_the_crop_is(keep):
    data = KINDS["4:2:0"](picture(151, 97))
    data = data[: int(len(data) * keep)]
    for operations in (EVAL, [vision.Decode(), vision.Crop((0, 0), (8, 8)), vision.HWC2CHW()]):
        for run in (step_by_step, at_once):
            with pytest.raises(RuntimeError, match="Decode"):
                run(operations, data, 0)


@pytest.mark.skipif(not native.jpeg(), reason="there is no libjpeg here")
def test_damage_in_the_middle_gives_an_image():
    data = KINDS["4:2:0"](picture(151, 97)).copy()
    data[len(data) // 2 : len(data) // 2 + 30] = 255
    assert vision.Decode()(data).shape == (97, 151, 3)


def test_random_bytes_are_refused_or_decoded_but_never_worse():
    rng = np.random.default_rng(11)
    good = KINDS["4:2:0"](picture(80, 60))
    for _ in range(150):
        data = good.copy()
        at = rng.integers(2, len(data), 4)
        data[at] = rng.integers(0, 256, 4)
        try:
            assert vision.Decode()(data).ndim == 3
        except RuntimeError:
            pass


def test_without_libjpeg_pillow_decodes(monkeypatch):
    data = KINDS["4:2:0"](picture(60, 50))
    with_it = [at_once(operations, data, 1) for operations in (EVAL, TRAIN)]
    monkeypatch.setattr(native, "jpeg", lambda: False)
    assert native.decoded(data) is None
    np.testing.assert_array_equal(vision.Decode()(data), by_pillow(data))
    for expected, operations in zip(with_it, (EVAL, TRAIN)):
        np.testing.assert_array_equal(at_once(operations, data, 1), expected)


def test_libraries_that_are_none_say_so():
    assert "/there/is/none" in _data.load_jpeg("/there/is/none.so.62")
    before = native.jpeg()
    assert _data.load_jpeg(_data.__file__) != ""
    assert native.jpeg() == before


def test_errors_name_the_operation_of_the_user():
    data = KINDS["4:4:4"](picture(30, 30))
    operations = [vision.Decode(), vision.Crop((10, 10), (40, 40)), vision.HWC2CHW()]
    with pytest.raises(RuntimeError, match=r"\[Crop\] failed. the crop"):
        at_once(operations, data, 0)
    with pytest.raises(RuntimeError, match="operation Decode"):
        at_once(EVAL, "no array", 0)


def test_fused_operations_can_be_pickled():
    again = pickle.loads(pickle.dumps(fused(EVAL)[0]))
    data = KINDS["4:2:0"](picture(60, 50))
    np.testing.assert_array_equal(again(data), step_by_step(EVAL, data, 0))


def test_a_pipeline_gives_the_same_with_and_without_fusion(tmp_path, monkeypatch):
    for i in range(6):
        (tmp_path / f"c{i % 2}").mkdir(exist_ok=True)
        KINDS["4:2:0"](picture(60 + i, 50, i)).tofile(tmp_path / f"c{i % 2}" / f"{i}.jpg")
    monkeypatch.setitem(ds.config._state, "seed", 9)
    results = []
    for on in (True, False):
        monkeypatch.setitem(ds.config._state, "enable_fusion", on)
        data = ds.ImageFolderDataset(str(tmp_path), shuffle=True).map(TRAIN, "image").batch(3)
        results.append([b for b, _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True)])
    assert len(results[0]) == 2
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)
