"""Event files: their records, values and the collector that writes them."""

import io
import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, dataset, nn
from mycelia.engine import _data
from mycelia.engine.base.wire import fields
from mycelia.engine.ops.control_flow import summary_sink
from mycelia.io.crc32c import crc32c
from mycelia.train import Model, ModelCheckpoint, SummaryCollector, SummaryRecord
from mycelia.train.summary import summary_pb2
from mycelia.train.summary.lineage import DatasetGraph, UserDefinedInfo
from mycelia.train.summary.values import encoded


def bitwise_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def records(path) -> list[dict]:
    """The messages of an event file as dicts from field number to values; checksums are checked."""
    data, at, found = Path(path).read_bytes(), 0, []
    while at < len(data):
        (n,) = struct.unpack_from("<Q", data, at)
        for start, size in ((at, 8), (at + 12, n)):
            crc = bitwise_crc(data[start : start + size])
            masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
            assert struct.unpack_from("<I", data, start + size) == (masked,)
        found.append(decoded(data[at + 12 : at + 12 + n]))
        at += n + 16
    return found


def decoded(data) -> dict:
    out: dict = {}
    for number, value in fields(memoryview(bytes(data))):
        out.setdefault(number, []).append(bytes(value) if isinstance(value, memoryview) else value)
    return out


def histogram(values: np.ndarray) -> bytes:
    """The message of a histogram's value."""
    return decoded(encoded([("h", "histogram", values)])[0])[1][0]


