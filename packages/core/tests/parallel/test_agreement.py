"""Ranks that do not do the same: found and named, never a hang. Over threads and over sockets."""

from __future__ import annotations

import functools
import re
import socket
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import communication
from mycelia.communication import comm_func as cf
from mycelia.engine.communication import LaunchConfig, MessageCommunicator
from mycelia.engine.ops.communication import collectives as c
from mycelia.mint import distributed
from mycelia.parallel.engines import connect, rendezvous, threads

sys.path.insert(0, str(Path(__file__).parent))
from connected_ranks import over_sockets


def tensor(*values, dtype=np.float32):
    return ms.Tensor(np.array(values, dtype))


by_bytes = functools.partial(over_sockets, shared_memory=False)
ENGINES = pytest.mark.parametrize(
    "run", [threads.run, over_sockets, by_bytes], ids=["local", "shared memory", "socket"]
)


def told(run, ranks, function, **options):
    """What each rank is told."""

    def work(rank):
        with pytest.raises(RuntimeError) as caught:
            function(rank)
        return str(caught.value)

    return run(ranks, work, **options)


@ENGINES
@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (lambda x: c.all_reduce(x), lambda x: c.all_gather(x), ["all_reduce(sum, float32", "all_gather("]),
        (lambda x: c.all_reduce(x), lambda x: c.all_reduce(x, "max"), ["all_reduce(sum", "all_reduce(max"]),
        (lambda x: c.all_reduce(x), lambda x: c.all_reduce(x[:3]), ["float32 [4]", "float32 [3]"]),
        (lambda x: c.all_reduce(x), lambda x: c.all_reduce(x.astype(ms.int32)), ["float32 [4]", "int32 [4]"]),
        (lambda x: c.all_reduce(x), lambda x: c.all_reduce(x.astype(ms.bfloat16)),
         ["float32 [4]", "bfloat16 [4]"]),
        (lambda x: cf.broadcast(x, 0), lambda x: cf.broadcast(x, 1), ["from rank 0", "from rank 1"]),
        (lambda x: (c.barrier(), c.all_reduce(x)), lambda x: (c.all_reduce(x), c.barrier()), ["barrier()"]),
    ],
    ids=["op", "reduction", "shape", "dtype", "bfloat16", "root", "order"],
)  # fmt: skip
def test_ranks_that_call_something_else_are_named_with_both_calls(run, one, other, named):
    met = threading.Barrier(2)

    def work(rank):
        try:
            (one if rank == 0 else other)(tensor(1, 2, 3, 4))
        finally:
            met.wait()  # none leaves before both have found it

    for text in told(run, 2, work):
        assert "rank 0 calls" in text and "rank 1 calls" in text and all(name in text for name in named)


@ENGINES
def test_a_rank_that_has_ended_is_named(run):
    with pytest.raises(RuntimeError, match=r"rank 1 takes no part in all_reduce\(sum, float32 \[2\]\)"):
        run(3, lambda rank: None if rank == 1 else c.all_reduce(tensor(1, 2)))


@ENGINES
def test_a_rank_that_does_not_come_is_named_when_time_is_over(run):
    others = threading.Barrier(3)

    def work(rank):
        if rank == 2:
            others.wait()  # comes when the others have given up
            return ""
        try:
            with pytest.raises(RuntimeError) as caught:
                c.all_reduce(tensor(1.0))
            return str(caught.value)
        finally:
            others.wait()

    found = run(3, work, timeout_s=0.3)
    assert all(re.search(r"ranks? ([01], )?2 ha(s|ve) not come to all_reduce", text) for text in found[:2])


@ENGINES
def test_messages_wait_for_their_receiver_in_any_order_of_tags(run):
    def work(rank):
        x = tensor(rank, 5)
        if rank == 0:
            cf.send(x, 1, tag=1)
            cf.send(x * 10, 1, tag=2)
            return cf.recv(x, 1).asnumpy().tolist()
        second, first = cf.recv(x, 0, tag=2), cf.recv(x, 0, tag=1)
        cf.send(first + second, 0)
        return first.asnumpy().tolist(), second.asnumpy().tolist()

    assert run(2, work) == [[0, 55], ([0, 5], [0, 50])]


@ENGINES
@pytest.mark.parametrize("irecv", [cf.irecv, lambda x, source: (x, distributed.irecv(x, source))])
def test_messages_go_to_receives_in_the_order_in_which_these_were_started(run, irecv):
    """Whichever is waited for first."""

    def work(rank):
        if rank == 0:
            for i in range(5):
                cf.send(tensor(i), 1)
            return None
        begun = [irecv(tensor(0), 0) for _ in range(3)]
        begun[1][1].wait()
        last = cf.recv(tensor(0), 0)  # the handles of the first and the third are still to be waited for
        begun[0][1].wait()
        begun[2][1].wait()
        return [x.item() for x, _ in begun] + [last.item(), cf.recv(tensor(0), 0).item()]

    assert run(2, work)[1] == [0, 1, 2, 3, 4]


