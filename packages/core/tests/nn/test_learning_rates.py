"""Learning rate lists and schedules against MindSpore 2.10, and their arguments."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia import Tensor, dtypes, nn

LISTS = {
    "piecewise": (lambda: nn.piecewise_constant_lr([2, 5], [0.1, 0.05]), [0.1, 0.1, 0.05, 0.05, 0.05]),
    "exponential": (
        lambda: nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1),
        [0.1, 0.1, 0.09, 0.09, 0.081, 0.081],
    ),
    "exponential stair": (
        lambda: nn.exponential_decay_lr(0.1, 0.9, 6, 2, 2, True),
        [0.1, 0.1, 0.1, 0.1, 0.09, 0.09],
    ),
    "natural stair": (
        lambda: nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2, True),
        [0.1, 0.1, 0.1, 0.1, 0.016529888822158657, 0.016529888822158657],
    ),
    "inverse stair": (
        lambda: nn.inverse_decay_lr(0.1, 0.5, 6, 1, 1, True),
        [0.1, 0.06666666666666667, 0.05, 0.04, 0.03333333333333333, 0.028571428571428574],
    ),
    "cosine": (lambda: nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2), [0.1, 0.1, 0.055, 0.055, 0.01, 0.01]),
    "warmup": (lambda: nn.warmup_lr(0.1, 6, 2, 2), [0.0, 0.0, 0.05, 0.05, 0.1, 0.1]),
    "warmup of nothing": (lambda: nn.warmup_lr(0.1, 2, 2, 0), [0.1, 0.1]),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_list_of_rates(name):
    make, want = LISTS[name]
    np.testing.assert_allclose(make(), want, rtol=1e-9)


def test_polynomial_list_reaches_its_end_and_may_start_over():
    root = 0.09 * 0.5**0.5 + 0.01
    np.testing.assert_allclose(
        nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5), [0.1, 0.1, root, root, 0.01, 0.01]
    )
    grown = nn.polynomial_decay_lr(0.1, 0.01, 6, 1, 2, 0.5, True)
    want = [0.1, root, 0.01, 0.09 * 0.25**0.5 + 0.01, 0.01, 0.09 * (1 / 6) ** 0.5 + 0.01]
    np.testing.assert_allclose(grown, want)


def at(schedule, *steps):
    return [float(schedule(Tensor(s, dtypes.int32)).asnumpy()) for s in steps]


@pytest.mark.parametrize(
    "schedule, want",
    [
        (nn.ExponentialDecayLR(0.1, 0.9, 4), [0.1 * 0.9 ** (s / 4) for s in (0, 2, 4, 7)]),
        (nn.ExponentialDecayLR(0.1, 0.9, 4, True), [0.1, 0.1, 0.09, 0.09]),
        (nn.NaturalExpDecayLR(0.1, 0.9, 4), [0.1 * np.exp(-0.9 * s) for s in (0, 2, 4, 7)]),
        (nn.NaturalExpDecayLR(0.1, 0.9, 4, True), [0.1, 0.1, 0.1 * np.exp(-3.6), 0.1 * np.exp(-3.6)]),
        (nn.InverseDecayLR(0.1, 0.9, 4), [0.1 / (1 + 0.9 * s / 4) for s in (0, 2, 4, 7)]),
        (nn.InverseDecayLR(0.1, 0.9, 4, True), [0.1, 0.1, 0.1 / 1.9, 0.1 / 1.9]),
        (nn.CosineDecayLR(0.01, 0.1, 4), [0.1, 0.055, 0.01, 0.01]),
        (nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5), [0.1, 0.01 + 0.09 * 0.5**0.5, 0.01, 0.01]),
        (nn.PolynomialDecayLR(0.1, 0.01, 4, 1.0, True), [0.1, 0.055, 0.01, 0.01 + 0.09 / 8]),
        (nn.WarmUpLR(0.1, 4), [0.0, 0.05, 0.1, 0.1]),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, nn.Cell) else "",
)
def test_schedule_of_steps(schedule, want):
    np.testing.assert_allclose(at(schedule, 0, 2, 4, 7), want, rtol=1e-5, atol=1e-8)


def test_a_schedule_in_an_optimizer_gives_the_rate_of_the_step():
    from mycelia import Parameter

    p = Parameter(Tensor(np.array([1.0], np.float32)), name="w")
    optimizer = nn.SGD([p], nn.WarmUpLR(0.1, 2))
    one = (Tensor(np.array([1.0], np.float32)),)
    assert [float(optimizer.get_lr().asnumpy()) if not optimizer(one) else 0 for _ in range(1)] == [0]
    assert float(p.asnumpy()[0]) == 1.0  # the rate of step 0 is 0
    assert round(float(optimizer.get_lr().asnumpy()), 5) == 0.05


@pytest.mark.parametrize(
    "kind, make",
    [
        (ValueError, lambda: nn.piecewise_constant_lr([2, 1], [0.1, 0.2])),
        (ValueError, lambda: nn.piecewise_constant_lr([2], [0.1, 0.2])),
        (TypeError, lambda: nn.piecewise_constant_lr(2, [0.1])),
        (ValueError, lambda: nn.exponential_decay_lr(-0.1, 0.9, 6, 2, 1)),
        (TypeError, lambda: nn.exponential_decay_lr(0.1, 0.9, 6.0, 2, 1)),
        (ValueError, lambda: nn.cosine_decay_lr(0.1, 0.01, 6, 2, 2)),
        (ValueError, lambda: nn.warmup_lr(0.1, 6, 2, -1)),
        (ValueError, lambda: nn.ExponentialDecayLR(0.1, 0.9, 0)),
        (TypeError, lambda: nn.ExponentialDecayLR("0.1", 0.9, 1)),
        (TypeError, lambda: nn.ExponentialDecayLR(0.1, 0.9, 1, 1)),
        (ValueError, lambda: nn.CosineDecayLR(0.1, 0.01, 4)),
        (ValueError, lambda: nn.PolynomialDecayLR(0.1, 0.2, 4, 0.5)),
        (ValueError, lambda: nn.WarmUpLR(0.1, 0)),
    ],
)
def test_wrong_arguments_are_refused(kind, make):
    with pytest.raises(kind):
        make()
