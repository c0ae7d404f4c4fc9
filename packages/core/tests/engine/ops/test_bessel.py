"""Bessel functions: tabulated values, limits, and the relation between the kinds."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops

# Abramowitz and Stegun, tables 9.1, 9.2, 9.8: at 1, 5 and 17.
TABLE = {
    "j0": (0.7651976866, -0.1775967713, -0.1698542522), "j1": (0.4400505857, -0.3275791376, -0.0976684928),
    "y0": (0.0882569642, -0.3085176252, -0.0926371984), "y1": (-0.7812128213, 0.1478631434, 0.1672050361),
    "i0e": (0.4657596077, 0.1835408126, 0.0974943005), "i1e": (0.2079104154, 0.1639722669, 0.0945819107),
    "k0e": (1.1444630797, 0.5478075643, 0.3018080192), "k1e": (1.6361534863, 0.6002738587, 0.3105612340),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_tables(name):
    x = np.array([1.0, 5.0, 17.0])
    found = getattr(ops, "bessel_" + name)(ms.Tensor(x)).asnumpy()
    np.testing.assert_allclose(found, TABLE[name], rtol=1e-8)


def test_wronskians():
    """J1 Y0 - J0 Y1 = 2 / (pi x) and I0 K1 + I1 K0 = 1 / x, across the borders of the methods."""
    x = np.concatenate([np.geomspace(1e-3, 29, 40), np.linspace(29.5, 90, 40)])
    j0, j1, y0, y1, i0, i1, k0, k1 = (
        getattr(ops, "bessel_" + n)(ms.Tensor(x)).asnumpy() for n in "j0 j1 y0 y1 i0e i1e k0e k1e".split()
    )
    np.testing.assert_allclose(j1 * y0 - j0 * y1, 2 / (np.pi * x), rtol=1e-11)
    np.testing.assert_allclose(i0 * k1 + i1 * k0, 1 / x, rtol=1e-12)


def test_limits():
    inf = np.inf
    at_zero = {"j0": 1, "j1": 0, "y0": -inf, "y1": -inf, "i0": 1, "i1": 0, "k0": inf, "k1": inf}
    for name, value in at_zero.items():
        assert float(getattr(ops, "bessel_" + name)(ms.Tensor(0.0))) == value
    assert float(ops.bessel_i1(ms.Tensor(-2.0))) == -float(ops.bessel_i1(ms.Tensor(2.0)))
    assert float(ms.grad(ops.bessel_j1)(ms.Tensor(0.0))) == 0.5
    assert ops.bessel_i0(ms.Tensor([1, 2])).dtype is ms.float32