def unpacked(data: bytes) -> np.ndarray:
    """The pixels [H, W, C] of a PNG whose rows are stored as they are or as differences from the left."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size) == (zlib.crc32(kind + body),)
        chunks[kind], at = body, at + 12 + size
    width, height, depth, colours = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert depth == 8 and colours in (0, 2)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    pixels = rows[:, 1:].reshape(height, width, 3 if colours else 1)
    assert set(rows[:, 0]) <= {0, 1}
    return np.where((rows[:, 0] == 1)[:, None, None], pixels.cumsum(1, dtype=np.uint8), pixels)


def pixels_of(batch: np.ndarray) -> np.ndarray | None:
    """The pixels that a batch of images is recorded as."""
    (message,) = encoded([("i", "image", batch)])
    return None if message is None else unpacked(decoded(decoded(decoded(message)[1][0])[4][0])[4][0])


def as_float(raw: bytes) -> float:
    return struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]


def values_of(record: dict) -> dict:
    """tag -> the fields of its Value."""
    return {v[1][0].decode(): v for v in map(decoded, decoded(record[5][0])[1])}


@pytest.mark.parametrize("size", [0, 1, 9, 1024, 2048, 5003])
def test_the_checksum_is_castagnolis(size):
    data = bytes(i * 7 & 255 for i in range(size))
    assert crc32c(data) == bitwise_crc(data)


def test_values_of_a_step_are_one_event(tmp_path):
    with SummaryRecord(str(tmp_path)) as record:
        record.add_value("scalar", "loss", Tensor(0.5))
        record.add_value("tensor", "t", Tensor([[1, 2], [3, 4]], ms.int32))
        record.add_value("histogram", "h", Tensor([1.0, 2.0, 3.0, np.nan, np.inf, 7.0]))
        record.add_value("image", "i", Tensor(np.zeros((9, 1, 2, 3), np.float32)))
        assert record.record(4)
        summary_sink.record("scalar", "op", Tensor(2.0))
        record.record(5)
        path = record.log_dir
    version, first, second = records(path)
    assert version[3] == [b"MindSpore.Event:1"] and 2 not in version
    assert first[2] == [4] and second[2] == [5]
    values = values_of(first)
    assert list(values) == ["loss", "t", "h", "i"]
    assert as_float(values["loss"][3][0]) == 0.5
    tensor = decoded(values["t"][8][0])
    assert tensor[1] == [2, 2] and tensor[2] == [4]
    assert np.frombuffer(tensor[3][0], "<f4").tolist() == [1, 2, 3, 4]
    histogram = decoded(values["h"][9][0])
    buckets = [decoded(b) for b in histogram[1]]
    assert [(as_float(b[1][0]), as_float(b[2][0]), b[3][0]) for b in buckets] == [(1, 3, 3), (4, 3, 1)]
    assert [histogram[k][0] for k in (2, 3, 4, 8)] == [1, 1, 0, 6]
    assert [as_float(histogram[k][0]) for k in (5, 6, 7)] == [7, 1, 13]
    image = decoded(values["i"][4][0])
    assert (image[1], image[2], image[3]) == ([4], [24], [3])
    assert image[4][0].startswith(b"\x89PNG")
    assert as_float(values_of(second)["op"][3][0]) == 2.0
    assert not summary_sink.active


@pytest.mark.parametrize("n, buckets", [(0, 1), (5, 2), (10, 3), (11, 2), (880, 89), (881, 90)])
def test_number_of_buckets(n, buckets):
    # Without finite values there is none, where MindSpore counts one.
    message = decoded(histogram(np.arange(n, dtype=np.float32)))[9][0]
    assert len(decoded(message).get(1, [])) == (buckets if n else 0)


def bytes_of_pixels(batch):
    """Images side by side by NumPy."""
    n, channels, height, width = batch.shape
    values = batch.astype(np.float64)
    low, high = values.min(), values.max()
    if low < 0 or high > 1:
        values = (values - low) / (high - low + 1)
    pixels = batch if batch.dtype == np.uint8 else (values * 255).astype(np.uint8)
    across, rows = min(n, 8), -(-n // 8)
    grid = np.zeros((rows * height, across * width, channels), np.uint8)
    for i in range(n):
        top, left = i // 8 * height, i % 8 * width
        grid[top : top + height, left : left + width] = pixels[i].transpose(1, 2, 0)
    return grid


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "u1"])
def test_images_side_by_side_are_those_of_numpy(dtype):
    random = np.random.default_rng(1)
    for _ in range(100):
        shape = random.integers(1, 20), random.choice([1, 3]), *random.integers(1, 7, 2)
        batch = random.random(shape) * random.choice([1, 1, 7, 300]) - random.choice([0, 0, 3])
        batch = batch.astype(dtype)
        np.testing.assert_array_equal(pixels_of(batch), bytes_of_pixels(batch))
        turned = np.moveaxis(batch, 3, 2)  # not contiguous
        np.testing.assert_array_equal(pixels_of(turned), bytes_of_pixels(turned))


def test_pixels_that_are_no_numbers_are_black():
    batch = np.array([0.5, np.nan, 1.0, 0.0], np.float32).reshape(1, 1, 2, 2)
    assert pixels_of(batch)[..., 0].tolist() == [[127, 0], [255, 0]]
    assert pixels_of(np.full((2, 1, 1, 1), np.inf))[..., 0].tolist() == [[0, 0]]


def test_values_at_the_ends_of_integers_are_counted():
    for values in (
        np.zeros(7, bool), np.zeros(7, np.uint8), np.full(7, -128, np.int8),
        np.array([0, 2**64 - 1, 5], np.uint64), np.array([-(2**63), 2**63 - 1, 3]),
    ):  # fmt: skip
        buckets = [decoded(one) for one in decoded(decoded(histogram(values))[9][0])[1]]
        assert sum(one[3][0] for one in buckets) == values.size


def test_pixels_are_spread_over_the_range():
    assert pixels_of(np.array([0.0, 1.0]).reshape(1, 1, 1, 2))[0, :, 0].tolist() == [0, 255]
    assert pixels_of(np.array([-1.0, 2.0]).reshape(1, 1, 1, 2))[0, :, 0].tolist() == [0, 191]
    assert pixels_of(np.zeros((1, 2, 1, 1))) is None


def test_a_full_file_ends(tmp_path):
    with SummaryRecord(str(tmp_path), max_file_size=200) as record:
        for step in range(10):
            record.add_value("scalar", "s", Tensor(1.0))
            record.record(step)
        path = record.log_dir
    assert len(records(path)) == 6


def test_tensors_can_be_exported(tmp_path):
    with SummaryRecord(str(tmp_path), export_options={"tensor_format": "npy"}) as record:
        record.add_value("tensor", "a/b", Tensor([1.0, 2.0]))
        record.record(3)
    (found,) = tmp_path.glob("export_*/tensor/*.npy")
    assert found.name == "a%2Fb_3.npy" and np.load(found).tolist() == [1.0, 2.0]


def test_bad_values_and_a_second_record(tmp_path):
    with SummaryRecord(str(tmp_path)) as record:
        for plugin, name, value, error in [
            ("scalar", "s", Tensor([1.0, 2.0]), ValueError),
            ("scalar", "", Tensor(1.0), ValueError),
            ("scalar", "s", 1.0, TypeError),
            ("image", "i", Tensor([1.0]), ValueError),
            ("tensor", "t", Tensor(1.0), ValueError),
            ("video", "v", Tensor(1.0), ValueError),
        ]:
            with pytest.raises(error):
                record.add_value(plugin, name, value)
        with pytest.raises(RuntimeError):
            SummaryRecord(str(tmp_path))
        with pytest.raises(TypeError):
            record.record(1.0)
    assert record.record(1) is False
    for name, kind in (("", ValueError), ("a b", ValueError), ("a/b", ValueError), (3, TypeError)):
        for part in ("file_prefix", "file_suffix"):
            with pytest.raises(kind, match=part):
                SummaryRecord(str(tmp_path), **{part: name})
    with pytest.raises(TypeError, match="network"):
        SummaryRecord(str(tmp_path), network=3)


def test_two_collectors_in_a_list_are_refused(tmp_path):
    net = nn.Dense(3, 1)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
    both = [SummaryCollector(str(tmp_path / name)) for name in "ab"]
    batches = dataset.NumpySlicesDataset((np.ones((4, 3), "f4"), np.ones((4, 1), "f4"))).batch(2)
    with pytest.raises(ValueError, match="more than one SummaryCollector"):
        model.train(1, batches, callbacks=both)
    model.train(1, batches, callbacks=both[:1])  # the refused ones hold nothing open


def test_records_of_lineage_alone_in_one_second_have_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1.7e9)
    for name in "ab":
        with SummaryRecord(str(tmp_path)) as record:
            record.add_value("custom_lineage_data", "custom", UserDefinedInfo({name: 1}))
            record.record(1)
    assert [path.name.split(".")[4] for path in sorted(tmp_path.glob("*_lineage"))] == [
        "1700000000",
        "1700000001",
    ]


def train(directory, callbacks):
    ms.set_seed(1)
    rng = np.random.default_rng(0)
    data = {
        "x": rng.random((16, 1, 4, 4)).astype(np.float32),
        "y": rng.integers(0, 3, 16).astype(np.int32),
    }
    batches = dataset.NumpySlicesDataset(data, shuffle=False).batch(4)
    net = nn.SequentialCell(nn.Flatten(), nn.Dense(16, 3))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"acc"})
    model.train(2, batches, callbacks=callbacks, dataset_sink_mode=False)
    return model, batches


def test_the_collector_records_a_training(tmp_path):
    collector = SummaryCollector(
        str(tmp_path),
        collect_freq=3,
        collect_specified_data={"collect_system": False},
        custom_lineage_data={"trial": 3, "lr": 0.5},
    )
    checkpoints = ModelCheckpoint(directory=str(tmp_path / "saved"))
    model, batches = train(tmp_path, [collector, checkpoints])
    (events,) = tmp_path.glob("events.*_MS")
    _, *steps = records(events)
    assert [s[2] for s in steps] == [[1], [3], [6]]
    assert set(values_of(steps[0])) == {
        "loss/auto",
        "input_data/auto",
        "1.weight/auto",
        "1.bias/auto",
    }
    (lineage,) = tmp_path.glob("events.*_lineage")
    graph, custom, training = records(lineage)
    assert set(graph) == {1, 9}
    assert len(decoded(custom[10][0])[1]) == 2
    hyper, data, algorithm, saved = (decoded(decoded(training[6][0])[k][0]) for k in (1, 2, 3, 4))
    assert hyper[1] == [b"Momentum"] and hyper[3] == [b"SoftmaxCrossEntropyWithLogits"]
    assert hyper[4] == [2] and hyper[8] == [4] and data[2] == [16]
    assert algorithm[1] == [b"SequentialCell"]
    assert Path(json.loads(saved[3][0])["ckpt"]).stat().st_size == saved[4][0]
    assert not (tmp_path / "ckpt_dir").exists()


def test_the_environment_is_recorded_when_asked_for(tmp_path, monkeypatch):
    from mycelia.train.summary.environment import git_commit

    secret = "hunter2-0xBEEF"
    words = [*sys.orig_argv, f"--api-key={secret}", "--password", secret, f"s3://me:{secret}@host/data"]
    monkeypatch.setattr(sys, "orig_argv", words)
    collector = SummaryCollector(
        str(tmp_path),
        collect_specified_data={"collect_environment": True},
        custom_lineage_data={"python": "mine"},
    )
    train(tmp_path, [collector])
    (lineage,) = tmp_path.glob("events.*_lineage")
    written = lineage.read_bytes()
    assert b"command_line" in written and sys.orig_argv[0].encode() in written and b"mine" in written
    assert secret.encode() not in written and b"--api-key=(not shown)" in written
    tree = tmp_path / "tree"
    (tree / ".git" / "refs" / "heads").mkdir(parents=True)
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert git_commit(tree) == ""
    (tree / ".git" / "packed-refs").write_text("# pack-refs\nabc refs/heads/main\n")
    assert git_commit(tree) == "abc"
    (tree / ".git" / "refs" / "heads" / "main").write_text("def\n")
    (tree / "below").mkdir()
    assert git_commit(tree / "below") == "def"


def test_points_of_a_landscape_are_saved_when_asked_for(tmp_path):
    collector = SummaryCollector(str(tmp_path), collect_specified_data={"collect_landscape": {}})
    train(tmp_path, [collector])
    points = json.loads((tmp_path / "ckpt_dir" / "train_metadata.json").read_text())
    assert set(points["model_params_file_map"]) == {str(i) for i in range(1, 9)}


@pytest.mark.parametrize("n", [40, 900, 100_000, 2_000_000])  # counts of one, two and three bytes
def test_buckets_hold_every_value(n):
    values = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    message = decoded(histogram(values))[9][0]
    buckets = [decoded(b) for b in decoded(message)[1]]
    doubles = [[struct.unpack("<d", b[k][0])[0] for k in (1, 2)] for b in buckets]
    bounds = np.linspace(float(values.min()), float(values.max()), len(buckets) + 1, dtype=np.float32)
    counts, edges = np.histogram(values, bounds)
    assert [b[3][0] for b in buckets] == counts.tolist() and 0.99 * n < counts.sum() <= n
    np.testing.assert_array_equal(doubles, np.stack([edges[:-1], np.diff(edges)], 1))


def graph_of(data) -> dict:
    """A DatasetGraph, or an Operation, as nested dicts: maps by name, parts by their place."""
    read = {1: bytes.decode, 2: lambda v: [bytes(x).decode() for x in decoded(v)[1]], 3: bool, 4: int}
    kinds = {**read, 5: lambda v: struct.unpack("<d", v)[0]}

    def parameters(data):
        table = {}
        for number, entries in decoded(data).items():
            for entry in map(decoded, entries):
                (name,), (value,) = entry[1], entry[2]
                value = bytes(value) if isinstance(value, (bytes, memoryview)) else value
                table[bytes(name).decode()] = kinds[number](value)
        return table

    def operation(data):
        parts = decoded(data)
        rest = {name: parts[number] for number, name in ((2, "size"), (3, "weights")) if number in parts}
        if "weights" in rest:
            rest["weights"] = [struct.unpack("<f", v)[0] for v in rest["weights"]]
        return parameters(parts[1][0]) | rest

    parts = decoded(data)
    return {
        **parameters(parts[2][0]),
        **({"sampler": operation(parts[4][0])} if 4 in parts else {}),
        "operations": [operation(o) for o in parts.get(3, ())],
        "children": [graph_of(c) for c in parts.get(1, ())],
    }


def halved(image):
    return image / 2


def test_the_dataset_graph_is_what_mindspore_records(tmp_path):
    """The expected parameters are those that MindSpore 2.10 wrote for these pipelines."""
    (tmp_path / "lines.txt").write_text("a\nb\n")
    path = str(tmp_path / "lines.txt")
    lines = dataset.TextFileDataset(path, shuffle=False, num_parallel_workers=1)
    lines = lines.rename("text", "t").skip(1).repeat(2).batch(3, True, num_parallel_workers=1)
    workers = {"num_parallel_workers": 1, "connector_queue_size": 16}

    def node(kind, *children, operations=(), **parameters):
        return {
            "op_type": kind, **parameters, "operations": list(operations), "children": list(children),
        }  # fmt: skip

    source = node(
        "TextFileDataset", dataset_files=[json.dumps(path)], num_samples=0, num_shards=1, shard_id=0,
        shuffle=0, **workers,
    )  # fmt: skip
    named = node("Rename", source, input_columns=['"text"'], output_columns=['"t"'])
    repeated = node("Repeat", node("Skip", named, count=1), count=2)
    expected = node("Batch", repeated, batch_size=3, drop_remainder=True, **workers)
    assert graph_of(DatasetGraph(lines.to_json()).SerializeToString()) == expected

    weights = [1, 0.5, 0.25, 2, 3]
    images = dataset.FakeImageDataset(
        5, (2, 2, 3), 3, num_parallel_workers=1, sampler=dataset.WeightedRandomSampler(weights, 2)
    )
    images = images.map(halved, "image", num_parallel_workers=1).shuffle(4)
    found = graph_of(DatasetGraph(images.to_json()).SerializeToString())
    assert (found["op_type"], found["buffer_size"], found["reset_each_epoch"]) == ("Shuffle", 4, True)
    (mapped,) = found["children"]
    assert mapped["op_type"] == "Map" and mapped["input_columns"] == mapped["output_columns"] == ['"image"']
    assert mapped["operations"] == [{"tensor_op_name": "halved", "python_module": __name__}]
    assert mapped["children"][0]["sampler"] == {
        "sampler_name": "WeightedRandomSampler", "replacement": True, "num_samples": 2, "weights": weights,
    }  # fmt: skip


def test_the_dataset_graph_alone_is_recorded(tmp_path):
    collector = SummaryCollector(
        str(tmp_path), collect_specified_data={"collect_dataset_graph": True}, keep_default_action=False
    )
    _, batches = train(tmp_path, [collector])
    (lineage,) = tmp_path.glob("events.*_lineage")
    (record,) = records(lineage)
    assert graph_of(record[9][0])["batch_size"] == 4 and batches.to_json()["op_type"] == "Batch"


def test_only_what_is_asked_for_is_collected(tmp_path):
    collector = SummaryCollector(
        str(tmp_path), collect_specified_data={"collect_metric": True}, keep_default_action=False
    )
    train(tmp_path, [collector])
    (events,) = tmp_path.glob("events.*_MS")
    assert [list(values_of(r)) for r in records(events)[1:]] == [["loss/auto"]]
    assert not list(tmp_path.glob("*lineage")) and not (tmp_path / "ckpt_dir").exists()


@pytest.mark.parametrize(
    "options, error",
    [
        ({"collect_freq": 0}, ValueError),
        ({"collect_freq": "often"}, TypeError),
        ({"collect_specified_data": {"what": True}}, ValueError),
        ({"collect_specified_data": {"histogram_regular": "("}}, ValueError),
        ({"collect_specified_data": {"collect_metric": 1}}, TypeError),
        ({"collect_specified_data": {"collect_landscape": {"landscape_size": 2}}}, ValueError),
        ({"custom_lineage_data": {"a": [1]}}, TypeError),
    ],
)
def test_bad_options_of_the_collector(tmp_path, options, error):
    with pytest.raises(error):
        SummaryCollector(str(tmp_path), **options)


@pytest.mark.parametrize("channels", [1, 3])
def test_png_is_grey_or_has_colours(channels):
    pixels = np.random.default_rng(0).integers(0, 4, (9, 300, channels), dtype=np.uint8)
    data = _data.png(pixels)
    assert data[25] == {1: 0, 3: 2}[channels]
    np.testing.assert_array_equal(unpacked(data), pixels)
    np.testing.assert_array_equal(unpacked(_data.png(pixels[:1, :1])), pixels[:1, :1])
    Image = pytest.importorskip("PIL.Image")
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data))).reshape(pixels.shape), pixels)


def fibonacci_bytes(most: int) -> np.ndarray:
    """Counts of bytes are Fibonacci's numbers: without a bound, codes would be as long as there are bytes."""
    counts = [1, 1]
    while sum(counts) + counts[-1] + counts[-2] < most:
        counts.append(counts[-1] + counts[-2])
    flat = np.repeat(np.arange(len(counts), dtype=np.uint8) * 7, counts)
    flat = np.random.default_rng(0).permutation(flat)
    return flat[: flat.size // 50 * 50].reshape(-1, 50, 1)


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((300, 900, 3), np.uint8),
        np.repeat(np.arange(200, dtype=np.uint8), np.arange(200) + 1).reshape(
            -1, 150, 1
        ),  # runs of each length
        np.repeat(np.arange(2, 250, dtype=np.uint8), 300).reshape(-1, 300, 1)[:, :258],
        np.random.default_rng(3).integers(0, 256, (400, 300, 3), dtype=np.uint8),
        fibonacci_bytes(30_000),
    ],
    ids=["black", "runs", "rows", "noise", "fibonacci"],
)
def test_png_of_any_pixels_can_be_read(pixels):
    data = _data.png(np.ascontiguousarray(pixels))
    np.testing.assert_array_equal(unpacked(data), pixels)
    assert len(data) < 1.01 * pixels.size + 300


