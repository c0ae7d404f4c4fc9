"""`accuracy=fast` of a configuration: large products by constants go by Strassen's algorithm."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.format import write

from ..converter.optimise.small_models import Net

ROWS, DEPTH, OUTPUTS = 128, 768, 768  # large enough, by the estimate of cycles
RNG = np.random.default_rng(3)
X = RNG.normal(size=(ROWS, DEPTH)).astype(np.float32)
WEIGHT = RNG.normal(size=(OUTPUTS, DEPTH)).astype(np.float32)
BIAS = RNG.normal(size=OUTPUTS).astype(np.float32)


@pytest.fixture(scope="module", params=[True, False], ids=["out-in", "in-out"])
def product(request, tmp_path_factory):
    """A file with relu(x w + b) + x, whose rows stay open."""
    net = Net()
    x = net.input(-1, DEPTH)
    w = net.constant(WEIGHT if request.param else np.ascontiguousarray(WEIGHT.T))
    y = net("MatMulFusion", x, w, net.constant(BIAS), transpose_b=request.param, activation_type="RELU")
    path = tmp_path_factory.mktemp("product") / "product.ms"
    write(str(path), net.model(net("AddFusion", y, x)))
    return str(path)


def answer(path, x, accuracy, threads=1):
    context = mslite.Context()
    context.cpu.thread_num = threads
    model = mslite.Model()
    model.update_config("common", {"accuracy": accuracy})
    model.build_from_file(path, context=context)
    model.resize(model.get_inputs(), [list(x.shape)])
    model.get_inputs()[0].set_data_from_numpy(x)
    return model.predict(model.get_inputs())[0].get_data_to_numpy()


def expected(x):
    wide = x.astype(np.float64)
    return np.maximum(wide @ WEIGHT.T + BIAS, 0) + wide


def test_a_large_product_rounds_a_little_worse(product):
    normal, fast, right = answer(product, X, "normal"), answer(product, X, "fast"), expected(X)
    largest = np.abs(right).max()
    assert np.abs(normal - right).max() < 1e-6 * largest
    assert np.abs(fast - right).max() < 3e-6 * largest
    assert (normal != fast).mean() > 0.1


def test_a_small_product_keeps_its_bits(product):
    np.testing.assert_array_equal(answer(product, X[:16], "normal"), answer(product, X[:16], "fast"))


def test_the_bits_are_those_of_any_number_of_threads(product):
    np.testing.assert_array_equal(answer(product, X, "fast"), answer(product, X, "fast", threads=2))


def test_what_is_not_finite_stays_in_its_row(product):
    x = X.copy()
    x[5, 7] = np.inf
    found, right = answer(product, x, "fast"), expected(X)
    others = np.arange(ROWS) != 5
    assert not np.isfinite(found[5]).all()
    np.testing.assert_allclose(found[others], right[others], rtol=0, atol=3e-6 * np.abs(right).max())


def test_two_models_of_a_file_share_it_with_accuracies_of_their_own(product):
    first, second = mslite.Model(), mslite.Model()
    second.update_config("common", {"accuracy": "fast"})
    first.build_from_file(product)
    second.build_from_model(first)
    for model, accuracy in ((first, "normal"), (second, "fast")):
        model.resize(model.get_inputs(), [list(X.shape)])
        model.get_inputs()[0].set_data_from_numpy(X)
        found = model.predict(model.get_inputs())[0].get_data_to_numpy()
        np.testing.assert_array_equal(found, answer(product, X, accuracy))
