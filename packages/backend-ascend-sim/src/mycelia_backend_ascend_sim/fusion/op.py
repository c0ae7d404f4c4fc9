"""One task for several ops, `ub_fusion`: what the passes make, and how it runs (R9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia import dtypes
from mycelia.ir import TensorType
from mycelia.ops.define import find, op
from mycelia_backend_ascend_sim import faults
from mycelia_backend_ascend_sim.kernels import cube
from mycelia_backend_ascend_sim.tasks import CUBE, Operand, Task

# A part is a tuple (op, where its inputs come from, attributes as pairs, user's line). A place n >= 0 is the
# fusion's input n, -1 - k the result of part k, None an input that is absent.
Part = tuple[str, tuple[int | None, ...], tuple[tuple[str, Any], ...], str]


def _taken(places: Sequence[int | None], inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    return [None if p is None else inputs[p] if p >= 0 else results[-1 - p] for p in places]


def _fusion_type(inputs, *, fusion, parts):
    types: list[TensorType] = []
    for name, places, attrs, _ in parts:
        found = find(name).definition.infer_types(tuple(_taken(places, inputs, types)), dict(attrs))
        types.append(found[0] if isinstance(found, tuple) else found)
    return types[-1]


@op(infer=_fusion_type, nondiff=True, only_in="programs that were compiled for ascend-sim")
def ub_fusion(inputs: "tensors", *, fusion: "str", parts: "any"):
    """The result of the last of `parts`, ops that are one task on the device; `fusion` is the pass's name.

    Values that parts hand to one another stay in float32 in the device's buffers.
    Shapes: as the parts'.  dtypes: floating.
    """


@dataclass(slots=True)
class Register:
    """What a part hands to the next: as an `Operand`, but in the device's buffers."""

    task: Task
    array: np.ndarray
    dtype: dtypes.DType

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def stored(self) -> np.ndarray:
        return self.array

    values = stored

    def present(self) -> None:
        return None


def run(task: Task, inputs: tuple[Operand, ...], *, fusion: str, parts: tuple[Part, ...]):
    """The kernel of `ub_fusion`."""
    from mycelia_backend_ascend_sim.kernels import vector_kernels

    task.fusion = fusion
    task.parts = tuple(part[0] for part in parts)
    dropped = _dropped(task, fusion)
    kernels = vector_kernels()
    results: list[Register] = []
    for name, places, attrs, _ in parts:
        taken = _taken(places, inputs, results)
        if name in dropped and any(isinstance(t, Register) for t in taken):
            found = next(t.array for t in taken if isinstance(t, Register))
        elif name in cube.HOSTS:
            task.unit = CUBE
            found = cube.HOSTS[name][0](task, *taken, **dict(attrs))
            task.host_shape = found.shape
        else:
            found = np.asarray(kernels[name][1](task, *taken, **dict(attrs)))
        results.append(Register(task, found, taken[0].dtype if found.dtype == np.float32 else dtypes.bool_))
    last = results[-1].array
    if task.unit == CUBE:
        host = next(name for name in task.parts if name in cube.HOSTS)
        return cube.in_layout(last, cube.HOSTS[host][1], task.outputs[0].dtype)
    return last


def _dropped(task: Task, fusion: str) -> set[str]:
    """The parts that a planted fault leaves out."""
    found: set[str] = set()
    if faults.planted():
        for injection, fault in faults.meant(task.names, task.task_id):
            lost = {part for part in task.parts if fault.fused(fusion, part)}
            if lost:
                injection.hits.append((fault, task.op, injection.step, task.task_id))
            found |= lost
    return found
