"""Errors of compiled products and convolutions, whatever the scales of rows, columns and channels are.

The measure is the bound of the plain sum: ``4 sqrt(k) u`` times the sum of the absolute products, for each
element by itself, u half a unit in the last place of 1. Where values are not finite, compiled programs give
the NaN and infinities of the eager ops.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.backends import registry

pytestmark = pytest.mark.skipif("cpu" not in registry.available(), reason="needs kernels")

U = 2.0**-24


def scaled(rng, *shape, axis):
    """Normally distributed, each slice along `axis` by a factor of 1e-6 to 1e6; one in eight is 0."""
    factors = 10.0 ** rng.uniform(-6, 6, shape[axis])
    factors[rng.random(shape[axis]) < 0.125] = 0.0
    broadcast = [1] * len(shape)
    broadcast[axis] = -1
    return (rng.normal(size=shape) * factors.reshape(broadcast)).astype(np.float32)


def assert_same_specials(got, want):
    """NaN and infinities at the same places."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isposinf(got), np.isposinf(want))
    np.testing.assert_array_equal(np.isneginf(got), np.isneginf(want))


# ---- products ----------------------------------------------------------------------------------------------


def product_layers(w, b, rows):
    """name -> x -> x @ w in one of its forms, with what follows: b, and once more b as rows in "residual"."""
    weight, turned, bias = (Parameter(Tensor(np.ascontiguousarray(v))) for v in (w, w.T, b))
    dense = nn.Dense(*w.shape).set_train(False)
    dense.weight.set_data(turned), dense.bias.set_data(bias)
    point = nn.Conv2d(*w.shape, 1).set_train(False)
    point.weight.set_data(turned.reshape(*turned.shape, 1, 1))
    residual = Parameter(Tensor(np.tile(b, (rows, 1))))
    return {
        "matmul": lambda x: ops.matmul(x, weight),
        "transposed": lambda x: ops.matmul(x, turned.T),
        "batch_matmul": lambda x: ops.bmm(x[None], weight[None]),
        "stack": lambda x: ops.matmul(x.reshape(2, -1, x.shape[-1]), weight),
        "dense": lambda x: dense(x),
        "relu": lambda x: ops.relu(dense(x)),
        "residual": lambda x: ops.relu(dense(x) + residual),
        "gelu": lambda x: ops.gelu(ops.matmul(x, weight)),
        "conv 1x1": lambda x: point(x.T.reshape(1, x.shape[-1], -1, 2)),
    }


FORMS = ("matmul", "transposed", "batch_matmul", "stack", "dense", "relu", "residual", "gelu", "conv 1x1")


