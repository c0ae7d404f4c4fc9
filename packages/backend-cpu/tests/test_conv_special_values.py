"""Convolutions and their gradients have NaN and infinities where sums of their own terms do, nowhere else.

The expected pattern is counted, in finite numbers: a convolution of the places of infinities in one operand
with those of zeros in the other says how many terms are NaN, and so on. Padding is in none of these sets, so
it adds no term.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.ops.define import find
from mycelia.engine.ops.lowered import channels_last
from mycelia.engine.ops.lowered.channels_last_grad import conv_last_input_grad, conv_last_weight_grad
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes, output_size
from mycelia.testing.special_values import assert_same_pattern

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# Ranges that reach one kernel each: images, inputs and outputs a group, groups, sizes, kernels, strides,
# dilations.
FIRST = {  # channels first: eager calls
    "few": ((1, 2), (1, 3), (1, 9), (1, 1), (9, 40), (2, 4), (1, 2), (1, 2)),
    "lanes": ((17, 19), (2, 9), (3, 9), (1, 2), (4, 9), (1, 4), (1, 3), (1, 2)),
    "gemm": ((1, 3), (5, 9), (17, 35), (1, 2), (4, 13), (1, 4), (1, 3), (1, 3)),
    "planes": ((1, 3), (1, 2), (1, 2), (3, 7), (4, 13), (1, 5), (1, 3), (1, 2)),
}
LAST = {  # channels last: compiled programs
    "direct": ((1, 3), (3, 20), (5, 35), (1, 2), (4, 12), (1, 5), (1, 3), (1, 3)),
    "phases": ((1, 2), (2, 3), (5, 20), (1, 1), (7, 15), (3, 6), (2, 2), (1, 1)),
    "winograd2": ((1, 2), (3, 20), (5, 35), (1, 1), (6, 15), (3, 3), (1, 1), (1, 1)),
    "winograd4": ((1, 2), (3, 20), (5, 35), (1, 1), (6, 15), (3, 3), (1, 1), (1, 1)),
    "winograd6": ((1, 2), (3, 20), (5, 35), (1, 1), (6, 15), (3, 3), (1, 1), (1, 1)),
    "winograd4, weights": ((2, 3), (16, 20), (16, 35), (1, 1), (14, 18), (3, 3), (1, 1), (1, 1)),
    "depthwise": ((1, 2), (1, 1), (1, 1), (5, 40), (5, 17), (1, 5), (1, 2), (1, 2)),
    "depthwise 3x3": ((1, 2), (1, 1), (1, 1), (8, 40), (5, 17), (3, 3), (1, 1), (1, 1)),
    "depthwise 3x3, stride 2": ((1, 2), (1, 1), (1, 1), (8, 40), (9, 20), (3, 3), (2, 2), (1, 1)),
    "depthwise 5x5": ((1, 2), (1, 1), (1, 1), (8, 40), (9, 20), (5, 5), (1, 2), (1, 1)),
    "depthwise, few cache lines": ((1, 1), (1, 1), (1, 1), (512, 512), (5, 8), (3, 3), (1, 2), (1, 1)),
}
#: Both sides alike, so that every row and column has padding; as most networks have it.
SQUARE = (
    "winograd4, weights",
    "depthwise 3x3",
    "depthwise 3x3, stride 2",
    "depthwise 5x5",
    "depthwise, few cache lines",
)


def draw(rng, ranges, rank, square=False):
    """Shapes of x and w, and the attributes; paddings up to the kernel's reach."""
    n, inputs, outputs, group, *axes = ranges

    def pick(bounds):
        return int(rng.integers(bounds[0], bounds[1] + 1))

    group = pick(group)
    size, kernel, stride, dilation = ([pick(b) for _ in range(rank)] for b in axes)
    if square:
        kernel, stride = kernel[:1] * rank, stride[:1] * rank
    reach = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    pad = [int(rng.integers(0, max(1, r) + 1)) for r in reach * 2]
    if square or rng.random() < 0.5:
        pad = [r // 2 for r in reach * 2]
    size = [max(n, r + 1 - p - q) for n, r, p, q in zip(size, reach, pad[:rank], pad[rank:], strict=True)]
    x = (pick(n), pick(inputs) * group, *size)
    w = (pick(outputs) * group, x[1] // group, *kernel)
    return x, w, dict(stride=tuple(stride), pad=tuple(pad), dilation=tuple(dilation), group=group)


def plant(rng, shape, special):
    """Numbers of both signs and some zeros; some places `special`, at the ends and at random ones."""
    a = rng.uniform(0.5, 2, shape) * rng.choice((-1, 1), shape)
    a[rng.random(shape) < 0.1] = 0
    flat = a.reshape(-1)
    for place in {0, flat.size - 1, *rng.integers(flat.size, size=1 + flat.size // 300).tolist()}:
        if special:
            flat[place] = rng.choice((np.nan, np.inf, -np.inf))
    return a.astype(np.float32)


def expected(function, a, b):
    """An array with NaN and infinities where sums of terms have them; else 0."""

    def places(a):
        return dict(
            nan=np.isnan(a), up=np.isposinf(a), down=np.isneginf(a), zero=a == 0,
            more=a > 0, less=a < 0, all=np.ones(a.shape, bool),
        )  # fmt: skip

    p, q = places(a), places(b)

    def terms(*pairs):
        return sum(function(p[i].astype(np.float32), q[j].astype(np.float32)) for i, j in pairs) > 0

    def both(i, j):
        return (i, j), (j, i)

    nan = terms(*both("nan", "all"), *both("up", "zero"), *both("down", "zero"))
    up = terms(*both("up", "more"), *both("down", "less"))
    down = terms(*both("up", "less"), *both("down", "more"))
    return np.select([nan | (up & down), up, down], [np.nan, np.inf, -np.inf], 0).astype(np.float32)


def tensor(a):
    return ms.Tensor(np.ascontiguousarray(a))


def last(a):
    return tensor(np.moveaxis(a, 1, -1))


def first(t):
    return np.moveaxis(t.asnumpy(), -1, 1)


def by_first(kind, x, w, how):
    """name -> (the eager op, its definition), functions of its two operands."""
    size = x[2:]
    calls = {
        "conv": {},
        "conv_input_grad": dict(size=size),
        "conv_weight_grad": dict(kernel=w[2:]),
    }
    found = {}
    for name, more in calls.items():
        op, attrs = find(name), {**how, **more}
        body = op.definition.body
        found[name] = (
            lambda a, b, op=op, attrs=attrs: op(tensor(a), tensor(b), **attrs).asnumpy(),
            (lambda a, b, body=body, attrs=attrs: body(a, b, None, **attrs))
            if name == "conv"
            else (lambda a, b, body=body, attrs=attrs: body(a, b, **attrs)),
        )
    return found


def by_last(kind, x, w, how):
    """The same for the ops of compiled programs, with their operands as `by_first` has them."""
    algorithm = kind.split()[0].rstrip(",")
    algorithm = "direct" if algorithm == "phases" else algorithm
    channels = dict(kernel=w[2:], **how)

    def pack(w, **more):
        return channels_last.conv_pack(tensor(w), algorithm=algorithm, group=how["group"], **more)

    def forward(x, w):
        return first(
            channels_last.conv_last(last(x), pack(w), channels=w.shape[0], algorithm=algorithm, **channels)
        )

    def input_grad(dy, w):
        return first(
            conv_last_input_grad(
                last(dy), pack(w, transposed=True), channels=x[1], size=x[2:], algorithm=algorithm, **channels
            )
        )

    def weight_grad(x, dy):
        transform = "winograd4" if algorithm == "winograd4" else "direct"
        return conv_last_weight_grad(last(x), last(dy), algorithm=transform, **channels).asnumpy()

    found = by_first(kind, x, w, how)
    ours = {"conv": forward, "conv_input_grad": input_grad, "conv_weight_grad": weight_grad}
    return {name: (ours[name], found[name][1]) for name in found}


def check(kind, ranges, rank, calls, drawn):
    rng = np.random.default_rng(zlib.crc32(f"{kind} {rank}".encode()))
    for _ in range(drawn):
        x, w, how = draw(rng, ranges, rank, kind in SQUARE)
        _, *geometry = full_attributes(rank, w[2:], how["stride"], how["pad"], how["dilation"])
        y = (x[0], w[0], *output_size(x[2:], w[2:], *geometry))
        operands = {"conv": (x, w), "conv_input_grad": (y, w), "conv_weight_grad": (x, y)}
        for name, (ours, body) in calls(kind, x, w, how).items():
            for planted in ((False, True), (True, False), (True, True)):
                a, b = (plant(rng, s, p) for s, p in zip(operands[name], planted, strict=True))
                want = expected(body, a, b)
                what = f"{kind}: {name} of {operands[name]}, {how}, special values in {planted}"
                assert_same_pattern(body(a, b), want, f"body of {what}")
                assert_same_pattern(ours(a, b), want, what)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", FIRST)
def test_channels_first(kind, rank, threads):
    ranges = FIRST[kind]
    if rank == 3:
        ranges = (*ranges[:4], (4, 7), *ranges[5:])
    check(kind, ranges, rank, by_first, 6)


@pytest.mark.parametrize("kind", LAST)
def test_channels_last(kind, threads):
    check(kind, LAST[kind], 2, by_last, 8)
