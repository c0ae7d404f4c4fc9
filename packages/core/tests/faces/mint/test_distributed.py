"""mint.distributed in one process, and the store that processes share."""

from __future__ import annotations

import datetime
import socket
import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia.mint import distributed as d


@pytest.fixture
def world():
    d.init_process_group("mccl")
    yield
    d.destroy_process_group()


def vector(*values):
    return ms.Tensor(np.array(values, np.float32))


def test_groups(world):
    assert d.is_available() and d.is_initialized()
    assert (d.get_rank(), d.get_world_size(), d.get_backend()) == (0, 1, "mccl")
    group = d.new_group([0])
    assert d.get_process_group_ranks(group) == [0] == d.get_process_group_ranks()
    assert d.get_global_rank(group, 0) == 0 == d.get_group_rank(group, 0)
    d.destroy_process_group(group)
    with pytest.raises(RuntimeError, match=group):
        d.get_world_size(group)
    with pytest.raises(RuntimeError):
        d.init_process_group("mccl")


def test_a_process_gets_what_it_gives(world):
    x, out = vector(1, 2), vector(0, 0)
    assert d.all_reduce(x) is None and d.barrier() is None and d.broadcast(x, 0) is None
    d.all_reduce(x, "avg", async_op=True).wait()
    np.testing.assert_array_equal(x.asnumpy(), [1, 2])
    for move in (
        lambda: d.all_gather([out], x),
        lambda: d.all_gather_into_tensor(out, x),
        lambda: d.all_gather_into_tensor_uneven(out, x, [2]),
        lambda: d.gather(x, [out]),
        lambda: d.scatter(out, [x]),
        lambda: d.reduce_scatter(out, [x]),
        lambda: d.reduce_scatter_tensor(out, x, "max"),
        lambda: d.reduce_scatter_tensor_uneven(out, x, [2]),
        lambda: d.all_to_all([out], [x]),
        lambda: d.all_to_all_single(out, x),
    ):
        out.assign_value(vector(0, 0))
        move()
        np.testing.assert_array_equal(out.asnumpy(), [1, 2])


def test_objects(world):
    thing, found = {"a": [1]}, [None]
    d.all_gather_object(found, thing)
    assert found == [thing] and found[0] is not thing
    d.gather_object("x", found)
    assert found == ["x"]
    d.scatter_object_list(found, [5])
    d.broadcast_object_list(found)
    assert found == [5]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda x: d.all_reduce(x, "median"), TypeError),
        (lambda x: d.all_reduce(3), TypeError),
        (lambda x: d.all_reduce(x, group=4), TypeError),
        (lambda x: d.all_reduce(x, async_op=1), TypeError),
        (lambda x: d.broadcast(x, 1), ValueError),
        (lambda x: d.all_gather([x, x], x), TypeError),
        (lambda x: d.all_gather_into_tensor(vector(1, 2, 3), x), ValueError),
        (lambda x: d.send(x, 0), ValueError),
        (lambda x: d.recv(x, 1), RuntimeError),
        (lambda x: d.batch_isend_irecv([]), TypeError),
        (lambda x: d.batch_isend_irecv([d.P2POp("isend", x, 1)]), RuntimeError),
        (lambda x: d.P2POp("push", x, 1), TypeError),
        (lambda x: d.P2POp("irecv", x, 1, tag=2), NotImplementedError),
        (lambda x: d.new_group([]), ValueError),
        (lambda x: d.new_group((0,)), TypeError),
    ],
)
def test_bad_calls(world, call, kind):
    with pytest.raises(kind):
        call(vector(1, 2))


def test_without_a_group():
    assert not d.is_initialized() and d.get_rank() == 0
    with pytest.raises(RuntimeError, match="init_process_group"):
        d.all_reduce(vector(1))
    with pytest.raises(RuntimeError, match="mccl"):
        d.init_process_group()
    with pytest.raises(RuntimeError, match="world_size"):
        d.init_process_group("mccl", world_size=2)
    assert d.P2POp(d.isend, vector(1), 1).op is d.isend


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_store(port):
    store = d.TCPStore("127.0.0.1", port, is_master=True, timeout=datetime.timedelta(seconds=0.1))
    store.set("name", "value")
    assert store.get("name") == b"value"
    assert (store.add("count", 2), store.add("count", 3), store.get("count")) == (2, 5, b"5")
    assert store.delete_key("name") and not store.delete_key("name")
    store.set("raw", b"xy")
    for call, kind in (
        (lambda: store.add("raw", 1), RuntimeError),
        (lambda: store.get("never"), RuntimeError),
        (lambda: store.set("a", 5), TypeError),
        (lambda: store.set(1, "a"), TypeError),
        (lambda: store.add("count", 1.5), TypeError),
        (lambda: d.TCPStore("127.0.0.1", 99999), ValueError),
        (lambda: d.TCPStore("127.0.0.1", "1"), TypeError),
    ):
        with pytest.raises(kind):
            call()


def test_others_connect_to_the_master(port):
    answers = []

    def other():
        store = d.TCPStore("127.0.0.1", port)
        store.set("answer", store.get("question") + b"!")
        answers.append((store.add("count", 1), store.delete_key("question")))

    thread = threading.Thread(target=other)
    thread.start()
    store = d.TCPStore("127.0.0.1", port, 2, True, datetime.timedelta(seconds=20))
    store.add("count", 5)
    store.set("question", "who")
    assert store.get("answer") == b"who!"
    thread.join()
    assert answers == [(6, True)]
