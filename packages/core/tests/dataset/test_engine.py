"""How a pipeline is read: gates and callbacks, going on where it was left, tuning, profile, rewriting."""

from __future__ import annotations

import gc
import json
import os
import threading
import tracemalloc

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia import log, nn
from mycelia.dataset import transforms, vision
from mycelia.dataset.execution import autotune, rewrite
from mycelia.dataset.execution.run import Run


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """Every test has a seed and four cores, and leaves the settings as they were."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(ds.config, "_state", dict(ds.config._state))
    ds.config._state["seed"] = 5


def numbers(n=10, shuffle=False):
    return ds.NumpySlicesDataset(np.arange(n), ["x"], shuffle=shuffle)


def read(dataset, epochs=1):
    iterator = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    passes = [[row[0].tolist() for row in iterator] for _ in range(epochs)]
    return passes[0] if epochs == 1 else passes


# ---- gates and callbacks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [None, 2])
def test_an_update_is_in_force_for_the_next_row(workers):
    state = {"step": 0}

    def update(data):
        state["step"] = data

    gated = numbers(6).sync_wait("step", num_batch=2, callback=update)
    mapped = gated.map(lambda x: x * 100 + state["step"], num_parallel_workers=workers)
    seen = []
    for i, row in enumerate(mapped.create_tuple_iterator(num_epochs=1, output_numpy=True)):
        seen.append(int(row[0]))
        if i % 2:
            mapped.sync_update("step", data=i)
    assert seen == [0, 100, 201, 301, 403, 503]


def test_a_gate_below_batch_counts_batches(monkeypatch):
    warned = []
    monkeypatch.setattr(log.logger("mycelia.dataset"), "warning", lambda *a: warned.append(a))
    state = {"step": 0}
    gated = numbers(12).sync_wait("step", callback=state.update)
    batched = gated.map(lambda x: x * 100 + state["step"]).batch(4)
    seen = []
    for i, row in enumerate(batched.create_tuple_iterator(num_epochs=1, output_numpy=True), 1):
        seen.append(row[0].tolist())
        batched.sync_update("step", data={"step": i})
    assert seen == [[0, 100, 200, 300], [401, 501, 601, 701], [802, 902, 1002, 1102]] and not warned


def test_a_gate_waits_for_another_thread():
    gated = numbers(3).sync_wait("go")
    iterator = gated.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert int(next(iterator)[0]) == 0
    later = threading.Timer(0.2, gated.sync_update, ("go", 2))
    later.start()
    assert [int(row[0]) for row in iterator] == [1, 2]
    later.join()


def test_a_gate_that_nobody_opens_gives_up_with_a_warning(monkeypatch):
    warned = []
    monkeypatch.setattr(log.logger("mycelia.dataset"), "warning", lambda text, *a: warned.append(text % a))
    ds.config.set_callback_timeout(1)
    gated = numbers(5).sync_wait("go", num_batch=2)
    assert read(gated) == list(range(5)) and len(warned) == 1 and "sync_update('go')" in warned[0]
    assert gated.output_shapes() == [[]] and len(warned) == 1  # a question is no reading


@pytest.mark.parametrize(
    "workers",
    [{}, {"num_parallel_workers": 2}, {"num_parallel_workers": 2, "python_multiprocessing": True}],
)
def test_callbacks_of_a_map_with_workers(workers):
    class Events(ds.DSCallback):
        def __init__(self, step_size):
            super().__init__(step_size)
            self.seen = []

        def ds_begin(self, context):
            self.seen.append("begin")

        def ds_epoch_begin(self, context):
            self.seen.append(f"epoch {context.cur_epoch_num}")

        def ds_step_begin(self, context):
            self.seen.append(f"before {context.cur_step_num}")

        def ds_step_end(self, context):
            self.seen.append(f"after {context.cur_step_num}")

        def ds_epoch_end(self, context):
            self.seen.append(f"end {context.cur_step_num_in_epoch}")

    events = Events(2)
    mapped = numbers(3).map(lambda x: x, callbacks=events, **workers)
    iterator = mapped.create_tuple_iterator(num_epochs=2, output_numpy=True)
    first = next(iterator)
    assert int(first[0]) == 0 and events.seen[-1] in ("before 1", "after 1")
    assert [int(row[0]) for row in iterator] == [1, 2] and len(list(iterator)) == 3
    assert events.seen == [
        "begin", "epoch 1", "before 1", "after 1", "before 3", "after 3", "end 3",
        "epoch 2", "before 4", "after 4", "before 6", "after 6", "end 3",
    ]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
def test_a_callback_that_waits_for_the_training(workers):
    class Sees(ds.WaitedDSCallback):
        def __init__(self):
            super().__init__()
            self.steps = []

        def sync_step_begin(self, train_context, ds_context):
            self.steps.append((train_context.original_args().cur_step_num, ds_context.cur_step_num))

    sees = Sees()
    x = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
    data = ds.NumpySlicesDataset((x, x[:, :1].copy()), ["x", "y"], shuffle=False).batch(2)
    data = data.map(lambda x: x, ["x"], callbacks=sees, num_parallel_workers=workers)
    net = nn.Dense(2, 1)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    model.train(2, data, callbacks=[sees], dataset_sink_mode=False)
    assert sees.steps == [(i, i + 1) for i in range(1, 8)]


# ---- going on where it was left ----------------------------------------------------------------------------


def pipelines():
    images = np.random.default_rng(0).integers(0, 255, (24, 12, 12, 3), np.uint8)
    crop = [vision.RandomCrop(8), vision.RandomHorizontalFlip()]

    def source():
        return ds.NumpySlicesDataset((images, np.arange(24)), ["image", "x"], shuffle=True)

    def tagged():
        return source().map(crop, ["image"]).map(lambda i, x: int(i.sum()) * 100 + x, ["image", "x"], ["tag"])

    return {
        "map": tagged(),
        "batch": tagged().batch(5),
        "workers": source().map([*crop, lambda i: i.sum()], ["image"], num_parallel_workers=2).batch(3),
        "shuffle": tagged().shuffle(7),
        "repeat, skip, take": tagged().skip(3).repeat(3).take(40),
        "zip": ds.zip((tagged(), numbers(24, shuffle=True))).project(["x", "tag"]),
        "filter": tagged().filter(lambda tag: tag % 3 == 0),
        "concat": tagged() + tagged(),
        "batch of changing size": tagged().batch(lambda info: info.get_batch_num() % 3 + 1),
        "generator": ds.GeneratorDataset(lambda: ((np.array(i),) for i in range(20)), ["x"]).batch(3),
    }


@pytest.mark.parametrize("name", list(pipelines()))
@pytest.mark.parametrize("given", [0, 1, 4])
def test_an_iterator_goes_on_where_another_was(name, given):
    dataset = pipelines()[name]
    whole = read(dataset, 3)

    def rest(iterator):
        return [[row[0].tolist() for row in iterator] for _ in range(2)]

    iterator = dataset.create_tuple_iterator(num_epochs=3, output_numpy=True)
    for _ in iterator:
        pass
    for _ in range(given):
        next(iterator)
    state = json.loads(json.dumps(iterator.state_dict()))  # it may be kept in a file
    ds.config.set_seed(99)
    other = pipelines()[name].create_tuple_iterator(num_epochs=3, output_numpy=True)
    other.load_state_dict(state)
    expected = [whole[1][given:], whole[2]]
    assert rest(other) == rest(iterator) == expected


def test_orders_without_a_seed_are_kept_in_the_state():
    ds.config._state["seed"] = None
    iterator = numbers(50, shuffle=True).create_tuple_iterator(num_epochs=1, output_numpy=True)
    for _ in range(10):
        next(iterator)
    state = iterator.state_dict()
    other = numbers(50, shuffle=True).create_tuple_iterator(num_epochs=1, output_numpy=True)
    other.load_state_dict(state)
    assert [int(row[0]) for row in other] == [int(row[0]) for row in iterator]


@pytest.mark.parametrize("before, after", [(2, 3), (3, 2), (4, 1), (1, 2)])
@pytest.mark.parametrize("shuffle", [True, False])
def test_another_number_of_shards_goes_on(before, after, shuffle):
    def shard(count, i):
        options = {"num_shards": count, "shard_id": i} if count > 1 else {}
        source = ds.NumpySlicesDataset(np.arange(48), ["x"], shuffle=shuffle, **options)
        return source.map(lambda x: x * 10).batch(2).create_tuple_iterator(num_epochs=3, output_numpy=True)

    ranks = [shard(before, i) for i in range(before)]
    for rank in ranks:
        list(rank)  # the first epoch
    read = [int(x) for _ in range(3) for rank in ranks for x in next(rank)[0]]
    state = ranks[0].state_dict()
    others = [shard(after, i) for i in range(after)]
    for other in others:
        other.load_state_dict(state)
    read += [int(x) for other in others for x in next(other)[0]]
    again = [shard(before, i) for i in range(before)]  # and back
    for rank in again:
        rank.load_state_dict(others[0].state_dict())
    same = shard(after, 0)
    same.load_state_dict(others[0].state_dict())
    assert [row[0].tolist() for row in same] == [row[0].tolist() for row in others[0]]
    left = [int(x) for rank in again for row in rank for x in row[0]]
    assert set(read) | set(left) == set(range(0, 480, 10))
    assert not set(read) & set(left) and len(left) - len(set(left)) < before  # filled up to equal counts
    final = [int(x) for rank in again for row in rank for x in row[0]]
    assert sorted(final) == list(range(0, 480, 10))  # the next epoch is whole


def test_not_every_pipeline_can_be_dealt_anew():
    def shard(count):
        source = ds.NumpySlicesDataset(np.arange(8), ["x"], num_shards=count, shard_id=0)
        return source.filter(lambda x: x > 1).create_tuple_iterator(output_numpy=True)

    state = shard(3).state_dict()
    with pytest.raises(ValueError, match="only map, project, rename and batch"):
        shard(2).load_state_dict(state)
    other = shard(3)
    other.load_state_dict(state)  # the same number needs no dealing
    assert len(list(other)) > 0


@pytest.mark.parametrize(
    "kind, state",
    [
        (TypeError, 3),
        (ValueError, {}),
        (ValueError, {"version": 1, "seed": 1, "epoch": 0, "row": 0, "columns": ["y"]}),
        (ValueError, {"version": 1, "seed": 1, "epoch": 0, "row": -1, "columns": ["x"]}),
    ],
)
def test_what_is_no_state(kind, state):
    with pytest.raises(kind):
        numbers().create_tuple_iterator().load_state_dict(state)


def test_init_step_and_reset():
    dataset = numbers(6, shuffle=True)
    whole = read(dataset, 2)
    dataset.set_init_step(8)
    assert dataset.get_init_step() == 8
    iterator = dataset.create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [int(row[0]) for row in iterator] == whole[1][2:]
    dataset.set_init_step(0)
    assert [[int(r[0].asnumpy()) for r in dataset.next_epoch()] for _ in range(2)] == whole
    dataset.reset()
    assert [int(r[0].asnumpy()) for r in dataset.next_epoch()] == whole[0]


# ---- ends and memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [None, 2])
def test_endless_repetition_ends_with_take(workers):
    mapped = numbers(3).repeat(-1).map(lambda x: x + 1, num_parallel_workers=workers)
    assert read(mapped.take(7)) == [1, 2, 3, 1, 2, 3, 1]
    assert read(numbers(3).filter(lambda x: x > 5).repeat(-1).take(2)) == []


@pytest.mark.parametrize("kind", ["rows", "batches", "threads"])
def test_memory_does_not_grow_with_epochs(kind):
    class Source:
        def __len__(self):
            return 3000

        def __getitem__(self, i):
            return np.array([i])

    dataset = ds.GeneratorDataset(Source(), ["x"], shuffle=True)
    if kind == "threads":
        dataset = dataset.map(lambda x: x + 1, num_parallel_workers=2)
    dataset = dataset.batch(50) if kind == "batches" else dataset
    iterator = dataset.create_tuple_iterator(num_epochs=6, output_numpy=True)
    for _ in range(2):
        for _ in iterator:
            pass
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(4):
            for _ in iterator:
                pass
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 200_000  # twelve thousand rows were read
    finally:
        tracemalloc.stop()


def test_batches_become_tensors_of_their_own():
    source = np.arange(12, dtype=np.float32).reshape(6, 2)
    dataset = ds.NumpySlicesDataset(source, ["x"], shuffle=False)
    for rows in (dataset, dataset.batch(2), dataset.batch(2).map(lambda x: x)):
        for (tensor,) in rows.create_tuple_iterator(num_epochs=1):
            tensor += 1
    assert source.tolist() == np.arange(12).reshape(6, 2).tolist()


# ---- fast batches, fused operations, rewriting -------------------------------------------------------------


class Fast(ds.MappableDataset):
    """A source that makes batches itself."""

    def __init__(self, n):
        super().__init__(["a", "b"], shuffle=False)
        self.n, self.asked = n, []

    def source_size(self):
        return self.n

    def row(self, index):
        return np.array(index), np.array(-index)

    def batches(self, epoch, size, drop_remainder):
        self.asked.append((epoch, size, drop_remainder))
        if size == 3:
            return None
        stop = self.n // size * size if drop_remainder else self.n
        return ((np.arange(i, min(i + size, stop)),) * 2 for i in range(0, stop, size))


def test_batches_that_a_source_makes_itself():
    source = Fast(7)
    above = source.project(["b", "a"]).rename(["b"], ["c"])
    assert read(above.batch(4)) == [[0, 1, 2, 3], [4, 5, 6]]
    assert read(above.batch(4, drop_remainder=True)) == [[0, 1, 2, 3]]
    assert source.asked == [(0, 4, False), (0, 4, True)]
    assert read(above.batch(3)) == [[0, -1, -2], [-3, -4, -5], [-6]]  # it may decline
    read(above.map(lambda c: c).batch(2))
    read(above.batch(2, per_batch_map=lambda c, a, info: (c, a)))
    assert len(source.asked) == 3


def test_fusion_can_be_switched_off():
    images = np.random.default_rng(0).integers(0, 255, (4, 16, 16, 3), np.uint8)
    operations = [vision.Resize(8), vision.RandomHorizontalFlip(), vision.HWC2CHW()]

    def values():
        return read(ds.NumpySlicesDataset(images, ["image"], shuffle=False).map(operations))

    assert ds.config.get_enable_fusion() is True
    fused = values()
    ds.config.set_enable_fusion(False)
    assert values() == fused
    with pytest.raises(TypeError):
        ds.config.set_enable_fusion(1)


def test_rewriters_change_a_copy(monkeypatch):
    monkeypatch.setattr(rewrite, "_rewriters", list(rewrite._rewriters))
    seen = []

    def first_two(root, run):
        seen.append(isinstance(run, Run))
        return root.take(2)

    dataset = numbers(5).map(lambda x: x + 1)
    rewrite.add(first_two)
    rewrite.add(first_two)  # once is enough
    assert read(dataset) == [1, 2] and seen == [True]
    assert len(dataset) == 5 and len(dataset.parent) == 0 and dataset.children[0]._run is None


# ---- tuning and profile ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "count, waited, load, expected",
    [
        (2, 0.5, 2.0, 3),
        (4, 0.5, 4.0, 4),
        (3, 0.0, 0.5, 2),
        (2, 0.05, 1.0, 2),
        (1, 0.0, 0.0, 1),
        (2, 0.5, 0.2, 2),
    ],
)
def test_how_many_workers_are_wanted(count, waited, load, expected):
    assert autotune.wanted(count, waited, load, most=4) == expected


def test_autotune_changes_workers_and_writes_what_it_found(tmp_path):
    prefix = str(tmp_path / "tuned")
    ds.config.set_enable_autotune(True, prefix)
    ds.config.set_autotune_interval(8)
    images = np.zeros((64, 32, 32, 3), np.uint8)
    source = ds.NumpySlicesDataset(images, ["image"], shuffle=False)
    mapped = source.map(lambda x: (threading.Event().wait(0.01), x)[1], num_parallel_workers=2).batch(2)
    iterator = mapped.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert len(list(iterator)) == 32
    assert max(iterator._run.workers.values()) > 2  # its reader did nothing but wait
    table = json.loads((tmp_path / "tuned_0.json").read_text())
    assert any("MapDataset (num_parallel_workers: " in line for line in table["summary"])
    ds.config.set_enable_autotune(False)


def test_a_tuned_pipeline_is_read_back(tmp_path):
    folder = tmp_path / "images" / "kind"
    folder.mkdir(parents=True)
    for i in range(8):
        (folder / f"{i}.png").write_bytes(bytes([i]))
    ds.config.set_enable_autotune(True, str(tmp_path / "tuned"))
    source = ds.ImageFolderDataset(str(tmp_path / "images"), shuffle=False)
    made = source.map(transforms.PadEnd([4], 0), ["image"], num_parallel_workers=3).batch(2)
    expected = read(made)
    ds.config.set_enable_autotune(False)
    again = ds.deserialize(json_filepath=str(tmp_path / "tuned_0.json"))
    assert read(again) == expected and again.children[0].num_parallel_workers in (2, 3)


def test_profile_names_the_bottleneck(capsys):
    def slow(x):
        threading.Event().wait(0.02)
        return x

    dataset = numbers(40).map(slow, num_parallel_workers=2).map(lambda x: x).batch(4)
    found = ds.profile(dataset)
    assert found.bottleneck == "Map [slow]"
    printed = capsys.readouterr().out
    assert "Map [slow]" in printed and "2 threads" in printed and "bottleneck: Map [slow]" in printed
    stages = {stage["name"]: stage for stage in found.stages}
    assert [stage["rows"] for stage in found.stages] == [10, 40, 40, 40]
    assert stages["Map [slow]"]["busy_seconds"] > 0.7
    assert stages["Map [slow]"]["fill"] is not None and stages["Batch 4"]["workers"] == ""
    assert dataset.profile(rows=2, show=False).stages[0]["rows"] == 2
    assert capsys.readouterr().out == ""


def test_profile_of_what_a_block_reads(capsys):
    with ds.profile() as found:
        for _ in numbers(10).batch(2).create_tuple_iterator(num_epochs=1):
            threading.Event().wait(0.1)
    assert found.bottleneck.startswith("what reads the rows")
    assert "the pipeline waits for it" in capsys.readouterr().out
    iterator = numbers(4).create_tuple_iterator(num_epochs=1, output_numpy=True)
    with ds.profile(show=False) as other:
        pass
    assert other.stages == [] and other.bottleneck == "nothing was read" and len(list(iterator)) == 4
    with pytest.raises(TypeError):
        ds.profile(3)


# ---- the device's queue ------------------------------------------------------------------------------------


def test_a_device_queue_gives_the_rows_in_order():
    queue = numbers(5).batch(2).device_que(queue_name="mine")
    assert (queue.queue_name, queue.device_type, len(queue)) == ("mine", "CPU", 3)
    assert numbers(5).device_que().queue_name != numbers(5).device_que().queue_name
    with pytest.raises(RuntimeError, match="call send"):
        queue.get_next()
    queue.send(2)
    rows = [queue.get_next() for _ in range(8)]
    assert [None if r is None else r[0].asnumpy().tolist() for r in rows] == 2 * [[0, 1], [2, 3], [4], None]
    assert queue.get_send_info()[0] == 6
    with pytest.raises(RuntimeError, match="all epochs are read"):
        queue.get_next()
    queue.release()
    with pytest.raises(RuntimeError):
        queue.get_mbuf_queue_size()


def test_a_device_queue_ends_when_it_is_released_and_tells_errors():
    def fails(x):
        raise ValueError("no")

    endless = numbers(5).device_que(send_epoch_end=False)
    endless.send()
    endless.stop_send()
    endless.continue_send()
    assert [int(endless.get_next()[0].asnumpy()) for _ in range(7)] == [0, 1, 2, 3, 4, 0, 1]
    endless.release()
    broken = numbers(5).map(fails).device_que()
    broken.send(1)
    with pytest.raises(RuntimeError, match="raised ValueError: no"):
        broken.get_next()
    broken.release()
    for wrong in (iter, lambda q: q.create_dict_iterator(), lambda q: q.output_shapes()):
        with pytest.raises(RuntimeError):
            wrong(broken)
    with pytest.raises(TypeError):
        numbers(5).device_que(queue_name=3)


def test_processes_share_rows_out_without_a_seed(monkeypatch, tmp_path):
    monkeypatch.setitem(ds.config._state, "seed", None)
    monkeypatch.setattr(ds.config, "given_seed", lambda: None)
    parts = [read(ds.NumpySlicesDataset(np.arange(40), ["x"], num_shards=2, shard_id=i)) for i in (0, 1)]
    assert sorted(sum(parts, [])) == list(range(40)) and parts[0] != sorted(parts[0])
    for name in "abcd":
        (tmp_path / name).write_text("".join(f"{name}{i}\n" for i in range(9)))
    files = [str(tmp_path / name) for name in "abcd"]
    lines = [read(ds.TextFileDataset(files, num_shards=2, shard_id=i)) for i in (0, 1)]
    assert len(set(sum(lines, []))) == 36


def test_asking_for_shapes_runs_no_callbacks():
    class Told(ds.DSCallback):
        events: list = []

        def ds_begin(self, context):
            self.events.append(context.cur_epoch_num)

    dataset = numbers(3).map(lambda x: x, callbacks=Told())
    assert dataset.output_shapes() == [[]] and len(dataset) == 3 and Told.events == []
    assert len(read(dataset)) == 3 and Told.events == [0]
