"""Alarms are called in their order, the earlier of two times counts, and one that fails stops no other."""

from __future__ import annotations

import threading
from time import monotonic

from mycelia_serving.clock import NEVER, Clock

WAIT_S = 60.0


def test_alarms_are_called_in_their_order_and_not_before_their_time():
    clock, called, done = Clock(), [], threading.Event()
    start = monotonic()
    for name, seconds in (("c", 0.06), ("a", 0.02), ("b", 0.04)):
        clock.call_in(seconds, lambda name=name: called.append((name, monotonic() - start)))
    clock.call_in(0.08, done.set)
    assert done.wait(WAIT_S)
    assert [name for name, _ in called] == ["a", "b", "c"]
    assert all(at >= least for (_, at), least in zip(called, (0.02, 0.04, 0.06), strict=True))


def test_the_earlier_time_counts_also_while_the_clock_sleeps():
    clock, looks, seen = Clock(), [], threading.Semaphore(0)

    def look(now: float) -> float:
        looks.append(now)
        seen.release()
        return NEVER

    alarm = clock.alarm(look)
    alarm.by(monotonic() + 3600)
    alarm.by(monotonic() + 0.01)
    assert seen.acquire(timeout=WAIT_S)
    alarm.by(monotonic())  # again, after it has rested
    assert seen.acquire(timeout=WAIT_S)
    assert len(looks) == 2 and looks[0] <= looks[1] and alarm.due == NEVER


def test_what_an_alarm_returns_is_its_next_time():
    clock, left, done = Clock(), [5], threading.Event()

    def look(now: float) -> float:
        left[0] -= 1
        if left[0]:
            return now
        done.set()
        return NEVER

    clock.alarm(look).by(monotonic())
    assert done.wait(WAIT_S) and left == [0]


def test_an_alarm_that_fails_or_is_cancelled_stops_no_other(caplog):
    clock, called, done = Clock(), [], threading.Event()
    clock.call_in(0.01, lambda: 1 / 0)
    clock.call_in(0.02, lambda: called.append("cancelled")).cancel()
    every = clock.call_every(0.005, lambda: called.append("every"))
    clock.call_in(0.05, done.set)
    assert done.wait(WAIT_S)
    every.cancel()
    assert called and set(called) == {"every"}
    assert "an alarm failed" in caplog.text
