"""Sources with MATLAB files: SVHN, Caltech-101, Flowers-102, semantic boundaries."""

from __future__ import annotations

import runpy
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia.dataset.sources.vision.matfile import load

files = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("source_files.py"))))


@dataclass
class Sparse:
    """A matrix to be stored as its rows and columns of what is not zero."""

    values: np.ndarray


def element(kind: int, body: bytes) -> bytes:
    if len(body) <= 4 and kind != 14:
        return struct.pack("<HH", kind, len(body)) + body.ljust(4, b"\0")
    return struct.pack("<II", kind, len(body)) + body + b"\0" * (-len(body) % 8)


_CLASSES = {"f8": 6, "f4": 7, "i1": 8, "u1": 9, "i2": 10, "u2": 11, "i4": 12, "u4": 13, "i8": 14, "u8": 15}
_STORED = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 9, "i8": 12, "u8": 13}


def ints(values) -> bytes:
    return element(5, np.asarray(values, "<i4").tobytes())


def matrix(value, name: str = "") -> bytes:
    """A variable as MATLAB's files of level 5 hold it."""
    if isinstance(value, dict):
        kind, shape = 2, (1, 1)
        names = b"".join(key.encode().ljust(32, b"\0") for key in value)
        body = ints([32]) + element(1, names) + b"".join(map(matrix, value.values()))
    elif isinstance(value, Sparse):
        kind, shape = 5, value.values.shape
        columns, rows = np.nonzero(value.values.T)
        starts = np.searchsorted(columns, np.arange(shape[1] + 1))
        body = ints(rows) + ints(starts) + element(9, value.values[rows, columns].astype("<f8").tobytes())
    elif isinstance(value, str):
        kind, shape, body = 4, (1, len(value)), element(16, value.encode())
    else:
        value = np.atleast_2d(value)
        shape, flat = value.shape, value.ravel(order="F")
        if value.dtype == object:
            kind, body = 1, b"".join(map(matrix, flat))
        else:
            code = value.dtype.str[1:]
            parts = [flat.real, flat.imag] if value.dtype.kind == "c" else [flat]
            code = "f8" if value.dtype.kind == "c" else code
            kind, body = _CLASSES[code], b"".join(element(_STORED[code], p.tobytes()) for p in parts)
    flags = kind | (0x800 if getattr(value, "dtype", None) == np.complex128 else 0)
    head = element(6, struct.pack("<II", flags, 0)) + ints(shape) + element(1, name.encode())
    return element(14, head + body)


def savemat(path, variables: dict, compressed: bool = True) -> None:
    parts = [matrix(value, name) for name, value in variables.items()]
    if compressed:
        parts = [struct.pack("<II", 15, len(c)) + c for c in map(zlib.compress, parts)]
    Path(path).write_bytes(b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x100) + b"IM" + b"".join(parts))


@pytest.mark.parametrize("compressed", [True, False])
def test_variables_of_matlab_files(tmp_path, compressed):
    cells = np.empty((2, 1), object)
    cells[0, 0], cells[1, 0] = np.eye(3, dtype=np.int16), "text"
    sparse = np.diag([1.0, 0, 3]) + np.eye(3, k=-1)
    written = {
        "u": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
        "x": np.array([[1.5, -2]]),
        "z": np.array([[1 + 2j, 3]]),
        "s": {"a": np.float32([[1, 2]]), "b": {"c": "deep"}},
        "cells": cells,
        "sparse": Sparse(sparse),
        "nothing": np.zeros((0, 3)),
    }
    path = tmp_path / "a.mat"
    savemat(path, written, compressed)
    found = load(path)
    assert list(found) == list(written)
    for name in ("u", "x", "z", "nothing"):
        assert found[name].dtype == written[name].dtype and np.array_equal(found[name], written[name])
    assert found["s"]["a"].dtype == np.float32 and found["s"]["b"]["c"] == ["deep"]
    assert found["cells"].shape == (2, 1) and found["cells"][0, 0].dtype == np.int16
    assert found["cells"][1, 0] == ["text"] and np.array_equal(found["sparse"], sparse)


def test_scipy_writes_what_is_read(tmp_path):
    scipy_io, sparse = pytest.importorskip("scipy.io"), pytest.importorskip("scipy.sparse")
    values = {"a": np.arange(6.0).reshape(2, 3), "s": {"m": sparse.csc_matrix(np.eye(3)), "t": "words"}}
    for compressed in (True, False):
        scipy_io.savemat(tmp_path / "a.mat", values, do_compression=compressed)
        found = load(tmp_path / "a.mat")
        assert np.array_equal(found["a"], values["a"]) and np.array_equal(found["s"]["m"], np.eye(3))
        assert found["s"]["t"] == ["words"]
        scipy_io.savemat(tmp_path / "b.mat", {"a": values["a"]}, format="4")
        with pytest.raises(ValueError, match="level 5"):
            load(tmp_path / "b.mat")


@pytest.mark.parametrize("cut", [10, 130, 200, -9])
def test_damaged_matlab_files_are_named(tmp_path, cut):
    path = tmp_path / "a.mat"
    savemat(path, {"x": np.arange(100.0)}, compressed=False)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match="a.mat"):
        load(path)


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
    sets = {"trnid": np.array([[2, 4]]), "valid": np.array([[1]]), "tstid": np.array([[3]])}
    savemat(tmp_path / "setid.mat", sets)
    dataset = ds.Flowers102Dataset(str(tmp_path), "Segmentation", usage, shuffle=False)
    rows = read(dataset)
    assert [int(row[2]) for row in rows] == labels
    assert bytes(rows[0][1]) == files.png(9 + (1 if usage == "valid" else 2))
    assert dataset.get_class_indexing()["pink primrose"] == 0 and dataset.num_classes() == 102


def test_semantic_boundaries_have_a_map_per_class(tmp_path):
    truth = np.empty((20, 1), object)
    for i in range(20):
        truth[i, 0] = Sparse((np.arange(12).reshape(3, 4) == i).astype(np.float64))
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