@ENGINES
def test_a_message_of_another_shape_than_was_started_is_refused(run):
    def work(rank):
        if rank == 0:
            cf.send(ms.Tensor([1.5, 2.5], ms.bfloat16), 1)
            return cf.send(tensor(1, 2), 1)
        got, handle = cf.irecv(ms.ops.zeros((2,), ms.bfloat16), 0)
        handle.wait()
        assert got.dtype == ms.bfloat16 and got.tolist() == [1.5, 2.5]
        with pytest.raises(ValueError, match=r"rank 0 has sent float32 \[2\], but float32 \[3\]"):
            cf.irecv(ms.ops.zeros((3,), ms.float32), 0)[1].wait()

    run(2, work)


@ENGINES
@pytest.mark.parametrize("rows", [2, 40_000], ids=["short", "long"])
def test_bfloat16_is_moved_as_such_and_added_in_float32(run, rows):
    def given(rank):
        return ms.Tensor((np.arange(rows * 2).reshape(rows, 2) % 100 + 1) * (1 + rank / 128), ms.bfloat16)

    def work(rank):
        x, n = given(rank), 3
        found = [c.all_reduce(x), c.all_reduce(x, "avg"), c.all_reduce(x, "max"), c.reduce(x, 1)]
        found += [c.all_gather(x), c.gather_to(x, root=1, size=n), cf.broadcast(x, 2)]
        found += [c.reduce_scatter(ms.ops.cat([x] * n)), c.all_to_all(ms.ops.cat([x] * n), 0, 0)]
        got, handle = cf.irecv(x, (rank + 1) % n)
        cf.send(x, (rank - 1) % n)
        handle.wait()
        assert all(a.dtype is ms.bfloat16 for a in (*found, got))
        return [a.astype(ms.float32).asnumpy() for a in (*found, got)]

    all_given = [given(rank).astype(ms.float32).asnumpy() for rank in range(3)]
    total = sum(all_given[1:], all_given[0])
    rounded = [ms.Tensor(a, ms.bfloat16).astype(ms.float32).asnumpy() for a in (total, total / np.float32(3))]
    joined = np.concatenate(all_given)
    for rank, found in enumerate(run(3, work)):
        expected = [*rounded, np.max(all_given, 0), rounded[0], joined, joined, all_given[2], rounded[0]]
        expected += [joined, all_given[(rank + 1) % 3]]
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            if rank == 1 or place not in (3, 5):  # which only rank 1 gets
                np.testing.assert_array_equal(one, other, err_msg=str(place))


@ENGINES
def test_large_messages_in_both_directions_do_not_wait_for_one_another(run):
    """More than the system keeps for a connection, sent by both before either receives."""
    count = 3 << 20

    def work(rank):
        got, handle = cf.irecv(ms.ops.zeros((count,), ms.float32), 1 - rank)
        cf.isend(ms.ops.full((count,), rank + 1.0, dtype=ms.float32), 1 - rank).wait()
        handle.wait()
        return got[0].item(), got[-1].item(), c.all_reduce(got)[count // 2].item()

    assert run(2, work) == [(2.0, 2.0, 3.0), (1.0, 1.0, 3.0)]


@ENGINES
@pytest.mark.parametrize("dtype", [ms.float32, ms.float16])
def test_sums_of_a_fast_rank_do_not_come_into_those_of_a_slow_one(run, dtype):
    """A rank that is ahead has sent parts of its next sums, of the same size, before another looks at the
    first.
    """
    count, rounds = 20_000, 4

    def work(rank):
        if rank == 2:  # the others have sent all that they can without it
            cf.recv(ms.ops.zeros((1,), ms.float32), 0)
        elif rank == 0:
            cf.send(tensor(1.0), 2)
        given = [ms.Tensor(np.arange(count) % 50 + 10 * rank + i, dtype) for i in range(rounds)]
        return [c.all_reduce(x).asnumpy() for x in given]

    expected = [np.arange(count) % 50 * 3 + 30 + 3 * i for i in range(rounds)]
    for found in run(3, work):
        np.testing.assert_array_equal(found, expected)


def test_messages_have_gradients_that_go_back():
    def work(rank):
        x = tensor(1.0 + rank, 2.0)
        if rank == 0:  # what is sent on counts where it arrives
            return ms.grad(lambda x: (ms.ops.Send(3, 1)(x * 2) * 0).sum())(x).asnumpy().tolist()
        receive = ms.ops.Receive(3, 0, [2], ms.float32)
        return ms.grad(lambda x: (receive(x) ** 2 * x).sum())(x).asnumpy().tolist()

    # rank 1 computes sum((2 a) ** 2 * x): by a 8 a x, by x 4 a a
    assert threads.run(2, work) == [[16.0, 32.0], [4.0, 16.0]]


@ENGINES
def test_groups_of_some_ranks(run):
    def work(rank):
        ms.communication.init()
        ms.communication.create_group("ends", [0, 2])
        ms.communication.create_group("ends", [0, 2])  # is that one
        with pytest.raises(ValueError, match=r"group 'ends' of the ranks \[0, 2\] already, but got \[0, 1\]"):
            ms.communication.create_group("ends", [0, 1])
        total = c.all_reduce(tensor(1.0 + rank)).item()
        if rank == 1:
            with pytest.raises(
                RuntimeError, match=r"rank 1 is not in the group 'ends' of the ranks \[0, 2\]"
            ):
                c.all_reduce(tensor(1.0), group="ends")
            return total
        assert ms.communication.get_rank("ends") == rank // 2
        assert ms.communication.get_world_rank_from_group_rank("ends", 1) == 2
        return (
            c.all_reduce(tensor(1.0 + rank), group="ends").item()
            + cf.broadcast(tensor(rank), 2, "ends").item()
        )

    assert run(3, work) == [6, 6, 6]
    assert not communication.GlobalComm.INITED  # of this process


def test_a_failing_rank_is_what_is_raised():
    def work(rank):
        if rank == 1:
            raise KeyError("rank one")
        c.barrier()

    with pytest.raises(KeyError, match="rank one"):
        threads.run(2, work)
    with pytest.raises(ValueError, match="size must be positive"):
        threads.run(0, work)


# ------------------------------------------------------------------------------------------- how they meet


def answer_to(said, *, size=3, timeout_s=60.0):
    """What the meeting place of `size` processes answers a visitor that has been there from the beginning."""
    with rendezvous.listen("127.0.0.1", 0) as listener:
        with socket.create_connection(listener.getsockname()) as visitor:
            rendezvous.send_line(
                visitor, {"rank": 1, "size": 3, "address": ["", 1], "token": "secret", **said}
            )
            meeting = rendezvous.Rendezvous(listener, size, "secret", timeout_s)
            meeting.start()
            return rendezvous.read_line(visitor, 60.0)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ({"token": "guessed"}, "the token is not that of this job"),
        ({"size": 2}, "it believes in 2 processes, but the job has 3"),
        ({"rank": 3}, "rank 3 is taken or beyond the 3 of the job"),
    ],
)
def test_who_does_not_belong_to_the_job_is_not_let_in(said, answer):
    assert answer_to(said)["error"] == answer


