"""Ends and memory of an iteration, batches that a source makes, rewritten pipelines."""

from __future__ import annotations

import gc
import os
import tracemalloc

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia.dataset import vision
from mycelia.dataset.execution import rewrite
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
