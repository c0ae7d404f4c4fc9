"""Random graphs: eager, compiled, compiled without optional passes, and the reference backend agree,
with gradients.

The same in every run; tools/fuzz.py tries others.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mycelia as ms
from mycelia import config, ops

COUNT = int(os.environ.get("MYCELIA_FUZZ", 0))
common = settings(
    max_examples=COUNT or 60,
    derandomize=not COUNT,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

UNARY = {
    "relu": ops.relu,
    "tanh": ops.tanh,
    "sigmoid": ops.sigmoid,
    "gelu": ops.gelu,
    "exp of small": lambda x: ops.exp(x * 0.1),
    "square": ops.square,
    "neg": ops.neg,
    "softplus root": lambda x: ops.sqrt(x * x + 1.0),
    "abs": ops.abs,
    "scale": lambda x: x * 1.5 + 0.25,
    "clamp": lambda x: ops.clamp(x, -1.5, 1.5),
    "where": lambda x: ops.where(x > 0, x, x * 0.5),
    "through integers": lambda x: x + ops.floor(x).astype("int32").astype("float32"),
    "softmax": lambda x: ops.softmax(x, -1),
    "normalized": lambda x: (x - x.mean(-1, True)) / ops.sqrt(x.var(-1, keepdims=True) + 1e-3),
    "less its largest": lambda x: x - ops.amax(x, -1, True),
    "share of the sum": lambda x: x / (ops.abs(x).sum(0, keepdims=True) + 1.0),
    "plus column means": lambda x: x + x.mean(0, keep_dims=True),
    "less means of rows, not kept": lambda x: x - x.mean(-1) if len(set(x.shape)) == 1 else x,
    "over sums of the first axis, turned": lambda x: (
        x / (ops.abs(x).sum(0)[:, None] + 1.0) if x.shape == x.shape[:1] * 2 else x
    ),
    "transposed": lambda x: x.swapaxes(0, -1) if x.shape[0] == x.shape[-1] else x,
    "turned twice": lambda x: x.swapaxes(0, -1).swapaxes(0, -1),
    "flattened": lambda x: x.reshape(-1).reshape(x.shape),
    "split and joined": lambda x: ops.cat((x[1:], x[:1]), 0),
}
BINARY = {
    "add": ops.add,
    "sub": ops.sub,
    "mul": ops.mul,
    "div": lambda x, y: x / (ops.abs(y) + 1.0),
    "maximum": ops.maximum,
    "minimum": ops.minimum,
    "row": lambda x, y: x * y[:1],
    "column": lambda x, y: x + y.mean(-1, True),
    "product": lambda x, y: ops.matmul(ops.matmul(x, y.swapaxes(-1, -2)), y) * 0.1,
    "choice": lambda x, y: ops.select(x > y, x, y * 0.5),
    "attention": lambda x, y: ops.matmul(ops.softmax(ops.matmul(x, y.swapaxes(-1, -2)) * 0.3, -1), y),
}


@st.composite
def programs(draw):
    """Steps (name, operands by distance backwards), the shape of all tensors, how many are returned."""
    rank = draw(st.integers(2, 3))
    sizes = st.lists(st.integers(1, 9), min_size=rank, max_size=rank)
    equal = st.integers(1, 9).map(lambda n: [n] * rank)  # no axis is known by its size
    shape = tuple(draw(sizes | equal | st.lists(st.integers(1, 2), min_size=rank, max_size=rank)))
    steps = draw(
        st.lists(
            st.tuples(st.sampled_from([*UNARY, *BINARY]), st.integers(0, 5), st.integers(0, 5)),
            min_size=1,
            max_size=12,
        )
    )
    return shape, steps, draw(st.integers(1, 3))


def function_of(steps, results):
    def run(*inputs):
        values = list(inputs)
        for name, first, second in steps:
            x, y = values[-1 - first % len(values)], values[-1 - second % len(values)]
            values.append(UNARY[name](x) if name in UNARY else BINARY[name](x, y))
        return tuple(values[-results:])

    def scalar(*inputs):
        outputs = run(*inputs)
        total = 0.0
        for number, value in enumerate(outputs, 1):
            total = total + (value * value).mean() / number
        return total, outputs

    return scalar


def agree(found, expected, what):
    for a, b in zip(found, expected, strict=True):
        a, b = a.asnumpy(), b.asnumpy()
        scale = np.abs(b).max(initial=0) + 1e-3
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * scale, err_msg=what)


def results_of(function, inputs):
    gradient = ms.value_and_grad(function, tuple(range(len(inputs))), None, has_aux=True)

    def flat(*x):
        (value, outputs), gradients = gradient(*x)
        return (value, *outputs, *gradients)

    return flat


@pytest.mark.fuzz
@common
@given(programs(), st.integers(0, 2**31), st.integers(1, 3))
def test_optimized_unoptimized_and_eager_agree(program, seed, threads):
    shape, steps, results = program
    rng = np.random.default_rng(seed)
    inputs = tuple(ms.Tensor(rng.normal(size=shape).astype(np.float32)) for _ in range(2))
    whole = results_of(function_of(steps, results), inputs)
    expected = whole(*inputs)
    with config.context(runtime_num_threads=threads):
        agree(ms.jit(lambda *x: whole(*x))(*inputs), expected, "compiled")
    with config.context(passes="-optimize,-lower"):
        agree(ms.jit(lambda *x: whole(*x))(*inputs), expected, "compiled without passes")


# ---- convolutional graphs ----------------------------------------------------------------------------------

LAYERS = {
    "3x3": lambda c, w: lambda x: ops.conv2d(x, w(c, c, 3, 3), pad_mode="pad", padding=1),
    "1x1": lambda c, w: lambda x: ops.conv2d(x, w(c, c, 1, 1)),
    "strided": lambda c, w: lambda x: ops.conv2d(x, w(c, c, 3, 3), stride=2, pad_mode="pad", padding=1),
    "depthwise": lambda c, w: lambda x: ops.conv2d(x, w(c, 1, 3, 3), pad_mode="pad", padding=1, groups=c),
    "grouped": lambda c, w: lambda x: ops.conv2d(x, w(c, c // 2, 3, 3), pad_mode="pad", padding=1, groups=2),
    "biased": lambda c, w: lambda x: ops.conv2d(x, w(c, c, 1, 1), bias=w(c)),
    "relu": lambda c, w: ops.relu,
    "relu6": lambda c, w: ops.relu6,
    "hardswish": lambda c, w: ops.hardswish,
    "channel scale": lambda c, w: lambda x: x * w(1, c, 1, 1),
    "norm": lambda c, w: lambda x: ops.batch_norm(x, w(c) * 0, w(c) * 0 + 1, w(c), w(c), training=False),
    "max pool": lambda c, w: lambda x: ops.max_pool2d(x, 3, 1, 1),
    "mean pool": lambda c, w: lambda x: ops.avg_pool2d(x, 3, 1, 1),
    "gate": lambda c, w: lambda x: x * ops.sigmoid(x.mean((2, 3), True)),
    "concat": lambda c, w: lambda x: ops.cat((x, ops.tanh(x)), 1)[:, ::2],
    "residual": lambda c, w: lambda x: x + ops.conv2d(x, w(c, c, 3, 3), pad_mode="pad", padding=1),
}


@pytest.mark.fuzz
@common
@given(
    st.lists(st.sampled_from(list(LAYERS)), min_size=1, max_size=8),
    st.sampled_from([2, 8, 16, 24]),
    st.integers(1, 3),
    st.integers(5, 19),
    st.integers(5, 19),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_convolutional_graphs_agree(layers, channels, batch, height, width, equal, seed):
    rng = np.random.default_rng(seed)
    if equal:
        batch = height = width = channels = min(channels, 8)

    weights = []

    def weight(*shape):
        fan = max(1, int(np.prod(shape[1:])))
        weights.append((rng.normal(size=shape) / np.sqrt(fan)).astype(np.float32))
        return ms.Tensor(weights[-1])

    steps = [LAYERS[name](channels, lambda *s, given={}: given.setdefault(s, weight(*s))) for name in layers]
    x = ms.Tensor(rng.normal(size=(batch, channels, height, width)).astype(np.float32))

    def scalar(x):
        for step in steps:
            x = step(x)
        return (x * x).mean(), (x,)

    whole = results_of(scalar, (x,))
    expected = whole(x)
    agree(ms.jit(lambda x: whole(x))(x), expected, "training")
    forward = ms.jit(lambda x: scalar(x)[1])
    agree(forward(x), expected[1:2], "inference")


@pytest.mark.parametrize("passes", ["-fuse", "-simplify,-cse", "-optimize", "-lower"])
def test_single_passes_can_be_left_out(passes):
    rng = np.random.default_rng(0)
    w, x = (ms.Tensor(rng.normal(size=s).astype(np.float32)) for s in ((16, 16, 3, 3), (2, 16, 9, 9)))

    def run(x):
        return ops.relu(ops.conv2d(x, w, pad_mode="pad", padding=1) + x).mean((2, 3))

    expected = run(x)
    with config.context(passes=passes):
        agree([ms.jit(lambda x: run(x))(x)], [expected], passes)
