"""Compiled programs give NaN and infinities where eager calls do, whatever was fused or replaced.

Special values are planted at random places of what goes in; the same in every run.
"""

import zlib

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine.compile.passes import attention
from mycelia.testing.conformance import has_gradient
from mycelia.testing.samples import all_samples
from mycelia.testing.special_values import MODES, assert_same_pattern, plant

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def flat(value):
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    return [value]


def agree(found, expected, what):
    for i, (a, b) in enumerate(zip(flat(found), flat(expected), strict=True)):
        assert a.dtype is b.dtype
        assert_same_pattern(values(a), values(b), f"{what}, result {i}")


def values(tensor):
    return (tensor.float() if tensor.dtype is ms.bfloat16 else tensor).asnumpy()


def weighed(results, rng):
    """The sum of all floating results with random weights: each has a gradient of its own."""
    total = Tensor(0.0)
    for o in results:
        if o.dtype.is_floating and o.size:
            weights = rng.normal(size=o.shape).astype(np.float32)
            total = total + (o * Tensor(weights).astype(o.dtype)).sum()
    return total


# ---- single ops --------------------------------------------------------------------------------------------

SAMPLES = [s for s in all_samples() if has_gradient(s)]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_op_and_gradient(sample):
    rng = np.random.default_rng(zlib.crc32(sample.name.encode()))
    positions = tuple(
        i
        for i, a in enumerate(sample.tensors())
        if any(isinstance(t, Tensor) and t.dtype.is_floating for t in flat(a))
    )

    def run(*args):
        results = flat(sample.op(*args, **sample.attrs))
        return weighed(results, np.random.default_rng(0)), results

    gradient = ms.value_and_grad(run, positions, None, has_aux=True)
    compiled = ms.jit(lambda *args: gradient(*args))
    for mode in (MODES[sample.index % len(MODES)], "scattered"):
        args = sample.tensors(plant(sample.args, rng, mode))
        try:
            expected = gradient(*args)
        except (ValueError, RuntimeError):  # a matrix that became singular, say
            with pytest.raises((ValueError, RuntimeError)):
                compiled(*args)
        else:
            agree(compiled(*args), expected, f"{sample.name}, {mode}")


# ---- programs ----------------------------------------------------------------------------------------------


def real(x):
    return x.astype("float32")


def through(dtype):
    return lambda x: real(x.astype(dtype))


