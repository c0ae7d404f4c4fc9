"""Short arrays that processes exchange through memory: the bits of messages, and the same errors."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mycelia import communication
from mycelia.engine.communication import reductions, world
from mycelia.engine.communication.short import MOST_BYTES, is_possible

sys.path.insert(0, str(Path(__file__).parent))
from connected_ranks import over_sockets

pytestmark = pytest.mark.skipif(not is_possible(), reason="memory of one machine: Linux on x86")


def members():
    return world.group("test", world.WORLDS[0])


def warm():
    """The first call goes by messages, the others through memory."""
    found = members()
    found.all_reduce(np.zeros(1, np.float32))
    assert found._short is not None
    return found


@pytest.mark.parametrize("size", (2, 3, 4))
def test_all_get_the_bits_of_a_sum_in_the_order_of_ranks(size):
    def work(rank):
        group, rng = warm(), np.random.default_rng(rank)
        made = []
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.bool_, np.complex64):
            for count in (0, 1, 7, 1000, MOST_BYTES // 16):
                given = (rng.normal(size=count) * 100).astype(dtype)
                for reduction in ("sum", "max") if dtype != np.complex64 else ("sum",):
                    made.append((given, reduction, group.all_reduce(given, reduction)))
        group.barrier()
        given = np.full((2, 3), rank, np.float32)
        made.append((given, "avg", group.all_reduce(given, "avg")))
        return made

    for calls in zip(*over_sockets(size, work)):
        expected = reductions.combine([given for given, _, _ in calls], calls[0][1])
        for given, _, found in calls:
            assert found.shape == given.shape and found.dtype == given.dtype
            np.testing.assert_array_equal(
                found.reshape(-1).view(np.uint8), expected.reshape(-1).view(np.uint8)
            )


def test_a_late_rank_is_waited_for():
    def work(rank):
        group = warm()
        found = []
        for step in range(4):
            time.sleep(0.05 * (rank == step % 3))
            found.append(group.all_reduce(np.full(3, rank + step, np.float32)).tolist())
        return found

    assert over_sockets(3, work) == [[[3.0 + 3 * step] * 3 for step in range(4)]] * 3


def test_a_group_that_has_the_name_of_one_before_is_another():
    """Words that a rank waited there, which come behind it, are none of the new one."""

    def work(rank):
        found = []
        for turn in range(2):
            communication.create_group("again", [0, 1])
            group = world.group("test", "again")
            for step in range(4):
                time.sleep(0.05 * rank)
                found.append(float(group.all_reduce(np.full(1, step + turn, np.float32))[0]))
            communication.destroy_group("again")
        return found

    assert over_sockets(2, work) == [[0.0, 2.0, 4.0, 6.0, 2.0, 4.0, 6.0, 8.0]] * 2


def _caught(call):
    with pytest.raises(RuntimeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda g: g.all_reduce(np.zeros(4, np.float32)), "float32 [4]"),
        (lambda g: g.all_reduce(np.zeros(3, np.float32), "max"), "all_reduce(max"),
        (lambda g: g.all_gather(np.zeros(3, np.float32)), "all_gather("),
        (lambda g: g.barrier(), "barrier()"),
        (lambda g: g.finish_reduction(g.start_reduction([np.ones(3, np.float32)])), "takes no part"),
    ],
)  # fmt: skip
def test_a_rank_that_calls_something_else_is_named(other, words):
    def work(rank):
        group = warm()
        if rank == 0:
            return _caught(lambda: group.all_reduce(np.zeros(3, np.float32)))
        return _caught(lambda: other(group))

    first, second = over_sockets(2, work)
    assert words in first and "rank 1" in first and "float32 [3]" in first
    assert "all_reduce(sum, float32 [3])" in second and "rank 0" in second


def test_after_an_error_messages_carry_short_arrays():
    def work(rank):
        group = warm()
        with pytest.raises(RuntimeError, match="do not call the same collective"):
            group.barrier() if rank else group.all_reduce(np.zeros(3, np.float32))
        return group.all_reduce(np.full(3, rank, np.float32)).tolist(), group._short

    assert over_sockets(2, work) == [([1.0] * 3, None)] * 2


def test_groups_that_wait_for_one_another_are_told():
    def work(rank):
        world.current().create("pair", [0, 1])
        pair = world.group("test", "pair")
        group = warm()
        pair.all_reduce(np.zeros(1, np.float32))
        mine = group if rank == 0 else pair
        return _caught(lambda: mine.all_reduce(np.zeros(5 + rank, np.float32)))

    first, second = over_sockets(2, work)
    assert "float32 [6]" in first and "float32 [5]" in second


def test_a_rank_that_has_gone_is_named():
    def work(rank):
        group = warm()
        if rank == 1:
            return ""
        return _caught(lambda: group.all_reduce(np.zeros(3, np.float32)))

    begin = time.monotonic()
    assert "rank 1 takes no part in all_reduce(sum, float32 [3])" in over_sockets(2, work)[0]
    assert time.monotonic() - begin < 20
