"""Optimizers: five steps against MindSpore 2.10 on CPU, then rates, groups, decay and wrong arguments."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops


def stream():
    r = np.random.default_rng(0)
    w, b = r.normal(size=(4, 3)).astype(np.float32), r.normal(size=(3,)).astype(np.float32)
    gradients = [
        (r.normal(size=(4, 3)).astype(np.float32), r.normal(size=(3,)).astype(np.float32)) for _ in range(5)
    ]
    return w, b, gradients


def run(make):
    """Weight, bias and the names of the optimizer's parameters after five steps."""
    w, b, gradients = stream()
    params = [Parameter(Tensor(w), name="fc.weight"), Parameter(Tensor(b), name="fc.bias")]
    optimizer = make(params)
    for gw, gb in gradients:
        optimizer((Tensor(gw), Tensor(gb)))
    values = [[round(v, 5) for v in p.asnumpy().reshape(-1).tolist()] for p in params]
    return [*values, [(p.name, tuple(p.shape)) for p in optimizer.get_parameters()]]


CASES = {
    "Momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
    "Momentum decay": lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.01, loss_scale=2.0),
    "Momentum schedule": lambda p: nn.Momentum(p, nn.ExponentialDecayLR(0.1, 0.9, 2), 0.9),
    "Momentum list": lambda p: nn.Momentum(p, [0.1, 0.05, 0.01, 0.01, 0.02], 0.9),
    "Momentum groups": lambda p: nn.Momentum(
        [{"params": [p[0]], "lr": 0.01, "weight_decay": 0.1}, {"params": [p[1]]}], 0.1, 0.9
    ),
    "SGD": lambda p: nn.SGD(p, 0.1),
    "SGD momentum": lambda p: nn.SGD(p, 0.1, 0.9, 0.1, weight_decay=0.01),
    "SGD nesterov": lambda p: nn.SGD(p, 0.1, 0.9, nesterov=True),
    "Adam": lambda p: nn.Adam(p, 0.01),
    "Adam nesterov": lambda p: nn.Adam(p, 0.01, use_nesterov=True, weight_decay=0.1),
    "Adam amsgrad": lambda p: nn.Adam(p, 0.01, use_amsgrad=True),
    "Adam schedule": lambda p: nn.Adam(p, nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5)),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1),
    "AdaMax": lambda p: nn.AdaMax(p, 0.01),
    "RMSProp": lambda p: nn.RMSProp(p, 0.01, 0.9, 0.5),
    "RMSProp centered": lambda p: nn.RMSProp(p, 0.01, centered=True, weight_decay=0.1),
    "Adagrad": lambda p: nn.Adagrad(p, 0.1, 0.01),
    "Adadelta": lambda p: nn.Adadelta(p, 0.5),
    "FTRL": lambda p: nn.FTRL(p, learning_rate=0.1, l2=0.01),
    "Rprop": lambda p: nn.Rprop(p, 0.1),
}

