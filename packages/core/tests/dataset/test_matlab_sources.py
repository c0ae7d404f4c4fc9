"""Sources with MATLAB files: SVHN, Caltech-101, Flowers-102, semantic boundaries."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mycelia import dataset as ds

savemat = pytest.importorskip("scipy.io").savemat
files = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("source_files.py"))))


def read(dataset):
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


def test_svhn_counts_ten_as_zero(tmp_path):
    pixels = (np.arange(32 * 32 * 3 * 2) % 251).astype(np.uint8).reshape(32, 32, 3, 2)
    savemat(tmp_path / "train_32x32.mat", {"X": pixels, "y": np.array([[10], [4]], np.uint8)})
    rows = read(ds.SVHNDataset(str(tmp_path), "train", shuffle=False))
    assert [int(label) for _, label in rows] == [0, 4] and rows[0][1].dtype == np.uint32
    assert (rows[1][0] == pixels[..., 1]).all()
    with pytest.raises(FileNotFoundError):
        ds.SVHNDataset(str(tmp_path))
    with pytest.raises(ValueError, match="test_32x32"):
        ds.SVHNDataset(str(tmp_path), "test")


def test_caltech101_has_classes_and_contours(tmp_path):
    for label, (name, folder) in enumerate((("Faces", "Faces_2"), ("ant", "ant"))):
        files.put(tmp_path, f"101_ObjectCategories/{name}/image_0001.jpg", files.png(label))
        (tmp_path / "Annotations" / folder).mkdir(parents=True)
        contour = np.arange(6.0).reshape(2, 3) + label
        savemat(tmp_path / "Annotations" / folder / "annotation_0001.mat", {"obj_contour": contour})
    files.put(tmp_path, "101_ObjectCategories/BACKGROUND_Google/image_0001.jpg", files.png(7))
    both = ds.Caltech101Dataset(str(tmp_path), "all", shuffle=False, decode=True)
    assert both.get_col_names() == ["image", "category", "annotation"]
    rows = read(both)
    assert [row[1].tolist() for row in rows] == [0, 1] and rows[0][0].shape == (3, 4, 3)
    assert rows[1][2].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert both.get_class_indexing()["yin_yang"] == 100 and both.num_classes() == 101
    (tmp_path / "Annotations/ant/annotation_0001.mat").write_bytes(b"nothing")
    with pytest.raises(RuntimeError, match="contour"):
        read(ds.Caltech101Dataset(str(tmp_path), "annotation", shuffle=False))


@pytest.mark.parametrize("usage, labels", [("train", [0, 4]), ("valid", [76]), ("all", [0, 4, 101, 76])])
def test_flowers102_is_divided_by_numbers(tmp_path, usage, labels):
    for number in range(1, 5):
        files.put(tmp_path, f"jpg/image_{number:05}.jpg", files.png(number))
        files.put(tmp_path, f"segmim/segmim_{number:05}.jpg", files.png(9 + number))
    savemat(tmp_path / "imagelabels.mat", {"labels": np.array([[77, 1, 102, 5]], np.uint8)})
    savemat(tmp_path / "setid.mat", {"trnid": [[2, 4]], "valid": [[1]], "tstid": [[3]]})
    dataset = ds.Flowers102Dataset(str(tmp_path), "Segmentation", usage, shuffle=False)
    rows = read(dataset)
    assert [int(row[2]) for row in rows] == labels
    assert bytes(rows[0][1]) == files.png(9 + (1 if usage == "valid" else 2))
    assert dataset.get_class_indexing()["pink primrose"] == 0 and dataset.num_classes() == 102


def test_semantic_boundaries_have_a_map_per_class(tmp_path):
    from scipy.sparse import csc_matrix

    truth = np.empty((20, 1), object)
    for i in range(20):
        truth[i, 0] = csc_matrix((np.arange(12).reshape(3, 4) == i).astype(np.uint8))
    (tmp_path / "cls").mkdir()
    classes = (np.arange(12).reshape(3, 4) % 21).astype(np.uint8)
    savemat(tmp_path / "cls" / "a.mat", {"GTcls": {"Boundaries": truth, "Segmentation": classes}})
    files.put(tmp_path, "img/a.jpg", files.png(1))
    files.put(tmp_path, "train.txt", "a\n")
    image, maps = read(ds.SBDataset(str(tmp_path), usage="train", decode=True))[0]
    assert image.shape == (3, 4, 3) and maps.shape == (20, 3, 4) and maps[5, 1, 1] == 1 and maps.sum() == 12
    assert (read(ds.SBDataset(str(tmp_path), "Segmentation", "train"))[0][1] == classes).all()
    with pytest.raises(FileNotFoundError):
        ds.SBDataset(str(tmp_path))
