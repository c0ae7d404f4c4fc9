"""The state of an iterator: going on where another was left."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia.dataset import vision


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
