"""Mixed precision: levels, lists, loss scaling, and training steps that leave out what overflows."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, amp, nn, ops

X = Tensor(np.linspace(0.1, 1, 8).reshape(2, 4).astype(np.float32))
Y = Tensor(np.ones((2, 1), np.float32))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(4, 3, weight_init="ones", bias_init="zeros")
        self.norm = nn.LayerNorm((3,))
        self.seq = nn.SequentialCell([nn.Dense(3, 3, weight_init="ones"), nn.BatchNorm1d(3), nn.ReLU()])
        self.w = Parameter(Tensor(np.full((3, 3), 1.0009766, np.float32)), name="w")

    def construct(self, x):
        a = self.first(x)
        b = self.norm(a)
        return a, b, ops.matmul(b, self.w), ops.exp(a), self.seq(b)


def dtypes(outputs):
    return {str(t.dtype) for t in outputs}


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_levels_give_float32_and_keep_float32_weights(level, dtype):
    net = Net()
    names = [p.name for p in net.trainable_params()]
    mixed = amp.auto_mixed_precision(net, level, dtype)
    assert dtypes(mixed(X)) == {"Float32"}
    assert [p.name for p in mixed.trainable_params()] == names
    rounded = mixed(X)[0].asnumpy()
    exact = X.asnumpy().sum(1, keepdims=True).repeat(3, 1)
    np.testing.assert_allclose(rounded, exact, rtol=1e-2)
    assert (level == "O0") == bool(np.array_equal(rounded, Net()(X)[0].asnumpy()))
    loss = lambda x: sum((t.sum() for t in mixed(x)[:3]), Tensor(0.0))
    assert dtypes(ms.grad(loss, None, mixed.trainable_params())(X)) == {"Float32"}


def test_auto_chooses_by_op():
    a, b, c, d, _ = amp.auto_mixed_precision(Net(), "auto")(X)
    assert [str(t.dtype) for t in (a, b, c, d)] == ["Float32", "Float32", "Float16", "Float32"]

    def products(x):
        return ops.matmul(x, x.T), ops.exp(x), ops.softmax(ops.matmul(x, x.T))

    found = amp.auto_mixed_precision(products, "auto")(X)
    assert [str(t.dtype) for t in found] == ["Float16", "Float32", "Float32"]


def test_printed_forms():
    text = str(amp.auto_mixed_precision(Net(), "O2"))
    assert text.startswith("_OutputTo32(\n  (_backbone): Net(") and text.count("_OutputTo16(") == 2
    assert str(amp.auto_mixed_precision(Net(), "O1")).startswith("NetOpt")
    assert str(amp.auto_mixed_precision(Net(), "auto")).startswith("Net(")


def test_to_float_casts_parameters_and_inputs():
    net = Net().to_float(ms.float16)
    assert net.fp16 and net.first.fp16 and not net.first.bf16
    assert dtypes(net(X)) == {"Float16"}
    of_x, of_weights = ms.grad(lambda x: net.first(x).sum(), 0, net.first.trainable_params())(X)
    assert dtypes([of_x, *of_weights]) == {"Float32"} and net.first.weight.dtype is ms.float32


def test_custom_lists():
    white = amp.custom_mixed_precision(Net(), white_list=[nn.Dense])
    black = amp.custom_mixed_precision(Net(), black_list=[nn.ReLU])
    assert dtypes(white(X)) == {"Float32"} and "(2): _OutputTo16" in str(black)
    assert [c.__name__ for c in amp.get_black_list()] == [
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm",
    ]  # fmt: skip
    assert nn.Conv2d in amp.get_white_list()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: amp.auto_mixed_precision(Net(), "O4"), ValueError),
        (lambda: amp.auto_mixed_precision(3, "O2"), TypeError),
        (lambda: amp.auto_mixed_precision(Net(), "O2", ms.float32), ValueError),
        (lambda: amp.custom_mixed_precision(Net()), ValueError),
        (lambda: amp.custom_mixed_precision(Net(), white_list=nn.Dense), TypeError),
        (lambda: amp.custom_mixed_precision(Net(), white_list=[3]), TypeError),
        (lambda: amp.StaticLossScaler("a"), TypeError),
        (lambda: amp.StaticLossScaler(0.5), ValueError),
        (lambda: amp.DynamicLossScaler(2, 2, 0), ValueError),
        (lambda: amp.DynamicLossScaleManager(0.5), ValueError),
        (lambda: amp.FixedLossScaleManager(0), ValueError),
        (lambda: nn.TrainOneStepWithLossScaleCell(*_step(), 3), TypeError),
        (lambda: nn.TrainOneStepWithLossScaleCell(*_step(), Tensor([1.0, 2.0])), ValueError),
        (lambda: nn.TrainOneStepCell(*_step(), 0), ValueError),
        (lambda: amp.build_train_network(nn.Dense(4, 1), 3), TypeError),
        (lambda: amp.build_train_network(_step()[0], _step()[1], level="O9"), ValueError),
        (lambda: amp.build_train_network(_step()[0], _step()[1], foo=1), ValueError),
    ],
)
def test_bad_arguments(call, error):
    with pytest.raises(error):
        call()


# ---- loss scaling ------------------------------------------------------------------------------------------


def test_scalers():
    scaler = amp.DynamicLossScaler(scale_value=16, scale_factor=2, scale_window=2)
    assert float(scaler.scale(Tensor(3.0))) == 48
    unscaled = scaler.unscale((Tensor(8.0), Tensor([1.0, 2.0], ms.float16)))
    assert float(unscaled[0]) == 0.5 and unscaled[1].dtype is ms.float16
    seen = []
    for finite in (True, True, False, True, True, True):
        assert scaler.adjust(Tensor(finite))
        seen.append((float(scaler.scale_value), int(scaler.counter)))
    assert seen == [(16, 1), (32, 0), (16, 0), (16, 1), (32, 0), (32, 1)]
    static = amp.StaticLossScaler(8)
    assert static.adjust(Tensor(True)) is False and float(static.scale(Tensor(2.0))) == 16


@pytest.mark.parametrize(
    ("values", "finite"),
    [([[1.0, 2.0]], True), ([[1.0], [float("inf")]], False), ([[float("nan")]], False)],
)
def test_all_finite(values, finite):
    assert bool(amp.all_finite(tuple(Tensor(v) for v in values))) is finite
    assert bool(ms.jit(lambda *t: amp.all_finite(t))(*(Tensor(v) for v in values))) is finite


def test_managers():
    manager = amp.DynamicLossScaleManager(16, 2, 2)
    seen = []
    for overflow in (False, False, True, False, False):
        manager.update_loss_scale(overflow)
        seen.append(manager.get_loss_scale())
    assert seen == [16, 32, 16, 16, 32]
    assert isinstance(manager.get_update_cell(), nn.DynamicLossScaleUpdateCell)
    assert amp.FixedLossScaleManager(8, False).get_update_cell() is None
    assert isinstance(amp.FixedLossScaleManager(8).get_update_cell(), nn.FixedLossScaleUpdateCell)


@pytest.mark.parametrize("compiled", [False, True])
def test_update_cell(compiled):
    cell, scale = nn.DynamicLossScaleUpdateCell(16, 2, 2), Parameter(Tensor(16.0), name="scale")
    update = ms.jit(lambda overflow: cell(scale, overflow)) if compiled else lambda o: cell(scale, o)
    seen = []
    for overflow in (False, False, True, False, False, False, True):
        assert bool(update(Tensor(overflow))) is overflow
        seen.append(float(scale))
    assert seen == [16, 32, 16, 16, 32, 32, 16]


def _step():
    net = nn.Dense(4, 1, weight_init="ones", bias_init="zeros")
    return nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_that_overflows_is_left_out(compiled):
    plain, optimizer = _step()
    nn.TrainOneStepCell(plain, optimizer)(X, Y)
    scaled, optimizer = _step()
    weight = scaled.backbone_network.weight
    step = nn.TrainOneStepWithLossScaleCell(scaled, optimizer, nn.DynamicLossScaleUpdateCell(1024, 2, 1000))
    run = ms.jit(step) if compiled else step
    before = weight.asnumpy().copy()
    _, overflow, scale = run(X * float("inf"), Y)
    assert bool(overflow) and float(scale) == float(step.scale_sense) == 512
    assert np.array_equal(weight.asnumpy(), before)
    _, overflow, scale = run(X, Y)
    assert not bool(overflow) and float(scale) == 512
    np.testing.assert_allclose(weight.asnumpy(), plain.backbone_network.weight.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3", "auto"])
def test_model_trains_in_mixed_precision(level):
    net = nn.Dense(4, 1, weight_init="ones", bias_init="zeros")
    model = ms.Model(
        net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.05, loss_scale=8.0), metrics={"mse"},
        amp_level=level, loss_scale_manager=amp.FixedLossScaleManager(8, drop_overflow_update=False),
    )  # fmt: skip
    losses = [float(model.train_network(X, Y)) for _ in range(5)]
    assert losses[-1] < losses[0] and net.weight.dtype is ms.float32


def test_model_skips_overflows_of_float16():
    net = nn.Dense(4, 1, weight_init="ones", bias_init="zeros")
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), amp_level="O2")
    _, overflow, scale = model.train_network(X, Y)  # 2 ** 24 is beyond float16
    assert bool(overflow) and np.array_equal(net.weight.asnumpy(), np.ones((1, 4), np.float32))
    for _ in range(20):
        _, overflow, scale = model.train_network(X, Y)
    assert not bool(overflow) and float(scale) < 65536


# ---- cells that join network, gradient and optimizer -------------------------------------------------------


def test_gradient_cells():
    net = nn.Dense(4, 1, weight_init="ones", bias_init="zeros")
    weights = net.trainable_params()
    value, grads = nn.ForwardValueAndGrad(net, weights, get_all=True, get_by_list=True)(X)
    assert value.shape == (2, 1) and grads[0][0].shape == (2, 4) and float(grads[1][1]) == 2
    sens = Tensor([[1.0], [2.0]])
    _, of_x = nn.ForwardValueAndGrad(net, sens_param=True)(X, sens)
    assert of_x.asnumpy().tolist() == [[1.0] * 4, [2.0] * 4]
    assert len(nn.WithGradCell(net, nn.MSELoss())(X, Y)) == 2
    whole = nn.GradAccumulationCell(net, 2)(X).asnumpy()
    np.testing.assert_allclose(whole, net(X).asnumpy().sum(0, keepdims=True))
    with pytest.raises(ValueError, match="does not divide"):
        nn.GradAccumulationCell(net, 3)(X)


def test_a_step_of_ones_own():
    class Clipped(nn.TrainOneStepCell):
        def construct(self, *inputs):
            loss = self.network(*inputs)
            sens = ops.fill(loss.dtype, loss.shape, self.sens)
            grads = self.grad(self.network, self.weights)(*inputs, sens)
            grads = self.grad_reducer(ops.clip_by_global_norm(grads, 0.1))
            return ops.depend(loss, self.optimizer(grads))

    network, optimizer = _step()
    before = network.backbone_network.weight.asnumpy().copy()
    Clipped(network, optimizer, sens=4.0)(X, Y)
    moved = np.abs(network.backbone_network.weight.asnumpy() - before).max()
    assert 0 < moved < 0.011