WANT = {  # computed by MindSpore 2.10
    'Momentum': [[1.07285, 0.056, -0.13051, -0.64859, -1.65555, 0.22545, 1.05919, 1.05215, -1.30642, -1.25341,
      -0.40879, -0.47935],
     [-2.91926, 0.21372, -1.7628],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('momentum', ()), ('moments.fc.weight', (4, 3)), ('moments.fc.bias', (3,))]],
    'Momentum decay': [[0.59648, -0.03666, 0.24668, -0.27231, -1.08733, 0.28888, 1.16522, 0.98663, -0.99504,
        -1.24173,
      -0.50827, -0.21939],
     [-2.59166, 4e-05, -1.48774],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('momentum', ()), ('moments.fc.weight', (4, 3)), ('moments.fc.bias', (3,))]],
    'Momentum schedule': [[0.95536, 0.03469, 0.00031, -0.55765, -1.51046, 0.24415, 1.07374, 1.05769,
        -1.23794, -1.30539,
      -0.4267, -0.39641],
     [-2.81542, 0.14885, -1.68],
     [('global_step', (1,)), ('fc.weight', (4, 3)), ('fc.bias', (3,)), ('momentum', ()),
      ('moments.fc.weight', (4, 3)), ('moments.fc.bias', (3,))]],
    'Momentum list': [[0.38493, -0.02592, 0.57191, -0.06121, -0.82964, 0.34576, 1.13117, 1.04383, -0.84778,
        -1.41157,
      -0.56472, 0.00078],
     [-2.35353, -0.12911, -1.36722],
     [('global_step', (1,)), ('fc.weight', (4, 3)), ('fc.bias', (3,)), ('momentum', ()),
      ('moments.fc.weight', (4, 3)), ('moments.fc.bias', (3,)), ('learning_rate', (5,))]],
    'Momentum groups': [[0.21856, -0.11163, 0.55495, 0.02836, -0.64038, 0.34326, 1.26256, 0.94506, -0.75461,
        -1.24741,
      -0.59373, -0.01125],
     [-2.91926, 0.21372, -1.7628],
     [('global_step', (1,)), ('learning_rate_group_0', ()), ('learning_rate', ()),
      ('fc.weight', (4, 3)), ('fc.bias', (3,)), ('momentum', ()), ('moments.fc.weight', (4, 3)),
      ('moments.fc.bias', (3,))]],
    'SGD': [[0.507, -0.01943, 0.22451, -0.12583, -1.02603, 0.31018, 1.25854, 0.93273, -0.83715, -1.02816,
      -0.61453, -0.20519],
     [-2.6669, 0.00451, -1.57932],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('momentum', ()), ('accum.fc.weight', (4, 3)), ('accum.fc.bias', (3,)),
      ('stat.fc.weight', (4, 3)), ('stat.fc.bias', (3,))]],
    'SGD momentum': [[1.00459, 0.06045, -0.04814, -0.58983, -1.57751, 0.24006, 1.01317, 1.0563, -1.25058,
        -1.27424,
      -0.42712, -0.3972],
     [-2.79384, 0.19133, -1.70444],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('momentum', ()), ('accum.fc.weight', (4, 3)), ('accum.fc.bias', (3,)),
      ('stat.fc.weight', (4, 3)), ('stat.fc.bias', (3,))]],
    'SGD nesterov': [[1.3594, 0.14987, -0.46933, -0.80397, -2.03392, 0.18764, 1.03821, 1.02729, -1.37957,
        -1.01735,
      -0.42149, -0.6738],
     [-3.20171, 0.39377, -2.04452],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('momentum', ()), ('accum.fc.weight', (4, 3)), ('accum.fc.bias', (3,)),
      ('stat.fc.weight', (4, 3)), ('stat.fc.bias', (3,))]],
    'Adam': [[0.17276, -0.11254, 0.64051, 0.06603, -0.57956, 0.3535, 1.29072, 0.96748, -0.74549, -1.28049,
      -0.62129, 0.03174],
     [-2.33451, -0.19706, -1.27513],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('beta1_power', ()), ('beta2_power', ()), ('moment1.fc.weight', (4, 3)),
      ('moment1.fc.bias', (3,)), ('moment2.fc.weight', (4, 3)), ('moment2.fc.bias', (3,))]],
    'Adam nesterov': [[0.19113, -0.10204, 0.63975, 0.0492, -0.59582, 0.3495, 1.2815, 0.96573, -0.75994,
        -1.28237,
      -0.62508, 0.03053],
     [-2.32894, -0.18502, -1.28676],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('beta1_power', ()), ('beta2_power', ()), ('moment1.fc.weight', (4, 3)),
      ('moment1.fc.bias', (3,)), ('moment2.fc.weight', (4, 3)), ('moment2.fc.bias', (3,))]],
    'Adam amsgrad': [[0.17276, -0.11254, 0.64051, 0.06603, -0.57956, 0.3535, 1.29072, 0.96747, -0.74549,
        -1.28049,
      -0.62129, 0.03174],
     [-2.33451, -0.19706, -1.27513],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('beta1_power', ()), ('beta2_power', ()), ('moment1.fc.weight', (4, 3)),
      ('moment1.fc.bias', (3,)), ('moment2.fc.weight', (4, 3)), ('moment2.fc.bias', (3,)),
      ('vhat.fc.weight', (4, 3)), ('vhat.fc.bias', (3,))]],
    'Adam schedule': [[0.43771, 0.03122, 0.74029, -0.18163, -0.82612, 0.35032, 1.18307, 1.14666, -1.01588,
        -1.44926,
      -0.62624, 0.04031],
     [-2.3158, -0.08503, -1.45101],
     [('global_step', (1,)), ('fc.weight', (4, 3)), ('fc.bias', (3,)), ('beta1_power', ()),
      ('beta2_power', ()), ('moment1.fc.weight', (4, 3)), ('moment1.fc.bias', (3,)),
      ('moment2.fc.weight', (4, 3)), ('moment2.fc.bias', (3,))]],
    'AdamWeightDecay': [[0.34477, -0.05599, 0.60348, -0.06947, -0.73779, 0.30073, 1.25023, 1.01733, -0.88902,
        -1.30364,
      -0.59659, -0.02938],
     [-2.3855, -0.11836, -1.36706],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('adam_m.fc.weight', (4, 3)), ('adam_m.fc.bias', (3,)), ('adam_v.fc.weight', (4, 3)),
      ('adam_v.fc.bias', (3,))]],
    'AdaMax': [[0.16294, -0.11484, 0.64551, 0.07531, -0.56864, 0.35716, 1.29152, 0.96441, -0.73856, -1.28062,
      -0.62544, 0.03861],
     [-2.33038, -0.20109, -1.2705],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('beta1_power', (1,)), ('moment1.fc.weight', (4, 3)), ('moment1.fc.bias', (3,)),
      ('moment2.fc.weight', (4, 3)), ('moment2.fc.bias', (3,))]],
    'RMSProp': [[0.18667, -0.11856, 0.58672, 0.06234, -0.60642, 0.35197, 1.29559, 0.946, -0.73778, -1.25179,
      -0.61666, 0.00461],
     [-2.37106, -0.1857, -1.28493],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('mean_square.fc.weight', (4, 3)), ('mean_square.fc.bias', (3,)), ('moment.fc.weight', (4, 3)),
      ('moment.fc.bias', (3,))]],
    'RMSProp centered': [[0.16624, -0.11991, 0.59952, 0.08098, -0.58279, 0.35358, 1.29465, 0.94033, -0.71468,
        -1.24354,
      -0.62014, 0.01641],
     [-2.34838, -0.19399, -1.27176],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('mean_grad.fc.weight', (4, 3)), ('mean_grad.fc.bias', (3,)), ('mean_square.fc.weight', (4, 3)),
      ('mean_square.fc.bias', (3,)), ('moment.fc.weight', (4, 3)), ('moment.fc.bias', (3,))]],
    'Adagrad': [[0.15513, -0.12035, 0.63129, 0.08274, -0.56422, 0.35345, 1.30079, 0.95162, -0.72401, -1.26651,
      -0.62394, 0.03274],
     [-2.33772, -0.20301, -1.26472],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('accum.fc.weight', (4, 3)), ('accum.fc.bias', (3,))]],
    'Adadelta': [[0.13312, -0.12865, 0.63698, 0.09974, -0.54235, 0.3593, 1.30402, 0.94791, -0.70847, -1.26296,
      -0.62521, 0.03786],
     [-2.33009, -0.21349, -1.25351],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('accum.fc.weight', (4, 3)), ('accum.fc.bias', (3,)), ('accum_update.fc.weight', (4, 3)),
      ('accum_update.fc.bias', (3,))]],
    'FTRL': [[0.36922, 0.05172, 0.09514, -0.18018, -0.66457, -0.05481, 0.97655, 0.58416, -0.43423, -0.85634,
      -0.03222, -0.06079],
     [-1.69416, 0.0634, -0.40988],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('moments.fc.weight', (4, 3)), ('moments.fc.bias', (3,)), ('linear.fc.weight', (4, 3)),
      ('linear.fc.bias', (3,))]],
    'Rprop': [[0.86989, 0.2199, 0.72842, -0.3311, -1.27983, 0.3866, 1.279, 1.38308, -1.24054, -1.35342,
        -0.90527,
      -0.04067],
     [-2.40703, 0.06321, -1.59791],
     [('global_step', (1,)), ('learning_rate', ()), ('fc.weight', (4, 3)), ('fc.bias', (3,)),
      ('prev.fc.weight', (4, 3)), ('prev.fc.bias', (3,)), ('step_size.fc.weight', (4, 3)),
      ('step_size.fc.bias', (3,))]],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_five_steps_give_mindspores_numbers(name):
    weight, bias, names = run(CASES[name])
    want_weight, want_bias, want_names = WANT[name]
    np.testing.assert_allclose(weight, want_weight, rtol=1e-4, atol=3e-5)
    np.testing.assert_allclose(bias, want_bias, rtol=1e-4, atol=3e-5)
    assert sorted(names) == sorted(want_names)