@pytest.mark.parametrize("size", [(32, 768, 768), (130, 256, 768), (66, 770, 514)], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_every_element_of_a_product_is_as_good_as_a_plain_sum(name, size):
    rows, columns, depth = size
    rng = np.random.default_rng(rows)
    x, w = scaled(rng, rows, depth, axis=0), scaled(rng, depth, columns, axis=1)
    b = scaled(rng, columns, axis=0)
    layer = product_layers(w, b, rows)[name]
    got = ms.jit(layer)(Tensor(x)).asnumpy().astype(np.float64)
    exact, size_ = x.astype(np.float64) @ w, np.abs(x).astype(np.float64) @ np.abs(w)
    terms = {"residual": 2, "dense": 1, "relu": 1}.get(name, 0)
    exact, size_ = exact + terms * b, size_ + terms * np.abs(b)
    if name == "conv 1x1":
        got = got.reshape(columns, rows).T
    if name in ("relu", "residual"):
        exact = np.maximum(exact, 0)
    if name == "gelu":
        exact = ops.gelu(Tensor(exact)).asnumpy()
    error, bound = np.abs(got.reshape(exact.shape) - exact), 4 * np.sqrt(depth) * U * size_
    assert (error <= bound + np.finfo(np.float32).tiny).all(), (error / np.maximum(bound, 1e-38)).max()


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("where", ["row", "column", "both", "one"])
def test_products_keep_what_is_not_finite_where_it_belongs(name, where):
    rng = np.random.default_rng(len(name))
    x, w, b = rng.normal(size=(64, 256)), rng.normal(size=(256, 192)), rng.normal(size=192)
    if where in ("row", "both"):
        x[3], x[40, 7], x[63, 255] = np.nan, np.inf, -np.inf
    if where in ("column", "both"):
        w[:, 5], w[9, 100], w[255, 191] = np.nan, np.inf, -np.inf
    if where == "one":
        x[0, 0], w[17, 100], b[7] = 3e38, 1e38, np.inf
    x, w, b = (v.astype(np.float32) for v in (x, w, b))
    layer = product_layers(w, b, 64)[name]
    assert_same_specials(ms.jit(layer)(Tensor(x)).asnumpy(), layer(Tensor(x)).asnumpy())


# ---- the choice --------------------------------------------------------------------------------------------


def lowered_ops(folder, function, *inputs):
    with ms.config.context(save_graphs=2, save_graphs_path=str(folder)):
        function(*inputs)
    return sorted(folder.iterdir())[-1].read_text()


def is_halved(text):
    return bool(re.search(r"reshape\([^\n]*\n[^\n]*linear_pack", text))


@pytest.fixture
def large():
    rng = np.random.default_rng(0)
    net = nn.Dense(768, 768).set_train(False)
    return net, Tensor(rng.normal(size=(65, 768)).astype(np.float32))


@pytest.mark.parametrize(
    ("settings", "option", "halved"),
    [
        ({}, "", False),
        ({"accuracy": "fast"}, "", True),
        ({}, "fast", True),
        ({"accuracy": "fast"}, "normal", False),
        ({"accuracy": "fast", "strict_accuracy": True}, "", False),
        ({"strict_accuracy": True}, "fast", False),
    ],
    ids=str,
)
def test_faster_products_are_asked_for(tmp_path, large, settings, option, halved):
    net, x = large
    with ms.config.context(**settings):
        assert is_halved(lowered_ops(tmp_path, ms.jit(lambda x: net(x), accuracy=option), x)) is halved


def test_the_option_belongs_to_one_function_and_follows_the_setting(tmp_path, large):
    net, x = large
    plain, fast = ms.jit(lambda x: net(x)), ms.jit(lambda x: net(x), accuracy="fast")
    first, second = plain(x).asnumpy(), fast(x).asnumpy()
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(plain(x).asnumpy(), first)
    with ms.config.context(accuracy="fast"):
        np.testing.assert_array_equal(plain(x).asnumpy(), second)
    with ms.config.context(strict_accuracy=True):
        np.testing.assert_array_equal(fast(x).asnumpy(), first)
    np.testing.assert_array_equal(fast(x).asnumpy(), second)


def test_the_option_holds_for_gradients_of_the_function(tmp_path):
    net = nn.Conv2d(32, 32, 3, pad_mode="pad", padding=1)
    x = Tensor(np.random.default_rng(1).normal(size=(2, 32, 24, 24)).astype(np.float32))
    for option, winograd in (("strict", False), ("", True)):
        folder = tmp_path / f"option {option}"
        step = ms.jit(lambda x: (net(x) ** 2).sum(), accuracy=option)
        text = lowered_ops(folder, ms.grad(step, 0, net.trainable_params()), x)
        assert ("winograd" in text) is winograd
        assert "weight_grad" in text


@pytest.mark.parametrize("value", ["quick", "", 1])
def test_levels_have_names(value):
    with pytest.raises((ValueError, TypeError), match="accuracy"):
        ms.set_context(accuracy=value)
    if value:
        with pytest.raises(ValueError, match="accuracy"):
            ms.jit(lambda x: x, accuracy=value)
