"""The queue of a device, and rows shared out among processes."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mycelia import dataset as ds


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
