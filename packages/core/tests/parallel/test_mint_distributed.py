"""mint.distributed on three ranks: each collective writes what PyTorch's of the same name would."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import mycelia as ms
from mycelia.mint import distributed as d
from mycelia.parallel.engines import threads


def vector(*values):
    return ms.Tensor(np.array(values, np.float32))


def lists(*tensors):
    return [t.asnumpy().tolist() for t in tensors]


def reduced(rank):
    x, y, z = vector(rank, 2), vector(rank, 2), vector(rank, 2)
    d.all_reduce(x)
    d.all_reduce(y, "max", async_op=True).wait()
    d.reduce(z, 1, "prod")
    return lists(x, y, z)


def gathered(rank):
    outs, joined, uneven = [vector(0, 0) for _ in range(3)], vector(*range(6)), vector(*range(6))
    d.all_gather(outs, vector(rank, -rank))
    d.all_gather_into_tensor(joined, vector(rank, -rank))
    d.all_gather_into_tensor_uneven(uneven, vector(*[rank] * (rank + 1)), [1, 2, 3])
    taken = [vector(0) for _ in range(3)] if rank == 2 else None
    d.gather(vector(rank), taken, 2)
    return lists(*outs, joined, uneven), taken and lists(*taken)


def scattered(rank):
    one, part, two, three = vector(0), vector(0), vector(0), ms.Tensor(np.zeros(rank + 1, np.float32))
    d.scatter(one, [vector(5), vector(6), vector(7)] if rank == 0 else None, 0)
    d.reduce_scatter(part, [vector(1 + rank), vector(2), vector(3)])
    d.reduce_scatter_tensor(two, vector(1, 2, 3 * rank), "avg")
    d.reduce_scatter_tensor_uneven(three, vector(*range(6)), [1, 2, 3])
    return lists(one, part, two, three)


def exchanged(rank):
    outs = [vector(0) for _ in range(3)]
    d.all_to_all(outs, [vector(10 * rank + i) for i in range(3)])
    single = vector(0, 0, 0)
    d.all_to_all_single(single, vector(rank, rank + 1, rank + 2))
    return lists(*outs, single)


def objects(rank):
    every, own, sent = [None] * 3, [None], [{"a": rank}, "x"]
    d.all_gather_object(every, ("r", rank))
    d.scatter_object_list(own, [1, 2, "three"] if rank == 1 else None, 1)
    d.broadcast_object_list(sent, 2)
    taken = [None] * 3
    d.gather_object(rank * "ab", taken, 0)
    return every, own, sent, taken


def paired(rank):
    got = vector(0)
    if rank == 0:
        d.send(vector(3), 2)
        d.send_object_list([4, "five"], 2)
    elif rank == 2:
        found = [None, None]
        d.recv(got, 0)
        assert d.recv_object_list(found, 0) == 0 and found == [4, "five"]
    else:
        return None
    ring = vector(-1)
    work = d.batch_isend_irecv([d.P2POp("isend", got + rank, 2 - rank), d.P2POp(d.irecv, ring, 2 - rank)])
    for handle in work:
        handle.wait()
    return lists(got, ring)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (reduced, [[[3, 6], [2, 2], [r, 2] if r != 1 else [0, 8]] for r in range(3)]),
        (
            gathered,
            [
                ([[0, 0], [1, -1], [2, -2], [0, 0, 1, -1, 2, -2], [0, 1, 1, 2, 2, 2]], t)
                for t in (None, None, [[0], [1], [2]])
            ],
        ),
        (scattered, [[[5], [6], [1], [0]], [[6], [6], [2], [3, 6]], [[7], [9], [3], [9, 12, 15]]]),
        (exchanged, [[[r], [10 + r], [20 + r], [r, r + 1, r + 2]] for r in range(3)]),
        (
            objects,
            [
                ([("r", 0), ("r", 1), ("r", 2)], [o], [{"a": 2}, "x"], t)
                for o, t in zip((1, 2, "three"), (["", "ab", "abab"], [None] * 3, [None] * 3))
            ],
        ),
        (paired, [[[0], [5]], None, [[3], [0]]]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_each_rank_gets(work, expected):
    assert threads.run(3, work) == expected


def test_groups_are_those_of_communication():
    def work(rank):
        assert d.is_initialized() and (d.get_rank(), d.get_world_size()) == (rank, 3)
        name = d.new_group([2, 0])
        with pytest.raises(ValueError, match=r"each process once, but got \[0, 0\]"):
            d.new_group([0, 0])
        assert d.get_process_group_ranks(name) == [2, 0] and d.get_world_size(name) == 2
        assert d.get_rank(name) == {0: 1, 1: -1, 2: 0}[rank] and d.get_global_rank(name, 0) == 2
        x = vector(rank)
        if rank != 1:
            d.broadcast(x, 2, name)
            assert ms.communication.get_group_size(name) == 2
        assert d.new_group() != name
        return x.item()

    assert threads.run(3, work) == [2, 1, 2]


def test_processes_meet_at_an_address_without_a_launcher():
    """One process of one: the address is listened at, and nobody else comes."""
    d.init_process_group("mccl", init_method="tcp://127.0.0.1:0", world_size=1, rank=0)
    try:
        assert d.get_world_size() == 1
    finally:
        d.destroy_process_group()
    for given in ({"init_method": "file:///x"}, {"init_method": "tcp://here:1"}):
        with pytest.raises(ValueError, match="init_method"):
            d.init_process_group("mccl", **given)
    with pytest.raises(ValueError, match=r"ports are in \[0, 65535\], but the launcher says 99999"):
        d.init_process_group("mccl", init_method="tcp://127.0.0.1:99999", world_size=1, rank=0)
    with pytest.raises(ValueError, match="timeout must not be negative, but is -1 s"):
        d.init_process_group("mccl", timeout=datetime.timedelta(seconds=-1))
    with pytest.raises(TypeError, match="timedelta"):
        d.init_process_group("mccl", timeout=3)
