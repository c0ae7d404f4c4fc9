"""Channels-last layout and epilogues: what the lowered graphs hold, and that they give the eager numbers."""

import re
from functools import partial

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.backends import registry
from mycelia.backends.base import Backend, Pass
from mycelia.engine.compile.passes import algorithms
from mycelia.ops.define import find
from mycelia.testing.comparison import on_backend

PACKED = ("conv_pack", "conv_last", "conv_last_input_grad", "conv_last_weight_grad", "linear_pack", "linear",
          "batch_norm_fold")  # fmt: skip


class Images(Backend):
    """Channels-last kernels made of the op bodies; all else falls back."""

    name = "images"
    channels_last = True

    def kernels(self):
        return {(name, "f32"): find(name).definition.body for name in PACKED}

    def passes(self, frozen):
        return [Pass("tiles", partial(algorithms.choose, op="conv_last", algorithm_of=tiled), after="layout")]


def tiled(node):
    """Winograd's algorithm for all convolutions that it suits."""
    a = node.attrs
    small = tuple(a["kernel"]) == (3, 3) and (*a["stride"], *a["dilation"], a["group"]) == (1, 1, 1, 1, 1)
    return "winograd4" if small else a["algorithm"]


def targets():
    found = ["images"]
    if "cpu" in registry.available() and registry.load("cpu").backend.channels_last:
        found.append("cpu")
    return found


@pytest.fixture(autouse=True)
def images_backend(monkeypatch):
    monkeypatch.setitem(registry.available(), "images", Images())
    yield
    registry.load.cache_clear()


@pytest.fixture(params=targets())
def target(request):
    with on_backend(request.param):
        yield request.param


@pytest.fixture
def lowered(tmp_path):
    """Runs a function, returns its result and the ops of the programs that were made for it."""

    def run(function, *arguments, passes="-fuse", **settings):
        found = len(list(tmp_path.iterdir()))
        path = tmp_path / str(found)
        with ms.config.context(
            save_graphs=2, save_graphs_path=str(path), passes=passes, check=True, **settings
        ):
            result = function(*arguments)
        files = list(path.glob("hwopt_*_after_lower_*")) or list(path.glob("graph_build_*"))
        return result, [op for file in files for op in re.findall(r"= (\w+)\(", file.read_text())]

    return run


def rand(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def scrambled(net, seed=3):
    """`net` with statistics and factors of batch normalizations that are not 0 and 1."""
    rng = np.random.default_rng(seed)
    for parameter in net.get_parameters():
        name, shape = parameter.name, parameter.shape
        if "moving_variance" in name or "gamma" in name:
            parameter.set_data(Tensor(rng.uniform(0.5, 1.5, shape).astype(np.float32)))
        elif "moving_mean" in name or "beta" in name or "bias" in name:
            parameter.set_data(Tensor(rng.normal(size=shape).astype(np.float32) * 0.3))
    return net


def assert_close(got, expected, rtol=2e-5):
    a, b = got.asnumpy(), expected.asnumpy()
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(np.abs(b).max(initial=0), 1e-3))


