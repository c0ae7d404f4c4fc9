"""A program as C is made of it: no copies, clamps inside of what they follow, nothing unread."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from mycelia_lite.micro.integers import join_integers
from mycelia_lite.micro.lower import readers
from mycelia_lite.micro.program import Program, Step
from mycelia_lite.micro.streams import lay_at_end, windows

_HOSTS = ("conv_last", "linear", "conv", "low_bit_conv_last", "low_bit_linear")
_CONVOLUTIONS = ("conv_last", "integer_conv", "low_bit_conv_last")
_ACTIVATIONS = ("", "relu", "relu6", "hardswish", "silu", "sigmoid", "gelu", "gelu")


def prepare(program: Program, at_end: Collection[int] = ()) -> list[int]:
    """Change the program in place; its results stay.

    `at_end`: variables that lie at the end of what they are joined to (`streams`). Gives those that may.
    """
    _drop_copies(program)
    join_integers(program)
    _split_activations(program)
    _sum_bytes(program)
    _fold_normalizations(program)
    _drop_unread(program)
    _fold_clamps(program)
    _compose_slices(program)
    _read_slices(program)
    _view_slices(program)
    found = windows(program)
    for window in found:
        if window.state in at_end:
            lay_at_end(program, window)
    _join_parts(program)
    return [window.state for window in found]


def _drop_copies(program: Program) -> None:
    """Outputs lie where what they copy does."""
    source = {s.outputs[0]: s.inputs[0] for s in program.steps if s.op == "copy"}
    for border in program.outputs:
        border.value = source.get(border.value, border.value)
    for state in program.states:
        state.next = source.get(state.next, state.next)
    program.steps = [s for s in program.steps if s.op != "copy"]


def _split_activations(program: Program) -> None:
    """Activations that are no clamp become steps behind their hosts."""
    made = []
    for step in program.steps:
        number = step.attributes.pop("activation", 0) if step.op in _HOSTS else 0
        made.append(step)
        if number in (1, 2):
            step.attributes["limits"] = (0.0, 6.0 if number == 2 else math.inf)
        elif number:
            (out,) = step.outputs
            value = program.values[out]
            step.outputs = [program.add(value.dtype, value.shape)]
            attributes = {"approximate": number == 7} if number >= 6 else {}
            made.append(
                Step(_ACTIVATIONS[number], list(step.outputs), [out], attributes, step.node, step.kind)
            )
    program.steps = made


def _sum_bytes(program: Program) -> None:
    """Sums read integers of 8 bits as they are, not as wider ones, which take four times the memory."""
    maker = {v: s for s in program.steps for v in s.outputs if s.op == "cast"}
    for step in program.steps:
        wide = maker.get(step.inputs[0]) if step.op == "sum" else None
        if wide is None or program.values[step.inputs[0]].dtype.kind != "i":
            continue
        if program.values[wide.inputs[0]].dtype in (np.int8, np.uint8, np.bool_):
            step.inputs = list(wide.inputs)


def _fold_normalizations(program: Program) -> None:
    """Batch normalizations by constants are a factor and a summand."""
    made = []
    for step in program.steps:
        constants = [program.values[v].data for v in step.inputs[1:]]
        if step.op != "batch_norm_infer" or any(c is None for c in constants):
            made.append(step)
            continue
        scale, bias, mean, variance = (np.asarray(c, np.float64) for c in constants)
        factor = scale / np.sqrt(variance + step.attributes["epsilon"])
        (x, *_), (out,) = step.inputs, step.outputs
        value = program.values[out]
        shape = (-1,) if step.attributes["data_format"] == 1 else (-1, *(1,) * (len(value.shape) - 2))
        numbers = [
            program.constant(n.astype(np.float32).reshape(shape)) for n in (factor, bias - mean * factor)
        ]
        scaled = program.add(value.dtype, value.shape)
        made.append(Step("mul", [x, numbers[0]], [scaled], {}, step.node, step.kind))
        made.append(Step("add", [scaled, numbers[1]], [out], {}, step.node, step.kind))
    program.steps = made


def _drop_unread(program: Program) -> None:
    needed = {
        program.values[v].root for v in [b.value for b in program.outputs] + [s.next for s in program.states]
    }
    kept = []
    for step in reversed(program.steps):
        if any(program.values[v].root in needed for v in step.outputs):
            needed |= {program.values[v].root for v in step.inputs if v >= 0}
            kept.append(step)
    program.steps = kept[::-1]


def _limits(step: Step) -> tuple[float, float] | None:
    """Of a step that is a clamp."""
    if step.op in ("relu", "relu6"):
        return 0.0, 6.0 if step.op == "relu6" else math.inf
    if step.op != "clip":
        return None
    a = step.attributes
    return a["min"] if a["has_min"] else -math.inf, a["max"] if a["has_max"] else math.inf


def _fold_clamps(program: Program) -> None:
    """Clamps behind a convolution or product of their own are its limits."""
    reads = readers(program)
    shared = {v.root for i, v in enumerate(program.values) if v.root != i}
    maker = {v: s for s in program.steps for v in s.outputs}
    gone = []
    for step in program.steps:
        limits = _limits(step)
        host = maker.get(step.inputs[0]) if limits else None
        if host is None or host.op not in _HOSTS or "limits" in host.attributes:
            continue
        value = step.inputs[0]
        if len(reads[value]) > 1 or value in shared or program.values[value].dtype != np.float32:
            continue
        host.attributes["limits"] = limits
        host.outputs = step.outputs
        maker[step.outputs[0]] = host
        gone.append(step)
    program.steps = [s for s in program.steps if not any(s is g for g in gone)]


def _compose_slices(program: Program) -> None:
    """Slices of slices are slices of the whole."""
    maker = {v: s for s in program.steps for v in s.outputs if s.op == "strided_slice"}
    for step in program.steps:
        whole = maker.get(step.inputs[0]) if step.op == "strided_slice" else None
        if whole is None:
            continue
        outer, own = whole.attributes, step.attributes
        begin = [b + n * s for b, n, s in zip(outer["begin"], own["begin"], outer["stride"])]
        stride = [n * s for n, s in zip(own["stride"], outer["stride"])]
        step.inputs = list(whole.inputs)
        step.attributes = own | {"begin": begin, "stride": stride}
    _drop_unread(program)


def _read_slices(program: Program) -> None:
    """Convolutions read some rows and channels of an image where it lies."""
    maker = {v: s for s in program.steps for v in s.outputs if s.op == "strided_slice"}
    for step in program.steps:
        part = maker.get(step.inputs[0]) if step.op in _CONVOLUTIONS else None
        if part is None:
            continue
        (x,), (y,), a = part.inputs, part.outputs, part.attributes
        whole, shape = program.values[x], program.values[y].shape
        (batch, _, width, channels), first = whole.shape, a["begin"]
        if batch != 1 or shape[2] != width or set(a["stride"]) != {1} or whole.data is not None:
            continue
        if shape[3] == channels:  # whole rows lie together
            continue
        begin = first[1] * width * channels + first[3]
        span = (shape[1] * width - 1) * channels + shape[3]
        step.inputs[0] = program.add(whole.dtype, (span,))
        program.move(step.inputs[0], x, begin * whole.dtype.itemsize)
        step.attributes |= {"image": shape, "in_step": channels}
    _drop_unread(program)


def _view_slices(program: Program) -> None:
    """Slices whose elements lie together are read where they lie, unless a variable keeps them."""
    kept = {program.values[s.next].root for s in program.states}
    left = []
    for step in program.steps:
        x, y = step.inputs[0] if step.inputs else -1, step.outputs[0]
        begin = _begin_of_run(program, step) if step.op == "strided_slice" and x >= 0 else None
        if begin is None or y in kept or program.values[y].root != y or program.values[x].data is not None:
            left.append(step)
            continue
        program.move(y, x, begin * program.values[x].dtype.itemsize)
    program.steps = left


def _join_parts(program: Program) -> None:
    """Parts that lie together in a whole are made there, in front of or behind one another."""
    fixed = {program.values[s.next].root for s in program.states}
    for step in reversed(program.steps):  # a whole may be a part of a later one
        if step.op not in ("concat", "stack"):
            continue
        (y,) = step.outputs
        shape = program.values[y].shape
        axis = step.attributes["axis"] % len(shape)
        if math.prod(shape[:axis]) != 1 or program.values[y].root in fixed:
            continue
        at = 0
        for x in step.inputs:
            part = program.values[x]
            root = program.values[part.root]
            is_whole = part.offset == 0 and part.bytes == root.bytes and part.root not in fixed
            if is_whole and root.data is None and part.root != program.values[y].root:
                program.move(part.root, y, at)
            at += part.bytes


def _begin_of_run(program: Program, step: Step) -> int | None:
    """The first element of a slice that takes elements one behind the other."""
    shape, size = program.values[step.inputs[0]].shape, program.values[step.outputs[0]].shape
    a = step.attributes
    at = 0
    inside = False  # whether an axis before takes more than one place
    for d, n in enumerate(shape):
        if size[d] != n and inside:
            return None
        if size[d] > 1 and a["stride"][d] != 1:
            return None
        inside = inside or size[d] > 1
        at = at * n + a["begin"][d]
    return at
