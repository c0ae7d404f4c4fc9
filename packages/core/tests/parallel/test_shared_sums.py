"""The native parts of sums among processes."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from mycelia.engine import _C
from mycelia.engine.communication.board import ENTRIES, NOTHING, Board
from mycelia.engine.communication.shared import Placed, Segment


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("divisor", (1.0, 2.0, 3.0, 4.0, 0.1, 2.0**-140))
@pytest.mark.parametrize("count", (0, 1, 4095, 4097, 70_000))
def test_sums_have_the_bits_of_numpy(dtype, divisor, count):
    rng = np.random.default_rng(count)
    parts = [(rng.normal(size=count) * 10.0 ** rng.integers(-44, 30, count)).astype(dtype) for _ in range(3)]
    for part in parts[:2]:
        part[: count // 100] = np.inf
    with np.errstate(all="ignore"):
        expected = (parts[0] + parts[1]) + parts[2]
        if divisor != 1:
            expected /= dtype(divisor)
    out = np.empty(count, dtype)
    _C.add_up(parts, divisor, out)
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))
    _C.add_up(parts, divisor, parts[1])  # the result may be a part
    np.testing.assert_array_equal(parts[1].view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize(
    ("parts", "out"),
    [
        ([np.zeros(3, np.float32)], np.zeros(3, np.float32)),
        ([np.zeros(3, np.float32), np.zeros(4, np.float32)], np.zeros(3, np.float32)),
        ([np.zeros(3, np.float32), np.zeros(3, np.float64)], np.zeros(3, np.float32)),
        ([np.zeros(3, np.int32), np.zeros(3, np.int32)], np.zeros(3, np.int32)),
        ([np.zeros((3, 2), np.float32)[:, 0], np.zeros(3, np.float32)], np.zeros(3, np.float32)),
        ([np.zeros(3, np.float32)] * 2, np.broadcast_to(np.float32(0), 3)),
    ],
)
def test_what_cannot_be_added_is_refused(parts, out):
    with pytest.raises(TypeError):
        _C.add_up(parts, 1.0, out)


def test_arrays_are_laid_side_by_side():
    out = np.full(20, 7, np.uint8)
    _C.lay_down(out, (4, 16), [np.array([1, 2], np.int32), np.array([3], np.int16)])
    assert out[4:12].view(np.int32).tolist() == [1, 2] and out[16:18].view(np.int16).tolist() == [3]
    assert out[:4].tolist() == [7] * 4 and out[12:16].tolist() == [7] * 4
    with pytest.raises(ValueError, match="array 0 does not fit"):
        _C.lay_down(out, (17,), [np.zeros(1, np.int32)])
    with pytest.raises(ValueError, match="2 offsets for 1 arrays"):
        _C.lay_down(out, (0, 4), [np.zeros(1, np.int32)])


def _other(segment):
    """A segment's board as another process sees it."""
    place = Placed(np.dtype(np.uint8), (1,), segment.number, segment.descriptor, segment.size, 0)
    return Board.of(os.getpid(), place)


@pytest.mark.skipif(not hasattr(_C, "await_word"), reason="processes wait for words on Linux")
def test_who_sleeps_for_an_entry_is_woken():
    mine, theirs = Segment(1 << 16), Segment(1 << 16)
    here, there = Board(mine), _other(theirs)
    seen = []

    def write():
        other, own = _other(mine), Board(theirs)
        while other.said != ENTRIES:
            time.sleep(1e-3)
        time.sleep(0.05)
        own.write(5, 0, Placed(np.dtype(np.float32), (4,), 1, 2, 3, 4), 4, b"sum")
        own.wake(5)
        seen.append(time.monotonic())

    assert not there.wait(5, 1e-5, 0)
    writer = threading.Thread(target=write)
    writer.start()
    here.say(ENTRIES)
    assert there.wait(5, 0, 30.0)
    woken = time.monotonic()
    here.say(NOTHING)
    writer.join()
    assert woken - seen[0] < 15
    assert there.wait(5, 0, 0) and not there.wait(6, 0, 1e-3)
    entry = there.read(5)
    assert entry is not None and entry.what == b"sum" and entry.place == (1, 2, 3, 4)
