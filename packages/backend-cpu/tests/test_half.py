"""float16 and bfloat16 are computed in float32 and rounded once an op, eagerly and in programs alike."""

import copy

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, config, errors, nn, ops
from mycelia.backends import registry
from mycelia.engine.compile import executable
from mycelia.ops.define import find
from mycelia.testing.samples import all_samples

TYPES = [ms.float16, ms.bfloat16]


@pytest.fixture(autouse=True)
def no_fallback():
    with config.context(fallback="error"):
        yield


def bits(tensor):
    """Bits of 16-bit floats as integers in the order of the numbers."""
    raw = np.asarray(tensor.astype(ms.float32).asnumpy(), np.float32)
    if tensor.dtype is ms.float16:
        as_int = raw.astype(np.float16).view(np.int16).astype(np.int32)
    else:
        as_int = (raw.view(np.uint32) >> 16).astype(np.uint16).view(np.int16).astype(np.int32)
    return np.where(as_int < 0, -(as_int & 0x7FFF), as_int), raw


def assert_within_ulps(got, expected, ulps, context=""):
    assert got.dtype is expected.dtype and got.shape == expected.shape, context
    if got.dtype not in TYPES:
        np.testing.assert_allclose(got.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6, err_msg=context)
        return
    (a, x), (b, y) = bits(got), bits(expected)
    assert (np.isnan(x) == np.isnan(y)).all(), context
    apart = np.abs(a - b)[~np.isnan(x)]
    assert apart.max(initial=0) <= ulps, f"{context}: {apart.max()} units in the last place"


def narrow_samples():
    kernels = registry.load("cpu").narrow
    for sample in all_samples():
        flat = [a for v in sample.args for a in (v if isinstance(v, (list, tuple)) else [v])]
        arrays = [a for a in flat if isinstance(a, np.ndarray)]
        if (
            sample.op.name in kernels
            and ".lowered." not in sample.op.definition.body.__module__
            and any(a.dtype == np.float32 for a in arrays)
            and not any(a.dtype in (np.float64, np.complex64, np.complex128) for a in arrays)
            and not sample.options.get("_prepare")
            and sample.options.get("_value", True)
        ):
            yield sample


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("sample", list(narrow_samples()), ids=lambda s: s.name)
def test_an_op_is_the_one_of_float32_rounded(sample, dtype):
    tensors = sample.tensors()

    def converted(to, value):
        if isinstance(value, (list, tuple)):
            return [converted(to, v) for v in value]
        if isinstance(value, Tensor) and value.dtype is ms.float32:
            return value.astype(dtype).astype(to)
        return value

    try:
        wide = sample.op(*[converted(ms.float32, v) for v in tensors], **sample.attrs)
    except errors.FallbackError:
        pytest.skip("the kernel for float32 leaves this case to the body")
    narrow = sample.op(*[converted(dtype, v) for v in tensors], **sample.attrs)
    narrow, wide = (r if isinstance(r, tuple) else (r,) for r in (narrow, wide))
    for got, expected in zip(narrow, wide, strict=True):
        assert_within_ulps(got, expected.astype(got.dtype), 1, sample.name)


