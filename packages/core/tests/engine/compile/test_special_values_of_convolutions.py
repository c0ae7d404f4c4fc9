"""Not a number and infinities in convolutions and normalizations: compiled as eager."""

import zlib

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine.compile import executable
from mycelia.testing.special_values import assert_same_pattern

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


# ---- convolutions and normalizations -----------------------------------------------------------------------

CONVOLUTIONS = {  # channels in and out, kernel, stride, padding, dilation, groups
    "direct": (3, 32, 3, 1, 1, 1, 1),
    "strided": (16, 32, 3, 2, 1, 1, 1),
    "dilated": (16, 20, 3, 1, 2, 2, 1),
    "wide": (8, 16, 5, 1, 2, 1, 1),
    "winograd": (32, 32, 3, 1, 1, 1, 1),
    "grouped": (16, 16, 3, 1, 1, 1, 2),
    "depthwise": (32, 32, 3, 1, 1, 1, 32),
    "depthwise, strided": (24, 24, 3, 2, 1, 1, 24),
    "depthwise, wide": (32, 32, 5, 1, 2, 1, 32),
    "depthwise, wide and strided": (32, 32, 5, 2, 2, 1, 32),
    "depthwise, dilated": (20, 20, 3, 1, 2, 2, 20),
    "depthwise, odd": (17, 17, 7, 3, 3, 1, 17),
    "depthwise, odd and strided": (17, 17, 7, 2, 1, 1, 17),
    "depthwise, dilated and strided": (20, 20, 3, 2, 2, 3, 20),
}


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("sizes", CONVOLUTIONS.values(), ids=list(CONVOLUTIONS))
def test_padding_times_a_weight_that_is_not_finite(sizes, value):
    channels, outputs, kernel, stride, padding, dilation, group = sizes
    rng = np.random.default_rng(3)
    x = Tensor(rng.normal(size=(2, channels, 15, 14)).astype(np.float32))
    w = rng.normal(size=(outputs, channels // group, kernel, kernel)).astype(np.float32)
    w[outputs // 2 - 1, 0, 0, kernel - 1] = value

    def convolution(x, w):
        return ops.relu(ops.conv2d(x, w, None, stride, "pad", padding, dilation, group))

    gradient = ms.value_and_grad(lambda x, w: ops.sum(convolution(x, w)), (0, 1))
    for function in (convolution, gradient):
        expected = function(x, Tensor(w))
        agree(flat(ms.jit(function)(x, Tensor(w))), flat(expected), f"{sizes}, {value}")
    # An infinite weight meets no zero: padding is left out.
    assert np.isnan(values(convolution(x, Tensor(w)))).any() == np.isnan(value)


@pytest.mark.parametrize("transposed", [False, True], ids=["convolution", "transposed"])
@pytest.mark.parametrize("sizes", CONVOLUTIONS.values(), ids=list(CONVOLUTIONS))
def test_special_values_in_each_operand_of_a_convolution(sizes, transposed):
    channels, outputs, kernel, stride, padding, dilation, group = sizes
    rng = np.random.default_rng(11)

    def convolution(x, w):
        if transposed:
            x = ops.conv_transpose2d(x, w, None, stride, padding, 0, group, dilation)
        else:
            x = ops.conv2d(x, w, None, stride, "pad", padding, dilation, group)
        return ops.tanh(x * 0.1) + x  # keeps what is infinite so

    gradient = ms.value_and_grad(lambda x, w, dy: (convolution(x, w) * dy).sum(), (0, 1))
    w = rng.normal(size=(outputs, channels // group, kernel, kernel))
    x = rng.normal(size=(2, outputs if transposed else channels, 15, 14))
    y = convolution(Tensor(x.astype(np.float32)), Tensor(w.astype(np.float32))).shape
    for planted in range(3):
        arrays = [a.astype(np.float32) for a in (x, w, rng.normal(size=y))]
        for value in (np.nan, np.inf, -np.inf):
            arrays[planted].flat[rng.integers(arrays[planted].size)] = value
        inputs = [Tensor(a) for a in arrays]
        what = f"{sizes}, transposed {transposed}, planted {planted}"
        for function in (lambda x, w, dy: convolution(x, w), gradient):
            agree(flat(ms.jit(lambda *a, f=function: f(*a))(*inputs)), flat(function(*inputs)), what)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_padding_inside_of_a_separable_block(value):
    rng = np.random.default_rng(8)
    x = Tensor(rng.normal(size=(1, 16, 56, 56)).astype(np.float32))
    deep = rng.normal(size=(96, 1, 3, 3)).astype(np.float32)
    deep[40, 0, 2, 0] = value
    expand, project = (
        Tensor(rng.normal(size=s).astype(np.float32)) for s in ((96, 16, 1, 1), (24, 96, 1, 1))
    )

    def block(x, deep):
        y = ops.relu6(ops.conv2d(x, expand))
        return ops.conv2d(ops.relu6(ops.conv2d(y, deep, None, 1, "pad", 1, 1, 96)), project)

    compiled = ms.jit(block)
    agree([compiled(x, Tensor(deep))], [block(x, Tensor(deep))], f"separable, {value}")


# What is planted in which of the tensors, for one channel. Large and small ones are finite, their products
# are not, or are zero.
FOLDED = {
    "infinite factor": {"gamma": np.inf},
    "negative infinite factor": {"gamma": -np.inf},
    "factor that is none": {"gamma": np.nan},
    "no variance": {"variance": -1e-5},
    "negative variance": {"variance": -1.0},
    "infinite variance": {"variance": np.inf},
    "infinite mean": {"mean": np.inf},
    "infinite offset": {"beta": -np.inf},
    "infinite weight": {"weight": np.inf},
    "infinite weight, zero factor": {"weight": np.inf, "gamma": 0.0},
    "infinite weight, infinite factor": {"weight": -np.inf, "gamma": np.inf},
    "infinite bias": {"bias": np.inf, "mean": np.inf},
    "zero factor": {"gamma": 0.0},
    "product too large": {"weight": 1e20, "gamma": 1e30},
    "product too small": {"weight": 1e-30, "gamma": 1e-30},
    "offset too large": {"mean": 1e20, "gamma": 1e30},
    "weights of zero": {"weight": 0.0, "gamma": np.inf},
}


@pytest.mark.parametrize("given", ["usual", "infinite", "tiny"])
@pytest.mark.parametrize("name", FOLDED)
def test_normalization_joins_weights_only_where_values_stay(name, given):
    """For new values in a compiled network too; `usual` ones at the end are folded again by a new network."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    x = rng.normal(size=(2, 3, 6, 7)).astype(np.float32)
    if given == "infinite":
        x[0, 1, 2, 3], x[1, 2, 0, 0] = np.inf, -np.inf
    elif given == "tiny":
        x *= np.float32(1e-30)
        x[0] = 0
    network = nn.SequentialCell(
        nn.Conv2d(3, 16, 3, pad_mode="pad", padding=1, has_bias=True),
        nn.BatchNorm2d(16, eps=1e-5),
        nn.ReLU6(),
    )
    network.set_train(False)
    conv, norm = network[0], network[1]
    parts = {
        "weight": conv.weight, "bias": conv.bias, "gamma": norm.gamma, "beta": norm.beta,
        "mean": norm.moving_mean, "variance": norm.moving_variance,
    }  # fmt: skip
    compiled = ms.jit(lambda x: network(x))
    gradient = ms.value_and_grad(lambda x: (network(x) * 0.5).sum(), 0, network.trainable_params())
    compiled_gradient = ms.jit(lambda x: gradient(x))
    x = Tensor(x)

    def compare(what):
        agree([compiled(x)], [network(x)], f"{name}, {given}, {what}")
        agree(flat(compiled_gradient(x)), flat(gradient(x)), f"{name}, {given}, {what}, gradient")

    compare("before")
    for part, value in FOLDED[name].items():
        array = parts[part].asnumpy().copy()
        array[5] = value
        parts[part].set_data(Tensor(array))
    compare("planted")
    fresh = ms.jit(lambda x: network(x))
    agree([fresh(x)], [network(x)], f"{name}, {given}, compiled with these values")


def test_folding_is_given_up_at_every_size_and_under_a_tape():
    network = nn.SequentialCell(nn.Conv2d(3, 16, 3, has_bias=True), nn.BatchNorm2d(16), nn.ReLU())
    network.set_train(False)
    gamma = network[1].gamma

    def plain(x):
        return network(x).sum((2, 3))

    compiled = ms.jit(plain)
    for value in (1.0, np.inf, 0.5):
        array = gamma.asnumpy().copy()
        array[3] = value
        gamma.set_data(Tensor(array))
        for n in (2, 3, 4):
            x = Tensor(np.random.default_rng(n).normal(size=(n, 3, 7, 6)).astype(np.float32))
            agree([compiled(x)], [plain(x)], f"{value}, {n} images")
            found, expected = (
                ms.grad(lambda x, call=call: (call(x) * 0.5).sum())(x) for call in (compiled, plain)
            )
            agree([found], [expected], f"{value}, {n} images, gradient")


@pytest.mark.parametrize("value", [1.0, np.inf, np.nan])
def test_constant_weights_are_folded_where_values_stay(value):
    rng = np.random.default_rng(9)
    x, w = (Tensor(rng.normal(size=s).astype(np.float32)) for s in ((2, 3, 6, 7), (16, 3, 3, 3)))
    vectors = rng.uniform(0.5, 1, (4, 16)).astype(np.float32)
    vectors[2, 5] = value
    mean, variance, gamma, beta = map(Tensor, vectors)

    def function(x):
        return ops.batch_norm(ops.conv2d(x, w), mean, variance, gamma, beta, False, 0.1, 1e-5)

    before = {id(p) for p in executable.live_programs()}
    found, expected = ms.jit(function)(x), function(x)
    agree([found], [expected], str(value))
    made = [p for p in executable.live_programs() if id(p) not in before]
    assert ("batch_norm_infer" in {n.op.name for p in made for n in p.nodes}) == (value != 1.0)


def test_usual_weights_are_folded():
    network = nn.SequentialCell(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16))
    network.set_train(False)
    compiled = ms.jit(lambda x: network(x))
    x = Tensor(np.random.default_rng(1).normal(size=(2, 3, 6, 7)).astype(np.float32))
    before = {id(p) for p in executable.live_programs()}

    def ops_of_new_programs():
        made = [p for p in executable.live_programs() if id(p) not in before]
        return {node.op.name for p in made for node in p.nodes}

    compiled(x)
    assert "batch_norm_fold" in ops_of_new_programs()
    network[1].gamma.set_data(Tensor(np.full(16, np.inf, np.float32)))
    compiled(x)
    assert ops_of_new_programs() & {"batch_norm_infer", "fused_map", "sub"}


@pytest.mark.parametrize("after", [lambda y: y, lambda y: ops.tanh(y) + y], ids=["alone", "fused"])
def test_normalization_keeps_the_digits_of_deviations_from_a_large_mean(after):
    rng = np.random.default_rng(4)
    deviations = rng.integers(-8, 8, (2, 8, 6, 6)).astype(np.float32) / 64
    mean = np.full(8, 10000.0, np.float32)
    x, one, zero = (
        Tensor(mean[0] + deviations),
        Tensor(np.ones(8, np.float32)),
        Tensor(np.zeros(8, np.float32)),
    )
    variance = Tensor(np.full(8, 0.01, np.float32))

    def normalized(x):
        return after(ops.batch_norm(x, Tensor(mean), variance, one, zero, False, 0.1, 1e-5))

    expected = values(after(Tensor((deviations / np.sqrt(0.01 + 1e-5)).astype(np.float32))))
    for found in (normalized(x), ms.jit(normalized)(x)):
        np.testing.assert_allclose(values(found), expected, rtol=1e-5, atol=1e-6)
