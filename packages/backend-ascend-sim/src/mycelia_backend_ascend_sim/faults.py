"""Faults that a device may have, for the tests of tools which must find them.

::

    with faults.inject(faults.Nan("conv", index=1, step=3)) as planted:
        for step in range(5):
            planted.step = step
            train(batch)
    assert planted.hits

A fault names the op whose result it damages: a text that must be the op's name or a part of a fusion, or
"*". `index` chooses among the matching tasks of a step, from 0; None stands for all. `step` is compared
with the `step` of the block, which its owner counts (`step_counter` does so in `Model.train`); None stands
for all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycelia import dtypes
from mycelia_backend_ascend_sim import arithmetic


@dataclass(frozen=True)
class Fault:
    """What all faults have in common."""

    op: str = "*"
    index: int | None = None
    step: int | None = None
    slot: int = 0

    def rounding(self, values: np.ndarray, dtype: dtypes.DType) -> np.ndarray | None:
        """float32 `values` as they are stored in `dtype`, or None: as usual."""
        return None

    def stored(self, values: np.ndarray, dtype: dtypes.DType) -> np.ndarray:
        """What is stored instead of `values`."""
        return values

    def fused(self, fusion: str, part: str) -> bool:
        """Whether the fusion leaves out its part `part`."""
        return False


@dataclass(frozen=True)
class Nan(Fault):
    """One element of the result, `element` of its row-major order, is `value`."""

    element: int = 0
    value: float = float("nan")

    def stored(self, values, dtype):
        if not values.size or not dtype.is_floating:
            return values
        damaged = values.copy()
        damaged.reshape(-1)[self.element % values.size] = self.value
        return damaged


@dataclass(frozen=True)
class WrongRounding(Fault):
    """Results in float16 and bfloat16 are cut instead of rounded to nearest."""

    def rounding(self, values, dtype):
        return arithmetic.toward_zero(values, dtype)


@dataclass(frozen=True)
class StuckBit(Fault):
    """Bit `bit` of every element of the result, 0 the lowest, is always `value`."""

    bit: int = 0
    value: int = 1

    def stored(self, values, dtype):
        wide = dtype is dtypes.bfloat16  # it is held in the upper half of a float32
        unsigned = np.dtype(f"u{values.dtype.itemsize}")
        one = unsigned.type(1 << self.bit + 16 * wide)
        bits = np.ascontiguousarray(values).view(unsigned)
        return (bits | one if self.value else bits & ~one).view(values.dtype)


@dataclass(frozen=True)
class WrongFusion(Fault):
    """The fusion pass called `fusion` leaves out the op `part` of what it fuses; alone the op is right."""

    fusion: str = "*"
    part: str = "relu"

    def fused(self, fusion, part):
        return self.fusion in ("*", fusion) and part == self.part


@dataclass(frozen=True)
class DroppedAllReduce(Fault):
    """`collectives.all_reduce` leaves the tensor of `rank` out of the sum and `rank` without the result."""

    rank: int = 0


@dataclass
class Injection:
    """Faults that are planted: `hits` lists (fault, op, step, task id) of each result that one changed."""

    faults: tuple[Fault, ...]
    step: int = 0
    hits: list[tuple[Fault, str, int, int]] = field(default_factory=list)
    _seen: dict[int, tuple[int, int, int | None]] = field(default_factory=dict)  # fault -> step, tasks, last

    def meant(self, fault: Fault, names: tuple[str, ...], task_id: int) -> bool:
        """Whether `fault` is in the task of an op with these names."""
        if fault.op != "*" and fault.op not in names:
            return False
        step, count, last = self._seen.get(id(fault), (self.step, -1, None))
        if step != self.step:
            count, last = -1, None
        if task_id != last:
            count += 1
        self._seen[id(fault)] = self.step, count, task_id
        return fault.step in (None, self.step) and fault.index in (None, count)


_planted: list[Injection] = []


@contextlib.contextmanager
def inject(*faults: Fault) -> Iterator[Injection]:
    """Plant `faults` in the device within the block. Errors: TypeError for what is no fault."""
    for fault in faults:
        if not isinstance(fault, Fault):
            raise TypeError(f"inject takes faults, but got {type(fault).__name__}")
    injection = Injection(faults)
    _planted.append(injection)
    try:
        yield injection
    finally:
        _planted.remove(injection)


def planted() -> bool:
    """Whether there are any."""
    return bool(_planted)


def meant(names: tuple[str, ...], task_id: int, slot: int | None = None) -> list[tuple[Injection, Fault]]:
    """The faults of a task, or of one of its results."""
    return [
        (injection, fault)
        for injection in _planted
        for fault in injection.faults
        if slot in (None, fault.slot) and injection.meant(fault, names, task_id)
    ]


def dropped_ranks(task_id: int) -> set[int]:
    """The ranks that the all-reduce of this number loses."""
    found = set()
    for injection, fault in meant(("all_reduce",), task_id):
        if isinstance(fault, DroppedAllReduce):
            injection.hits.append((fault, "all_reduce", injection.step, task_id))
            found.add(fault.rank)
    return found


def step_counter(injection: Injection) -> Any:
    """A callback for `Model.train` that counts the steps of `injection`, from 0."""
    from mycelia.train import Callback

    class CountSteps(Callback):
        def on_train_step_begin(self, run_context):
            injection.step = run_context.original_args().cur_step_num - 1

    return CountSteps()