def test_nesterov_momentum_follows_its_formula():
    w, b, gradients = stream()
    weight, _, _ = run(lambda p: nn.Momentum(p, 0.1, 0.9, use_nesterov=True))
    v = np.zeros_like(w)
    for g, _ in gradients:
        v = 0.9 * v + g
        w = w - 0.1 * (g + 0.9 * v)
    np.testing.assert_allclose(weight, w.reshape(-1), rtol=1e-4, atol=3e-5)


def test_lamb_scales_each_parameter_by_its_trust_ratio():
    w, b, gradients = stream()
    weight, _, _ = run(lambda p: nn.Lamb(p, 0.01, weight_decay=0.1))
    m = v = np.zeros_like(w)
    for step, (g, _) in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-6) + 0.1 * w
        w = w - 0.01 * np.linalg.norm(w) / np.linalg.norm(u) * u
    np.testing.assert_allclose(weight, w.reshape(-1), rtol=1e-3, atol=1e-4)


def test_lars_leaves_biases_to_the_inner_optimizer_and_takes_over_its_decay():
    plain = run(lambda p: nn.Momentum(p, 0.1, 0.9))
    scaled = run(
        lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9, weight_decay=0.01), epsilon=1e-5, coefficient=0.02)
    )
    np.testing.assert_allclose(scaled[1], plain[1], rtol=1e-5)
    assert np.abs(np.subtract(scaled[0], plain[0])).max() > 0.01


