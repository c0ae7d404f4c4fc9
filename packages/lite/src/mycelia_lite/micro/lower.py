"""Steps as calls of C functions, and elementwise steps as loops of their own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycelia_lite.micro import maps
from mycelia_lite.micro.program import Program, Step


@dataclass
class Call:
    """A call of a kernel: parameters of `struct`, then inputs (-1: none), outputs and scratch memory."""

    function: str
    struct: str
    fields: dict[str, Any]
    inputs: list[int]
    outputs: list[int]
    node: str
    kind: str
    scratch: int = 0
    distances: dict[int, float] = field(default_factory=dict)  # of inputs, from outputs[0]; see `memory`
    continues: bool = False  # the call before has begun the output, of which this one leaves a part as it is


@dataclass
class Map:
    """Elementwise steps in one loop; all but the last one's results stay in registers."""

    steps: list[Step]
    inputs: list[int]
    outputs: list[int]
    node: str
    kind: str
    scratch: int = 0
    distances: dict[int, float] = field(default_factory=dict)
    continues = False


class Refused(NotImplementedError):
    """An op that no C function computes as it is asked for."""


_FAMILIES = (  # modules of `operators`
    "bits", "convolution", "images", "integers", "moves", "order", "places", "product", "random", "recurrent",
    "rows", "trees",
)  # fmt: skip
Lowering = Callable[["Builder", Step], None]
_LOWERINGS: dict[str, Lowering] = {}


def lowers(*ops: str) -> Callable[[Lowering], Lowering]:
    """Register what makes calls of these ops."""

    def register(function: Lowering) -> Lowering:
        _LOWERINGS.update(dict.fromkeys(ops, function))
        return function

    return register


class Builder:
    """Collects the calls of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.items: list[Call | Map] = []

    def value(self, index: int) -> Any:
        """The value with this number."""
        return self.program.values[index]

    def shape(self, index: int) -> tuple[int, ...]:
        """Its sizes."""
        return self.program.values[index].shape

    def require(self, condition: bool, why: str) -> None:
        """Refuse the step unless the condition holds."""
        if not condition:
            raise Refused(why)

    def floats(self, step: Step, *places: int) -> None:
        """Refuse the step unless these inputs, all of them if none is named, are float32."""
        for i in places or range(len(step.inputs)):
            if i < len(step.inputs) and step.inputs[i] >= 0:
                dtype = self.value(step.inputs[i]).dtype
                self.require(dtype == np.float32, f"{dtype.name}")

    def call(
        self,
        step: Step,
        function: str,
        struct: str,
        fields: dict[str, Any],
        inputs: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        scratch: int = 0,
        distances: dict[int, float] | None = None,
        continues: bool = False,
    ) -> None:
        """Add a call; inputs and outputs are the step's unless others are given."""
        given = list(step.inputs if inputs is None else inputs)
        made = list(step.outputs if outputs is None else outputs)
        self.items.append(
            Call(
                function,
                struct,
                fields,
                given,
                made,
                step.node,
                step.kind,
                scratch,
                distances or {},
                continues,
            )
        )


def lower(program: Program) -> list[Call | Map]:
    """The program's calls in order.

    Errors: NotImplementedError that names all steps without a C function.
    """
    for family in _FAMILIES:
        importlib.import_module(f"mycelia_lite.micro.operators.{family}")
    builder = Builder(program)
    groups = _groups(program)
    obstacles: dict[str, list[str]] = {}
    for i, step in enumerate(program.steps):
        if i in groups:
            if groups[i][-1] == i:
                builder.items.append(_map(program, [program.steps[s] for s in groups[i]]))
            continue
        try:
            if step.op not in _LOWERINGS:
                raise Refused(", ".join(program.values[v].dtype.name for v in step.inputs if v >= 0))
            _LOWERINGS[step.op](builder, step)
        except Refused as why:
            obstacles.setdefault(f"{step.op} of {why}", []).append(f"'{step.node}' ({step.kind})")
    if obstacles:
        found = "; ".join(
            f"{what} at {', '.join(nodes[:3])}{' and others' if len(nodes) > 3 else ''}"
            for what, nodes in obstacles.items()
        )
        raise NotImplementedError(f"Micro has no C code for: {found}")
    return builder.items


def readers(program: Program) -> list[list[int]]:
    """Of each value the steps that read it, -1 for the end of the run."""
    found: list[list[int]] = [[] for _ in program.values]
    for i, step in enumerate(program.steps):
        for v in step.inputs:
            if v >= 0 and i not in found[v]:
                found[v].append(i)
    for v in [b.value for b in program.outputs] + [s.next for s in program.states]:
        found[v].append(-1)
    return found


def _groups(program: Program) -> dict[int, list[int]]:
    """Elementwise steps by number, with all steps of their loop."""
    reads = readers(program)
    shared = {v.root for i, v in enumerate(program.values) if v.root != i}
    group_of: dict[int, int] = {}  # to the last step of the loop
    for i in reversed(range(len(program.steps))):
        step = program.steps[i]
        if not maps.is_map(program, step):
            continue
        (made,) = step.outputs
        ends = {group_of.get(r, -1) for r in reads[made]}
        group_of[i] = i
        if len(ends) == 1 and made not in shared and program.values[made].root == made:
            (end,) = ends
            last = program.steps[end].outputs[0] if end >= 0 else -1
            if end >= 0 and program.values[last].shape == program.values[made].shape:
                if all(_is_read_alone(program, program.steps[r], made) for r in reads[made]):
                    group_of[i] = end
    members: dict[int, list[int]] = {}
    for i in sorted(group_of):
        members.setdefault(group_of[i], []).append(i)
    return {i: members[end] for i, end in group_of.items()}


def _is_read_alone(program: Program, step: Step, value: int) -> bool:
    """Whether the step reads the value element by element."""
    return all(step.inputs[i] != value for i in maps.tables(step))


def _map(program: Program, steps: list[Step]) -> Map:
    made = {v for step in steps for v in step.outputs}
    inputs = list(dict.fromkeys(v for step in steps for v in step.inputs if v >= 0 and v not in made))
    last = steps[-1]
    (out,) = last.outputs
    distances = {}
    looked_up = {step.inputs[i] for step in steps for i in maps.tables(step)}
    for v in inputs:
        value, result = program.values[v], program.values[out]
        if value.data is None and value.size == result.size and v not in looked_up:
            distances[v] = max(0, (value.size - 1) * (result.dtype.itemsize - value.dtype.itemsize))
    return Map(steps, inputs, [out], last.node, last.kind, distances=distances)
