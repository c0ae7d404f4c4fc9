"""What a debugged training keeps: steps, within a number and a size."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("google.protobuf")

import mycelia as ms
from mycelia.debug.messages.values import CHUNK, from_messages, to_messages
from mycelia.debug.online.steps import Steps
from mycelia.engine import observing
from mycelia.engine.ops.define import find

SIZE = 1000


def tensor(value: float = 0.0) -> ms.Tensor:
    return ms.Tensor(np.full(SIZE // 4, value, np.float32))


def operator(name: str) -> observing.Operator:
    return observing.Operator(find("relu"), name, None, {}, "ReLU")


def add(steps: Steps, iteration: int, *tensors: ms.Tensor) -> None:
    values = steps.begin(iteration, 0)
    for number, one in enumerate(tensors):
        made = operator(f"Default/ReLU-op{number}")
        steps.add_call(iteration, values, (made, [], [one]))


def test_older_steps_go():
    steps = Steps(3, 1 << 20)
    for iteration in range(5):
        add(steps, iteration, tensor(iteration))
    assert list(steps) == [2, 3, 4] and steps.size_bytes == 3 * SIZE
    assert steps[3][0].find("Default/ReLU-op0", "0").asnumpy()[0] == 3


def test_memory_is_a_bound():
    steps = Steps(100, 5 * SIZE)
    for iteration in range(20):
        add(steps, iteration, tensor(), tensor())
        assert steps.size_bytes <= 5 * SIZE
    assert list(steps) == [18, 19] and not steps.is_full
    add(steps, 20, *(tensor() for _ in range(9)))
    assert list(steps) == [20] and steps.is_full and steps.size_bytes == 5 * SIZE
    assert len(steps[20][0].calls) == 5


def test_what_steps_share_counts_once():
    steps, shared = Steps(10, 1 << 20), tensor()
    for iteration in range(4):
        add(steps, iteration, shared._detach(), tensor())
    assert steps.size_bytes == 5 * SIZE


def test_what_a_later_run_replaces_counts_no_longer():
    """A graph that runs again in the same step, and an operator that runs again in a loop."""
    steps, made = Steps(10, 4 * SIZE), operator("Default/ReLU-op0")
    for _ in range(5):
        values = steps.begin(0, 0)
        for _ in range(5):
            steps.add_call(0, values, (made, [tensor()], [tensor()]))
            assert steps.size_bytes == 2 * SIZE and not steps.is_full
        assert len(steps[0][0].calls) == 1
    steps.begin(0, 0)
    assert steps.size_bytes == 0


def test_slots_that_are_none_have_no_value():
    steps = Steps(1, 1 << 20)
    add(steps, 0, tensor())
    values = steps[0][0]
    for slot in ("1", "-1", "x", "", "input:", "input:0", "9" * 30):
        assert values.find("Default/ReLU-op0", slot) is None
    assert values.find("nowhere", "0") is None


@pytest.mark.parametrize(
    "array",
    [
        np.float32(3.5) * np.ones(()), np.zeros((0, 3), np.int64), np.arange(6).reshape(2, 3).T,
        np.ones((CHUNK // 4 + 7,), np.float32), np.array([True, False]), np.array([1 + 2j], np.complex64),
    ],
)  # fmt: skip
def test_arrays_travel_in_chunks(array):
    messages = list(to_messages(array, node_name="n", slot="0"))
    assert [m.finished for m in messages] == [False] * (len(messages) - 1) + [True]
    ((last, found),) = from_messages(messages)
    assert last.node_name == "n" and found.dtype == array.dtype and found.shape == array.shape
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    "change", [{"dims": [7]}, {"dims": [-1]}, {"data_type": 99}, {"dims": [1 << 40] * 4}]
)
def test_content_that_does_not_fit_is_refused(change):
    (message,) = to_messages(np.ones(3, np.float32))
    for name, value in change.items():
        message.ClearField(name)
        message.MergeFrom(type(message)(**{name: value}))
    with pytest.raises(ValueError):
        list(from_messages([message]))