#: m, n, k: products that memory bounds, cut along the largest matrix, and some that are not
PRODUCTS = [
    (1, 700, 300), (1, 5000, 7), (3, 1000, 520), (64, 2000, 64), (700, 1, 300), (3000, 16, 64),
    (1030, 64, 129), (900, 800, 2), (260, 3000, 33), (1, 1, 9000), (5, 6, 7), (130, 150, 170), (2000, 3, 0),
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("transposed", range(4), ids=["plain", "a", "b", "a and b"])
def test_products_in_pieces_are_those_of_float32(transposed, dtype):
    random = np.random.default_rng(transposed)
    first, second = bool(transposed & 1), bool(transposed & 2)
    for m, n, k in PRODUCTS:
        # whole numbers: sums are exact in any order, so that nothing but the rounding of the result is left
        a, b, bias = (
            Tensor(random.integers(-3, 4, shape).astype(np.float32)).astype(dtype)
            for shape in ((k, m) if first else (m, k), (n, k) if second else (k, n), (n,))
        )
        calls = [(find("mat_mul"), (a, b), {"transpose_a": first, "transpose_b": second})]
        if second and not first:
            calls += [(find("dense"), (a, b, bias), {}), (find("dense"), (a, b, None), {})]
            if m % 5 == 0:
                calls.append((find("dense"), (a.reshape(5, m // 5, k), b, bias), {}))
        for op, args, attrs in calls:
            wide = op(*[x if x is None else x.astype(ms.float32) for x in args], **attrs)
            for threads in (1, 2):
                with config.context(runtime_num_threads=threads):
                    assert_within_ulps(op(*args, **attrs), wide.astype(dtype), 0, (op.name, m, n, k))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_stacks_of_products_are_those_of_float32(dtype):
    random = np.random.default_rng(5)
    for lead, other in [((40,), (40,)), ((3, 5), (3, 5)), ((3, 5), (1, 5)), ((7,), ()), ((1,), (1,))]:
        for m, n, k in [(1, 1, 1), (9, 17, 8), (60, 70, 80), (200, 200, 3)]:
            a, b = (
                Tensor(random.integers(-3, 4, s).astype(np.float32)).astype(dtype)
                for s in ((*lead, m, k), (*other, k, n))
            )
            wide = ops.matmul(a.astype(ms.float32), b.astype(ms.float32))
            assert_within_ulps(ops.matmul(a, b), wide.astype(dtype), 0, (lead, other, m, n, k))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("group", [1, 6])
def test_light_convolutions_are_those_of_float32(group, dtype):
    random = np.random.default_rng(6)
    for kernel, images in [(1, 3), (3, 3), (3, 1), (1, 37)]:
        x = Tensor(random.integers(-3, 4, (images, 6, 70, 60)).astype(np.float32)).astype(dtype)
        w = Tensor(random.integers(-3, 4, (6, 6 // group, kernel, kernel)).astype(np.float32)).astype(dtype)
        pad = (kernel // 2,) * 4
        for op, args, attrs in [
            (find("conv"), (x, w, None), {"pad": pad, "group": group}),
            (find("conv_input_grad"), (x, w), {"size": (70, 60), "pad": pad, "group": group}),
            (find("conv_weight_grad"), (x, x), {"kernel": (kernel, kernel), "pad": pad, "group": group}),
        ]:
            wide = op(*[t if t is None else t.astype(ms.float32) for t in args], **attrs)
            assert_within_ulps(op(*args, **attrs), wide.astype(dtype), 0, (op.name, kernel, group))
            mixed = op(args[0], args[1].astype(ms.float32), *args[2:], **attrs)
            assert_within_ulps(mixed, wide.astype(mixed.dtype), 0, (op.name, "mixed"))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    "shapes",
    [
        [(7, 33), (7, 33)], [(300, 41), (41,)], [(300, 41), (300, 1)], [(1, 41), (300, 1)], [(9000,), ()],
        [(3, 5, 700), (3, 1, 700)], [(4, 3, 1000), (3, 1)], [(2, 1, 3, 1), (4, 1, 5)], [(0, 3), (3,)],
        [(1,), (1,)], [(70000,), (70000,)],
    ],
    ids=str,
)  # fmt: skip
def test_blocks_broadcast_as_whole_tensors_do(shapes, dtype):
    random = np.random.default_rng(0)
    a, b = (Tensor(random.normal(size=s).astype(np.float32)).astype(dtype) for s in shapes)
    for op in (ops.add, ops.div, ops.maximum, ops.less):
        got = op(a, b)
        expected = op(a.astype(ms.float32), b.astype(ms.float32)).astype(got.dtype)
        assert (got.astype(ms.float32).asnumpy() == expected.astype(ms.float32).asnumpy()).all()
    c = a.copy()
    c += a
    assert (c.astype(ms.float32).asnumpy() == (a + a).astype(ms.float32).asnumpy()).all()


# ---- compiled


def programs_of(function, *args):
    """The compiled function and the programs that its first call built."""
    found = []
    executable.built_listeners.append(found.append)
    try:
        compiled = ms.jit(function)
        compiled(*args)
    finally:
        executable.built_listeners.remove(found.append)
    return compiled, found


def random_chain(seed):
    """A function of two matrices of twelve elementwise ops."""
    random = np.random.default_rng(seed)
    unary = [ops.relu, ops.sigmoid, ops.tanh, ops.gelu, ops.silu, ops.abs, ops.square, ops.neg]
    binary = [ops.add, ops.sub, ops.mul, ops.maximum, ops.minimum]
    steps = [(*random.integers([2, 8]), random.integers(100, size=2)) for _ in range(12)]

    def chain(x, y):
        values = [x, y]
        for is_binary, which, picks in steps:
            a, b = (values[int(p) % len(values)] for p in picks)
            values.append(binary[which % 5](a, b) if is_binary else unary[which](a))
            values[-1] = values[-1] * 0.5
        return values[-1] + values[-2], values[-3]

    return chain


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_compiled_chains_round_where_eager_ones_do(seed, dtype):
    random = np.random.default_rng(seed)
    x, y = (Tensor(random.normal(size=(33, 19)).astype(np.float32)).astype(dtype) for _ in range(2))
    chain = random_chain(seed)
    compiled, built = programs_of(chain, x, y)
    assert any(node.op.name == "fused_map" for p in built for node in p.nodes)
    for got, expected in zip(compiled(x, y), chain(x, y), strict=True):
        assert_within_ulps(got, expected, 0)


def exact_samples():
    return [s for s in narrow_samples() if s.op.definition.exact]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("sample", exact_samples(), ids=lambda s: s.name)
def test_exact_ops_give_short_numbers_for_short_ones(sample, dtype):
    short = [
        v.astype(dtype).astype(ms.float32) if isinstance(v, Tensor) and v.dtype is ms.float32 else v
        for v in sample.tensors()
    ]
    with config.context(fallback="silent"):  # some samples have types without kernels
        results = sample.op(*short, **sample.attrs)
    for y in results if isinstance(results, tuple) else (results,):
        if y.dtype is ms.float32:
            np.testing.assert_array_equal(y.astype(dtype).astype(ms.float32).asnumpy(), y.asnumpy())


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_what_takes_few_bytes_stays_at_16_bits(dtype):
    x = Tensor(np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)).astype(dtype)
    single = {
        "sum": lambda x: x.sum(-1).astype(ms.float32).sum(),
        "layer_norm": lambda x: ops.layer_norm(x, (8,), None, None).astype(ms.float32).sum(),
        "neg": lambda x: (-x).sum((0, 2, 3)),
    }
    for name, function in single.items():
        compiled, built = programs_of(function, x)
        kinds = [n.outputs[0].type.dtype for p in built for n in p.nodes if n.op.name == name]
        assert dtype in kinds, name
        assert_within_ulps(compiled(x), function(x), 1, name)
    _, built = programs_of(lambda x: ops.max_pool2d(ops.exp(x), 2) * 0.3, x)  # the pool is not rounded
    names = [n.op.name for p in built for n in p.nodes]
    assert not any(name.startswith("round") for name in names[names.index("max_pool") :])


def attention(q, k, v):
    return ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * 0.25), v)


def normalized(q, k, v):
    x = ops.layer_norm(q + k, (16,), None, None)
    return ops.concat([x * v, ops.broadcast_to(x.mean(-1, keep_dims=True), v.shape)], -1).sum(0)


def moved(q, k, v):
    x = ops.pad(q, (1, 2), value=0.1).transpose(1, 0, 2)[:, :, 1:17]
    return ops.where(x > 0, x, 0.1) + ops.split(ops.concat([k, v], 1), k.shape[1], 1)[1].transpose(1, 0, 2)


def mixed(q, k, v):
    wide = (q.astype(ms.float32) @ k.astype(ms.float32).swapaxes(-1, -2)).mean()
    return (v * wide.astype(v.dtype)).astype(ms.float32).sum() + q.astype(ms.float32).max()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("function", [attention, normalized, moved, mixed])
def test_compiled_functions_and_gradients_agree_with_eager_ones(function, dtype):
    random = np.random.default_rng(3)
    args = [Tensor(random.normal(size=(4, 12, 16)).astype(np.float32)).astype(dtype) for _ in range(3)]
    got, expected = ms.jit(function)(*args), function(*args)
    scale = float(np.abs(expected.astype(ms.float32).asnumpy()).max())
    step = 2**-10 if dtype is ms.float16 else 2**-7
    assert got.dtype is expected.dtype
    np.testing.assert_allclose(
        got.astype(ms.float32).asnumpy(), expected.astype(ms.float32).asnumpy(), rtol=0, atol=2 * step * scale
    )
    for g, e in zip(gradients(ms.jit(function), args), gradients(function, args), strict=True):
        assert g.dtype is e.dtype
        g, e = (t.astype(ms.float32).asnumpy() for t in (g, e))
        np.testing.assert_allclose(g, e, rtol=0, atol=8 * step * max(np.abs(e).max(), 1e-3))


def gradients(function, args):
    return ms.grad(lambda *a: function(*a).astype(ms.float32).sum(), (0, 1, 2))(*args)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.pool, self.ln = nn.MaxPool2d(2, 2), nn.LayerNorm((8 * 16,))
        self.dense, self.last = nn.Dense(8 * 16, 32), nn.Dense(32, 5)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        x = self.ln(x.reshape(x.shape[0], -1))
        return self.last(ops.gelu(self.dense(x)))


def half_net(dtype):
    net = Net()
    for parameter in net.get_parameters():
        parameter.set_dtype(dtype)
    return net


def step_of(net):
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(
        lambda x, y: loss_of(net(x).astype(ms.float32), y), None, optimizer.parameters
    )

    def step(x, y):
        loss, found = gradient(x, y)
        optimizer(found)
        return loss

    return step


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_networks_train_without_fallbacks_and_alike(dtype):
    net = half_net(dtype).set_train()
    other = copy.deepcopy(net)
    step, expected = ms.jit(step_of(net)), step_of(other)
    random = np.random.default_rng(1)
    for _ in range(4):
        x = Tensor(random.normal(size=(6, 3, 8, 8)).astype(np.float32)).astype(dtype)
        y = Tensor(random.integers(0, 5, 6).astype(np.int32))
        np.testing.assert_allclose(step(x, y).asnumpy(), expected(x, y).asnumpy(), rtol=0.05, atol=0.02)
    for a, b in zip(net.trainable_params(), other.trainable_params()):
        assert a.dtype is dtype
        a, b = (t.astype(ms.float32).asnumpy() for t in (a, b))
        np.testing.assert_allclose(a, b, rtol=0, atol=0.03 * max(np.abs(b).max(), 0.1))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_inference_packs_weights_once(dtype):
    net = half_net(dtype).set_train(False)
    x = Tensor(np.random.default_rng(2).normal(size=(6, 3, 8, 8)).astype(np.float32)).astype(dtype)
    compiled, built = programs_of(net, x)
    names = {node.op.name for p in built for node in p.nodes}
    assert {"linear", "linear_pack"} <= names
    got, expected = (t.astype(ms.float32).asnumpy() for t in (compiled(x), net(x)))
    step = 2**-10 if dtype is ms.float16 else 2**-7
    np.testing.assert_allclose(got, expected, rtol=0, atol=8 * step * np.abs(expected).max())
    net.last.bias.set_data(net.last.bias * 0)
    net.last.weight.set_data(net.last.weight * 0)
    assert (compiled(x).astype(ms.float32).asnumpy() == 0).all()


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_mixed_precision_trains_without_fallbacks(level):
    net = ms.amp.auto_mixed_precision(Net().set_train(), level)
    step = ms.jit(step_of(net))
    random = np.random.default_rng(1)
    x = Tensor(random.normal(size=(6, 3, 8, 8)).astype(np.float32))
    y = Tensor(random.integers(0, 5, 6).astype(np.int32))
    losses = [float(step(x, y)) for _ in range(12)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_positions_that_repeat_are_added_in_float32(dtype):
    table = Parameter(Tensor(np.zeros((3, 2), np.float32)).astype(dtype), name="table")
    index = Tensor(np.zeros(5000, np.int32))
    gradient = ms.grad(lambda: ops.gather(table, index, 0).astype(ms.float32).sum(), None, [table])()
    np.testing.assert_array_equal(
        gradient[0].astype(ms.float32).asnumpy()[0],
        Tensor([5000.0, 5000.0]).astype(dtype).astype(ms.float32).asnumpy(),
    )


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_new_sizes_are_served_by_one_capture(dtype):
    net = half_net(dtype).set_train(False)
    compiled = ms.jit(net)
    step = 2**-10 if dtype is ms.float16 else 2**-7
    for n in range(2, 12):
        x = Tensor(np.random.default_rng(n).normal(size=(n, 3, 8, 8)).astype(np.float32)).astype(dtype)
        got, expected = (t.astype(ms.float32).asnumpy() for t in (compiled(x), net(x)))
        np.testing.assert_allclose(got, expected, rtol=0, atol=8 * step * np.abs(expected).max())
    assert compiled.cache_info().captures <= 3