def norm(inputs, outputs, kernel=3, stride=1, group=1, **how):
    return nn.SequentialCell(
        nn.Conv2d(inputs, outputs, kernel, stride, "pad", kernel // 2, group=group, **how),
        nn.BatchNorm2d(outputs),
    )


class Residual(nn.Cell):
    """A small residual network: a stem with pooling, three blocks, a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(norm(3, 32, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, "pad", 1))
        self.first, self.second = norm(32, 32), norm(32, 32)
        self.down, self.third, self.short = norm(32, 48, 3, 2), norm(48, 48), norm(32, 48, 1, 2)
        self.head = nn.Dense(48, 5)

    def construct(self, x):
        x = self.stem(x)
        x = ops.relu(self.second(ops.relu(self.first(x))) + x)
        x = ops.relu(self.third(ops.relu(self.down(x))) + self.short(x))
        return self.head(ops.mean(x, (2, 3)))


class Mobile(nn.Cell):
    """Inverted residuals: depthwise convolutions, ReLU6, hard swish, squeeze and excite."""

    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(norm(3, 16, 3, 2), nn.HSwish())
        self.wide, self.deep = norm(16, 40, 1), norm(40, 40, 5, 1, 40)
        self.down, self.up = nn.Conv2d(40, 8, 1, has_bias=True), nn.Conv2d(8, 40, 1, has_bias=True)
        self.thin, self.last = norm(40, 16, 1), norm(16, 16, 3, 2, 16)

    def construct(self, x):
        x = self.stem(x)
        y = ops.relu6(self.deep(ops.relu6(self.wide(x))))
        gate = ops.hardsigmoid(self.up(ops.relu(self.down(ops.mean(y, (2, 3), True)))))
        x = x + self.thin(y * gate)
        return ops.silu(self.last(x))


class Level(nn.Cell):
    """One level of a U-Net: down by pooling, up by a transposed convolution or by interpolation, joined."""

    def __init__(self, transposed=True):
        super().__init__()
        self.enter, self.inside = norm(16, 32), norm(32, 48)
        self.up = nn.Conv2dTranspose(48, 32, 2, 2) if transposed else None
        self.leave = nn.Conv2d(64 if transposed else 80, 16, 3, 1, "same", has_bias=True)

    def construct(self, x):
        wide = ops.relu(self.enter(x))
        deep = ops.relu(self.inside(ops.max_pool2d(wide, 2, 2)))
        deep = (
            ops.interpolate(deep, size=wide.shape[2:], mode="nearest") if self.up is None else self.up(deep)
        )
        return self.leave(ops.cat((wide, deep), 1))


class Inception(nn.Cell):
    """Paths that part and join."""

    def __init__(self):
        super().__init__()
        self.one, self.three, self.pooled = norm(32, 16, 1), norm(32, 48), norm(32, 16, 1)
        self.pool, self.after = nn.MaxPool2d(3, 1, "same"), norm(80, 32)

    def construct(self, x):
        paths = (self.one(x), self.three(x), self.pooled(self.pool(x)))
        return x + ops.sigmoid(self.after(ops.cat([ops.relu(path) for path in paths], 1)))


NETS = {
    "residual": (Residual, (2, 3, 61, 47)),
    "residual, one picture": (Residual, (1, 3, 64, 64)),
    "mobile": (Mobile, (2, 3, 35, 33)),
    "u-net": (Level, (1, 16, 22, 26)),
    "u-net, interpolated": (lambda: Level(False), (2, 16, 22, 26)),
    "inception": (Inception, (2, 32, 13, 11)),
}


def step_of(net):
    weights = net.trainable_params()
    optimizer = nn.Momentum(weights, 0.1, 0.9)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, weights)

    def step(x):
        loss, gradients = gradient(x)
        optimizer(gradients)
        return loss

    return step


@pytest.mark.parametrize("name", NETS)
def test_inference_equals_eager(target, lowered, name):
    make, shape = NETS[name]
    net, x = scrambled(make()), rand(*shape)
    net.set_train(False)
    expected = net(x)
    got, found = lowered(ms.jit(net), x)
    assert_close(got, expected, 1e-4)
    assert "conv" not in found and "conv_last" in found
    assert not {"batch_norm_infer", "relu", "relu6", "hardswish", "silu"} & set(found), "all is in epilogues"
    # The picture is turned on the way in, and what comes out as a picture on the way out.
    assert found.count("transpose") == 1 + (expected.ndim == 4)
    strict, found = lowered(ms.jit(lambda x: net(x)), x, strict_accuracy=True)
    assert_close(strict, expected, 2e-5)


@pytest.mark.parametrize("name", NETS)
def test_training_equals_eager(target, lowered, name):
    make, shape = NETS[name]
    eager, compiled = scrambled(make()), scrambled(make())
    for a, b in zip(compiled.get_parameters(), eager.get_parameters()):
        a.set_data(b)
    x = rand(*shape)
    eager.set_train()
    compiled.set_train()
    expected = step_of(eager)(x)
    got, found = lowered(ms.jit(step_of(compiled)), x)
    assert_close(got, expected, 1e-4)
    for a, b in zip(compiled.get_parameters(), eager.get_parameters()):
        assert_close(a, b, 1e-3)
    assert not {"conv", "conv_input_grad", "conv_weight_grad"} & set(found)
    assert "conv_last_weight_grad" in found
    # The loss reads the result as it lies: the only transpose is that of the picture.
    assert found.count("transpose") == 1


def test_training_step_of_resnet50_has_one_transpose(lowered):
    def block(inputs, width, stride):
        body = [norm(inputs, width, 1), nn.ReLU(), norm(width, width, 3, stride), nn.ReLU()]
        return nn.SequentialCell([*body, norm(width, 4 * width, 1)]), norm(inputs, 4 * width, 1, stride)

    class ResNet50(nn.Cell):
        def __init__(self):
            super().__init__()
            self.stem = nn.SequentialCell(norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, "pad", 1))
            self.bodies, self.shorts, inputs = nn.CellList(), nn.CellList(), 64
            for stage, depth in enumerate((3, 4, 6, 3)):
                for position in range(depth):
                    stride = 2 if stage and not position else 1
                    body, short = block(inputs, 64 << stage, stride)
                    inputs = 256 << stage
                    self.bodies.append(body)
                    self.shorts.append(nn.Identity() if position else short)
            self.head = nn.Dense(2048, 10)

        def construct(self, x):
            x = self.stem(x)
            for body, short in zip(self.bodies, self.shorts):
                x = ops.relu(body(x) + short(x))
            return self.head(ops.mean(x, (2, 3)))

    # Only its form is of interest: the program is made, not run.
    net = ResNet50()
    net.set_train()
    weights = net.trainable_params()
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, weights)
    with on_backend("images"):
        _, found = lowered(ms.jit(lambda x: gradient(x)), rand(1, 3, 32, 32))
    assert found.count("transpose") == 1
    assert not {"conv", "conv_input_grad", "conv_weight_grad"} & set(found)
    assert found.count("conv_last_weight_grad") == 53


def test_lone_small_convolution_stays(target, lowered):
    conv, x = nn.Conv2d(16, 16, 1, pad_mode="valid"), rand(2, 16, 9, 9)
    got, found = lowered(ms.jit(lambda x: conv(x)), x)
    assert found == ["conv"]
    assert_close(got, conv(x))


def test_thin_layers_stay(target, lowered):
    """One channel makes too short products; the second convolution gains more than its small input costs."""
    first, second, x = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5), rand(4, 1, 28, 28)

    def f(x):
        return ops.max_pool2d(ops.relu(second(ops.max_pool2d(ops.relu(first(x)), 2, 2))), 2, 2)

    got, found = lowered(ms.jit(f), x)
    assert found.count("conv") == 1 and found.count("conv_last") == 1
    assert found.index("max_pool") < found.index("conv_last"), "the smaller value crosses the border"
    assert_close(got, f(x))


CONV = nn.Conv2d(16, 32, 3, 1, "same")
AFTER = nn.Conv2d(32, 32, 3, 1, "same")


@pytest.mark.parametrize("between", [
    lambda y: y * rand(32, 1, 1) + rand(1, 32, 1, 1),
    lambda y: y - y.mean((2, 3), True),
    lambda y: y * ops.softmax(y, 1),
    lambda y: y / (1.0 + y.abs().max(axis=1, keepdims=True)),
    lambda y: ops.where(y > 0, y, rand(17) * y),
    lambda y: y * rand(15, 1),
    lambda y: ops.pad(y, (1, 2, 0, 1)),
    lambda y: y[:, :, 1:-1, ::2],
    lambda y: ops.cat(ops.split(y, 16, 1)[::-1], 1),
    lambda y: ops.avg_pool2d(y, 3, 2, 1),
    lambda y: ops.max_pool2d(y, 3, 2, 1),
    lambda y: y + ops.adaptive_avg_pool2d(y, 1),
    lambda y: ops.interpolate(y, size=(9, 20), mode="nearest"),
    lambda y: y + ops.broadcast_to(rand(2, 32, 1, 1), (2, 32, 15, 17)),
    lambda y: ops.leaky_relu(y, 0.1) + ops.gelu(y),
    lambda y: y.astype("float16").astype("float32"),
    lambda y: y * (y.argmax(axis=1).astype("float32")).reshape(2, 1, 15, 17),
    lambda y: y * y.sum((0, 2, 3)).reshape(1, 32, 1, 1),
])  # fmt: skip
def test_what_lies_between_goes_along(target, lowered, between):
    """Values and gradients with something between two convolutions; no transposes around it."""

    def f(x):
        return (AFTER(between(CONV(x))) ** 2).mean()

    x = rand(2, 16, 15, 17)
    expected, grad = ms.value_and_grad(f)(x)
    function = ms.value_and_grad(f)
    (got, got_grad), found = lowered(ms.jit(lambda x: function(x)), x)
    assert_close(got, expected, 1e-4)
    assert_close(got_grad, grad, 1e-3)
    assert found.count("transpose") <= 2  # x and its gradient
    assert "conv" not in found


@pytest.mark.parametrize("between", [
    lambda y: ops.cumsum(y, 2),
    lambda y: y.reshape(2, 16, 30, 17),
    lambda y: y.transpose(0, 1, 3, 2),
    lambda y: y.sum(2).reshape(2, 32, 1, 17) * y,
    lambda y: ops.flip(y, (2,)),
])  # fmt: skip
def test_what_has_no_form_is_right_all_the_same(target, lowered, between):
    def f(x):
        return (between(CONV(x)) ** 2).mean()

    x = rand(2, 16, 15, 17)
    expected, grad = ms.value_and_grad(f)(x)
    function = ms.value_and_grad(f)
    (got, got_grad), _ = lowered(ms.jit(lambda x: function(x)), x)
    assert_close(got, expected, 1e-4)
    assert_close(got_grad, grad, 1e-3)


@pytest.mark.parametrize("how", [
    dict(stride=2), dict(stride=(1, 2), padding=(1, 0, 2, 1), pad_mode="pad"), dict(dilation=2),
    dict(pad_mode="valid"), dict(group=2), dict(group=16), dict(kernel_size=1, stride=2),
    dict(kernel_size=(3, 2), dilation=(1, 2), padding=1, pad_mode="pad"),
    dict(kernel_size=2, stride=3, pad_mode="valid"), dict(kernel_size=1, padding=2, pad_mode="pad"),
])  # fmt: skip
def test_geometries_of_convolutions(target, lowered, how):
    outputs = 16 if how.get("group") == 16 else 32
    conv = nn.Conv2d(16, outputs, **{"kernel_size": 3, **how})
    before, after = nn.Conv2d(16, 16, 3), nn.Conv2d(outputs, 16, 3)
    weights = [conv.weight, before.weight, after.weight]

    def f(x):
        return (after(conv(before(x))) ** 2).mean()

    gradient = ms.value_and_grad(f, 0, weights)
    x = rand(2, 16, 15, 18)
    expected, (dx, dws) = gradient(x)
    (got, (got_dx, got_dws)), found = lowered(ms.jit(lambda x: gradient(x)), x)
    assert_close(got, expected, 1e-4)
    for a, b in zip((got_dx, *got_dws), (dx, *dws), strict=True):
        assert_close(a, b, 1e-3)
    if how.get("group") != 2:  # half a panel of outputs a group: it may stay
        assert "conv" not in found


def test_result_and_gradient_keep_what_others_read(target, lowered):
    """What has two readers joins nobody."""

    def f(x):
        y = CONV(x)
        return ops.relu(y) + 1, y

    x = rand(2, 16, 15, 17)
    (a, b), found = lowered(ms.jit(f), x)
    assert "relu" in found
    assert_close(a, f(x)[0], 1e-4)
    assert_close(b, f(x)[1], 1e-4)


@pytest.mark.parametrize("activation", ["relu", "relu6", "hardswish", "silu", "sigmoid", "gelu", "tanh-gelu"])
def test_epilogue_of_bias_residual_and_activation(target, lowered, activation):
    apply = {"tanh-gelu": lambda y: ops.gelu(y, approximate="tanh")}.get(activation) or getattr(
        ops, activation
    )

    def f(x):
        y = ops.relu(CONV(x))
        return AFTER(apply(AFTER(y) + rand(32, 1, 1) + y))

    x = rand(2, 16, 15, 17)
    got, found = lowered(ms.jit(f), x)
    assert_close(got, f(x), 1e-4)
    assert [op for op in found if op not in ("conv_pack", "transpose", "reshape")] == ["conv_last"] * 3


def test_normalization_before_an_activation_is_fused(target, lowered):
    norm = scrambled(nn.BatchNorm2d(32))
    norm.set_train(False)

    def f(x):
        y = CONV(x)
        return AFTER(ops.relu(norm(ops.cat((y, AFTER(y)), 1)[:, 16:48])))

    x = rand(2, 16, 15, 17)
    got, found = lowered(ms.jit(f), x, passes="")
    assert_close(got, f(x), 1e-4)
    assert "batch_norm_infer" not in found
    _, found = lowered(ms.jit(lambda x: f(x)), x)
    assert "batch_norm_infer" in found


def test_settings_switch_the_passes_off(lowered):
    net, x = scrambled(Residual()), rand(1, 3, 64, 64)
    net.set_train(False)
    with on_backend("images"):
        expected = net(x)
        for passes, conv, norm_left in (("-layout,-fuse", "conv", 0), ("-layout,-epilogue,-fuse", "conv", 6),
                                        ("-epilogue,-fuse", "conv_last", 6)):  # fmt: skip
            got, found = lowered(ms.jit(lambda x: net(x)), x, passes=passes)
            assert_close(got, expected, 1e-4)
            assert conv in found and found.count("batch_norm_infer") == norm_left


def test_without_kernels_the_forms_stay(lowered):
    with on_backend("reference"):
        net, x = Inception(), rand(2, 32, 5, 5)
        net.set_train(False)
        expected = net(x)
        got, found = lowered(ms.jit(net), x)
    assert "conv_last" not in found and "conv" in found
    assert_close(got, expected)
