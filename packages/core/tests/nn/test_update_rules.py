"""Optimizers of nn, mint and experimental that are one update rule move Parameters alike, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, mint, nn
from mycelia.experimental import optim

STEPS = 4


def trained(make, dtype: str, compiled: bool) -> list[bytes]:
    """The bits of two Parameters after some steps."""
    r = np.random.default_rng(3)
    shapes = (5, 16), (7,)
    params = [
        Parameter(Tensor(r.normal(size=shape).astype(dtype)), name=f"w{i}") for i, shape in enumerate(shapes)
    ]
    optimizer = make(params)
    step = ms.jit(lambda *gradients: optimizer(gradients)) if compiled else lambda *g: optimizer(g)
    for _ in range(STEPS):
        step(*(Tensor(r.normal(size=shape).astype(dtype)) for shape in shapes))
    return [p.asnumpy().tobytes() for p in params]


SAME = {
    "SGD": (
        lambda p: nn.SGD(p, 0.1, 0.9, 0.2),
        lambda p: optim.SGD(p, 0.1, 0.9, 0.2),
    ),
    "Rprop": (
        lambda p: nn.Rprop(p, 0.05, (0.4, 1.3), (1e-4, 2.0)),
        lambda p: optim.Rprop(p, 0.05, (0.4, 1.3), (1e-4, 2.0)),
    ),
    "ASGD": (
        lambda p: nn.ASGD(p, 0.05, 0.1, 0.5, 1.0),
        lambda p: optim.ASGD(p, 0.05, 0.1, 0.5, 1.0),
    ),
    "AdamW with the largest moments": (
        lambda p: mint.optim.AdamW(p, 0.05, (0.8, 0.95), 1e-6, 0.1, amsgrad=True),
        lambda p: optim.AdamW(p, 0.05, (0.8, 0.95), 1e-6, 0.1, amsgrad=True),
    ),
    "Adam with decay apart": (
        lambda p: mint.optim.FusedAdamW(p, 0.05),
        lambda p: mint.optim.AdamW(p, 0.05),
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", SAME)
def test_one_rule_under_two_names_gives_the_same_bits(name, dtype, compiled):
    one, other = SAME[name]
    assert trained(one, dtype, compiled) == trained(other, dtype, compiled)
