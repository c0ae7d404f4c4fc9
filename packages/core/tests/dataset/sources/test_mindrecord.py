"""MindDataset: which rows of MindRecord files come, in which order, with which dtypes."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia import mindrecord
from mycelia.dataset.samplers import Shuffle

FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures/formats/mindrecord"
MIXED = str(FIXTURES / "mixed.mindrecord")
SHARDS = [str(FIXTURES / f"shards.mindrecord{k}") for k in (0, 1)]
PADDED = {"columns_list": ["label", "token"], "padded_sample": {"label": -1, "token": np.zeros(4, np.int64)}}


def labels(**options) -> list[int]:
    dataset = ds.MindDataset(SHARDS, **options)
    found = [int(row["label"]) for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]
    assert dataset.get_dataset_size() == len(found)
    return found


def test_columns_are_sorted_and_typed():
    dataset = ds.MindDataset(MIXED, shuffle=False)
    assert dataset.get_col_names() == ["boxes", "data", "file_name", "image", "label", "weight"]
    row = next(iter(dataset.create_dict_iterator(num_epochs=1, output_numpy=True)))
    assert [v.dtype.str for v in row.values()] == ["<i4", "|S700", "<U10", "<f4", "<i4", "<f8"]
    assert [v.shape for v in row.values()] == [(1, 4), (1,), (), (1, 8, 8), (), ()]
    with np.load(FIXTURES / "mixed.npz") as values:
        np.testing.assert_array_equal(row["image"], values["image_0"])
        assert row["data"].tobytes() == values["data_0"].tobytes()
    assert ds.MindDataset(MIXED, ["label", "file_name"]).get_col_names() == ["label", "file_name"]


def test_one_name_reads_the_data_set_and_a_list_just_its_files():
    assert [int(r[0]) for r in ds.MindDataset(SHARDS[1], ["label"], shuffle=False)] == list(range(11))
    assert [int(r[0]) for r in ds.MindDataset(SHARDS[1:], ["label"], shuffle=False)] == [5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"num_shards": 3, "shard_id": 2}, [2, 5, 8, 0]),
        ({"num_shards": 3, "shard_id": 2, "num_samples": 2}, [2, 5]),
        ({"num_samples": 4}, [0, 1, 2, 3]),
        ({"num_padded": 1, **PADDED}, [*range(11), -1]),
        ({"num_padded": 4, "num_shards": 3, "shard_id": 2, **PADDED}, [2, 5, 8, -1, -1]),
    ],
)
def test_rows_in_order(options, expected):
    assert labels(shuffle=False, **options) == expected


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (ds.SequentialSampler(3, 4), [3, 4, 5, 6]),
        (ds.SubsetSampler([1, 5, 2]), [1, 5, 2]),
        (ds.DistributedSampler(3, 1, shuffle=False), [1, 4, 7, 10]),
        (ds.PKSampler(1), list(range(11))),
    ],
)
def test_samplers(sampler, expected):
    assert labels(sampler=sampler) == expected


def test_classes_of_a_text_column():
    dataset = ds.MindDataset(MIXED, ["label"], sampler=ds.PKSampler(2))
    assert [int(row[0]) for row in dataset] == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("level", [None, True, Shuffle.GLOBAL, Shuffle.ADAPTIVE, Shuffle.PARTIAL])
def test_shuffled_rows_are_all_rows(level):
    assert sorted(labels(shuffle=level)) == list(range(11))


def test_levels_of_shuffling():
    for _ in range(4):
        assert labels(shuffle=Shuffle.FILES) in (list(range(11)), [5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4])
        found = labels(shuffle=Shuffle.INFILE)
        assert (sorted(found[:5]), sorted(found[5:])) == ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10])
    shards = [labels(num_shards=2, shard_id=k, shuffle=False) for k in (0, 1)]
    assert set(shards[0]) | set(shards[1]) == set(range(11))
    assert labels(shuffle=True, num_shards=4, shard_id=3, num_padded=1, **PADDED)[-1] == -1


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"num_shards": 3}, RuntimeError),
        ({"shard_id": 1}, RuntimeError),
        ({"num_shards": 3, "shard_id": 3}, ValueError),
        ({"shuffle": "x"}, TypeError),
        ({"columns_list": "label"}, TypeError),
        ({"columns_list": ["nothing"]}, RuntimeError),
        ({"num_samples": -1}, ValueError),
        ({"sampler": ds.SequentialSampler(), "shuffle": False}, RuntimeError),
        ({"sampler": ds.WeightedRandomSampler([1.0] * 11)}, ValueError),
        ({"num_padded": 1}, RuntimeError),
        ({"columns_list": ["label", "token"], "padded_sample": {"label": 1}, "num_padded": 1}, ValueError),
    ],
)
def test_bad_arguments(options, kind):
    with pytest.raises(kind):
        labels(**options)


def test_bad_files(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        ds.MindDataset("nofile")
    with pytest.raises(TypeError):
        ds.MindDataset(3)
    (tmp_path / "a").write_text("abc")
    with pytest.raises(RuntimeError, match="lower limit"):
        next(iter(ds.MindDataset(str(tmp_path / "a"))))
    with pytest.raises(RuntimeError, match="different"):
        next(iter(ds.MindDataset([SHARDS[0], MIXED])))


def test_written_rows_are_batched(tmp_path):
    writer = mindrecord.FileWriter(str(tmp_path / "a.mindrecord"), 2)
    writer.add_schema({"x": {"type": "float32", "shape": [2]}, "y": {"type": "int32"}})
    writer.write_raw_data([{"x": np.full(2, i, np.float32), "y": i} for i in range(6)])
    writer.commit()
    batches = list(ds.MindDataset(str(tmp_path / "a.mindrecord0"), shuffle=False).batch(4))
    assert [b[0].shape for b in batches] == [(4, 2), (2, 2)]
    assert batches[0][1].asnumpy().tolist() == [0, 1, 2, 3]