def one(value=1.0, name="w"):
    return Parameter(Tensor(np.array([value], np.float32)), name=name)


def steps(optimizer, p, count):
    """The parameter after each of `count` steps with gradient 1."""
    values = []
    for _ in range(count):
        optimizer((Tensor(np.ones(1, np.float32)),))
        values.append(round(float(p.asnumpy()[0]), 5))
    return values


def test_a_list_of_rates_holds_its_last_one():
    p = one()
    assert steps(nn.SGD([p], [0.1, 0.2]), p, 4) == [0.9, 0.7, 0.5, 0.3]


def test_a_tensor_of_rates_is_one_per_step():
    p = one()
    assert steps(nn.SGD([p], Tensor(np.array([0.1, 0.2], np.float32))), p, 2) == [0.9, 0.7]


def test_weight_decay_spares_beta_and_gamma_unless_grouped():
    for name, grouped, want in (
        ("w", False, 0.5),
        ("bn.gamma", False, 1.0),
        ("bn.beta", False, 1.0),
        ("bn.gamma", True, 0.5),
    ):
        p = one(name=name)
        params = [{"params": [p], "weight_decay": 0.5}] if grouped else [p]
        nn.SGD(params, 1.0, weight_decay=0.0 if grouped else 0.5)((Tensor(np.zeros(1, np.float32)),))
        assert float(p.asnumpy()[0]) == want


