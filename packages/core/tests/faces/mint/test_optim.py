"""mint optimizers: three steps on two parameters; the numbers are those of torch.optim."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia.mint import nn, optim

START = [np.array([[1.0, 2.0], [3.0, -4.0]], np.float32), np.array([0.5, -0.5], np.float32)]
SLOPES = [np.array([[0.1, -0.2], [0.3, 0.4]], np.float32), np.array([1.0, -2.0], np.float32)]

STEPS = [
    ("Adam", {}, [0.76798, 2.23202, 2.76798, -4.23202, 0.20768, -0.20768]),
    ("Adam", dict(amsgrad=True, weight_decay=0.1), [0.73891, 2.15388, 2.73612, -4.15611, 0.20707, -0.20737]),
    ("Adam", dict(maximize=True), [1.23202, 1.76798, 3.23202, -3.76798, 0.79232, -0.79232]),
    ("AdamW", {}, [0.76527, 2.22574, 2.75927, -4.21975, 0.20648, -0.20648]),
    ("AdamW", dict(weight_decay=0.1), [0.74114, 2.16976, 2.68174, -4.11036, 0.19579, -0.19579]),
    ("FusedAdamW", dict(amsgrad=True), [0.76527, 2.22574, 2.75927, -4.21975, 0.20648, -0.20648]),
    ("SGD", {}, [0.97, 2.06, 2.91, -4.12, -0.1, 0.7]),
    ("SGD", dict(momentum=0.9), [0.9097, 2.1806, 2.7291, -4.3612, -0.451, 1.402]),
    ("SGD", dict(momentum=0.9, nesterov=True), [0.88873, 2.22254, 2.66619, -4.44508, -0.9559, 2.4118]),
    ("SGD", dict(momentum=0.9, dampening=0.1), [0.9106, 2.1788, 2.7318, -4.3576, -0.383, 1.266]),
    (
        "SGD",
        dict(weight_decay=0.1, momentum=0.5),
        [0.9014, 2.0288, 2.70419, -4.05761, -0.29106, 1.06107],
    ),
    ("SGD", dict(maximize=True, weight_decay=0.1), [0.9996, 1.88199, 2.99881, -3.76398, 1.08116, -1.67717]),
]


def parameters():
    return [ms.Parameter(ms.Tensor(a.copy()), name=name) for a, name in zip(START, "wb")]


def run(optimizer, compiled=False):
    step = ms.jit(optimizer) if compiled else optimizer
    for n in range(3):
        step(tuple(ms.Tensor(s * k) for s, k in zip(SLOPES, (3 - 2 * n, n + 1))))
    return np.concatenate([p.asnumpy().ravel() for p in optimizer.parameters])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("name", "options", "wanted"), STEPS)
def test_steps(name, options, wanted, compiled):
    optimizer = getattr(optim, name)(parameters(), lr=0.1, **options)
    np.testing.assert_allclose(run(optimizer, compiled), wanted, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Adam", [-0.16012, 3.16012, 1.83988, -5.16012, 0.20599, -0.20679]),
        ("SGD", [0.85, 2.3, 2.55, -4.6, -0.13175, 0.71984]),
    ],
)
def test_groups_have_their_own_options(name, wanted):
    w, b = parameters()
    groups = [{"params": [w], "lr": 0.5}, {"params": [b], "weight_decay": 0.3}]
    optimizer = getattr(optim, name)(groups, lr=0.1)
    np.testing.assert_allclose(run(optimizer), wanted, atol=3e-5)
    assert [float(group["lr"]) for group in optimizer.param_groups] == pytest.approx([0.5, 0.1])


def test_state_and_text():
    optimizer = optim.Adam(parameters(), amsgrad=True)
    assert [p.name for p in optimizer.get_parameters()] == [
        "w", "b", "exp_avg.w", "exp_avg.b", "exp_avg_sq.w", "exp_avg_sq.b", "max_exp_avg_sq.w",
        "max_exp_avg_sq.b", "state_step",
    ]  # fmt: skip
    assert [p.name for p in optim.SGD(parameters(), 0.1).get_parameters()][2:] == [
        "momentum_buf.w", "momentum_buf.b", "step_t",
    ]  # fmt: skip
    assert str(optim.AdamW(parameters())).splitlines()[:4] == [
        "AdamW (", "Parameter Group 0", "    amsgrad: False", "    betas: (0.9, 0.999)",
    ]  # fmt: skip
    fused = optim.FusedAdamW(parameters(), amsgrad=True)
    assert [v.shape for v in fused.set_contiguous_params()] == [(6,)]
    assert len(fused.inject_group_amsgrad_states()) == 2


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("Adam", dict(lr=-1.0), ValueError), ("Adam", dict(lr="a"), TypeError),
        ("Adam", dict(lr=1), TypeError), ("Adam", dict(betas=(1.0, 0.9)), ValueError),
        ("Adam", dict(eps=-1.0), ValueError), ("AdamW", dict(weight_decay=-1.0), ValueError),
        ("SGD", dict(lr=-1.0), ValueError), ("SGD", dict(lr=0.1, momentum=-1), ValueError),
        ("SGD", dict(lr=0.1, nesterov=True), ValueError), ("SGD", dict(lr=0.1, nesterov=1), TypeError),
    ],
)  # fmt: skip
def test_bad_options(name, options, kind):
    with pytest.raises(kind):
        getattr(optim, name)(parameters(), **options)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_network_learns(compiled):
    ms.set_seed(0)
    x = ms.Tensor(np.random.default_rng(0).normal(size=(8, 3, 6, 6)).astype(np.float32))
    y = ms.Tensor(np.arange(8) % 3)
    net = ms.nn.SequentialCell(
        nn.Conv2d(3, 4, 3, padding="same"), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(36, 3),
    )  # fmt: skip
    net.set_train()
    loss, optimizer = nn.CrossEntropyLoss(), optim.AdamW(net.trainable_params(), lr=0.05)
    slopes = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    def step(x, y):
        value, gradients = slopes(x, y)
        optimizer(gradients)
        return value

    run = ms.jit(step) if compiled else step
    losses = [float(run(x, y)) for _ in range(10)]
    assert losses[-1] < 0.2 * losses[0]
    assert int(net[1].num_batches_tracked) == 10
