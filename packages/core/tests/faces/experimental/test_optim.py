"""Optimizers with parameter groups, and their schedulers."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn
from mycelia.experimental import optim
from mycelia.experimental.optim import lr_scheduler

# Three steps from [1, -2, 0.5] with the gradients [0.5, -1, 2], [-0.25, 1, 1], [1, 0.5, -1]; checked once
# against MindSpore 2.10.
GRADIENTS = [[0.5, -1.0, 2.0], [-0.25, 1.0, 1.0], [1.0, 0.5, -1.0]]


def parameter(name="w"):
    return Parameter(Tensor([1.0, -2.0, 0.5], ms.float32), name=name)


def trained(kind, **options):
    p = parameter()
    optimizer = getattr(optim, kind)([p], **options)
    for gradient in GRADIENTS:
        assert optimizer((Tensor(gradient, ms.float32),)) is True
    return p.asnumpy()


STEPS = [
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.25, weight_decay=0.1), [0.777897, -1.814263, -0.127503]),
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, maximize=True), [1.2942, -1.9779, 1.2688]),
    ("Adam", dict(lr=0.1, weight_decay=0.1), [0.781504, -1.88907, 0.264873]),
    ("AdamW", dict(lr=0.1), [0.804785, -1.924607, 0.265906]),
    ("AdamW", dict(lr=0.1, amsgrad=True), [0.804785, -1.924607, 0.265906]),
    ("Adamax", dict(lr=0.1), [0.835384, -1.927056, 0.298142]),
    ("NAdam", dict(lr=0.1), [0.835655, -2.001939, 0.379702]),
    ("RAdam", dict(lr=0.1, betas=(0.5, 0.6)), [0.892857, -1.97619, 0.166667]),
    ("Adadelta", dict(lr=0.5, maximize=True), [1.002692, -1.998989, 0.501558]),
    ("Adagrad", dict(lr=0.1, lr_decay=0.5), [0.886171, -1.963807, 0.390598]),
    ("RMSprop", dict(lr=0.1, momentum=0.5, centered=True), [-0.964597, -1.640273, -1.525788]),
    ("ASGD", dict(lr=0.1, lambd=0.1, t0=1.0), [0.847544, -1.990542, 0.289441]),
    ("Rprop", dict(lr=0.1, etas=(0.4, 1.5)), [0.86, -1.94, 0.25]),
]  # fmt: skip


@pytest.mark.parametrize("kind, options, expected", STEPS)
def test_three_steps(kind, options, expected):
    np.testing.assert_allclose(trained(kind, **options), expected, rtol=2e-5, atol=2e-6)


SCHEDULES = [
    ("StepLR", (2, 0.5), [0.1, 0.1, 0.05, 0.05, 0.025, 0.025]),
    ("LinearLR", (0.5, 0.75, 4), [0.05, 0.05625, 0.06250001, 0.06875001, 0.07500001, 0.07500001]),
    ("ExponentialLR", (0.5,), [0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125]),
    ("PolynomialLR", (4, 2.0), [0.1, 0.05625, 0.025, 0.006250001, 0.0, 0.0]),
    ("MultiStepLR", ([2, 4, 4], 0.5), [0.1, 0.1, 0.05, 0.05, 0.0125, 0.0125]),
    ("ConstantLR", (0.25, 3), [0.025, 0.025, 0.025, 0.1, 0.1, 0.1]),
    ("CosineAnnealingLR", (2, 0.02), [0.1, 0.05999999, 0.02, 0.06, 0.09999999, 0.05999998]),
    ("CosineAnnealingWarmRestarts", (2, 2), [0.1, 0.05, 0.1, 0.08535534, 0.05, 0.01464466]),
    ("CyclicLR", (0.02, 0.1, 2, 1), [0.02, 0.06, 0.09999998, 0.02, 0.06000002, 0.09999998]),
    ("CyclicLR", (0.02, 0.1, 1, 1, "triangular2"), [0.02, 0.09999999, 0.02, 0.06, 0.02, 0.04]),
    ("LambdaLR", (lambda epoch: epoch + 1.0,), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
    ("MultiplicativeLR", (lambda epoch: 0.5,), [0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125]),
]  # fmt: skip


def make_scheduler(kind, optimizer, args):
    return getattr(lr_scheduler, kind)(optimizer, *args)


@pytest.mark.parametrize("kind, args, expected", SCHEDULES)
def test_five_epochs_of_a_schedule(kind, args, expected):
    optimizer = optim.SGD([parameter()], lr=0.1)
    scheduler = make_scheduler(kind, optimizer, args)
    rates = [float(scheduler.get_last_lr()[0])]
    for _ in range(5):
        scheduler.step()
        rates.append(float(scheduler.get_last_lr()[0]))
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


def test_groups_have_their_own_options_and_print():
    a, b = parameter("a"), parameter("b")
    optimizer = optim.Adagrad([{"params": [a], "lr": 0.5}, {"params": b, "weight_decay": 1}], lr=0.25)
    assert optimizer.group_start_id == [0, 1, 2]
    assert [lr.name for lr in optimizer.lrs] == ["learning_rate_group_0", "learning_rate_group_1"]
    assert [p.name for p in optimizer.get_parameters()] == ["a", "b", "accum.a", "accum.b", "step_t"]
    assert str(optimizer) == (
        "Adagrad (\nParameter Group 0\n    eps: 1e-10\n    initial_accumulator_value: 0.0\n    lr: 0.5\n"
        "    lr_decay: 0.0\n    maximize: False\n    weight_decay: 0.0\n\n"
        "Parameter Group 1\n    eps: 1e-10\n    initial_accumulator_value: 0.0\n    lr: 0.25\n"
        "    lr_decay: 0.0\n    maximize: False\n    weight_decay: 1.0\n)"
    )


def test_a_number_in_a_group_is_its_rate():
    p = parameter()
    optimizer = optim.SGD([p], lr=0.5)
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer((Tensor([1.0, 1.0, 1.0]),))
    np.testing.assert_array_equal(p.asnumpy(), [1.0, -2.0, 0.5])


def test_a_scheduler_steers_a_compiled_training_step():
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    optimizer = optim.SGD(net.trainable_params(), lr=0.5)
    scheduler = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)

    @ms.jit
    def step(x):
        loss, grads = gradient(x)
        optimizer(grads)
        return loss

    losses = []
    for _ in range(3):
        losses.append(float(step(Tensor([[1.0, 1.0]], ms.float32))))
        scheduler.step()
    assert losses == [2.0, 1.0, 0.5]


def test_reduce_on_plateau_waits_reduces_and_cools_down():
    optimizer = optim.SGD([parameter()], lr=1.0)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, cooldown=1, factor=0.5, min_lr=0.3)
    rates = []
    for loss in [1.0, 0.9, 0.95, 0.95, 0.96, 0.97, 0.98, 0.99]:
        scheduler.step(loss)
        rates.append(float(scheduler.get_last_lr()[0]))
    np.testing.assert_allclose(rates, [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.3, 0.3], rtol=1e-6)


def test_schedules_one_after_the_other():
    optimizer = optim.SGD([parameter()], lr=1.0)
    parts = [lr_scheduler.ConstantLR(optimizer, 0.5, 10), lr_scheduler.ExponentialLR(optimizer, 0.5)]
    scheduler = lr_scheduler.SequentialLR(optimizer, parts, [2])
    rates = []
    for _ in range(4):
        scheduler.step()
        rates.append(float(scheduler.get_last_lr()[0]))
    np.testing.assert_allclose(rates, [0.5, 1.0, 0.5, 0.25], rtol=1e-6)


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: optim.SGD([parameter()], lr="fast"), TypeError),
        (lambda: optim.SGD([parameter()], lr=-1.0), ValueError),
        (lambda: optim.Adam([], lr=0.1), ValueError),
        (lambda: optim.Adam([parameter()], betas=(1.0, 0.9)), ValueError),
        (lambda: optim.Adam([{"params": {parameter()}}]), TypeError),
        (lambda: lr_scheduler.StepLR(nn.SGD([parameter()], 0.1), 2), TypeError),
        (lambda: lr_scheduler.StepLR(optim.SGD([parameter()], 0.1), 2.5), TypeError),
        (lambda: lr_scheduler.StepLR(optim.SGD([parameter()], 0.1), 2, last_epoch=3), KeyError),
        (lambda: lr_scheduler.LinearLR(optim.SGD([parameter()], 0.1), start_factor=2.0), ValueError),
    ],
)
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make()
