"""Programs of random_programs.py give what eager runs give when compiled, compiled without optional passes,
run by the reference backend, and at other sizes; gradients and Parameters included. A third of them
each on one, two and three threads, where even the smallest paths become tasks.

The same in every run; tools/fuzz.py tries others.
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import mycelia as ms
from mycelia import config
from mycelia.engine.compile.passes import inter_op

sys.path.insert(0, str(Path(__file__).parent))

from random_programs import Program, kind_of


def with_gradients(function, parameters):
    """The results of a function, then the gradients of a number made of all float ones."""

    def number(*inputs):
        results = function(*inputs)
        total = inputs[0].sum() * 0.0
        for i, value in enumerate(results, 1):
            if kind_of(value) == "float":
                value = value.astype(ms.float32)
                total = total + (value * value).sum() / i + value.sum() * 0.3
        return total, results

    gradient = ms.value_and_grad(number, (0, 1, 2), parameters or None, has_aux=True)

    def run(*inputs):
        (total, results), gradients = gradient(*inputs)
        of_inputs, of_parameters = gradients if parameters else (gradients, ())
        return (total, *results, *of_inputs, *of_parameters)

    return run


def arrays_of(run, program, arrays):
    """What a run returns and what it leaves in Parameters."""
    program.reset()
    returned = run(*[ms.Tensor(a) for a in arrays])
    left = [program.names[name] for name in program.initial]
    # bfloat16 is no dtype of NumPy
    return [
        (v if kind_of(v) != "float" else v.astype(ms.float32)).asnumpy().copy() for v in (*returned, *left)
    ]


def noise_of(run, program, arrays, expected):
    """By how much each result moves with the inputs' last digits, None where whole numbers or shapes do."""
    rng = np.random.default_rng(0)
    worst = np.zeros(len(expected))
    for _ in range(2):
        moved = [a * (1 + 2**-21 * rng.choice([-1, 1], a.shape)).astype(np.float32) for a in arrays]
        for k, (a, b) in enumerate(zip(arrays_of(run, program, moved), expected, strict=True)):
            if a.shape != b.shape or (b.dtype.kind != "f" and not np.array_equal(a, b)):
                return None
            if b.dtype.kind == "f":
                worst[k] = max(worst[k], np.abs(a - b).max(initial=0) / (np.abs(b).max(initial=0) + 1))
    return worst


def difference(found, expected, tolerance):
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a.shape == b.shape and a.dtype == b.dtype, k
        if b.dtype.kind != "f":
            if not np.array_equal(a, b):
                return f"result {k}"
        elif np.abs(a - b).max(initial=0) > tolerance[k] * (np.abs(b).max(initial=0) + 1):
            return f"result {k}: {np.abs(a - b).max()} apart"
    return None


def check(seed, path):
    program = Program(seed)
    function = program.function(path)
    parameters = [program.names[name] for name in program.initial]
    run = with_gradients(function, parameters)
    arrays = program.inputs()
    expected = arrays_of(run, program, arrays)
    rounding = 2e-2 if "float16" in program.source else 5e-5
    if "bfloat16" in program.source:
        rounding = 1e-1

    def agree(what, found, expected=expected, arrays=arrays):
        if difference(found, expected, np.full(len(expected), rounding)):
            noise = noise_of(run, program, arrays, expected)
            if noise is None:  # a comparison stands on the edge
                return
            problem = difference(found, expected, rounding + 60 * np.maximum(noise, noise.max()))
            assert not problem, f"{what}, seed {seed}: {problem}\n{program.source}"

    with config.context(device_target="reference"):
        agree("reference", arrays_of(run, program, arrays))
    compiled = ms.jit(lambda *x: run(*x))
    first = arrays_of(compiled, program, arrays)
    agree("compiled", first)
    for a, b in zip(arrays_of(compiled, program, arrays), first, strict=True):
        np.testing.assert_array_equal(a, b, f"a second run, seed {seed}")
    agree("gradient of compiled", arrays_of(with_gradients(ms.jit(function), parameters), program, arrays))
    with config.context(passes="-optimize,-lower"):
        agree("without passes", arrays_of(ms.jit(lambda *x: run(*x)), program, arrays))
    shape = program.shapes[0]
    changes = [
        (shape[0] + 2, 0),
        (1, 0),
        (shape[-1] + 1, -1),
        (shape[seed % len(shape)] + 1, seed % len(shape)),
    ]
    changes += [(shape[-1], 0), (shape[0], -1)]  # equal sizes, where they were not
    for size, axis in dict.fromkeys((size, axis % len(shape)) for size, axis in changes):
        others = program.inputs(size, axis)
        try:
            at_size = arrays_of(run, program, others)
        except (ValueError, IndexError):
            continue  # the program is written for other sizes
        agree(f"size {size} of axis {axis}", arrays_of(compiled, program, others), at_size, others)


@pytest.mark.fuzz(20)
def test_compiled_equals_eager(seed, tmp_path):
    threads = config.context(runtime_num_threads=1 + seed % 3)
    windows = mock.patch.multiple(inter_op, _GAIN=0.0, _HANDOVER=50.0)
    with np.errstate(all="ignore"), threads, windows:
        check(seed, tmp_path / "program.py")


@pytest.mark.parametrize("number", [459615251, 459615325])
def test_programs_that_once_differed(number, tmp_path):
    """Fused groups took spaces for one that had equal sizes at the moment, one of these open."""
    test_compiled_equals_eager(number, tmp_path)