@pytest.mark.parametrize(
    "line",
    [b"", b"GET / HTTP/1.1\n", b"[" * 50_000 + b"\n", b'{"rank": 1, "size": 3}\n',
     b'{"rank": Infinity, "size": 3, "address": ["", 1], "token": "secret"}\n',
     b'{"rank": 0, "size": 3, "address": ["", 1], "token": "\\ud800"}\n'],
    ids=["nothing", "HTTP", "depth", "parts", "infinity", "surrogate"],
)  # fmt: skip
def test_strangers_at_the_meeting_place_change_nothing(line):
    with rendezvous.listen("127.0.0.1", 0) as listener:
        with (
            socket.create_connection(listener.getsockname()) as stranger,
            socket.create_connection(listener.getsockname()) as visitor,
        ):
            stranger.sendall(line)
            stranger.shutdown(socket.SHUT_WR)
            rendezvous.send_line(visitor, {"rank": 0, "size": 1, "address": ["", 1], "token": "secret"})
            rendezvous.Rendezvous(listener, 1, "secret", 60.0).start()
            assert rendezvous.read_line(visitor, 60.0) == {"table": [["", 1]], "rank": 0}


def test_ranks_that_do_not_connect_are_named():
    """By a rank that came without a number and was given 1."""
    config = LaunchConfig("socket", "msrun", -1, 4)
    transport = connect(LaunchConfig("socket", "msrun", 0, 1))._transport
    with rendezvous.listen("127.0.0.1", 0) as listener:
        listener.settimeout(0.001)  # nobody comes
        with pytest.raises(RuntimeError, match=r"ranks \[2, 3\] have not connected"):
            transport._accept(listener, config, 1)


def test_ranks_given_by_arrival_are_local_ranks_too():
    def work(rank):
        return communication.get_local_rank(), communication.get_local_rank_size()

    assert over_sockets(2, work, rank=-1, local=(-1, 2)) == [(0, 2), (1, 2)]


def test_ranks_that_nobody_started_are_named():
    assert "ranks 0, 2 have not come to the meeting place" in answer_to({}, timeout_s=0.1)["error"]


def test_a_taken_port_is_named():
    with rendezvous.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"port {port} of 127.0.0.1 cannot be listened at"):
            rendezvous.listen("127.0.0.1", port)


def test_ranks_are_given_in_order_of_arrival_to_those_that_have_none():
    assert sorted(over_sockets(3, lambda rank: rank, rank=-1)) == [0, 1, 2]


def test_engines_that_core_does_not_have_are_left_to_plugins():
    assert connect(LaunchConfig("nccl", "msrun", 0, 1)) is None
    alone = connect(LaunchConfig("", "msrun", 0, 1))
    assert isinstance(alone, MessageCommunicator) and alone.size == 1
    alone.close()
