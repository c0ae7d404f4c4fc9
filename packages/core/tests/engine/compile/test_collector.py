"""Python's collector of cycles while functions are captured and compiled."""

import gc

import pytest

import mycelia as ms
from mycelia import ops


def capture(state):
    @ms.jit
    def function(x):
        state.append(gc.isenabled())
        return ops.sin(x)

    return function(ops.ones((3,), ms.float32))


def test_it_rests_during_a_capture_and_goes_on_afterwards():
    during = []
    capture(during)
    assert during == [False]
    assert gc.isenabled()


def test_it_goes_on_after_an_error():
    @ms.jit
    def function(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        function(ops.ones((3,), ms.float32))
    assert gc.isenabled()


def test_who_switched_it_off_keeps_it_off():
    gc.disable()
    try:
        capture([])
        assert not gc.isenabled()
    finally:
        gc.enable()
