"""Short sums that go by native calls: the bits of all others, and errors that are named."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine import _C
from mycelia.engine.communication import board, direct, world
from mycelia.engine.communication.transport import GIVEN, Message

sys.path.insert(0, str(Path(__file__).parent))
from connected_ranks import over_sockets

pytestmark = pytest.mark.skipif(
    not (hasattr(_C, "DirectSums") and board.is_possible()), reason="needs Linux on x86"
)
SHAPES = [(3,), (40, 50), (2, 3, 5), (), (4001,)]


def given(rank, turn, dtype=np.float32):
    rng = np.random.default_rng((rank, turn))
    return tuple(ms.Tensor(np.asarray(rng.normal(size=shape) * 8, dtype)) for shape in SHAPES)


def group():
    return world.current().communicator


def settled(members, rank, count=8, **more):
    """Sums until all know the memory of all."""
    for turn in range(count):
        members.finish_sums(members.start_sums(given(rank, turn), name="a", **more))
    return members._reducing._direct


def expected(ranks, turn, divisor=1, dtype=np.float32):
    found = []
    for parts in zip(*(given(rank, turn, dtype) for rank in range(ranks))):
        total = parts[0].asnumpy().copy()
        for part in parts[1:]:
            total = total + part.asnumpy()
        found.append(total / dtype(divisor))
    return found


@pytest.fixture
def native(monkeypatch):
    """How many sums native calls have given."""
    taken, real = [], direct.Directs.finish

    def counted(self, number):
        found = real(self, number)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(direct.Directs, "finish", counted)
    return taken


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("divisor", "dtype"), [(1, np.float32), (3, np.float32), (2, np.float64)])
def test_sums_have_the_bits_of_numpy(ranks, divisor, dtype, native):
    """Several on their way at a time, taken in another order; memory is used again."""
    shapes = SHAPES if ranks == 2 else SHAPES[:2]  # three members divide what is longer

    def work(rank):
        members, numbers = group(), []
        settled(members, rank)
        for turn in range(12):
            for k in range(3):
                tensors = given(rank, 3 * turn + k, dtype)[: len(shapes)]
                numbers.append(members.start_sums(tensors, divisor, "x"))
            for k in (1, 0, 2):
                found = members.finish_sums(numbers[3 * turn + k])
                for one, other in zip(found, expected(ranks, 3 * turn + k, divisor, dtype)):
                    assert one.asnumpy().tobytes() == other.tobytes() and one.shape == other.shape
        return True

    assert all(over_sockets(ranks, work))
    assert sum(native) >= 12 * ranks


def test_what_is_kept_stays_as_it_is(native):
    def work(rank):
        members, kept = group(), []
        for turn in range(12):
            kept.append(members.finish_sums(members.start_sums(given(rank, turn), name="a")))
        return [[x.asnumpy() for x in found] for found in kept]

    for kept in over_sockets(2, work):
        for turn, found in enumerate(kept):
            assert all(np.array_equal(one, other) for one, other in zip(found, expected(2, turn)))
    assert sum(native) >= 8


def test_a_late_member_is_waited_for(native):
    """Longer than native calls wait: who came first goes on as others do, and later natively again."""

    def work(rank):
        members = group()
        settled(members, rank)
        for turn in range(4):
            if rank == turn % 2:
                time.sleep(0.05)
            found = members.finish_sums(members.start_sums(given(rank, turn), name="a"))
            assert all(np.array_equal(x.asnumpy(), y) for x, y in zip(found, expected(2, turn)))
        native.clear()
        settled(members, rank, 3)
        return True

    assert all(over_sockets(2, work))
    assert any(native)


def test_members_that_go_different_ways_get_the_same(native):
    """One takes its sums as arrays, which no native call gives; collectives come in between."""

    def work(rank):
        members = group()
        settled(members, rank)
        for turn in range(8):
            number = members.start_sums(given(rank, turn), name="a")
            if turn % 3 == 0:
                members.barrier()
            if (turn + rank) % 2:
                found = members.finish_reduction(number)
            else:
                found = [x.asnumpy() for x in members.finish_sums(number)]
            assert all(np.array_equal(x, y) for x, y in zip(found, expected(2, turn)))
        return True

    assert all(over_sockets(2, work))
    assert any(native)


def test_elements_that_come_by_a_message_are_taken():
    """As from a member whose board has no room."""

    def work(rank):
        members = group()
        settled(members, rank)
        reducing = members._reducing
        if rank == 0:
            way = next(iter(reducing._direct._ways.values()))
            number = reducing._number
            reducing._number += 1
            flat = np.zeros(way.recipe.count, np.float32)
            for at, one in zip(way.recipe.offsets, given(0, 5)):
                flat[at // 4 : at // 4 + one.size] = one.asnumpy().reshape(-1)
            message = Message(reducing._key, number, way.recipe.what, flat, GIVEN, number)
            members._transport.post(1, message)
            members.barrier()
            return True
        number = members.start_sums(given(1, 5), name="a")
        members.barrier()
        found = members.finish_sums(number)
        return all(np.array_equal(x.asnumpy(), y) for x, y in zip(found, expected(2, 5)))

    assert over_sockets(2, work) == [True, True]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (dict(name="b"), "started for b"),
        (dict(name="a", divisor=2), "divided by 2"),
        (None, "calls all_gather"),
    ],
)
def test_a_member_that_starts_something_else_is_named(other, words):
    met = threading.Barrier(2)

    def work(rank):
        members = group()
        settled(members, rank)
        try:
            with pytest.raises(RuntimeError) as caught:
                if rank == 0 or other is not None:
                    how = dict(name="a") if rank == 0 else other
                    members.finish_sums(members.start_sums(given(rank, 0), **how))
                else:
                    members.all_gather(np.ones(3, np.float32))
            return str(caught.value)
        finally:
            if rank == 0:
                members._transport.close()
            met.wait()

    texts = over_sockets(2, work)
    assert words in texts[0] and "rank 1 calls" in texts[0]
    assert "rank 0" in texts[1]


def test_a_member_that_has_gone_is_named():
    def work(rank):
        members = group()
        settled(members, rank)
        if rank == 1:
            return
        with pytest.raises(RuntimeError, match="rank 1 takes no part in all_reduce"):
            members.finish_sums(members.start_sums(given(rank, 0), name="a"))

    over_sockets(2, work)


def test_native_calls_know_the_layout_of_boards():
    assert (_C.BOARD_TURNS, _C.BOARD_LINE, _C.BOARD_TEXT) == (board.TURNS, board._LINE, board._TEXT)
    said = (_C.BOARD_NOTHING, _C.BOARD_ENTRIES, _C.BOARD_MESSAGES)
    assert said == (board.NOTHING, board.ENTRIES, board.MESSAGES)


def test_tensors_of_other_kinds_are_refused():
    own = np.zeros(board.SIZE, np.uint8)
    sums = _C.DirectSums(own, [own.copy()], 0, b"x", (0,), ((4,),), 4, ms.float32, 1.0)
    assert sums.start(0, 0, 0, (ms.Tensor(np.ones(4, np.float32)),)) == -1  # there is no memory yet
    for wrong in (
        (),
        (np.ones(4, np.float32),),
        (ms.Tensor(np.ones(3, np.float32)),),
        (ms.Tensor([1, 2, 3, 4]),),
    ):
        with pytest.raises(TypeError, match="DirectSums"):
            sums.start(0, 0, 0, wrong)
    with pytest.raises(ValueError, match="too small"):
        sums.room(np.zeros(8, np.uint8), 1, 1, 8, 0)
    with pytest.raises(ValueError, match="there is no room 3"):
        sums.finish(0, 3, 0.0, 0, 0.0)
    with pytest.raises(ValueError, match="does not fit"):
        _C.DirectSums(own, [own], 0, b"x", (0,), ((5,),), 4, ms.float32, 1.0)
    with pytest.raises(ValueError, match="float32 or float64"):
        _C.DirectSums(own, [own], 0, b"x", (0,), ((4,),), 4, ms.float16, 1.0)
