"""Pipelines that read through a cache of a real server."""

from __future__ import annotations

import copy
import gc

import numpy as np
import pytest

import mycelia.dataset as ds
from mycelia.dataset import transforms, vision


def epochs(dataset, count: int = 1) -> list[list]:
    """All rows of so many epochs, by one iterator."""
    iterator = dataset.create_tuple_iterator(num_epochs=count, output_numpy=True)
    return [list(iterator) for _ in range(count)]


def equal(a, b) -> bool:
    return len(a) == len(b) and all(
        len(x) == len(y)
        and all(u.dtype == v.dtype and u.shape == v.shape and np.array_equal(u, v) for u, v in zip(x, y))
        for x, y in zip(a, b)
    )


class Count:
    """An operation that counts its rows."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x


@pytest.fixture
def pictures(images):
    """A pipeline of decoded images, in random order unless told otherwise, with what counts its rows."""

    def make(cache, counter=None, **arguments):
        source = ds.ImageFolderDataset(images, **arguments)
        operations = [vision.Decode(), counter or Count(), vision.Resize((6, 7))]
        return source.map(operations, "image", cache=cache)

    return make


def test_rows_and_their_order_are_those_without_a_cache(server, pictures):
    counter = Count()
    without = epochs(pictures(None), 4)
    within = epochs(pictures(server.cache(), counter), 4)
    assert all(map(equal, without, within))
    assert not equal(within[0], within[1]), "each epoch has its own order"
    assert counter.calls == 24, "what is in the cache is not computed again"


def test_operations_above_the_cache_run_in_every_epoch(server, pictures):
    def make(cache):
        dataset = pictures(cache, shuffle=False).map(vision.RandomCrop(3), "image")
        return dataset.shuffle(5).batch(4).repeat(2)

    without, within = epochs(make(None), 3), epochs(make(server.cache()), 3)
    assert all(map(equal, without, within)) and not equal(within[1], within[2])


@pytest.mark.parametrize("drop", [False, True])
def test_batches_come_straight_from_memory(server, pictures, drop):
    cache = server.cache()
    without = epochs(pictures(None).batch(7, drop_remainder=drop), 3)
    within = epochs(pictures(cache).batch(7, drop_remainder=drop), 3)
    assert all(map(equal, without, within))
    stat = cache.get_stat()
    assert stat.num_mem_cached == 24 and stat.num_hit == 2 * (21 if drop else 24)


def test_two_clients_share_what_equal_pipelines_store(server, pictures):
    session, counter = server.session(), Count()
    a, b = (pictures(server.cache(session), counter) for _ in range(2))
    assert equal(epochs(a)[0], epochs(b)[0]) and counter.calls == 24
    other = pictures(server.cache(session), counter).map(vision.Invert(), "image")
    epochs(other)
    assert counter.calls == 24


def test_shards_of_a_dataset_share_one_cache(server, images):
    session, counter = server.session(), Count()
    labels = []
    for shard in (0, 1, 0):
        source = ds.ImageFolderDataset(images, num_shards=2, shard_id=shard, shuffle=False)
        dataset = source.map(counter, "label", cache=server.cache(session))
        labels += [int(r[1]) for r in epochs(dataset)[0]]
    assert counter.calls == 24 and labels[:12] == labels[24:]


def test_one_cache_object_is_for_one_pipeline(server, pictures, lines):
    cache = server.cache()
    first = pictures(cache)
    assert len(epochs(first)[0]) == 24 and len(epochs(first.take(5).repeat(5))[0]) == 25
    epochs(pictures(copy.deepcopy(cache)))
    with pytest.raises(RuntimeError, match="Cannot re-use a cache for a different tree!"):
        epochs(ds.TextFileDataset(lines, cache=cache))


def test_a_cached_source_and_project_and_rename(server, images):
    def make(cached):
        source = ds.ImageFolderDataset(images, shuffle=False, cache=server.cache() if cached == 0 else None)
        dataset = source.rename("image", "picture").project("picture")
        return dataset.map(vision.Decode(), "picture", cache=server.cache() if cached == 1 else None)

    without = epochs(make(None))[0]
    for cached in (0, 1):
        assert all(equal(e, without) for e in epochs(make(cached), 2))
        assert make(cached).get_col_names() == ["picture"] and make(cached).get_dataset_size() == 24


@pytest.mark.parametrize(
    "sampler",
    [
        lambda: ds.SubsetSampler([3, 3, 20, 1, 3]), lambda: ds.RandomSampler(True, 40),
        lambda: ds.PKSampler(3, shuffle=True), lambda: ds.WeightedRandomSampler([1.0] * 24, 30),
        lambda: ds.DistributedSampler(5, 2), lambda: ds.SequentialSampler(4, 6), lambda: [1, 2, 1],
    ],
)  # fmt: skip
def test_every_sampler_stays_above_the_cache(server, pictures, sampler):
    counter = Count()
    without = epochs(pictures(None, sampler=sampler()), 3)
    within = epochs(pictures(server.cache(), counter, sampler=sampler()), 3)
    assert all(map(equal, without, within))
    assert counter.calls <= 24, "a row is computed once"


def test_an_epoch_that_is_left_early_keeps_what_it_computed(server, pictures):
    cache, counter = server.cache(), Count()
    iterator = pictures(cache, counter).create_tuple_iterator(output_numpy=True)
    for _ in range(10):
        next(iterator)
    iterator.stop()
    assert cache.get_stat().num_mem_cached >= 10
    epochs(pictures(server.cache(cache.session_id), counter), 2)
    assert counter.calls <= 24 + 16, "at most what was computed ahead is lost"


def test_texts_and_rows_of_any_shape(server, tmp_path):
    class Rows:
        cache_key = "ragged"

        def __len__(self):
            return 9

        def __getitem__(self, i):
            return np.full((i, 2), i, np.float16), f"row {i}" * i, np.asarray(i % 2 == 0)

    def make(cache):
        source = ds.GeneratorDataset(Rows(), ["a", "b", "c"], shuffle=False)
        return source.map(lambda x: x, "a", cache=cache)

    cache = server.cache()
    without = epochs(make(None))[0]
    assert all(equal(e, without) for e in epochs(make(cache), 2))
    assert [b[2].shape for b in epochs(make(cache).project(["a", "b", "c"]).filter(lambda a, b, c: c))[0]]
    with pytest.raises(RuntimeError, match="shape"):
        epochs(make(cache).batch(3))
    stat = cache.get_stat()
    assert (stat.min_row_id, stat.max_row_id, stat.num_mem_cached) == (0, 8, 9) and stat.avg_cache_sz > 0


def test_mindrecord_rows_are_cached(server, tmp_path):
    source = ds.NumpySlicesDataset({"x": np.arange(20, dtype=np.int32)}, shuffle=False)
    source.save(str(tmp_path / "numbers.mindrecord"))

    def make(cache):
        return ds.MindDataset(str(tmp_path / "numbers.mindrecord"), shuffle=True, cache=cache)

    cache = server.cache()
    assert all(map(equal, epochs(make(None), 3), epochs(make(cache), 3)))
    assert cache.get_stat().num_mem_cached == 20


@pytest.mark.parametrize("drop", [False, True])
def test_batches_of_a_source_that_makes_them_go_to_the_cache(server, tmp_path, drop):
    source = ds.NumpySlicesDataset({"x": np.arange(300, dtype=np.int32).reshape(50, 6)}, shuffle=False)
    path = str(tmp_path / "table.mindrecord")
    source.save(path)

    def make(cache, shuffle=False):
        return ds.MindDataset(path, shuffle=shuffle, cache=cache).batch(8, drop_remainder=drop)

    cache = server.cache()
    assert all(map(equal, epochs(make(None), 3), epochs(make(cache), 3)))
    stored = 48 if drop else 50
    stat = cache.get_stat()
    assert (stat.num_mem_cached, stat.num_miss, stat.num_hit) == (stored, stored, 2 * stored)
    shuffled = server.cache(cache.session_id)
    assert all(map(equal, epochs(make(None, True), 3), epochs(make(shuffled, True), 3)))


def test_failing_rows_are_left_out_as_without_a_cache(server, pictures, images):
    def fussy(image):
        if image[0, 0, 0] % 3 == 0:
            raise ValueError("not this one")
        return image

    def make(cache):
        return ds.ImageFolderDataset(images, shuffle=False).map(
            [vision.Decode(), fussy], "image", cache=cache
        )

    with pytest.raises(RuntimeError, match="not this one"):
        epochs(make(server.cache()))
    ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode.SKIP)
    without = epochs(make(None))[0]
    assert 0 < len(without) < 24
    assert all(equal(e, without) for e in epochs(make(server.cache()), 2))


@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_workers_compute_what_the_cache_has_not(server, images, processes):
    def make(cache):
        source = ds.ImageFolderDataset(images, shuffle=True)
        return source.map(
            [vision.Decode(), lambda x: x[:4]], "image", num_parallel_workers=2,
            python_multiprocessing=processes, cache=cache,
        )  # fmt: skip

    cache = server.cache()
    assert all(map(equal, epochs(make(None), 3), epochs(make(cache), 3)))
    assert cache.get_stat().num_miss == 24


# ---- sources without row numbers -------------------------------------------------------------------------


def texts(epoch) -> list[str]:
    return [str(row[0]) for row in epoch]


def test_without_shuffle_the_order_is_the_files(server, lines):
    cache = server.cache()
    expected = [f"line {i}" for i in range(100)]
    assert [texts(e) for e in epochs(ds.TextFileDataset(lines, shuffle=False, cache=cache), 3)] == [
        expected
    ] * 3
    stat = cache.get_stat()
    assert (stat.num_miss, stat.num_hit, stat.state) == (100, 300, 2)


def test_shuffle_samples_and_shards_come_from_the_cache(server, lines):
    session, counter = server.session(), Count()

    def make(**arguments):
        source = ds.TextFileDataset(lines, **arguments)
        return source.map(counter, "text", cache=server.cache(session))

    first, second = epochs(make(shuffle=True), 2)
    assert sorted(texts(first)) == sorted(texts(second)) and texts(first) != texts(second)
    assert len(epochs(make(num_samples=7))[0]) == 7
    shards = [texts(epochs(make(num_shards=3, shard_id=k, shuffle=False))[0]) for k in range(3)]
    assert shards[1][:2] == ["line 1", "line 4"] and len(set(sum(shards, []))) == 100
    assert [b[0].shape for b in epochs(make(shuffle=False).batch(40))[0]] == [(40,), (40,), (20,)]
    assert counter.calls == 100


def test_repeat_below_the_cache(server, lines):
    dataset = (
        ds.TextFileDataset(lines, shuffle=False).repeat(2).map(lambda x: x, "text", cache=server.cache())
    )
    assert [len(e) for e in epochs(dataset, 2)] == [200, 200]


# ---- sessions, sizes, statistics -------------------------------------------------------------------------


def test_a_private_session_ends_with_its_cache(server, lines):
    cache = ds.DatasetCache(None, port=server.port)
    assert len(epochs(ds.TextFileDataset(lines, cache=cache), 2)[1]) == 100
    before = set(_sessions(server))
    assert cache.client._private in before
    number = cache.client._private
    del cache
    gc.collect()  # the nodes of a pipeline know one another
    server.wait_for(lambda: number not in _sessions(server))


def _sessions(server) -> list[int]:
    from mycelia_cache import commands

    return list(commands.overview("127.0.0.1", server.port).sessions)


def test_an_unknown_session_is_an_error(server, pictures):
    with pytest.raises(RuntimeError, match="session was not found"):
        epochs(pictures(server.cache(4294967295)))


def test_no_server_is_an_error_at_once(server, pictures):
    dataset = pictures(ds.DatasetCache(1, port=1025))
    message = "(?s)port 1025 is unreachable.*GRPC Code 14.*mycelia-cache start"
    with pytest.raises(RuntimeError, match=message):
        dataset.create_tuple_iterator()
    bypass = pictures(ds.DatasetCache(1, port=1025, on_failure="bypass"))
    assert all(map(equal, epochs(bypass, 2), epochs(pictures(None), 2)))


def test_a_cache_that_is_not_in_use_has_no_statistics(server):
    with pytest.raises(RuntimeError, match="not in use yet"):
        server.cache().get_stat()


def test_size_and_spilling_of_the_first_client_hold(server, lines, warned):
    session = server.session()
    epochs(ds.TextFileDataset(lines, cache=server.cache(session, size=2)))
    epochs(ds.TextFileDataset(lines, cache=server.cache(session, size=3)))
    assert [w for w in warned if "made with size=2 and spilling=False" in w]


def big(cache, counter=None):
    """30 rows of 95 KB, with numbers."""

    class Rows:
        cache_key = "big rows"

        def __len__(self):
            return 30

        def __getitem__(self, i):
            return np.full(95 << 10, i, np.uint8)

    source = ds.GeneratorDataset(Rows(), ["x"], shuffle=False)
    return source.map(counter or Count(), "x", cache=cache)


def test_a_full_cache_keeps_what_fits_and_the_rest_comes_from_the_source(server):
    cache, counter = server.cache(size=1), Count()
    for epoch in epochs(big(cache, counter), 3):
        assert [int(r[0][5]) for r in epoch] == list(range(30))
    stat = cache.get_stat()
    assert stat.num_mem_cached == 10 and stat.mem_bytes <= 1 << 20 and stat.state == 4
    assert counter.calls == 30 + 20 + 20


def test_rows_without_room_are_read_from_disk(server):
    cache, counter = server.cache(size=1, spilling=True), Count()
    for epoch in epochs(big(cache, counter), 3):
        assert [int(r[0][5]) for r in epoch] == list(range(30))
    stat = cache.get_stat()
    assert (stat.num_mem_cached, stat.num_disk_cached, counter.calls) == (10, 20, 30)
    assert stat.disk_bytes >= 20 * (95 << 10)
    assert [b[0].shape for b in epochs(big(cache).batch(8))[0]] == [(8, 95 << 10)] * 3 + [(6, 95 << 10)]


def long_lines(tmp_path) -> str:
    path = tmp_path / "long.txt"
    path.write_text("".join(f"{i}{'x' * 50000}\n" for i in range(20)))  # 4 bytes each in a row
    return str(path)


def test_a_source_without_numbers_that_finds_no_room_is_an_error(server, tmp_path):
    path = long_lines(tmp_path)
    with pytest.raises(RuntimeError, match="Out of memory"):
        epochs(ds.TextFileDataset(path, cache=server.cache(size=1)))
    cache = server.cache(size=1, on_full="source")
    dataset = ds.TextFileDataset(path, shuffle=False, cache=cache)
    for epoch in epochs(dataset, 2):
        assert [t.rstrip("x") for t in texts(epoch)] == [str(i) for i in range(20)]


def test_spilling_needs_a_server_that_can(make_server, pictures):
    plain = make_server()
    with pytest.raises(RuntimeError, match="Server is not set up with spill support"):
        epochs(pictures(plain.cache(spilling=True)))


def test_numbers_cast_above_the_cache(server, pictures):
    dataset = pictures(server.cache(), shuffle=False).map(transforms.TypeCast("float32"), "label")
    assert {r[1].dtype for e in epochs(dataset, 2) for r in e} == {np.dtype(np.float32)}


def test_a_profile_counts_hits_and_misses(server, pictures, capsys):
    cache = server.cache()
    epochs(pictures(cache))
    half = pictures(cache, sampler=ds.SequentialSampler(0, 3))
    for dataset, hits, misses in ((half, 3, 0), (pictures(server.cache()), 0, 24)):
        found = ds.profile(dataset.batch(2))
        (stage,) = [stage for stage in found.stages if "hits" in stage]
        assert (stage["hits"], stage["misses"], stage["name"]) == (hits, misses, "CacheMerge")
        assert stage["bytes"] > 0
    printed = capsys.readouterr().out
    assert "cache hits" in printed and "100% of 3" in printed and "0% of 24" in printed


def test_a_profile_counts_the_rows_of_a_build(server, tmp_path):
    (tmp_path / "lines").write_text("a\nb\nc\n")
    dataset = ds.TextFileDataset(str(tmp_path / "lines"), cache=server.cache())
    first, second = (ds.profile(dataset, show=False).stages[0] for _ in range(2))
    assert (first["hits"], first["misses"]) == (3, 3) and (second["hits"], second["misses"]) == (3, 0)
