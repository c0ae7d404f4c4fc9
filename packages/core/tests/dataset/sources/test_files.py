"""Sources that read files: text, CSV, JSON lines, TFRecord, CIFAR, image directories; pipelines as dicts."""

from __future__ import annotations

import gzip
import json
import os
import struct

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia.io.crc32c import crc32c, masked


def read(dataset, column=0):
    rows = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    return [row[column].tolist() for row in rows]


# ---- text, CSV, JSON lines ---------------------------------------------------------------------------------


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "t.txt").write_text("hello\n\nworld two\nlast")
    (tmp_path / "u.txt").write_text("a\nb\n")
    ds.config.set_num_parallel_workers(min(2, ds.config.get_num_parallel_workers()))
    return [str(tmp_path / "u.txt"), str(tmp_path / "t.txt")]


@pytest.mark.parametrize(
    "arguments, lines",
    [
        ({}, ["hello", "a", "world two", "b", "last"]),
        ({"num_samples": 3}, ["hello", "a", "world two"]),
        ({"num_shards": 2, "shard_id": 0}, ["hello", "world two", "last"]),
        ({"num_shards": 2, "shard_id": 1}, ["a", "hello", "b"]),
        ({"num_shards": 3, "shard_id": 2}, ["b", "hello"]),
    ],
)
def test_lines_of_files_come_in_turns_and_in_shards(texts, arguments, lines):
    if ds.config.get_num_parallel_workers() < 2:
        pytest.skip("one worker reads file after file")
    dataset = ds.TextFileDataset(texts, shuffle=False, **arguments)
    assert read(dataset) == lines and len(dataset) == len(lines)


def test_a_shuffled_file_has_all_lines(texts):
    assert sorted(read(ds.TextFileDataset(texts))) == ["a", "b", "hello", "last", "world two"]


@pytest.mark.parametrize(
    "kind, files, arguments",
    [
        (ValueError, "none.txt", {}),
        (TypeError, 3, {}),
        (ValueError, [], {}),
        (TypeError, None, {"shuffle": 3}),
        (RuntimeError, None, {"num_shards": 2}),
        (ValueError, None, {"num_shards": 2, "shard_id": 2}),
        (TypeError, None, {"cache": 3}),
    ],
)
def test_wrong_arguments_of_file_sources(texts, kind, files, arguments):
    with pytest.raises(kind):
        ds.TextFileDataset(texts if files is None else files, **arguments)


@pytest.mark.parametrize(
    "text, defaults, rows",
    [
        (",\n", None, [["", ""]]),
        (",\n", ["x", "y"], [["", ""]]),
        ("1,2\n3,4\n", [1], [[1, "2"], [3, "4"]]),
        (" 1.7,2 \n", [1, 2.5], [[1, 2.0]]),
        ("1abc,2e1x\n", [1, 2.5], [[1, 20.0]]),
        ("-5,inf\n", [1, 2.5], [[-5, float("inf")]]),
        ('"a""b","c\nd"\r\n\r\n1,2', None, [['a"b', "c\nd"], ["1", "2"]]),
    ],
)
def test_csv_fields(tmp_path, text, defaults, rows):
    path = tmp_path / "c.csv"
    path.write_text(text, newline="")
    dataset = ds.CSVDataset(str(path), column_names=["a", "b"], column_defaults=defaults, shuffle=False)
    found = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert [[column.tolist() for column in row] for row in found] == rows and len(dataset) == len(rows)


@pytest.mark.parametrize(
    "text, defaults",
    [
        ("", None),
        ("1,\n", [1, 2]),
        ("3000000000,1\n", [1, 2.5]),
        ("1,2\n", [1, 2, 3]),
        ('"a"b,2\n', None),
        ('"a,2\n', None),
        ("1\n", None),
    ],
)
def test_csv_files_that_do_not_fit(tmp_path, text, defaults):
    path = tmp_path / "c.csv"
    path.write_text(text)
    with pytest.raises(RuntimeError, match="c.csv"):
        read(ds.CSVDataset(str(path), column_names=["a", "b"], column_defaults=defaults, shuffle=False))


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xff\xfe\x00abc\n"])
def test_text_files_without_text(tmp_path, data):
    path = tmp_path / "t.txt"
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match="t.txt"):
        read(ds.TextFileDataset(str(path), shuffle=False))


