"""Images written where they belong in their batch: what comes out is what stacking gives."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia.dataset import vision
from mycelia.dataset.mapping import MapDataset

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """JPEGs, and a PNG among them, which takes another way."""
    root, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(3)
    (root / "only").mkdir()
    for i in range(11):
        blocks = rng.integers(0, 256, (4, 5, 3), np.uint8).repeat(8, 0).repeat(8, 1)
        Image.fromarray(blocks).save(root / "only" / f"{i:02}.{'png' if i == 7 else 'jpg'}")
    return str(root)


@pytest.fixture(autouse=True)
def seed():
    before = ds.config.get_seed()
    ds.config.set_seed(7)
    yield
    if before is not None:
        ds.config.set_seed(before)


TRAIN = [vision.RandomCropDecodeResize(16), vision.RandomHorizontalFlip(), vision.HWC2CHW()]
EVALUATE = [vision.Decode(), vision.Resize(24), vision.CenterCrop(16), vision.Rescale(1 / 255, 0.0)]


def batches(folder, operations, size=4, **batch):
    mapped = ds.ImageFolderDataset(folder, shuffle=False, extensions=[".jpg", ".png"]).map(
        operations, "image", num_parallel_workers=batch.pop("workers", None)
    )
    return mapped.batch(size, **batch)


def read(dataset, epochs=1):
    iterator = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[tuple(c.copy() for c in row) for row in iterator] for _ in range(epochs)]


def equal(a, b):
    return len(a) == len(b) and all(
        u.dtype == v.dtype and u.shape == v.shape and np.array_equal(u, v)
        for x, y in zip(a, b)
        for u, v in zip(x, y)
    )


@pytest.mark.parametrize("operations", [TRAIN, EVALUATE], ids=["train", "evaluate"])
@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_batches_are_those_of_stacked_rows(folder, operations, drop_remainder, workers, monkeypatch):
    options = {"drop_remainder": drop_remainder, "workers": min(workers, os.cpu_count() or 1)}
    found = read(batches(folder, operations, **options), 2)
    assert [len(rows) for rows in found] == [2 if drop_remainder else 3] * 2
    monkeypatch.setattr(MapDataset, "batches", lambda *_: None)
    expected = read(batches(folder, operations, **options), 2)
    assert all(map(equal, found, expected))


def test_a_later_batch_leaves_earlier_ones_as_they_were(folder):
    iterator = batches(folder, EVALUATE).create_tuple_iterator(num_epochs=1)
    first = next(iterator)[0]
    kept = first.asnumpy().copy()
    rest = list(iterator)
    assert np.array_equal(first.asnumpy(), kept) and rest[-1][0].shape == (3, 16, 16, 3)


def test_going_on_in_the_middle_skips_rows_without_computing_them(folder, monkeypatch):
    iterator = batches(folder, TRAIN).create_tuple_iterator(num_epochs=1, output_numpy=True)
    next(iterator)
    state, rest = iterator.state_dict(), list(iterator)
    other = batches(folder, TRAIN).create_tuple_iterator(num_epochs=1, output_numpy=True)
    other.load_state_dict(state)
    calls, source = [], ds.ImageFolderDataset.row
    monkeypatch.setattr(ds.ImageFolderDataset, "row", lambda self, i: calls.append(i) or source(self, i))
    assert equal(list(other), rest) and min(calls) == 4


def test_images_of_different_sizes_are_an_error(tmp_path):
    (tmp_path / "a").mkdir()
    for i, size in enumerate((9, 9, 8)):
        Image.fromarray(np.zeros((size, 9, 3), np.uint8)).save(tmp_path / "a" / f"{i}.jpg")
    operations = [vision.Decode(), vision.HorizontalFlip()]
    assert read(batches(str(tmp_path), operations, size=1))[0][2][0].shape == (1, 8, 9, 3)
    with pytest.raises(RuntimeError, match="different shapes"):
        read(batches(str(tmp_path), operations, size=3))


def test_the_row_of_a_damaged_image_is_named(folder, tmp_path):
    (tmp_path / "a").mkdir()
    for name in ("0", "1", "2"):
        data = open(os.path.join(folder, "only", "00.jpg"), "rb").read()
        (tmp_path / "a" / f"{name}.jpg").write_bytes(data if name != "2" else b"no image")
    with pytest.raises(RuntimeError, match="(?s)2.jpg.*in row 2 of epoch 1"):
        read(batches(str(tmp_path), EVALUATE))
