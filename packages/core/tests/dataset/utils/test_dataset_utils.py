"""Helpers around datasets: lines by number, pictures with boxes, object storage, voice activity."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia.dataset import audio
from mycelia.dataset.utils import LineReader, imshow_det_bbox
from mycelia.mindrecord import FileWriter


def test_lines_are_read_by_number(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes("one\r\n\nthird, \u00e4\nlast".encode())
    reader = LineReader(str(path))
    assert len(reader) == reader.len() == 4
    assert [reader.readline(n) for n in (4, 1, 3)] == ["last", "one", "third, \u00e4"] and reader[2] == ""
    reader.close()
    reader.close()
    assert reader.readline(1) == "one"  # opened again
    reader.close()
    for kind, line in ((ValueError, 0), (ValueError, 5), (TypeError, "1"), (TypeError, 1.0)):
        with pytest.raises(kind):
            reader.readline(line)
    for kind, name in ((RuntimeError, str(tmp_path / "none")), (RuntimeError, str(tmp_path)), (TypeError, 3)):
        with pytest.raises(kind):
            LineReader(name)


def test_lines_are_a_source_of_rows(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a\nb\nc\n")
    reader = ds.LineReader(str(path))

    class Rows:
        def __getitem__(self, index):
            return (reader.readline(index + 1),)

        def __len__(self):
            return reader.len()

    rows = ds.GeneratorDataset(Rows(), ["text"], shuffle=False)
    assert [str(row[0]) for row in rows.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [
        "a",
        "b",
        "c",
    ]
    reader.close()


class _Painter:
    """What `imshow_det_bbox` needs of OpenCV, noting what is drawn."""

    COLOR_RGB2BGR, FONT_HERSHEY_SIMPLEX = 4, 0

    def __init__(self):
        self.drawn = []

    def cvtColor(self, image, code):
        return image[..., ::-1].copy()

    def rectangle(self, image, start, stop, color, thickness):
        self.drawn.append((start, stop))

    def putText(self, image, text, place, *style):
        self.drawn.append((text, place))

    def imwrite(self, path, image):
        Path(path).write_bytes(image.tobytes())


def test_boxes_labels_and_masks_are_drawn(monkeypatch, tmp_path):
    painter = _Painter()
    monkeypatch.setitem(sys.modules, "cv2", painter)
    image = np.full((3, 6, 8), 200, np.uint8)
    boxes = np.array([[1, 2, 3, 3, 0.9], [0, 0, 2, 2, 0.1]], np.float32)
    masks = np.zeros((2, 6, 8), np.uint8)
    masks[0, 0, 0] = 1
    out = tmp_path / "a.png"
    options = {"class_names": ["cat"], "score_threshold": 0.5, "show": False, "out_file": str(out)}
    drawn = imshow_det_bbox(image, boxes, np.array([[3], [0]]), masks, **options)
    assert painter.drawn == [((1, 2), (4, 5)), ("class 3|0.90", (1, 5))]
    assert drawn.shape == (6, 8, 3) and drawn[0, 0].tolist() == [164, 100, 164] and out.stat().st_size == 144
    for wrong in ({"class_names": None}, {"thickness": -1}, {"bbox_color": [0, 1, 2]}, {"out_file": None}):
        with pytest.raises(AssertionError):
            imshow_det_bbox(image, boxes, np.array([[3], [0]]), **{**options, **wrong})
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match="opencv-python"):
        imshow_det_bbox(image, boxes, np.array([[3], [0]]), **options)


@pytest.fixture
def store(monkeypatch, tmp_path):
    """A directory in the place of an object store."""
    root = tmp_path / "store"
    (root / "bucket" / "sync").mkdir(parents=True)
    writer = FileWriter(str(root / "bucket" / "a.mindrecord"), 1)
    writer.add_schema({"label": {"type": "int32"}}, "numbers")
    writer.write_raw_data([{"label": i} for i in range(6)])
    writer.commit()
    asked = {}

    def filesystem(protocol, **options):
        asked.update(options, protocol=protocol)
        return SimpleNamespace(
            exists=lambda key: (root / key).exists(),
            get_file=lambda key, target: shutil.copyfile(root / key, target),
        )

    monkeypatch.setitem(sys.modules, "fsspec", SimpleNamespace(filesystem=filesystem))
    return asked


_PLACE = (["s3://bucket/a.mindrecord"], "https://127.0.0.1:9000", "key", "secret", "s3://bucket/sync")


def test_mindrecord_files_come_from_an_object_store(store):
    dataset = ds.OBSMindDataset(*_PLACE, shuffle=False)
    rows = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert [int(row[0]) for row in rows] == list(range(6)) and dataset.get_col_names() == ["label"]
    assert store["key"] == "key" and store["client_kwargs"] == {"endpoint_url": "https://127.0.0.1:9000"}
    shard = ds.OBSMindDataset(*_PLACE, shuffle=False, num_shards=2, shard_id=1)
    assert shard.get_dataset_size() == 3
    for change in (dataset.add_sampler, dataset.use_sampler):
        with pytest.raises(NotImplementedError):
            change(ds.SequentialSampler())
    assert ds.sync_wait_for_dataset(0, 1, 0, None) is None


@pytest.mark.parametrize(
    "place, value, kind",
    [
        (0, "s3://bucket/a", TypeError),
        (0, [3], TypeError),
        (0, ["bucket/a"], ValueError),
        (0, ["s3://bucket/none"], RuntimeError),
        (1, "127.0.0.1", ValueError),
        (2, 3, TypeError),
        (4, "s3://bucket/none", RuntimeError),
    ],
)
def test_wrong_places_in_an_object_store(store, place, value, kind):
    arguments = list(_PLACE)
    arguments[place] = value
    with pytest.raises(kind):
        ds.OBSMindDataset(*arguments)


def test_without_fsspec_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match="s3fs"):
        ds.OBSMindDataset(*_PLACE)


def speech(begin: int, size: int = 24000, rate: int = 8000) -> np.ndarray:
    """Quiet noise, then a voice of 140 Hz with its harmonics."""
    time = np.arange(size) / rate
    voice = sum(np.sin(2 * np.pi * 140 * k * time) / k for k in range(1, 12)) * (1 + np.sin(6 * np.pi * time))
    sound = np.random.RandomState(0).randn(size) * 0.001
    sound[begin:] += 0.3 * voice[begin:]
    return sound


def test_silence_before_a_voice_is_cut_off():
    sound = speech(9000)
    kept = audio.Vad(8000)(sound)
    begin = len(sound) - len(kept)
    assert 7000 < begin <= 9000 and (kept == sound[begin:]).all() and kept.dtype == np.float64
    both = audio.Vad(8000)(np.stack([sound, sound / 2]).astype(np.float32))
    assert both.shape == (2, len(kept)) and both.dtype == np.float32


@pytest.mark.parametrize(
    "size, arguments, kept",
    [
        (1000, {}, 660),
        (1000, {"pre_trigger_time": 0.1}, 720),
        (1000, {"search_time": 0.3}, 270),
        (1000, {"trigger_level": 0.0}, 1000),
        (10, {}, 10),
    ],
)
def test_without_a_voice_the_end_is_kept(size, arguments, kept):
    noise = np.random.RandomState(1).rand(size)
    assert audio.Vad(600, **arguments)(noise).shape == (kept,)


@pytest.mark.parametrize(
    "kind, arguments",
    [
        (ValueError, {"sample_rate": 0}),
        (TypeError, {"sample_rate": 1.5}),
        (TypeError, {"trigger_level": "a"}),
        (ValueError, {"trigger_time": -1}),
        (ValueError, {"noise_up_time": 0.001}),
        (ValueError, {"measure_freq": 0}),
        (ValueError, {"measure_duration": -1}),
        (ValueError, {"hp_filter_freq": -1}),
        (RuntimeError, {"search_time": 0}),
        (RuntimeError, {"hp_filter_freq": 7000.0}),
        (RuntimeError, {"hp_lifter_freq": 7000.0}),
    ],
)
def test_wrong_arguments_of_voice_activity(kind, arguments):
    with pytest.raises(kind):
        audio.Vad(**({"sample_rate": 600} | arguments))(np.ones(1000))


def test_arrays_in_memory_are_batched_without_rows_in_between():
    arrays = {"x": np.arange(20.0).reshape(10, 2), "y": np.arange(10)}
    dataset = ds.NumpySlicesDataset(arrays, shuffle=False)
    for drop in (False, True):
        made = list(dataset.batches(0, 4, drop))
        rows = list(dataset.batch(4, drop).create_tuple_iterator(num_epochs=1, output_numpy=True))
        assert len(made) == len(rows) == (2 if drop else 3)
        assert all((a == b).all() for m, r in zip(made, rows) for a, b in zip(m, r))
    assert rows[0][0].flags.owndata and ds.NumpySlicesDataset(["a", "b"]).batches(0, 2, False) is None
    shuffled = ds.NumpySlicesDataset(arrays).batch(5).create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert sorted(np.concatenate([y for _, y in shuffled]).tolist()) == list(range(10))
