"""Rows as bytes, and places for them in memory and on disk."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mycelia_cache import memory
from mycelia_cache import rows as form
from mycelia_cache.memory import Budget
from mycelia_cache.protocol import Refused
from mycelia_cache.spill import Quota, SpillFile
from mycelia_cache.store import Place, Store

ROWS = [
    (np.arange(6, dtype=np.float32).reshape(2, 3), np.asarray(3, np.int32)),
    (np.asarray("grün"), np.asarray(b"bytes"), np.asarray(True)),
    (np.zeros((0, 4), np.int64), np.asarray([1.5, -2], np.float16)),
    (np.asarray(""), np.arange(5000, dtype=np.uint16), np.asarray([["a", "bcd"]])),
    (np.asfortranarray(np.arange(2000.0).reshape(40, 50)), np.int8([-1])),
]


def packed(number: int, row: tuple) -> bytes:
    return b"".join(form.encoded(number, row, form.layout_of(row)))


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_a_row_comes_back_as_it_was(row):
    data = packed(7, row)
    assert len(data) % 8 == 0
    back = form.decoded(data, 0, 7, len(data))
    for a, b in zip(row, back, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b) and b.flags.writeable


def test_bytes_of_another_row_are_no_row():
    data = packed(7, ROWS[0])
    assert form.decoded(data, 0, 8, len(data)) is None
    assert form.decoded(data, 0, 7, len(data) + 8) is None
    assert form.decoded(bytes(len(data)), 0, 0, len(data)) is None


@pytest.mark.parametrize("size", [3, 60, 3000])
def test_rows_of_one_shape_are_gathered(size):
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (10, size), np.uint8)
    label = rng.normal(size=10)
    layout = form.layout_of([image[0], label[0:1].reshape(())])
    block = form.encoded_block(np.arange(10), [image, label], layout)
    data = block.reshape(-1)
    assert data[: layout.size].tobytes() == packed(0, (image[0], np.asarray(label[0])))
    order = rng.permutation(10)
    got = form.gathered(data, order * layout.size, order, layout.size)
    assert np.array_equal(got[0], image[order]) and np.array_equal(got[1], label[order])
    assert form.gathered(data, order * layout.size, order[::-1], layout.size) is None, "other rows"


def test_rows_of_one_length_and_two_shapes_are_not_gathered():
    a, b = packed(0, (np.zeros((2, 3)),)), packed(1, (np.zeros((3, 2)),))
    assert len(a) == len(b)
    data = np.frombuffer(a + b, np.uint8)
    assert form.gathered(data, np.array([0, len(a)]), np.array([0, 1]), len(a)) is None


def test_objects_cannot_be_cached():
    with pytest.raises(RuntimeError, match="only numbers and texts can be cached"):
        form.layout_of((np.array([None]),))
    with pytest.raises(RuntimeError, match="is of type dict"):
        form.layout_of(({"a": 1},))


# ---- places ----------------------------------------------------------------------------------------------


def put(store: Store, numbers, size: int = 1000, client: int = 1) -> np.ndarray:
    """Store rows of `size` bytes of data; which of them were stored."""
    data = [packed(n, (np.full(size, n % 251, np.uint8),)) for n in numbers]
    lengths = np.array([len(d) for d in data], np.uint64)
    return store.put(client, np.array(numbers, np.int64), lengths, b"".join(data))


def value(store: Store, number: int):
    lengths, data = store.get(np.array([number]))
    return form.decoded(data, 0, number, int(lengths[0]))[0] if lengths[0] else None


@pytest.fixture
def budget():
    return Budget(64 << 20)


@pytest.fixture
def spill(tmp_path):
    def make(limit=None, keep=False):
        return SpillFile(tmp_path / "spill", Quota(limit), keep)

    return make


def test_a_row_is_stored_once(budget):
    store = Store(budget)
    assert put(store, [3, 5, 3]).tolist() == [3, 5]
    assert put(store, [5, 6]).tolist() == [6]
    assert store.rows_in_memory == 3 and (store.min_row, store.max_row) == (3, 6)
    assert (value(store, 5) == 5).all() and value(store, 4) is None and value(store, 1000) is None


def test_rows_that_fit_into_a_small_cache_are_kept(budget):
    store = Store(budget, 1 << 20)
    stored = put(store, range(20), 95 << 10)
    assert len(stored) == 10, "1 MB, counted with the table, holds ten rows of 95 KB"
    assert store.bytes_in_memory <= 1 << 20
    assert len(put(store, [50], 20 << 10)) == 1, "a smaller row finds room"


def test_what_all_caches_have_together_is_limited():
    budget = Budget(1 << 20)
    first, second = Store(budget), Store(budget)
    put(first, range(6), 100 << 10)
    assert 0 < len(put(second, range(10), 100 << 10)) < 5
    assert budget.used <= 1 << 20
    first.close()
    assert len(put(second, range(20, 24), 100 << 10)) == 4, "what a cache had is free when it ends"


def test_rows_without_room_go_to_disk(budget, spill):
    store = Store(budget, 1 << 20, spill())
    assert len(put(store, range(30), 95 << 10)) == 30
    assert store.rows_in_memory == 10 and store.rows_on_disk == 20
    assert all((value(store, n) == n).all() for n in range(30))


def test_a_full_disk_refuses_rows(budget, spill):
    store = Store(budget, 1 << 20, spill(limit=500 << 10))
    stored = put(store, range(30), 95 << 10)
    assert len(stored) == 15 and store.out_of_disk
    assert value(store, 29) is None and (value(store, 14) == 14).all()
    assert store.room < 95 << 10


def _arrival(rng, count: int) -> np.ndarray:
    """Row numbers in some order: ascending, descending, by chance, or in blocks."""
    numbers = np.arange(count)
    kind = rng.integers(4)
    if kind == 1:
        return numbers[::-1].copy()
    if kind == 2:
        return rng.permutation(numbers)
    if kind == 3:
        parts = np.array_split(numbers, 7)
        return np.concatenate([parts[i] for i in rng.permutation(7)])
    return numbers


@pytest.mark.parametrize("seed", range(24))
def test_rows_spill_in_any_order_as_long_as_the_disk_has_room(tmp_path, seed):
    rng = np.random.default_rng(seed)
    count, size = int(rng.integers(50, 6000)), int(rng.integers(1, 400))
    cap = int(rng.integers(16 << 10, 512 << 10))
    budget = Budget(cap)
    own = int(rng.choice([0, max(12 << 10, cap // 2)]))
    stored_bytes = count * form.layout_of((np.zeros(size, np.uint8),)).size
    quota = Quota(None if rng.integers(2) else stored_bytes + (32 * count + (1 << 16)))
    store = Store(budget, own, SpillFile(tmp_path / "spill", quota, False))
    numbers, at = _arrival(rng, count), 0
    while at < count:
        step = int(rng.integers(1, 700))
        group = numbers[at : at + step].tolist()
        assert sorted(put(store, group, size).tolist()) == sorted(group)
        at += step
    assert store.rows_in_memory + store.rows_on_disk == count and not store.out_of_disk
    assert budget.used <= cap and store.bytes_in_memory <= (own or cap)
    lengths, data = store.get(np.arange(count))
    starts = np.cumsum(lengths) - lengths
    for n in range(0, count, 7):
        (value_,) = form.decoded(data, int(starts[n]), n, int(lengths[n]))
        assert (value_ == n % 251).all() and len(value_) == size
    store.close()
    assert budget.used == 0 and quota.used == 0


@pytest.mark.parametrize("seed", range(8))
def test_a_disk_that_becomes_full_keeps_what_it_has(tmp_path, seed):
    rng = np.random.default_rng(seed)
    budget, quota = Budget(64 << 10), Quota(int(rng.integers(32 << 10, 256 << 10)))
    store = Store(budget, 0, SpillFile(tmp_path / "spill", quota, False))
    numbers = _arrival(rng, 3000)
    stored: set[int] = set()
    for at in range(0, 3000, 100):
        stored |= set(put(store, numbers[at : at + 100].tolist(), 300).tolist())
        assert quota.used <= quota.limit and budget.used <= budget.cap
    assert store.out_of_disk and 0 < len(stored) < 3000
    there = store.present(np.arange(3000))
    assert set(np.flatnonzero(there).tolist()) == stored
    assert all((value(store, n) == n % 251).all() for n in sorted(stored)[::11])


def test_places_on_disk_of_a_writer_that_died_are_free_again(budget, spill):
    store = Store(budget, 64 << 10, spill(limit=1 << 20))
    lengths = np.full(20, 40 << 10, np.uint64)
    _, places, _ = store.reserve(7, np.arange(20), lengths)
    assert (places == Place.DISK).sum() > 15
    used = store.spill.quota.used
    store.abandon(7)
    assert len(put(store, range(20), 39 << 10)) == 20
    assert store.spill.quota.used == used, "the same places"


def test_the_table_of_a_spilling_cache_has_no_name(budget, spill):
    store = Store(budget, 0, spill())
    put(store, range(500), 100)
    assert [path.name for path in store.spill.directory.iterdir()] == ["rows"]
    assert os.readlink(f"/proc/self/fd/{store.index.fd}").startswith(str(store.spill.directory))


def test_a_row_larger_than_all_room_is_refused_and_the_others_stay(budget):
    store = Store(budget, 1 << 20)
    assert put(store, [0], 2 << 20).tolist() == []
    assert put(store, [1], 1000).tolist() == [1]


def test_damaged_rows_on_disk_are_found_and_made_anew(budget, spill):
    file = spill()
    store = Store(budget, 64 << 10, file)
    put(store, range(8), 30 << 10)
    on_disk = [n for n in range(8) if store.index.entries["state"][n] == 2]
    entry = store.index.entries[on_disk[0]]
    os.pwrite(file.fd, b"damage", int(entry["offset"]) + 100)
    assert value(store, on_disk[0]) is None
    assert not store.present(np.array(on_disk[:1]))[0]
    assert put(store, on_disk[:1], 30 << 10).tolist() == on_disk[:1]
    assert (value(store, on_disk[0]) == on_disk[0]).all()


def test_places_of_a_writer_that_died_are_free_again(budget):
    store = Store(budget, 1 << 20)
    lengths = np.full(9, 100 << 10, np.uint64)
    _, places, _ = store.reserve(7, np.arange(9), lengths)
    assert (places == Place.MEMORY).all()
    assert put(store, range(9), 90 << 10).tolist() == [], "they are about to be written"
    store.abandon(7)
    assert len(put(store, range(9), 90 << 10)) == 9


def test_what_was_not_written_is_not_published(budget):
    store = Store(budget)
    number, _, _ = store.reserve(1, np.arange(2), np.full(2, 64, np.uint64))
    done = store.commit(1, number, np.ones(2, np.uint8), np.zeros(2, np.uint32))
    assert done.tolist() == [], "the bytes there are no rows"
    with pytest.raises(Refused):
        store.commit(1, number, np.ones(2, np.uint8), np.zeros(2, np.uint32))


@pytest.mark.parametrize("rows, lengths", [([-1], [64]), ([0], [7]), ([0], [0])])
def test_nonsense_is_refused(budget, rows, lengths):
    with pytest.raises(Refused):
        Store(budget).reserve(1, np.array(rows, np.int64), np.array(lengths, np.uint64))


def test_rows_on_disk_are_taken_up_again(budget, spill):
    store = Store(budget, 64 << 10, spill(keep=True))
    put(store, range(8), 30 << 10)
    kept = [n for n in range(8) if store.index.entries["state"][n] == 2]
    journal = store.spill.directory / "journal"
    store.close(keep=True)
    journal.write_bytes(journal.read_bytes() + b"torn")
    again = Store(budget, 64 << 10, spill(keep=True))
    again.restore()
    assert again.rows_on_disk == len(kept) > 0
    assert all((value(again, n) == n).all() for n in kept)
    assert put(again, [100], 30 << 10).tolist() == [100]
    assert all((value(again, n) == n).all() for n in kept), "new rows come behind the old ones"
    again.close()
    assert not journal.parent.exists()


def test_the_limit_of_a_container_counts(tmp_path):
    own = tmp_path / "own"
    own.write_text("0::/box/inner\n4:memory:/other\n")
    (tmp_path / "box" / "inner").mkdir(parents=True)
    (tmp_path / "box" / "inner" / "memory.max").write_text("max\n")
    (tmp_path / "box" / "memory.max").write_text("1000000\n")
    (tmp_path / "memory" / "other").mkdir(parents=True)
    (tmp_path / "memory" / "other" / "memory.limit_in_bytes").write_text("2000000\n")
    assert sorted(memory._container_limits(tmp_path, own)) == [1000000, 2000000]
    assert memory.system_memory() > 0
