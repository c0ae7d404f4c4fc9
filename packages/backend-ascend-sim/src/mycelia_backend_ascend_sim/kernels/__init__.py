"""The kernels of the simulated device, by op, and which cases they take."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mycelia import dtypes
from mycelia.ops.define import find, registry
from mycelia_backend_ascend_sim.kernels import attention, cube, pool, vector
from mycelia_backend_ascend_sim.overflow import ATOMIC_ADD
from mycelia_backend_ascend_sim.tasks import CUBE, MTE, SCALAR, VECTOR, Device

FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
REGISTERS = (*FLOATS, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.bool_)
_CASTS = (*REGISTERS, dtypes.int64)

#: Ops whose bodies are operations of IEEE 754, done one after the other in float32.
STEPWISE = frozenset(
    """
    assign assign_add assign_sub apply_gradient_descent apply_momentum sgd adam adam_weight_decay
    adamw apply_adagrad apply_rms_prop pool_scatter place_class pick_class gather_grad
    place_along
    """.split()
)
#: Ops that several cores add up in memory.
_ATOMIC = frozenset(("assign_add", "assign_sub", "pool_scatter", "gather_grad"))
#: Ops that choose or count, besides those whose blocks say so.
_CHOICES = frozenset("argmax argmin max_pool_index one_hot all any".split())
#: Elementwise ops that are left to the host: at large numbers they depend on how a product is rounded.
_LEFT_OUT = frozenset(("sinc",))
WRITTEN = vector.WRITTEN | pool.WRITTEN | attention.WRITTEN


def _plain(definition) -> bool:
    """Whether an op is one that a kernel can be: static, a computation of its own, without effects."""
    return not (
        definition.dynamic
        or definition.view
        or definition.copies
        or definition.only_in
        or definition.composed
        or definition.effect
    )


@functools.cache
def vector_kernels() -> dict[str, tuple[str, Callable]]:
    """(unit, kernel) of all ops but those of the cube."""
    find("add")  # the ops are defined by now
    found: dict[str, tuple[str, Callable]] = {}
    for name, op in registry.items():
        definition = op.definition
        if name in WRITTEN:
            found[name] = CUBE if name in attention.WRITTEN else VECTOR, WRITTEN[name]
        elif name == "cast":
            found[name] = VECTOR, vector.cast(definition.body)
        elif name in STEPWISE:
            found[name] = VECTOR, vector.exact(definition.body)
        elif not _plain(definition) or definition.updates or name in _LEFT_OUT:
            continue
        elif definition.moves:
            found[name] = MTE, vector.moving(definition.body)
        elif definition.elementwise:
            found[name] = (
                VECTOR,
                vector.elementwise(name, definition.body, name in vector.IEEE or definition.exact),
            )
        elif definition.exact or name in _CHOICES:
            found[name] = VECTOR, vector.exact(definition.body)
    return found


def table(device: Device) -> dict[tuple[str, str], Callable]:
    """(op, dtypes) -> kernel, which gets Operands."""
    from mycelia_backend_ascend_sim.fusion import op

    kernels = {name: (CUBE, partial(cube.run, name)) for name in cube.HOSTS} | {
        name: kernel for name, kernel in vector_kernels().items() if name not in cube.HOSTS
    }
    kernels["ub_fusion"] = VECTOR, op.run
    kernels["overflow_status"] = (
        SCALAR,
        lambda task, after: np.array(device.overflow.read_and_clear()[0] != 0),
    )
    return {(name, "*"): _as_task(device, name, unit, run) for name, (unit, run) in kernels.items()}


def _as_task(device: Device, name: str, unit: str, run: Callable) -> Callable:
    def kernel(*operands, **attrs):
        task = device.running
        task.op, task.unit, task.attrs = name, unit, attrs
        if name in _ATOMIC:
            task.status_bits = ATOMIC_ADD
        return run(task, *operands, **attrs)

    return kernel


def supports(op: str, types: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
    """Whether the device's kernel of `op` takes this case; others run on the host, as on AI CPUs."""
    found = [t.dtype for t in types if t is not None]
    if op in cube.HOSTS:
        if len({*found}) != 1:
            return False
        return found[0] in FLOATS or found[0] in cube.INTEGERS and op in ("mat_mul", "batch_matmul", "dense")
    if op in ("ub_fusion", "overflow_status"):
        return True
    if op == "cast":
        return found[0] in _CASTS and attrs["dtype"] in _CASTS
    if attrs.get("data_format") == "NHWC" and op in pool.WRITTEN:
        return False
    definition = find(op).definition
    if definition.moves:
        return not any(d.is_complex for d in found)
    if op in attention.WRITTEN and attrs["p"]:
        return False  # which weights are dropped, the host's random numbers say
    if op == "gather_grad":
        return found[0] in FLOATS
    if op == "sparse_softmax_cross_entropy_with_logits":
        return found[0] in FLOATS
    if op == "sum" and attrs["dtype"] not in (None, *REGISTERS):
        return False
    if any(d not in REGISTERS for d in found):
        return False
    if op in WRITTEN:
        return all(d in FLOATS for d in found)
    return not any(isinstance(v, dtypes.DType) and v not in REGISTERS for v in attrs.values())
