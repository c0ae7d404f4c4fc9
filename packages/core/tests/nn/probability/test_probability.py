"""Distributions and bijectors; the numbers were checked once against MindSpore 2.10."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.nn.probability import bijector, distribution

QUANTITIES = [
    ("Normal", (0.5, 2.0), "log_prob", [-1.64334, -1.64334, -1.89334]),
    ("Normal", (0.5, 2.0), "cdf", [0.401294, 0.598706, 0.773373]),
    ("Normal", (0.5, 2.0), "mean", [0.5]),
    ("Normal", (0.5, 2.0), "mode", [0.5]),
    ("Normal", (0.5, 2.0), "var", [4.0]),
    ("Normal", (0.5, 2.0), "entropy", [2.11209]),
    ("Uniform", (0.0, 2.0), "log_prob", [-0.693147, -0.693147, -0.693147]),
    ("Uniform", (0.0, 2.0), "cdf", [0.0, 0.5, 1.0]),
    ("Uniform", (0.0, 2.0), "mean", [1.0]),
    ("Uniform", (0.0, 2.0), "var", [0.333333]),
    ("Uniform", (0.0, 2.0), "entropy", [0.693147]),
    ("Exponential", (0.5,), "log_prob", [-0.693147, -1.19315, -1.69315]),
    ("Exponential", (0.5,), "cdf", [0.0, 0.39347, 0.632121]),
    ("Exponential", (0.5,), "mean", [2.0]),
    ("Exponential", (0.5,), "mode", [0.0]),
    ("Exponential", (0.5,), "var", [4.0]),
    ("Exponential", (0.5,), "entropy", [1.69315]),
    ("Cauchy", (0.5, 2.0), "log_prob", [-1.8985, -1.8985, -2.28416]),
    ("Cauchy", (0.5, 2.0), "cdf", [0.422021, 0.577979, 0.704833]),
    ("Cauchy", (0.5, 2.0), "mode", [0.5]),
    ("Cauchy", (0.5, 2.0), "entropy", [3.22417]),
    ("Logistic", (0.5, 2.0), "log_prob", [-2.09503, -2.09503, -2.21689]),
    ("Logistic", (0.5, 2.0), "cdf", [0.437824, 0.562177, 0.679179]),
    ("Logistic", (0.5, 2.0), "mean", [0.5]),
    ("Logistic", (0.5, 2.0), "mode", [0.5]),
    ("Logistic", (0.5, 2.0), "var", [13.1595]),
    ("Logistic", (0.5, 2.0), "entropy", [2.69315]),
    ("HalfNormal", (0.0, 2.0), "log_prob", [-0.918939, -1.04394, -1.41894]),
    ("Laplace", (0.5, 2.0), "log_prob", [-1.63629, -1.63629, -2.13629]),
    ("StudentT", (3.0, 0.5, 2.0), "log_prob", [-1.73527, -1.73527, -2.03774]),
    ("LogNormal", (0.5, 2.0), "log_prob", [np.nan, -1.64334, -2.3099]),
    ("LogNormal", (0.5, 2.0), "cdf", [0.0, 0.401294, 0.538467]),
    ("LogNormal", (0.5, 2.0), "mean", [12.1825]),
    ("LogNormal", (0.5, 2.0), "mode", [0.0301974]),
    ("LogNormal", (0.5, 2.0), "var", [7954.68]),
    ("LogNormal", (0.5, 2.0), "entropy", [2.61209]),
    ("Gumbel", (0.5, 2.0), "log_prob", [-1.72717, -1.72195, -1.91551]),
    ("Gumbel", (0.5, 2.0), "cdf", [0.27692, 0.458956, 0.623525]),
    ("Gumbel", (0.5, 2.0), "mean", [1.65443]),
    ("Gumbel", (0.5, 2.0), "mode", [0.5]),
    ("Gumbel", (0.5, 2.0), "var", [6.57974]),
    ("Gumbel", (0.5, 2.0), "entropy", [2.27036]),
    ("Bernoulli", (0.25,), "log_prob", [-0.287682, -1.38629, -2.48491]),
    ("Bernoulli", (0.25,), "cdf", [0.75, 1.0, 1.0]),
    ("Bernoulli", (0.25,), "mean", [0.25]),
    ("Bernoulli", (0.25,), "var", [0.1875]),
    ("Bernoulli", (0.25,), "entropy", [0.562335]),
    ("Geometric", (0.25,), "log_prob", [-1.38629, -1.67398, -1.96166]),
    ("Geometric", (0.25,), "cdf", [0.25, 0.4375, 0.578125]),
    ("Geometric", (0.25,), "mean", [3.0]),
    ("Geometric", (0.25,), "mode", [0.0]),
    ("Geometric", (0.25,), "var", [12.0]),
    ("Geometric", (0.25,), "entropy", [2.24934]),
    ("Categorical", ([0.5, 0.2, 0.3],), "log_prob", [-0.693147, -1.60944, -1.20397]),
    ("Categorical", ([0.5, 0.2, 0.3],), "cdf", [0.5, 0.7, 1.0]),
    ("Categorical", ([0.5, 0.2, 0.3],), "mean", [0.8]),
    ("Categorical", ([0.5, 0.2, 0.3],), "mode", [0.0]),
    ("Categorical", ([0.5, 0.2, 0.3],), "var", [0.76]),
    ("Categorical", ([0.5, 0.2, 0.3],), "entropy", [1.02965]),
]  # fmt: skip

BIJECTORS = [
    ("Exp", (), "forward", [1.28403, 2.117]),
    ("Exp", (), "inverse", [-1.38629, -0.287682]),
    ("Exp", (), "forward_log_jacobian", [0.25, 0.75]),
    ("Exp", (), "inverse_log_jacobian", [1.38629, 0.287682]),
    ("GumbelCDF", (0.5, 2.0), "forward", [0.322018, 0.413748]),
    ("GumbelCDF", (0.5, 2.0), "inverse", [-0.153269, 2.9918]),
    ("GumbelCDF", (0.5, 2.0), "forward_log_jacobian", [-1.7013, -1.70064]),
    ("GumbelCDF", (0.5, 2.0), "inverse_log_jacobian", [1.75281, 2.22673]),
    ("PowerTransform", (0.5,), "forward", [1.26562, 1.89063]),
    ("PowerTransform", (0.5,), "inverse", [-1.0, -0.267949]),
    ("PowerTransform", (0.5,), "forward_log_jacobian", [0.117783, 0.318454]),
    ("PowerTransform", (0.5,), "inverse_log_jacobian", [0.693147, 0.143841]),
    ("ScalarAffine", (2.0, 3.0), "forward", [3.5, 4.5]),
    ("ScalarAffine", (2.0, 3.0), "inverse", [-1.375, -1.125]),
    ("ScalarAffine", (2.0, 3.0), "forward_log_jacobian", [0.693147]),
    ("ScalarAffine", (2.0, 3.0), "inverse_log_jacobian", [-0.693147]),
    ("Softplus", (2.0,), "forward", [0.487039, 0.850707]),
    ("Softplus", (2.0,), "inverse", [-0.216376, 0.623759]),
    ("Softplus", (2.0,), "forward_log_jacobian", [-0.474077, -0.201413]),
    ("Softplus", (2.0,), "inverse_log_jacobian", [0.932752, 0.252482]),
]  # fmt: skip


@pytest.mark.parametrize("kind, args, quantity, expected", QUANTITIES)
def test_quantities(kind, args, quantity, expected):
    made = getattr(distribution, kind)(*args)
    given = (Tensor([0.0, 1.0, 2.0], ms.float32),) if quantity in ("log_prob", "cdf") else ()
    np.testing.assert_allclose(
        np.ravel(getattr(made, quantity)(*given).asnumpy()), expected, rtol=2e-5, atol=1e-6
    )


@pytest.mark.parametrize("kind, args, quantity, expected", BIJECTORS)
def test_bijectors(kind, args, quantity, expected):
    made = getattr(bijector, kind)(*args)
    value = Tensor([0.25, 0.75], ms.float32)
    np.testing.assert_allclose(
        np.ravel(getattr(made, quantity)(value).asnumpy()), expected, rtol=2e-5, atol=1e-6
    )
    swapped = {"forward": "inverse", "inverse": "forward"}
    name = "_".join(swapped.get(word, word) for word in quantity.split("_"))
    inverted = bijector.Invert(made)(name, value)
    np.testing.assert_allclose(np.ravel(inverted.asnumpy()), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "kind, args, mean",
    [
        ("Normal", (2.0, 0.5), 2.0),
        ("Uniform", (1.0, 3.0), 2.0),
        ("Exponential", (0.5,), 2.0),
        ("Logistic", (2.0, 0.5), 2.0),
        ("LogNormal", (0.0, 0.5), 1.1331),
        ("Gumbel", (1.0, 1.0), 1.5772),
        ("Bernoulli", (0.25,), 0.25),
        ("Geometric", (0.25,), 3.0),
        ("Categorical", ([0.5, 0.25, 0.25],), 0.75),
        ("Poisson", (2.0,), 2.0),
    ],
)
def test_samples_have_the_mean(kind, args, mean):
    made = getattr(distribution, kind)(*args, seed=3)
    drawn = made.sample((4000,))
    assert drawn.shape == (4000,) and drawn.dtype is made.dtype
    assert abs(drawn.asnumpy().astype(np.float64).mean() - mean) < 0.15


def test_parameters_may_come_with_the_call_and_broadcast():
    normal = distribution.Normal()
    mean, sd = Tensor([0.0, 1.0], ms.float32), Tensor([[1.0], [2.0]], ms.float32)
    assert normal.mean(mean, sd).shape == (2, 2)
    assert normal.sample((3,), mean, sd).shape == (3, 2, 2)
    assert normal.kl_loss("Normal", mean, sd, mean, sd).asnumpy().max() == 0
    with pytest.raises(TypeError):
        normal.mean()
    with pytest.raises(ValueError):
        normal.kl_loss("Uniform", mean, sd, mean, sd)


def test_a_distribution_is_a_cell_and_prints():
    made = distribution.Normal(1.0, 2.0)
    assert repr(made) == "Normal(mean = 1.0, standard deviation = 2.0)"
    assert float(made("log_prob", Tensor(1.0))) == float(made.log_prob(Tensor(1.0)))
    assert repr(distribution.Bernoulli([0.5, 0.25])) == "Bernoulli(batch_shape = (2,))"

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.normal = distribution.Normal(0.0, 1.0)

        def construct(self, x):
            return self.normal.log_prob(x).sum()

    gradient = ms.grad(ms.jit(Net()))(Tensor([1.0, -2.0], ms.float32))
    np.testing.assert_allclose(gradient.asnumpy(), [-1.0, 2.0], rtol=1e-6)


def test_a_transformed_distribution():
    made = bijector.ScalarAffine(2.0, 1.0)(distribution.Normal(0.0, 1.0))
    assert isinstance(made, distribution.TransformedDistribution) and made.is_linear_transformation
    assert float(made.mean()) == 1.0
    np.testing.assert_allclose(float(made.cdf(Tensor(1.0))), 0.5, rtol=1e-6)
    with pytest.raises(ValueError):
        bijector.Exp()(distribution.Normal(0.0, 1.0)).mean()


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: distribution.Normal(0.0, -1.0), ValueError),
        (lambda: distribution.Normal(0.0, 1.0, seed=-1), ValueError),
        (lambda: distribution.Normal(0.0, 1.0, dtype=ms.int32), TypeError),
        (lambda: distribution.Normal(0.0, 1.0, name=1), TypeError),
        (lambda: distribution.Normal(0.0, 1.0).prob(1.0), TypeError),
        (lambda: distribution.Normal(0.0, 1.0).sample([2]), TypeError),
        (lambda: distribution.Laplace(0.0, 1.0).mean(), NotImplementedError),
        (lambda: distribution.Cauchy(0.0, 1.0).mean(), ValueError),
        (lambda: distribution.Bernoulli(1.5), ValueError),
        (lambda: distribution.Categorical([0.5, 0.4]), ValueError),
        (lambda: distribution.Uniform(2.0, 1.0), ValueError),
        (lambda: bijector.Exp().forward(Tensor([1])), TypeError),
        (lambda: bijector.GumbelCDF(0.0, 0.0), ValueError),
        (lambda: bijector.Invert(3), TypeError),
    ],
)
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(
    ("kind", "parameters", "name"),
    [
        (distribution.Gamma, (3.0, [4.0]), "concentration"),
        (distribution.Gamma, ([3.0], 4), "rate"),
        (distribution.Beta, ([3.0], 4.0), "concentration0"),
        (distribution.Beta, (3, None), "concentration1"),
    ],
)
def test_single_numbers_are_refused(kind, parameters, name):
    with pytest.raises(TypeError, match=f"{name} can't be scalar"):
        kind(*parameters)
