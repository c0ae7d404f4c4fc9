"""Ops bound by memory convert 16-bit floats in registers: bit for bit the op of float32, rounded."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, config, ops
from mycelia.backends import registry
from mycelia.ops.define import find
from mycelia.testing.samples import all_samples

TYPES = [ms.float16, ms.bfloat16]
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 6e-8, -3e-6, 6.1e-5, 65504.0, 65520.0, -70000.0, 1e-40, 3.4e38]
SHAPES = [(1,), (), (3, 1), (1, 17), (5, 33), (31, 64), (4, 3, 129), (70003,), (130, 601), (0, 4), (2, 5000)]


@pytest.fixture(autouse=True, params=[1, 2], ids="{} threads".format)
def threads(request):
    with config.context(runtime_num_threads=request.param, fallback="error"):
        yield


def random_tensor(random, shape, dtype, special=True):
    """The second half of a larger tensor, in `dtype`; about every tenth number is a special one."""
    numbers = random.normal(size=(2, *shape)).astype(np.float32)
    if special:
        numbers = np.where(random.random(numbers.shape) < 0.1, random.choice(SPECIAL, numbers.shape), numbers)
    return Tensor(numbers.astype(np.float32)).astype(dtype)[1].reshape(shape)


def raw(tensor):
    """The numbers as float32, or what they are if they are no floats."""
    return (tensor.astype(ms.float32) if tensor.dtype in TYPES else tensor).asnumpy()


def assert_same(narrow, wide, context):
    narrow, wide = (r if isinstance(r, (tuple, list)) else (r,) for r in (narrow, wide))
    for got, expected in zip(narrow, wide, strict=True):
        got, expected = raw(got), raw(expected.astype(got.dtype))
        assert got.shape == expected.shape, context
        np.testing.assert_array_equal(got, expected, err_msg=str(context))
        if got.dtype == np.float32:
            number = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number], str(context))


def check(function, *args, context=None, **options):
    wide = [a.astype(ms.float32) if isinstance(a, Tensor) and a.dtype in TYPES else a for a in args]
    assert_same(function(*args, **options), function(*wide, **options), context)


UNARY = """
relu relu6 hardtanh leaky_relu elu hardsigmoid hardswish sigmoid silu gelu mish softplus logsigmoid neg abs
square sign reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p tanh erf erfc erfinv sin cos tan asin
acos atan sinh cosh asinh acosh atanh floor ceil trunc round isnan isinf isfinite logical_not
""".split()
BINARY = """
add sub mul div maximum minimum pow hypot xlogy copysign equal not_equal less less_equal greater greater_equal
floor_divide fmod logaddexp atan2 logical_and logical_or logical_xor
""".split()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_elementwise_ops(dtype):
    random = np.random.default_rng(0)
    for i, shape in enumerate(SHAPES):
        x = random_tensor(random, shape, dtype)
        for name in UNARY if x.size < 1000 else UNARY[i % 5 :: 5]:
            check(getattr(ops, name), x, context=(name, shape))
        check(ops.clamp, x, -0.3, 0.7, context=("clamp", shape))
        check(ops.nan_to_num, x, 1.0, 2.0, 3.0, context=("nan_to_num", shape))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_ops_of_two(dtype):
    random = np.random.default_rng(1)
    shapes = [(s, s) for s in SHAPES]
    shapes += [((5, 33), (33,)), ((5, 33), (5, 1)), ((), (4, 70)), ((300, 41), (1,))]
    shapes += [((2, 1, 3, 1), (4, 1, 5)), ((40000, 3), (3,))]
    for i, (first, second) in enumerate(shapes):
        a, b = random_tensor(random, first, dtype), random_tensor(random, second, dtype)
        for name in BINARY if a.size < 1000 else BINARY[i % 4 :: 4]:
            check(getattr(ops, name), a, b, context=(name, first, second))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("special", [False, True])
def test_reductions_and_scans(special, dtype):
    random = np.random.default_rng(2)
    shapes = [(1,), (1, 1), (17,), (5, 33), (3, 1, 40), (4, 70, 9), (6, 300, 5), (20, 33, 8, 3), (700, 3)]
    for shape in [*shapes, (70003,), (301, 257), (9, 4100)]:
        x = random_tensor(random, shape, dtype, special)
        for function in (ops.sum, ops.mean, ops.amax, ops.amin, ops.prod, ops.norm):
            check(function, x, context=(function, shape))
        for axis in (0, -1, (0, len(shape) - 1)):
            for function in (ops.sum, ops.mean, ops.amax, ops.amin):
                if isinstance(axis, int) or len(shape) > 2:
                    check(function, x, axis, context=(function, shape, axis))
        for axis in (0, -1):
            for function in (ops.prod, ops.cumsum, ops.cumprod, ops.softmax, ops.log_softmax):
                check(function, x, axis, context=(function, shape, axis))
            check(find("cumsum"), x, axis=axis, reverse=True, context=("reverse", shape, axis))
        got = ops.sum(x, 0, dtype=ms.float32)
        assert got.dtype is ms.float32
        np.testing.assert_array_equal(got.asnumpy(), ops.sum(x.astype(ms.float32), 0).asnumpy())


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gradients_of_softmax(dtype, axis):
    random = np.random.default_rng(3)
    for shape in [(3, 5), (1, 100), (33, 129), (257, 130, 2)]:
        y = ops.softmax(random_tensor(random, shape, dtype, False), axis)
        ct = random_tensor(random, shape, dtype, False)
        check(find("softmax_grad"), ct, y, axis=axis, context=shape)
        check(find("log_softmax_grad"), ct, y, axis=axis, context=shape)
    wide = ct.astype(ms.float32)  # one float32, the other of 16 bits
    mixed = find("softmax_grad")(wide, y, axis=axis)
    assert_same(mixed, find("softmax_grad")(wide, y.astype(ms.float32), axis=axis), axis)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_norms_casts_and_copies(dtype):
    random = np.random.default_rng(4)
    for shape in [(1, 1), (3, 17), (65, 130), (200, 512)]:
        x, gamma, beta = (random_tensor(random, s, dtype, False) for s in (shape, shape[-1:], shape[-1:]))
        check(lambda x, g, b: ops.layer_norm(x, x.shape[-1:], g, b), x, gamma, beta, context=shape)
        check(lambda x, g: ops.rms_norm(x, g)[0], x, gamma, context=shape)
        x = random_tensor(random, shape, dtype)
        check(ops.transpose, x, (1, 0), context=shape)
        check(ops.flip, x, (1,), context=shape)
        for function in (Tensor.copy, lambda x: x[:, ::2], lambda x: ops.where(x > 0, x, x * x)):
            check(function, x, context=shape)
        check(lambda x: ops.concat([x, x], 1), x, context=shape)
        for to in (ms.float16, ms.bfloat16, ms.float64, ms.bool_):
            assert_same(x.astype(to), x.astype(ms.float32).astype(to), (shape, to))
        numbers = random_tensor(random, shape, dtype, False) * 100
        for to in (ms.int8, ms.int32, ms.int64):
            assert_same(numbers.astype(to), numbers.astype(ms.float32).astype(to), (shape, to))


# ---- kernels that take large tensors as they are: (op, shapes of its arguments, attributes)

C = 5
NORMS = [
    (name, shapes, {**attrs, **more})
    for x in [(3, C, 4, 7), (2, C, 1, 1), (1, C, 9, 33), (70, C, 3, 3)]
    for more, x in [({}, x), ({"data_format": "NHWC"}, (*x[:1], *x[2:], x[1]))]
    for name, shapes, attrs in [
        ("batch_norm_infer", [x, (C,), (C,), (C,), "+"], {}),
        ("batch_norm_train", [(C,), "+", x, (C,), (C,)], {}),
        ("batch_norm_grad", [x, x, (C,), (C,), "+"], {}),
        ("batch_norm_act_train", [(C,), "+", x, (C,), (C,), x], {"activation": "relu"}),
        ("batch_norm_act_train", [(C,), "+", x, (C,), (C,)], {"activation": "relu6"}),
        ("batch_norm_act_grad", [x, x, (C,), (C,), (C,), "+"], {}),
    ]
]
NORMS += [
    case
    for rows, n in [(1, 1), (5, 3), (3, 17), (40, 96), (2, 5000)]
    for case in [
        ("layer_norm", [(rows, n), (n,), (n,)], {}),
        ("layer_norm", [(rows, n), None, None], {}),
        ("layer_norm_grad", [(rows, n), (rows, n), (rows, 1), (rows, 1), (n,)], {}),
        ("rms_norm", [(rows, n), (n,)], {}),
        ("rms_norm_grad", [(rows, n), (rows, n), (n,), (rows, 1)], {}),
        ("group_norm", [(rows, 6, n), (6,), (6,)], {"num_groups": 2}),
        ("group_norm_grad", [(rows, 6, n), (rows, 6, n), (rows, 2), (rows, 2), (6,)], {"num_groups": 2}),
    ]
]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("mixed", [False, True], ids=["alike", "parameters of float32"])
def test_norms_and_their_gradients(mixed, dtype):
    random = np.random.default_rng(11)
    for name, shapes, attrs in NORMS:
        args = []
        for shape in shapes:
            if shape is None:
                args.append(None)
                continue
            x = random_tensor(random, (C,) if shape == "+" else shape, dtype, False)
            x = ops.abs(x) + 0.5 if shape == "+" else x
            args.append(x.astype(ms.float32) if mixed and x.ndim == 1 else x)
        check(find(name), *args, context=(name, shapes, attrs), **attrs)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_norms_of_special_numbers_and_of_mixed_types(dtype):
    random = np.random.default_rng(12)
    x, dy = (random_tensor(random, (6, 4, 33), dtype) for _ in range(2))
    c = random_tensor(random, (4,), dtype, False)
    for name, args in [
        ("batch_norm_train", (c, ops.abs(c), x, c, c)),
        ("batch_norm_grad", (dy, x, c, c, ops.abs(c))),
        ("batch_norm_grad", (dy.astype(ms.float32), x, c, c, ops.abs(c))),
        ("layer_norm", (x, None, None)),
    ]:
        check(find(name), *args, context=name)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("special", [False, True])
def test_losses(special, dtype):
    random = np.random.default_rng(13)
    for shape in [(1, 1), (4, 3), (33, 10), (7, 129), (3, 3000)]:
        x, target = (random_tensor(random, shape, dtype, special) for _ in range(2))
        ct = random_tensor(random, shape, dtype, False)
        labels = random.integers(0, shape[1], shape[0])
        labels[::3] = -100
        for kind in (np.int32, np.int64):
            for reduction in ("mean", "sum", "none"):
                check(
                    find("sparse_softmax_cross_entropy_with_logits"),
                    x,
                    Tensor(labels.astype(kind)),
                    reduction=reduction,
                    context=(shape, reduction),
                )
        check(find("softmax_cross_entropy_with_logits"), x, target, context=shape)
        check(find("softmax_cross_entropy_with_logits"), x, target.astype(ms.float32), context=shape)
        check(find("sigmoid_cross_entropy_with_logits"), x, target, context=shape)
        for reduction in ("mean", "sum", "none"):
            check(find("squared_error"), x, target, reduction=reduction, context=(shape, reduction))
            dy = ct if reduction == "none" else ct[0, 0]
            check(find("squared_error_grad"), dy, x, target, reduction=reduction, context=(shape, reduction))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("special", [False, True])
def test_places_of_extremes(special, dtype):
    random = np.random.default_rng(14)
    for shape in [(1,), (7,), (33,), (5000,), (6, 9), (40, 31), (3, 700), (4, 5, 600)]:
        x = random_tensor(random, shape, dtype, special)  # 16 bits: many are equal
        for name in ("argmax", "argmin"):
            check(find(name), x, context=(name, shape))
        for axis in range(len(shape)):
            for name in ("argmax", "argmin", "max_with_index", "min_with_index"):
                check(find(name), x, axis=axis, context=(name, shape, axis))
            for count in (1, 3):  # of numbers along the axis, which may fall on one place
                few = (*shape[:axis], count, *shape[axis + 1 :])
                ct, place = random_tensor(random, few, dtype), Tensor(random.integers(0, 2, few))
                check(find("place_along"), ct, place, axis=axis, length=2, context=(few, axis))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    "shape", [(1, 1, 4, 6), (1, 5, 8, 10), (3, 2, 6, 8), (9, 4, 6, 6), (2, 3, 150, 160)], ids=str
)
def test_pools_of_images_and_planes(shape, dtype):
    random = np.random.default_rng(15)
    n, c, h, w = shape
    x, windows = random_tensor(random, shape, dtype), (n, c, h // 2, w // 2)
    ct = random_tensor(random, windows, dtype, False)
    place = Tensor(random.integers(0, h * w, windows))
    regular = {"kernel": (2, 2), "stride": (2, 2)}
    cases = [
        ("max_pool", (x,), {**regular, "pad": (0,)}),
        ("max_pool", (x,), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1, 0, 0)}),
        ("max_pool_grad", (x, ct), {**regular, "pad": (0,)}),
        ("max_pool_index", (x,), {**regular, "pad": (0,)}),
        ("avg_pool", (x,), regular),
        ("avg_pool_grad", (ct,), {**regular, "size": (h, w)}),
        ("adaptive_max_pool", (x,), {"size": (3, 2)}),
        ("adaptive_max_pool_index", (x,), {"size": (3, 2)}),
        ("adaptive_avg_pool", (x,), {"size": (1, 1)}),
        ("adaptive_avg_pool_grad", (ct,), {"size": (h, w)}),
        ("pool_take", (x, place), {}),
        ("pool_scatter", (ct, place), {"size": (h, w)}),
    ]
    last, last_ct = x.transpose(0, 2, 3, 1), ct.transpose(0, 2, 3, 1)
    for name, args, attrs in cases:
        check(find(name), *args, context=(name, attrs), **attrs)
        if name in ("max_pool", "max_pool_grad", "avg_pool", "avg_pool_grad"):
            args = [last_ct if a is ct else last for a in args]
            check(find(name), *args, context=(name, "NHWC"), **attrs, data_format="NHWC")


def test_every_16_bit_number_widens_and_every_tie_rounds_to_even():
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(np.float16)
    np.testing.assert_array_equal(Tensor(halves).astype(ms.float32).asnumpy(), halves.astype(np.float32))
    exact = halves[np.isfinite(halves)].astype(np.float32)
    middle = (exact[:-1] + exact[1:]) / 2
    for x in (exact, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)):
        x = x.astype(np.float32)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(Tensor(x).astype(ms.float16).asnumpy(), x.astype(np.float16))
    # bfloat16: the upper half of the float32 on either side, of equally near ones the even one
    x = (np.random.default_rng(0).integers(0, 1 << 16, 20000).astype(np.uint32) << 16) + np.tile(
        np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32), 3334
    )[:20000]
    x = x[~np.isnan(x.view(np.float32))]
    expected = ((x + 0x7FFF + ((x >> 16) & 1)) >> 16).astype(np.uint32) << 16
    got = raw(Tensor(x.view(np.float32)).astype(ms.bfloat16))
    np.testing.assert_array_equal(got.view(np.uint32), expected)


def test_every_nan_becomes_one_bfloat16():
    payloads = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF80FFFF, 0x7FC00000], np.uint32)
    for n in (3, 17, 1000):
        x = Tensor(np.resize(payloads, n).view(np.float32))
        assert (x.astype(ms.bfloat16)._bits() == 0x7FC0).all()
        rounded = find("round_bf16")(x).asnumpy()
        assert (rounded.view(np.uint32) == 0x7FC00000).all()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_dropout_keeps_the_same_places(dtype):
    x = random_tensor(np.random.default_rng(5), (70003,), dtype, False)
    key = Tensor(np.array([3, 4], np.int64))
    check(find("dropout"), x, key, p=0.3)


# ---- optimizers


def steps():
    """The first sample of each op that updates floats of one shape; all of them have kernels."""
    found = {}
    for sample in all_samples():
        op = sample.op.definition
        if op.body.__module__.endswith(("nn_ops.optim", "nn_ops.adaptive_optim")) and op.updates:
            found.setdefault(sample.op.name, sample)
    kernels = registry.load("cpu").narrow
    assert found.keys() <= kernels.keys()
    return list(found.values())


@pytest.mark.parametrize("sample", steps(), ids=lambda s: s.op.name)
def test_steps_of_optimizers(sample):
    random = np.random.default_rng(6)
    arrays = [i for i, a in enumerate(sample.args) if isinstance(a, np.ndarray) and a.size > 1]
    for n in (1, 15, 37, 4099, 70003):
        for kinds in ([0], [1], [2, 0], [2, 1], [0, 2], [1, 2, 2], [0, 1, 2]):
            kinds = [(*TYPES, ms.float32)[k] for k in kinds]
            args = []
            for i, a in enumerate(sample.args):
                if i in arrays:
                    numbers = Tensor((np.abs(random.normal(size=n)) * 0.5).astype(np.float32))
                    args.append(numbers.astype(kinds[arrays.index(i) % len(kinds)]))
                else:
                    args.append(Tensor(a) if isinstance(a, np.ndarray) else a)
            wide = [a.astype(ms.float32) if isinstance(a, Tensor) and a.dtype in TYPES else a for a in args]
            expected = sample.op(*[a.copy() if isinstance(a, Tensor) else a for a in wide], **sample.attrs)
            got = sample.op(*[a.copy() if isinstance(a, Tensor) else a for a in args], **sample.attrs)
            assert_same(got, expected, (n, kinds))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_assigning_other_floats_rounds_them(dtype):
    random = np.random.default_rng(7)
    for n in (1, 33, 70003):
        variable = ms.Parameter(Tensor(np.zeros(n, np.float32)).astype(dtype), name="variable")
        value = random_tensor(random, (n,), ms.float32)
        ops.assign(variable, value)
        assert_same(variable, value, n)
        ops.assign_add(variable, variable.copy())
        assert_same(variable, value.astype(dtype).astype(ms.float32) * 2, n)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_compiled_single_ops_are_the_eager_ones(dtype):
    random = np.random.default_rng(8)
    x, y = (random_tensor(random, (33, 70), dtype) for _ in range(2))
    binary = (lambda x, y: x + y, lambda x, y: ops.less(x, y), lambda x, y: ops.maximum(x, y))
    for function in binary:
        assert_same(ms.jit(function)(x, y), function(x, y), function)
    for name in ("exp", "isnan", "sum", "amax"):
        function = getattr(ops, name)
        assert_same(ms.jit(lambda x, f=function: f(x))(x), function(x), name)
    for name in ("sum", "softmax", "cumsum", "log_softmax"):
        function = getattr(ops, name)
        assert_same(ms.jit(lambda x, f=function: f(x, 0))(x), function(x, 0), name)