UNARY = {
    **{
        name: getattr(ops, name)
        for name in """relu relu6 tanh sigmoid gelu exp expm1 log log1p sqrt rsqrt square neg abs sign
        reciprocal floor ceil trunc round sin cos erf silu mish softplus elu leaky_relu hardswish
        hardsigmoid hardtanh logsigmoid nan_to_num""".split()
    },
    **{f"{number} power": lambda x, n=number: x**n for number in (2, 3, 0.5, -1, 0, 1.0, -0.5, 2.5)},
    **{f"over {number}": lambda x, n=number: x / n for number in (1.0, 2.0, 2.0**60, 2.0**-60, 3.0)},
    **{
        f"through {name}": through(name)
        for name in "int8 uint8 int32 uint32 int64 bool float16 bfloat16".split()
    },
    "times zero": lambda x: x * 0.0,
    "plus zero": lambda x: x + 0.0,
    "less itself": lambda x: x - x,
    "over itself": lambda x: x / x,
    "plus its negative": lambda x: x + (-x),
    "clamp": lambda x: ops.clamp(x, -1.5, 1.5),
    "at least zero": lambda x: ops.maximum(Tensor(0.0), x),
    "at most zero": lambda x: ops.minimum(x, 0.0),
    "either way": lambda x: ops.where(x > 0, x, x),
    "choice": lambda x: ops.where(x > 0, x, x * 0.5),
    "unknown to zero": lambda x: ops.where(ops.isnan(x), 0.0, x),
    "safe logarithm": lambda x: ops.where(x > 0, ops.log(x), 0.0),
    "comparisons": lambda x: real(x < 0) + real(x <= 0) * 2.0 + real(x != 0) * 4.0,
    "not equal": lambda x: real(ops.logical_not(x == x)),
    "known": lambda x: real(ops.isfinite(x)) + real(ops.isinf(x)) * 2.0,
    "half precision": lambda x: real(ops.tanh(x.astype("float16")) * 2.0),
    "softmax": lambda x: ops.softmax(x, -1),
    "softmax of columns": lambda x: ops.softmax(x, 0),
    "log softmax": lambda x: ops.log_softmax(x, -1),
    "softmax written out": lambda x: (lambda e: e / e.sum(-1, True))(ops.exp(x - ops.amax(x, -1, True))),
    "less its logsumexp": lambda x: x - ops.logsumexp(x, -1, True),
    "normalized": lambda x: (x - x.mean(-1, True)) / ops.sqrt(x.var(-1, keepdims=True) + 1e-3),
    "root mean square": lambda x: x * ops.rsqrt((x * x).mean(-1, True) + 1e-6),
    "layer norm": lambda x: ops.layer_norm(x, x.shape[-1:], ops.ones(x.shape[-1]), ops.zeros(x.shape[-1])),
    "less its largest": lambda x: x - ops.amax(x, -1, True),
    "less its smallest": lambda x: x - x.min(),
    "plus sums of rows": lambda x: x + x.sum(-1, keepdims=True),
    "plus sums of columns": lambda x: x + x.sum(0, keepdims=True),
    "plus places": lambda x: x + real(ops.argmax(x, -1, True)) + real(ops.argmin(x, 0, True)),
    "running": lambda x: ops.cumsum(x, -1) + ops.cummax(x, -1)[0],
    "sorted": lambda x: ops.sort(x, -1)[0],
    "masked": lambda x: x.masked_fill(x > 1, -np.inf),
    "triangle": ops.tril,
    "cross entropy": lambda x: x + ops.cross_entropy(x, Tensor(np.arange(len(x)) % x.shape[1], ms.int32)),
    "pooled": lambda x: x + ops.max_pool2d(x.reshape(1, 1, *x.shape), 3, 1, 1).reshape(x.shape),
    "averaged": lambda x: x + ops.avg_pool2d(x.reshape(1, 1, *x.shape), 3, 1, 1).reshape(x.shape),
    "turned": lambda x: ops.relu(x.swapaxes(0, 1)).swapaxes(0, 1),
}  # fmt: skip
BINARY = {
    **{
        name: getattr(ops, name)
        for name in "add sub mul div maximum minimum pow fmod floor_div atan2".split()
    },
    "remainder": lambda x, y: x % y,
    "row": lambda x, y: x * y[:1],
    "column": lambda x, y: x + y.mean(-1, True),
    "where": lambda x, y: ops.where(x > y, x, y * 0.5),
    "product": lambda x, y: ops.matmul(ops.matmul(x, y.swapaxes(-1, -2)), y) * 0.1,
    "both negative": lambda x, y: (-x) * (-y) + (-x) / (-y),
    "equal": lambda x, y: real(x == y) * x,
    "logic": lambda x, y: real(ops.logical_xor(x > 0, y > 0)),
    "bounds": lambda x, y: ops.clamp(x, ops.minimum(y, 0.0), ops.maximum(y, 0.0)),
    "multiply and add": lambda x, y: x * y + x - y * y,
}
NAMES = [*UNARY, *BINARY]
SHAPES = ((3, 5), (4, 16), (2, 37), (5, 133), (7, 1), (33, 70))


def function_of(steps):
    def run(*inputs):
        values = list(inputs)
        for name, first, second in steps:
            x, y = values[-1 - first % len(values)], values[-1 - second % len(values)]
            values.append(UNARY[name](x) if name in UNARY else BINARY[name](x, y))
        return values[-1]

    return run


def check(function, shapes, rng, what, modes, exact=False):
    """`function` and its gradient in all arguments, on arrays of `shapes` with special values;
    `exact`: results are equal to the bit, but for the sign of NaN.
    """
    seed = int(rng.integers(2**31))

    def run(*inputs):
        y = function(*inputs)
        return weighed([y], np.random.default_rng(seed)), y

    whole = ms.value_and_grad(run, tuple(range(len(shapes))), None, has_aux=True)
    compiled = ms.jit(lambda *x: whole(*x))
    for mode in modes:
        inputs = [Tensor(plant(rng.normal(size=s).astype(np.float32), rng, mode)) for s in shapes]
        found, expected = compiled(*inputs), whole(*inputs)
        agree(found, expected, f"{what}, {mode}")
        if exact:
            a, b = values(found[0][1]), values(expected[0][1])
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(np.signbit(a) & (a == a), np.signbit(b) & (b == b))