def test_weight_decay_may_be_a_cell_of_the_step():
    class Decay(nn.Cell):
        def construct(self, step):
            return step.astype(ms.float32).reshape(()) * 0.1

    p = one()
    optimizer = nn.SGD([p], 1.0, weight_decay=Decay())
    zero = Tensor(np.zeros(1, np.float32))
    seen = []
    for _ in range(3):
        optimizer((zero,))
        seen.append(round(float(p.asnumpy()[0]), 5))
    assert seen == [1.0, 0.9, 0.72]


def test_loss_scale_divides_gradients():
    p = one()
    assert steps(nn.SGD([p], 0.1, loss_scale=4.0), p, 1) == [0.975]


def test_gradient_centralization_takes_the_mean_off():
    p = Parameter(Tensor(np.zeros((1, 16), np.float32)), name="w")
    gradient = np.array([[1.0, 3.0] * 8], np.float32)
    nn.SGD([{"params": [p], "grad_centralization": True}], 1.0)((Tensor(gradient),))
    assert p.asnumpy().tolist() == [[1.0, -1.0] * 8]


def test_order_params_sets_the_order_of_gradients():
    a, b = one(0.0, "a"), one(0.0, "b")
    optimizer = nn.SGD([{"params": [b]}, {"params": [a]}, {"order_params": [a, b]}], 1.0)
    optimizer((Tensor(np.array([1.0], np.float32)), Tensor(np.array([2.0], np.float32))))
    assert (float(a.asnumpy()[0]), float(b.asnumpy()[0])) == (-1.0, -2.0)


def test_get_lr_parameter_finds_the_rate_of_a_group():
    a, b = one(name="a"), one(name="b")
    optimizer = nn.SGD([{"params": [a], "lr": 0.5}, {"params": [b]}], 0.1)
    assert float(optimizer.get_lr_parameter(a).asnumpy()) == 0.5
    assert [round(float(r.asnumpy()), 3) for r in optimizer.get_lr_parameter([a, b])] == [0.5, 0.1]


def test_a_step_returns_true_and_counts():
    p = one()
    optimizer = nn.Adam([p])
    assert optimizer((Tensor(np.ones(1, np.float32)),)) == (True,)
    assert optimizer.global_step.asnumpy().tolist() == [1]


@pytest.mark.parametrize(
    "kind, make",
    [
        (TypeError, lambda p: nn.SGD(p[0], 0.1)),
        (TypeError, lambda p: nn.SGD([1, 2], 0.1)),
        (TypeError, lambda p: nn.SGD([p[0], {"params": p}], 0.1)),
        (ValueError, lambda p: nn.SGD([], 0.1)),
        (ValueError, lambda p: nn.SGD(p, -0.1)),
        (TypeError, lambda p: nn.SGD(p, "0.1")),
        (ValueError, lambda p: nn.SGD(p, 0.1, momentum=-1.0)),
        (ValueError, lambda p: nn.SGD(p, 0.1, nesterov=True)),
        (ValueError, lambda p: nn.SGD(p, 0.1, loss_scale=0.0)),
        (ValueError, lambda p: nn.SGD(p, 0.1, weight_decay=-1.0)),
        (TypeError, lambda p: nn.SGD(p, 0.1, weight_decay="x")),
        (TypeError, lambda p: nn.Momentum(p, 0.1, "x")),
        (ValueError, lambda p: nn.Adam(p, beta1=1.0)),
        (ValueError, lambda p: nn.Adam(p, eps=0.0)),
        (KeyError, lambda p: nn.Adam(p, wrong=1)),
        (KeyError, lambda p: nn.SGD([{"params": p, "wrong": 1}], 0.1)),
        (KeyError, lambda p: nn.SGD([{"lr": 0.1}], 0.1)),
        (RuntimeError, lambda p: nn.SGD([{"params": p}, {"params": p}], 0.1)),
        (ValueError, lambda p: nn.SGD([{"params": p}, {"order_params": []}], 0.1)),
        (ValueError, lambda p: nn.FTRL(p, learning_rate=[0.1, 0.2])),
        (ValueError, lambda p: nn.Rprop(p, etas=(1.5, 0.5))),
        (TypeError, lambda p: nn.LARS(nn.Dense(1, 1))),
    ],
)
def test_wrong_arguments_are_refused(kind, make):
    with pytest.raises(kind):
        make([one()])