def test_pngs_are_about_as_small_as_those_of_zlib():
    random = np.random.default_rng(5)
    smooth = np.clip(np.cumsum(np.cumsum(random.standard_normal((64, 96, 3)), 0), 1), 0, 255).astype(np.uint8)
    sparse = random.integers(0, 256, (64, 96, 1), dtype=np.uint8) * (random.random((64, 96, 1)) < 0.2)
    for pixels in (smooth, sparse.astype(np.uint8)):
        rows = np.concatenate([np.zeros((64, 1), np.uint8), pixels.reshape(64, -1)], 1)
        assert len(_data.png(pixels)) < 1.05 * len(zlib.compress(rows, 1)) + 100


def bucket_count(n: int) -> int:
    return 2 if n <= 5 else 3 if n <= 10 else n // 10 + 1 if n <= 880 else 90


def reference_buckets(values):
    """Counts and edges by NumPy."""
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
    bounds = np.linspace(low, high, bucket_count(finite.size) + 1, dtype=values.dtype)
    return np.histogram(finite, bounds)


@pytest.mark.parametrize("kind", [*"bhilBHILfd", "grid", "tiny", "odd"])
def test_histograms_are_those_of_numpy(kind):
    """Any numbers: of each dtype, on the edges themselves, denormal, with some that are not finite."""
    random = np.random.default_rng(len(kind) * 256 + ord(kind[0]))
    for _ in range(60):
        n = int(random.integers(1, 2500))
        values = random.standard_normal(n) * 10.0 ** random.integers(-5, 2)
        if kind == "grid":
            values = np.round(values * 8) / 8
        elif kind == "tiny":
            values = (random.standard_normal(n) * 1e-44).astype(np.float32)
        elif kind == "odd":
            values = random.choice([0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 5e-324, 1e300], n)
            values[0] = 1e300
        elif kind not in "fd":
            bounds = np.iinfo(np.dtype(kind))
            values = random.integers(max(bounds.min, -100), min(bounds.max, 120), n).astype(kind)
        else:
            values = values.astype(kind)
        found = summary_pb2.Summary.FromString(encoded([("h", "histogram", values)])[0]).value[0].histogram
        counts, edges = reference_buckets(values)
        finite = values[np.isfinite(values)]
        assert [b.count for b in found.buckets] == counts.tolist()
        assert [b.left for b in found.buckets] == edges[:-1].tolist()
        assert (found.min, found.max) == (finite.min(), finite.max())
        assert found.sum == pytest.approx(
            finite.sum(dtype=np.float64), rel=1e-9, abs=1e-9 * np.abs(finite.astype(float)).sum()
        )
        odd = [np.count_nonzero(test(values)) for test in (np.isnan, np.isposinf, np.isneginf)]
        assert [found.nan_count, found.pos_inf_count, found.neg_inf_count] == odd