@pytest.mark.parametrize(
    "task, usage, line, columns, kinds",
    [
        ("AFQMC", "test", {"id": 3, "sentence1": "a", "sentence2": "b"}, "id sentence1 sentence2", "uUU"),
        ("CSL", "eval", {"id": 1, "abst": "q", "keyword": ["k", "l"], "label": "1"},
         "abst id keyword label", "UuUU"),
        ("WSC", "test", {"idx": 3, "text": "t", "target": {"span1_index": 1, "span2_index": 2,
                                                           "span1_text": "a", "span2_text": "b"}},
         "idx span1_index span1_text span2_index span2_text text", "uuUuUU"),
    ],
)  # fmt: skip
def test_clue_tasks_have_their_columns(tmp_path, task, usage, line, columns, kinds):
    path = tmp_path / "clue.json"
    path.write_text(json.dumps(line) + "\n\n")
    dataset = ds.CLUEDataset(str(path), task, usage, shuffle=False)
    assert dataset.get_col_names() == columns.split() and len(dataset) == 1
    row = next(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert "".join(column.dtype.kind for column in row) == kinds


def test_csv_columns_have_the_types_of_their_defaults(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text('1,2.5,ab\n3,4.5,"c,d"\n')
    typed = ds.CSVDataset(
        str(path), column_defaults=[1, 1.0, ""], column_names=["a", "b", "c"], shuffle=False
    )
    assert [t.str[1:2] for t in typed.output_types()] == ["i", "f", "U"] and read(typed, 2) == ["ab", "c,d"]
    assert read(typed, 0) == [1, 3] and typed.output_types()[0] == np.int32
    assert read(ds.CSVDataset(str(path), shuffle=False), 0) == ["3"]  # the first line names the columns
    with pytest.raises(RuntimeError, match="line 1"):
        read(ds.CSVDataset(str(path), column_names=["a", "b"], shuffle=False))


def test_clue_tasks_choose_columns(tmp_path):
    path = tmp_path / "q.json"
    path.write_text('{"sentence1": "aa", "sentence2": "bb", "label": "0"}\n')
    dataset = ds.CLUEDataset(str(path), task="AFQMC", usage="train", shuffle=False)
    assert dataset.get_col_names() == ["label", "sentence1", "sentence2"] and read(dataset, 2) == ["bb"]
    with pytest.raises(ValueError, match="task"):
        ds.CLUEDataset(str(path), task="none")


# ---- TFRecord ----------------------------------------------------------------------------------------------


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values):
    if isinstance(values[0], bytes):
        return field(1, b"".join(field(1, v) for v in values))
    if isinstance(values[0], float):
        return field(2, field(1, np.array(values, "<f4").tobytes()))
    return field(3, field(1, b"".join(varint(v % 2**64) for v in values)))


def write(path, rows):
    with open(path, "wb") as file:
        for row in rows:
            pairs = (field(1, field(1, k.encode()) + field(2, feature(v))) for k, v in row.items())
            data = field(1, b"".join(pairs))
            head = struct.pack("<Q", len(data))
            file.write(head + struct.pack("<I", masked(crc32c(head))))
            file.write(data + struct.pack("<I", masked(crc32c(data))))
    return str(path)


@pytest.fixture
def records(tmp_path):
    rows = [{"i": [k, -1], "f": [float(k), 2.0], "s": [b"ab%d" % k]} for k in range(4)]
    return write(tmp_path / "a.tfrecord", rows)


def test_features_become_columns_by_name(records):
    dataset = ds.TFRecordDataset(records, shuffle=False)
    assert dataset.get_col_names() == ["f", "i", "s"] and len(dataset) == 4
    assert dataset.output_types() == [np.float32, np.int64, np.uint8]
    assert read(dataset, 1)[1] == [1, -1] and read(dataset, 2)[0] == [97, 98, 48]


def test_a_schema_says_types_and_shapes(records):
    schema = ds.Schema()
    schema.add_column("s", ms.string, [1])
    schema.add_column("f", ms.float32, [2, 1])
    dataset = ds.TFRecordDataset(records, schema=schema, shuffle=False)
    assert read(dataset)[3] == ["ab3"] and dataset.output_shapes() == [[1], [2, 1]]
    schema.add_column("nothing", ms.int32)
    for wrong in ({"schema": schema}, {"columns_list": ["nothing"]}):
        with pytest.raises(RuntimeError, match="nothing"):
            read(ds.TFRecordDataset(records, **wrong))


def test_damaged_records_are_noticed(records, tmp_path):
    broken = tmp_path / "b.tfrecord"
    broken.write_bytes(b"x" + open(records, "rb").read())
    with pytest.raises(RuntimeError, match=r"b\.tfrecord"):
        read(ds.TFRecordDataset(str(broken)))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_batches_of_records_are_stacked_rows(tmp_path, monkeypatch, shuffle, compression):
    monkeypatch.setitem(ds.config._state, "seed", 5)
    rng = np.random.default_rng(0)
    rows = [
        {"i": [int(v) for v in rng.integers(-5, 2**40, 2)], "f": [k / 7], "s": [b"%03d" % k]}
        for k in range(300)
    ]
    rows[17] = {"f": rows[17]["f"], "s": rows[17]["s"], "i": rows[17]["i"], "other": [b"a", b"b"]}
    paths = [write(tmp_path / f"{n}.tfrecord", rows[n::2]) for n in range(2)]
    if compression:
        for path in paths:
            data = gzip.compress(open(path, "rb").read())
            open(path, "wb").write(data)
    dataset = ds.TFRecordDataset(paths, shuffle=shuffle, compression_type=compression)
    expected = list(dataset.rows(1))
    assert sorted(float(row[0][0]) for row in expected) == pytest.approx([k / 7 for k in range(300)])
    at = 0
    for batch in dataset.batches(1, 64, False):
        for column, *values in zip(batch, *expected[at : at + 64]):
            np.testing.assert_array_equal(column, np.stack(values))
            assert column.dtype == values[0].dtype
        at += len(batch[0])
    assert at == 300


def test_features_of_other_lengths_and_types_are_read_alone(tmp_path):
    rows = [{"i": list(range(k % 3 + 1)), "s": [b"x" * k]} for k in range(40)]
    path = write(tmp_path / "a.tfrecord", rows)
    dataset = ds.TFRecordDataset(path, shuffle=False)
    assert read(dataset)[:4] == [[0], [0, 1], [0, 1, 2], [0]] and len(read(dataset, 1)[39]) == 39
    schema = ds.Schema()
    schema.add_column("s", ms.string, [1])
    assert read(ds.TFRecordDataset(path, schema=schema, shuffle=False))[2] == ["xx"]
    schema.add_column("i", ms.float32)
    with pytest.raises(RuntimeError, match="predefined type in schema: int64 numbers and float32"):
        read(ds.TFRecordDataset(path, schema=schema, shuffle=False))


def test_data_is_compared_with_its_checksum(records):
    data = bytearray(open(records, "rb").read())
    data[40] ^= 1
    open(records, "wb").write(data)
    dataset = ds.TFRecordDataset(records)
    with pytest.raises(RuntimeError, match="checksum of the data of record 0"):
        read(dataset)
    assert len(dataset) == 4
    data[40] ^= 1
    open(records, "wb").write(data)
    again = ds.TFRecordDataset(records, shuffle=False)
    assert len(read(again)) == 4
    changed = os.stat(records).st_mtime_ns
    with open(records, "r+b") as file:
        file.seek(41)
        file.write(bytes([data[41] ^ 1]))
    os.utime(records, ns=(changed, changed))  # the file looks the same
    with pytest.raises(RuntimeError, match="checksum of the data of record 0"):
        read(again)
    body = b"no Example"
    for part in (struct.pack("<Q", len(body)), body):
        data += part + struct.pack("<I", masked(crc32c(part)))
    open(records, "wb").write(data)
    with pytest.raises(RuntimeError, match="record 4 is no Example"):
        read(ds.TFRecordDataset(records, shuffle=False))


def test_schemas_are_json():
    schema = ds.Schema()
    schema.add_column("x", ms.int64, [2])
    again = ds.Schema()
    again.parse_columns({"x": {"type": "int64", "shape": [2]}})
    assert str(again) == schema.to_json() and '"rank": 1' in schema.to_json()
    for kind, wrong in (
        (TypeError, lambda: schema.add_column("z", "none")),
        (TypeError, lambda: schema.add_column(3, ms.int8)),
        (RuntimeError, lambda: schema.parse_columns([{"name": "q"}])),
        (RuntimeError, lambda: schema.from_json({"columns": []})),
        (ValueError, lambda: ds.Schema("none.json")),
    ):
        with pytest.raises(kind):
            wrong()


# ---- images ------------------------------------------------------------------------------------------------


def test_cifar_records_are_planes_of_colours(tmp_path):
    record = np.zeros((2, 3073), np.uint8)
    record[:, 0], record[1, 1 + 1024] = [7, 3], 9  # green of the first pixel
    record.tofile(tmp_path / "data_batch_1.bin")
    dataset = ds.Cifar10Dataset(str(tmp_path), "train", shuffle=False)
    (first, second) = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert [int(first[1]), int(second[1])] == [7, 3] and second[0][0, 0].tolist() == [0, 9, 0]
    assert dataset.output_types() == [np.uint8, np.uint32] and dataset.output_shapes() == [[32, 32, 3], []]
    with pytest.raises(RuntimeError):
        len(ds.Cifar10Dataset(str(tmp_path), "test"))
    with pytest.raises(ValueError):
        ds.Cifar100Dataset(str(tmp_path), "none")


def test_directories_are_classes(tmp_path):
    for name in ("cat/a.png", "cat/b.png", "dog/c.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    dataset = ds.ImageFolderDataset(str(tmp_path), shuffle=False)
    assert read(dataset, 1) == [0, 0, 1] and bytes(read(dataset)[2]) == b"dog/c.jpg"
    assert dataset.get_class_indexing() == {"cat": 0, "dog": 1} and dataset.num_classes() == 2
    assert read(ds.ImageFolderDataset(str(tmp_path), class_indexing={"dog": 5}), 1) == [5]
    assert read(ds.ImageFolderDataset(str(tmp_path), extensions=[".jpg"]), 1) == [1]
    with pytest.raises(ValueError):
        ds.ImageFolderDataset(str(tmp_path / "none"))


def test_made_up_images_are_the_same_for_the_same_seed():
    one, two = (ds.FakeImageDataset(5, (2, 2, 3), 3, 1, shuffle=False) for _ in range(2))
    assert read(one) == read(two) and len(one) == 5 and set(read(one, 1)) <= {0, 1, 2}


def test_the_order_of_several_files_does_not_depend_on_workers(tmp_path, monkeypatch):
    for name in "abc":
        (tmp_path / name).write_text("".join(f"{name}{i}\n" for i in range(3)))
    files = [str(tmp_path / name) for name in "abc"]
    monkeypatch.setitem(ds.config._DEFAULTS, "num_parallel_workers", 2)  # of a machine with two cores
    found = read(ds.TextFileDataset(files, shuffle=False))
    # As MindSpore with two workers: two files at a time, in turns.
    assert found == ["a0", "b0", "a1", "b1", "a2", "b2", "c0", "c1", "c2"]
    assert read(ds.TextFileDataset(files, shuffle=False, num_parallel_workers=1)) == found
    before = ds.config.get_num_parallel_workers()
    try:
        ds.config.set_num_parallel_workers(1)
        assert read(ds.TextFileDataset(files, shuffle=False)) == found
    finally:
        ds.config.set_num_parallel_workers(before)


# ---- pipelines as dicts ------------------------------------------------------------------------------------


def test_a_pipeline_comes_back_from_its_dict(texts):
    made = ds.TextFileDataset(texts, shuffle=False).rename("text", "t").skip(1).repeat(2).batch(3, True)
    table = ds.serialize(made)
    again = ds.deserialize(table)
    assert read(again) == read(made) and ds.compare(made, again) and len(again) == len(made)
    assert not ds.compare(made, made.take(1)) and table["op_type"] == "Batch" and table["batch_size"] == 3
    with pytest.raises(NotImplementedError):
        ds.deserialize(ds.NumpySlicesDataset([1]).to_json())


def test_a_pipeline_written_when_a_transform_lay_in_another_file_is_read(tmp_path):
    ms.dataset.vision.write_png(str(tmp_path / "a.png"), np.zeros((9, 9, 3), np.uint8))
    (tmp_path / "images" / "x").mkdir(parents=True)
    (tmp_path / "a.png").rename(tmp_path / "images" / "x" / "a.png")
    source = ds.ImageFolderDataset(str(tmp_path / "images"), decode=True)
    table = source.map(ds.vision.CenterCrop(4), "image").to_json()
    table["operations"][0]["python_module"] = "mycelia.dataset.vision.geometry"
    assert ds.deserialize(table).output_shapes()[0] == [4, 4, 3]


def test_a_sampler_of_the_user_is_not_made_from_a_dict():
    table = ds.SequentialSampler().describe() | {"sampler_name": "Own"}
    pipeline = {"op_type": "Cifar10Dataset", "children": [], "sampler": table, "dataset_dir": ""}
    with pytest.raises(ms.errors.NotSupportedError, match="'Own'"):
        ds.deserialize(pipeline)


def test_rows_are_saved_as_mindrecord(tmp_path):
    from mycelia.mindrecord import FileReader

    path = str(tmp_path / "rows.mindrecord")
    data = {"x": np.arange(6.0, dtype=np.float32).reshape(3, 2), "n": np.arange(3), "t": ["a", "bc", "d"]}
    ds.NumpySlicesDataset(data, shuffle=False).save(path)
    rows = list(FileReader(path).get_next())
    assert [int(r["n"]) for r in rows] == [0, 1, 2] and [str(r["t"]) for r in rows] == ["a", "bc", "d"]
    assert np.asarray(rows[2]["x"]).ravel().tolist() == [4, 5]
    with pytest.raises(TypeError):
        ds.NumpySlicesDataset(data).save(3)


@pytest.mark.parametrize(
    "text, default, expected",
    [("0x10", 1.0, 16.0), ("-0x1.8p1z", 1.0, -3.0), ("1e3", 1.0, 1000.0), ("0x10", 1, 0), ("2", True, 2)],
)
def test_numbers_of_csv_are_read_as_c_reads_them(tmp_path, text, default, expected):
    (tmp_path / "a.csv").write_text(f"a\n{text}\n")
    source = ds.CSVDataset(str(tmp_path / "a.csv"), column_defaults=[default])
    ((found,),) = source.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert found == expected and found.dtype == (np.float32 if isinstance(default, float) else np.int32)


def test_booleans_in_csv_are_no_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("a\ntrue\n")
    with pytest.raises(RuntimeError, match="a.csv, line 2: type does not match"):
        list(
            ds.CSVDataset(str(tmp_path / "a.csv"), column_defaults=[True]).create_tuple_iterator(num_epochs=1)
        )