def test_the_number_of_gradients_must_fit():
    with pytest.raises(ValueError, match="1 gradients are needed"):
        nn.SGD([one()], 0.1)((Tensor([1.0]), Tensor([1.0])))


_own_step = ops.MultitypeFuncGraph("own_step")


@_own_step.register("Tensor", "Tensor", "Tensor", "Bool")
def _own_step_of_one(rate, parameter, gradient, decays):
    return ops.assign(parameter, parameter - rate * gradient * (2 if decays else 1))


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_an_optimizer_of_ones_own_has_maps_and_flags(mode):
    class Own(nn.Optimizer):
        def construct(self, gradients):
            rate = self.get_lr()
            self.assignadd(self.global_step, self.global_step_increase_tensor)
            return self.hyper_map(
                ops.partial(_own_step, rate), self.parameters, self.scale_grad(gradients), self.decay_flags
            )

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        weights = [Parameter(Tensor([1.0, 2.0]), name="w"), Parameter(Tensor([1.0]), name="beta")]
        optimizer = Own(0.5, weights, weight_decay=0.1, loss_scale=2.0)
        optimizer((Tensor([2.0, 2.0]), Tensor([2.0])))
    finally:
        ms.set_context(mode=before)
    assert [w.asnumpy().tolist() for w in weights] == [[0, 1], [0.5]]
    assert optimizer.global_step.asnumpy().tolist() == [1] and optimizer.param_length == 2
    assert optimizer.need_scale and float(optimizer.reciprocal_scale) == 0.5
    assert optimizer.decay_flags == (True, False) and optimizer.dynamic_decay_flags is False
    assert optimizer.optim_filter == (True, True)


@pytest.mark.parametrize(
    ("optimizer", "named"),
    [
        (nn.Adam, {"use_lazy": 1}),
        (nn.Adam, {"use_offload": 1}),
        (nn.Adam, {"use_amsgrad": 1}),
        (nn.Adam, {"use_nesterov": 1}),
        (nn.Adam, {"use_locking": 1}),
        (nn.Adam, {"eps": 1}),
        (nn.LazyAdam, {"use_locking": 1}),
        (nn.RMSProp, {"centered": 1}),
        (nn.RMSProp, {"momentum": 1}),
        (nn.RMSProp, {"use_locking": 1}),
        (nn.Momentum, {"momentum": 1}),
        (nn.Momentum, {"momentum": 0.9, "use_nesterov": 1}),
        (nn.SGD, {"nesterov": 1}),
        (nn.FTRL, {"use_locking": 1}),
        (nn.Adagrad, {"update_slots": 1}),
        (nn.ProximalAdagrad, {"use_locking": 1}),
    ],
)
def test_flags_are_bools_and_rates_of_averages_floats(optimizer, named):
    with pytest.raises(TypeError, match=rf"{list(named)[-1]} must be a (bool|float), but got 1"):
        optimizer([Parameter(Tensor([1.0]), name="w")], learning_rate=0.1, **named)


@pytest.mark.parametrize("other", ["use_lazy", "use_offload"])
def test_adam_for_single_rows_or_on_the_host_has_no_largest_moment(other):
    with pytest.raises(ValueError, match="no parameter named 'use_amsgrad'"):
        nn.Adam([Parameter(Tensor([1.0]), name="w")], use_amsgrad=True, **{other: True})