@pytest.mark.parametrize("name", NAMES)
def test_step(name):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for shape in ((5, 133), (2, 37)):
        check(function_of([(name, 0, 1)]), [shape] * 2, rng, f"{name} {shape}", MODES, exact=True)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_random_programs(threads):
    rng = np.random.default_rng(threads)
    before = ms.get_context("runtime_num_threads")
    ms.set_context(runtime_num_threads=threads)
    try:
        for _ in range(40):
            count = int(rng.integers(2, 9))
            steps = [(NAMES[rng.integers(len(NAMES))], *rng.integers(4, size=2)) for _ in range(count)]
            shape = SHAPES[rng.integers(len(SHAPES))]
            check(function_of(steps), [shape] * 2, rng, f"{steps} {shape}", ("scattered", "ends", "row"))
        check(lambda x: x.sum() + x.max() - x.sum(0), [(300, 1100)], rng, "large reductions", MODES)
    finally:
        ms.set_context(runtime_num_threads=before)


# ---- attention ---------------------------------------------------------------------------------------------


def hiding(queries, keys):
    """name -> what is done to scores [2, queries, keys] before their softmax."""
    later = np.arange(keys) > np.arange(queries)[:, None]
    rng = np.random.default_rng(5)
    hidden = rng.random((2, queries, keys)) < 0.4
    hidden[0, queries // 2] = True  # a query that sees no key
    added = np.where(rng.random((queries, keys)) < 0.3, -np.inf, 0).astype(np.float32)
    added[-1] = -np.inf
    return {
        "plain": lambda s: s / 4.5,
        "causal -1e4": lambda s: s.masked_fill(Tensor(later), -1e4),
        "causal -inf": lambda s: ops.where(Tensor(later), float("-inf"), s * 0.5),
        "causal, added": lambda s: s + Tensor(np.where(later, np.float32(-1e9), np.float32(0))),
        "causal, added -inf": lambda s: s + Tensor(np.where(later, np.float32(-np.inf), np.float32(0))),
        "hidden -1e9": lambda s: s.masked_fill(Tensor(hidden), -1e9),
        "hidden -inf": lambda s: s.masked_fill(Tensor(hidden), float("-inf")),
        "padding": lambda s: ops.where(Tensor(np.arange(keys) < keys // 2), s, -1e30),
        "mask": lambda s: s + Tensor(added),
        "large scores": lambda s: (s * 300.0).masked_fill(Tensor(hidden), -1e4),
    }


@pytest.mark.parametrize("queries, keys", [(5, 7), (70, 300)])
@pytest.mark.parametrize("name", hiding(5, 7))
def test_attention_written_out(monkeypatch, name, queries, keys):
    monkeypatch.setattr(attention, "LARGE", 1)
    hide = hiding(queries, keys)[name]

    def attend(q, k, v):
        return ops.softmax(hide(q @ k.swapaxes(-1, -2)), -1) @ v

    rng = np.random.default_rng(zlib.crc32(name.encode()) + queries)
    shapes = [(2, queries, 4), (2, keys, 4), (2, keys, 3)]
    for mode in ("nan", "infinity", "ends", "whole") if keys < 100 else ("infinity", "ends"):
        for planted in range(3):
            inputs = [rng.normal(size=s).astype(np.float32) for s in shapes]
            inputs[planted] = plant(inputs[planted], rng, mode)
            inputs = [Tensor(x) for x in inputs]
            gradient = ms.value_and_grad(lambda *a: (attend(*a) * 0.5).sum(), (0, 1, 2))
            what = f"{name}, {mode} in {'qkv'[planted]}"
            agree(ms.jit(lambda *a: attend(*a))(*inputs), attend(*inputs), what)
            agree(ms.jit(lambda *a: gradient(*a))(*inputs), gradient(*inputs), f"gradient of {what}")  # noqa: B023


# ---- layers ------------------------------------------------------------------------------------------------


class Network(nn.Cell):
    def __init__(self, activation):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 1, has_bias=True), nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, group=8, pad_mode="pad", padding=1)
        self.last, self.activation = nn.Dense(8, 5), activation

    def construct(self, x):
        x = self.activation(self.norm(self.first(x)))
        x = ops.max_pool2d(self.activation(self.depthwise(x)) + x, 2, 2)
        return self.last(x.mean((2, 3)))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("activation", ["relu", "relu6", "hardswish", "silu", "gelu", "sigmoid"])
def test_layers(activation, training):
    ms.set_seed(1)
    network = Network(getattr(ops, activation)).set_train(training)
    compiled = ms.jit(network)
    rng = np.random.default_rng(3)
    for mode in MODES:
        x = Tensor(plant(rng.normal(size=(2, 3, 6, 7)).astype(np.float32), rng, mode))
        agree(compiled(x), network(x), f"{activation}, {mode}")
