"""The first layers by bands of rows, one after the other, where whole images between them do not fit.

A band of a layer's result needs a band of what it reads, some rows larger: these rows are computed twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mycelia_lite.micro import maps
from mycelia_lite.micro.lower import readers
from mycelia_lite.micro.program import Program, Step

_CONVOLUTIONS = ("conv_last", "integer_conv", "low_bit_conv_last")
_POOLS = ("max_pool", "avg_pool")
_MOST_BANDS = 32


@dataclass(frozen=True)
class Cut:
    """Steps, by number, of which each but the first reads the one before; and how many bands they go in.

    `cost`: products more than without bands.
    """

    steps: tuple[int, ...]
    bands: int
    cost: int


def cuts(program: Program) -> list[Cut]:
    """All that can be cut, what costs least first."""
    found = []
    for chain in _chains(program):
        for length in range(2, len(chain) + 1):
            steps = chain[:length]
            rows = _shape(program, steps[-1])[1]
            counts = {-(-rows // -(-rows // n)) for n in range(2, min(rows, _MOST_BANDS) + 1)}
            found += [Cut(tuple(steps), n, _cost(program, steps, n)) for n in sorted(counts)]
    return sorted(found, key=lambda cut: (cut.cost, cut.bands))


def apply(program: Program, cut: Cut) -> None:
    """Put the bands of the steps in their place."""
    chain = [program.steps[i] for i in cut.steps]
    (whole,) = chain[-1].outputs
    made: list[Step] = []
    for first, last in _bands(program, cut.steps, cut.bands):
        ranges = _ranges(program, chain, first, last)
        value = chain[0].inputs[0]
        if not _is_turned(program, chain[0]):
            value = _rows(program, value, *ranges[0])
        for k, step in enumerate(chain):
            begin, end = ranges[k + 1]
            shape = program.values[step.outputs[0]].shape
            shape = (shape[0], end - begin, *shape[2:])
            if step is chain[-1]:
                out = _rows(program, whole, begin, end)
            else:
                out = program.add(program.values[step.outputs[0]].dtype, shape)
            made.append(_band(program, step, value, out, ranges[k], begin))
            value = out
    gone = set(cut.steps)
    left = [s for i, s in enumerate(program.steps) if i not in gone]
    at = sum(i not in gone for i in range(cut.steps[-1]))
    program.steps = [*left[:at], *made, *left[at:]]


def _chains(program: Program) -> Iterator[list[int]]:
    """From each input the steps that follow one another and that bands can be made of."""
    reads = readers(program)
    shared = {v.root for i, v in enumerate(program.values) if v.root != i}
    for border in program.inputs:
        # A reshaped input is read by another number.
        root = program.values[border.value].root
        read = [v for v, value in enumerate(program.values) if value.root == root and reads[v]]
        if len(read) != 1 or program.values[read[0]].bytes != program.values[border.value].bytes:
            continue
        (value,), chain = read, []
        while len(reads[value]) == 1 and reads[value][0] >= 0:
            (i,) = reads[value]
            step = program.steps[i]
            if not _can_go_in_bands(program, step, value) or (chain and _is_turned(program, step)):
                break
            chain.append(i)
            (value,) = step.outputs
            if value in shared or program.values[value].root != value:
                break
        yield chain


def _is_turned(program: Program, step: Step) -> bool:
    """Whether the step lets the channels of an image be the last axis."""
    return step.op == "transpose" and [d % 4 for d in step.attributes["dims"]] == [0, 2, 3, 1]


def _can_go_in_bands(program: Program, step: Step, value: int) -> bool:
    if not step.inputs or step.inputs[0] != value or len(step.outputs) != 1:
        return False
    given, made = program.values[value].shape, program.values[step.outputs[0]].shape
    if len(given) != 4 or len(made) != 4 or given[0] != 1 or not math.prod(made):
        return False
    if step.op in _CONVOLUTIONS:
        return "image" not in step.attributes and (step.op != "conv_last" or step.inputs[3] < 0)
    if step.op in _POOLS:
        return step.attributes["data_format"] == 1
    if _is_turned(program, step):
        return True
    if not maps.is_map(program, step) or given != made:
        return False
    tables = maps.tables(step)
    return all(
        v == value or (program.values[v].data is not None and (i in tables or _is_same_in_rows(program, v)))
        for i, v in enumerate(step.inputs)
    )


def _is_same_in_rows(program: Program, value: int) -> bool:
    shape = program.values[value].shape
    return len(shape) <= 4 and (len(shape) < 3 or shape[-3] == 1)


def _shape(program: Program, step: int) -> tuple[int, ...]:
    return program.values[program.steps[step].outputs[0]].shape


def _bands(program: Program, steps: tuple[int, ...] | list[int], count: int) -> list[tuple[int, int]]:
    rows = _shape(program, steps[-1])[1]
    each = -(-rows // count)
    return [(first, min(first + each, rows)) for first in range(0, rows, each)]


def _reach(program: Program, step: Step, first: int, last: int) -> tuple[int, int]:
    """The rows that a step reads for those of its result, as if there were rows without end."""
    a = step.attributes
    if step.op not in _CONVOLUTIONS + _POOLS:
        return first, last
    stride, pad, dilation = a["stride"][0], a["pad"][0], (a.get("dilation") or [1])[0]
    return first * stride - pad, (last - 1) * stride - pad + (a["kernel"][0] - 1) * dilation + 1


def _ranges(program: Program, chain: list[Step], first: int, last: int) -> list[tuple[int, int]]:
    """The rows of what each step reads, and behind them those of the result."""
    found = [(first, last)]
    for step in reversed(chain):
        begin, end = _reach(program, step, *found[0])
        shape = program.values[step.inputs[0]].shape
        rows = shape[2] if _is_turned(program, step) else shape[1]
        begin = min(max(0, begin), rows - 1)
        found.insert(0, (begin, min(max(end, begin + 1), rows)))
    return found


def _rows(program: Program, value: int, first: int, last: int) -> int:
    """A view of some rows of an image [1, H, W, C]."""
    v = program.values[value]
    _, _, width, channels = v.shape
    return program.view(
        value, (1, last - first, width, channels), first * width * channels * v.dtype.itemsize
    )


def _band(
    program: Program, step: Step, value: int, out: int, rows: tuple[int, int], first: int
) -> Step:  # fmt: skip
    """The step for the rows of its result from `first` on, of the rows that it reads."""
    attributes = dict(step.attributes)
    if step.op in _CONVOLUTIONS + _POOLS:
        top, left, bottom, right = attributes["pad"]
        height = program.values[step.inputs[0]].shape[1]
        above = top - first * attributes["stride"][0] + rows[0]
        attributes["pad"] = [above, left, height + bottom - rows[1], right]
        if "even" in attributes:
            shape = program.values[step.outputs[0]].shape
            attributes["even"] = max(0, attributes["even"] - first * math.prod(shape[2:]))
    elif _is_turned(program, step):
        attributes["begin"] = [0, 0, rows[0], 0]
    inputs = [value if v == step.inputs[0] else v for v in step.inputs]
    return Step(step.op, inputs, [out], attributes, step.node, step.kind)


def _work(program: Program, step: Step, rows: int) -> int:
    """Products that so many rows of a step's result take."""
    _, _, width, channels = program.values[step.outputs[0]].shape
    work = rows * width * channels
    if step.op in _CONVOLUTIONS:
        deep = program.values[step.inputs[0]].shape[3] // step.attributes.get("group", 1)
        return work * math.prod(step.attributes["kernel"]) * deep
    return work * (math.prod(step.attributes["kernel"]) if step.op in _POOLS else 1)


def _cost(program: Program, steps: list[int], count: int) -> int:
    chain = [program.steps[i] for i in steps]
    cost = -sum(_work(program, step, program.values[step.outputs[0]].shape[1]) for step in chain)
    for first, last in _bands(program, steps, count):
        ranges = _ranges(program, chain, first, last)
        cost += sum(_work(program, s, end - begin) for s, (begin, end) in zip(chain, ranges[1:]))
    return cost
