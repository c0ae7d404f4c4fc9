"""How an op becomes steps of a fused program (`ops/lowered/fused.py`): the option `fuse` of a block.

A fused program is one pass over memory. Its values have one of the kinds below, its steps the names of the
table there. `fuse="mish"` says that on float32 the op is the step "mish"; `step(...)` says more of types, and
`@x.fuse` sets a function that emits several: ``(program, *values, **attrs) -> value``, where
`program.step(name, *values)` and `program.constant(number)` give values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mycelia.engine.base import dtypes
from mycelia.engine.base.dtypes import DType

FLOAT, INT, MASK, HALF, BRAIN = range(5)  # kinds of values; a mask is bool; the last two only outside
KINDS = {dtypes.float32: FLOAT, dtypes.int32: INT, dtypes.bool_: MASK}
NARROW = {dtypes.float16: HALF, dtypes.bfloat16: BRAIN}  # they come in, and leave, as float32
#: type of 16 bits -> the op, and the step, that rounds float32 to it
ROUNDING = {dtypes.float16: "round_f16", dtypes.bfloat16: "round_bf16"}


def on_float32(inputs: tuple[DType, ...], output: DType) -> bool:
    """Whether all inputs are float32, and the result is of a kind that programs have."""
    return output in KINDS and all(d is dtypes.float32 for d in inputs)


class Fusion(NamedTuple):
    """The steps of an op: `emit(program, *values, **attrs)`, for inputs and a result that `fits` takes."""

    emit: Callable[..., int]
    fits: Callable[[tuple[DType, ...], DType], bool] = on_float32


def step(name: str, *takes: DType, swapped: bool = False) -> Fusion:
    """One step. `takes`: the dtypes of the first input, if not float32; of int32 it is `name` with "_int"
    appended. `swapped`: the two inputs change places.
    """

    def emit(program: Any, *values: int, **attrs: Any) -> int:
        kind = program.types[values[0]]
        chosen = f"{name}_int" if kind == INT else name
        return program.step(chosen, *(values[::-1] if swapped else values))

    if not takes:
        return Fusion(emit)

    def fits(inputs: tuple[DType, ...], output: DType) -> bool:
        return output in KINDS and inputs[0] in takes and all(d in KINDS for d in inputs)

    return Fusion(emit, fits)
