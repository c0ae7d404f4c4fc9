"""`DatasetCache` as core knows it: its arguments, and that nothing is contacted. No server here."""

from __future__ import annotations

import copy
import pickle

import pytest

import mycelia.dataset as ds
from mycelia import plugins
from mycelia.dataset import cache as module


@pytest.mark.parametrize(
    "arguments, error, name",
    [
        ({"session_id": 0}, ValueError, "session_id"), ({"session_id": "a"}, TypeError, "session_id"),
        ({"session_id": 2**32}, ValueError, "session_id"), ({"session_id": 1.0}, TypeError, "session_id"),
        ({"session_id": True}, TypeError, "session_id"), ({"size": -1}, ValueError, "size"),
        ({"size": "a"}, TypeError, "size"), ({"spilling": 1}, TypeError, "spilling"),
        ({"hostname": 3}, TypeError, "hostname"), ({"hostname": ""}, RuntimeError, "same host"),
        ({"hostname": "10.1.2.3"}, RuntimeError, "same host"), ({"port": "a"}, TypeError, "port"),
        ({"port": 80}, ValueError, "port"), ({"port": 65536}, ValueError, "port"),
        ({"num_connections": 0}, ValueError, "num_connections"),
        ({"num_connections": "a"}, TypeError, "num_connections"),
        ({"prefetch_size": 0}, ValueError, "prefetch_size"),
        ({"prefetch_size": 2**31}, ValueError, "prefetch_size"),
        ({"on_failure": "ignore"}, ValueError, "on_failure"), ({"on_full": None}, ValueError, "on_full"),
        ({"check_content": 1}, TypeError, "check_content"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments(arguments, error, name):
    with pytest.raises(error, match=name):
        ds.DatasetCache(**{"session_id": 1, **arguments})


def test_nothing_is_contacted_when_it_is_made(monkeypatch):
    monkeypatch.setattr(plugins, "manager", lambda: pytest.fail("a plugin was asked"))
    cache = ds.DatasetCache(2**32 - 1, 2**40, True, "localhost", 1025, 1, 2**31 - 1)
    ds.DatasetCache(None)
    with pytest.raises(RuntimeError, match="not in use yet"):
        cache.get_stat()


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1\n2\n3\n")
    return str(path)


def test_only_a_dataset_cache_is_taken(text):
    for make in (lambda c: ds.TextFileDataset(text, cache=c), lambda c: ds.FakeImageDataset(cache=c)):
        with pytest.raises(TypeError, match="cache with value .* is not of type .*DatasetCache"):
            make(3)
        assert make(ds.DatasetCache(1)).cache is not None and make(None).cache is None
    with pytest.raises(TypeError, match="cache with value .* is not of type .*DatasetCache"):
        ds.TextFileDataset(text).map(lambda x: x, cache="z")


class Client:
    """A plugin's client that puts its mark on what it is given."""

    def __init__(self):
        self.given = []

    def rewritten(self, node):
        self.given.append(node)
        return ds.NumpySlicesDataset([7, 8], node.get_col_names(), shuffle=False)


@pytest.fixture
def client(monkeypatch):
    made = Client()

    class Manager:
        class hook:
            @staticmethod
            def mycelia_dataset_cache(config):
                return made

    monkeypatch.setattr(plugins, "manager", lambda: Manager)
    return made


def test_cached_nodes_are_exchanged_and_the_users_stay(text, client):
    cached = ds.TextFileDataset(text, shuffle=False).map(lambda x: x, "text", cache=ds.DatasetCache(1))
    dataset = cached.rename("text", "number").batch(2)
    assert [b.tolist() for (b,) in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1)] == [[7, 8]]
    assert len(client.given) == 1 and client.given[0].cache is cached.cache
    assert dataset.children[0].children[0] is cached
    plain = ds.TextFileDataset(text)
    assert module.rewritten(plain) is plain


def test_copies_share_the_client_and_pickles_do_not(client):
    cache = ds.DatasetCache(5, size=3)
    assert copy.deepcopy(cache).client is cache.client
    other = pickle.loads(pickle.dumps(cache))
    assert (other.session_id, other.size) == (5, 3) and other._shared.client is None


def test_without_a_plugin_the_error_says_what_to_install(text, monkeypatch):
    class Manager:
        class hook:
            @staticmethod
            def mycelia_dataset_cache(config):
                return None

    monkeypatch.setattr(plugins, "manager", lambda: Manager)
    dataset = ds.TextFileDataset(text, cache=ds.DatasetCache(1))
    with pytest.raises(RuntimeError, match="pip install mycelia-cache"):
        dataset.create_tuple_iterator()