@pytest.mark.parametrize("values", [np.zeros(3, complex), np.zeros(3, object), np.array(["a"]), [1.0]])
def test_histograms_refuse_other_arrays(values):
    with pytest.raises(TypeError):
        _data.summary_values([("h", "histogram", values)])


def test_native_parts_of_records_refuse_other_arguments():
    for images in (np.zeros((2, 1, 3, 3), complex), np.zeros((2, 3)), np.zeros((2, 1, 4, 4), object), [1.0]):
        with pytest.raises(TypeError):
            _data.summary_values([("i", "image", images)])
    for values in ([("s", "scalar", "text")], ["text"], [("s", "scalar")], 3, [(1, "scalar", 1.0)]):
        with pytest.raises(TypeError):
            _data.summary_values(values)
    with pytest.raises(ValueError, match="but got sound"):
        _data.summary_values([("s", "sound", 1.0)])
    for pixels in (np.zeros((2, 2, 2), np.uint8), np.zeros((4, 4, 1), np.uint8)[:, :2], np.zeros((4, 4, 1))):
        with pytest.raises(ValueError):
            _data.png(pixels)
    with pytest.raises(TypeError):
        _data.framed("text")


def test_histograms_of_many_values_are_those_of_numpy():
    """Float32 values are mostly counted without a look at the edges; near them it is needed."""
    random = np.random.default_rng(11)
    for place, width in ((0, 1), (1e6, 1), (-3e7, 4), (0, 1e-40), (1, 1e-6), (0, 3e38)):
        values = (place + width * random.standard_normal(20_000).clip(-1, 1)).astype(np.float32)
        low, high = float(values.min()), float(values.max())
        edges = np.linspace(low, high, 91, dtype=np.float32)
        values = np.concatenate([values, edges, np.nextafter(edges, np.float32(low))[1:]])
        values = np.append(values, np.float32([np.nan, np.inf, -np.inf]))
        counts, bounds = reference_buckets(values)
        found = [decoded(bucket) for bucket in decoded(decoded(histogram(values))[9][0])[1]]
        assert [bucket[3][0] for bucket in found] == counts.tolist()
        assert [as_float(bucket[1][0]) for bucket in found] == bounds[:-1].tolist()


def test_added_values_are_those_of_the_moment(tmp_path):
    weights, images = np.ones((3, 4), np.float32), np.zeros((1, 1, 2, 2), np.float32)
    with SummaryRecord(str(tmp_path)) as record:
        for kind, array in (("histogram", weights), ("tensor", weights), ("image", images)):
            record.add_value(kind, kind, Tensor.from_numpy(array))
        weights[:], images[:] = 7, 1
        record.record(1)
        path = record.log_dir
    values = values_of(records(path)[1])
    assert as_float(decoded(values["histogram"][9][0])[5][0]) == 1.0
    assert set(np.frombuffer(decoded(values["tensor"][8][0])[3][0], "<f4")) == {1.0}
    png = decoded(values["image"][4][0])[4][0]
    at = png.index(b"IDAT") + 4
    assert set(zlib.decompress(png[at:-16])) == {0}


@pytest.mark.parametrize(
    ("values", "edges", "counts"),
    [
        (np.arange(7), [0, 2, 4, 6], [2, 2, 3]),  # whole edges: the last bucket has its right one
        (np.array([5, 5, 5], np.int16), [4, 5, 5], [0, 3]),
        (np.array([0.5, 0.25, np.nan, np.inf], np.float32), [0.25, 0.375, 0.5], [1, 1]),
        (np.array([np.nan, -np.inf]), [], []),
    ],
)
def test_buckets_have_the_dtype_of_the_values(values, edges, counts, tmp_path):
    with SummaryRecord(str(tmp_path)) as record:
        record.add_value("histogram", "h", Tensor(values))
        record.record(1)
        path = record.log_dir
    data, at, events = Path(path).read_bytes(), 0, []
    while at < len(data):
        (n,) = struct.unpack_from("<Q", data, at)
        events.append(summary_pb2.Event.FromString(data[at + 12 : at + 12 + n]))
        at += n + 16
    assert events[0].version == "MindSpore.Event:1" and events[1].step == 1
    (value,) = events[1].summary.value
    found = value.histogram
    assert value.tag == "h" and found.count == values.size
    assert [b.left for b in found.buckets] == edges[:-1] and [b.count for b in found.buckets] == counts
    assert [b.left + b.width for b in found.buckets] == edges[1:]
    finite = values[np.isfinite(values)]
    assert (found.min, found.max) == ((finite.min(), finite.max()) if finite.size else (0, 0))


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [("scalar", 3, TypeError), ("tensor", Tensor(1.0), ValueError), ("image", Tensor([1.0]), ValueError)],
)
def test_operators_check_their_values(kind, value, error, tmp_path):
    operator = getattr(ms.ops, f"{kind.capitalize()}Summary")()
    with SummaryRecord(str(tmp_path)), pytest.raises(error):
        operator("v", value)


@pytest.mark.parametrize(
    ("option", "error"),
    [({"landscape_size": None}, TypeError), ({"size": 3}, ValueError), ({"unit": "hour"}, ValueError)],
)
def test_options_of_a_landscape_are_checked_before_its_files(option, error, tmp_path):
    landscape = ms.SummaryLandscape(str(tmp_path))
    with pytest.raises(error):
        landscape.gen_landscapes_with_multi_process(None, collect_landscape=option)
