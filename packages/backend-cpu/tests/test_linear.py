"""Layers on packed weights and products of awkward shapes: epilogues, and the same bits on any threads."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.ops.linalg import products as linalg
from mycelia.engine.ops.lowered.linear import linear, linear_pack
from mycelia.engine.ops.lowered.packed import ACTIVATIONS
from mycelia.engine.ops.nn_ops import attention, gru, rnn
from mycelia.ops.define import find
from mycelia_backend_cpu import _native

SIZES = [
    (1, 1, 1), (1, 84, 120), (1, 120, 400), (1, 300, 700), (1, 4100, 37), (2, 17, 5), (5, 48, 1000),
    (30, 300, 1024), (49, 70, 801), (401, 33, 130),
]  # fmt: skip


def random(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def with_threads(count, function):
    """Arrays of the outputs of `function` on `count` threads."""
    before = _native.threads()
    _native.set_threads(count)
    try:
        outputs = function()
        return [t.asnumpy() for t in (outputs if isinstance(outputs, tuple) else (outputs,))]
    finally:
        _native.set_threads(before)


def assert_same_bits(function):
    for one, two in zip(with_threads(1, function), with_threads(2, function)):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("transpose_w", [True, False], ids=["out-in", "in-out"])
def test_linear_with_bias_and_residual(size, transpose_w, threads):
    rows, outputs, inputs = size
    x, b, residual = random(rows, inputs), random(outputs), random(rows, outputs)
    w = random(*((outputs, inputs) if transpose_w else (inputs, outputs)))
    pack = linear_pack(ms.Tensor(w), transpose_w=transpose_w)
    y = linear(ms.Tensor(x), pack, ms.Tensor(b), ms.Tensor(residual), channels=outputs)
    want = x.astype(np.float64) @ (w.T if transpose_w else w) + b + residual
    np.testing.assert_allclose(y.asnumpy(), want, rtol=0, atol=3e-6 * max(inputs, 4) ** 0.5)


@pytest.mark.parametrize("activation", sorted(set(ACTIVATIONS) - {"none"}))
@pytest.mark.parametrize("rows", [1, 13])
def test_linear_with_activation(activation, rows, threads):
    x, w = 4 * random(rows, 67), random(150, 67)
    pack = linear_pack(ms.Tensor(w))
    y = linear(ms.Tensor(x), pack, channels=150, activation=activation).asnumpy()
    name, attrs = ACTIVATIONS[activation]
    want = find(name).definition.body((x.astype(np.float64) @ w.T).astype(np.float32), **attrs)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("outputs", [17, 31, 32, 48, 96])
def test_every_height_of_a_tile(outputs):
    """Rows are cut into tiles of nearly equal height; the depths have all remainders of four."""
    for rows in range(2, 27):
        inputs = 8 + rows
        x, w, b, residual = map(random, (rows, outputs, outputs, rows), (inputs, inputs, 1, outputs))
        tensors = ms.Tensor(x), linear_pack(ms.Tensor(w)), ms.Tensor(b[:, 0]), ms.Tensor(residual)
        y = linear(*tensors, channels=outputs, activation="relu6")
        want = np.clip(x.astype(np.float64) @ w.T + b[:, 0] + residual, 0, 6)
        np.testing.assert_allclose(y.asnumpy(), want, rtol=0, atol=2e-5)


# rows, outputs, inputs: no lower half, odd halves, several blocks of rows, groups of columns, parts of k
HALVED = [
    (30, 300, 1024),
    (1, 34, 6),
    (2, 32, 2),
    (3, 62, 30),
    (49, 96, 130),
    (145, 160, 34),
    (300, 50, 1100),
    (13, 258, 66),
]


def halved(x, w, b=None, **attrs):
    """x @ w.T + b by Strassen's product."""
    pack = linear_pack(ms.Tensor(w), algorithm="strassen")
    return linear(ms.Tensor(x), pack, None if b is None else ms.Tensor(b), algorithm="strassen", **attrs)


@pytest.mark.parametrize("size", HALVED, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("transpose_w", [True, False], ids=["out-in", "in-out"])
@pytest.mark.parametrize("activation", ["none", "relu"])
def test_linear_by_strassens_product(size, transpose_w, activation):
    rows, outputs, inputs = size
    x, b, residual = random(rows, inputs), random(outputs), random(rows, outputs)
    w = random(*((outputs, inputs) if transpose_w else (inputs, outputs)))
    pack = linear_pack(ms.Tensor(w), transpose_w=transpose_w, algorithm="strassen")
    inputs_of = ms.Tensor(x), pack, ms.Tensor(b), ms.Tensor(residual)
    attrs = dict(channels=outputs, algorithm="strassen", activation=activation)
    y = linear(*inputs_of, **attrs)
    want = x.astype(np.float64) @ (w.T if transpose_w else w) + b + residual
    want = np.maximum(want, 0) if activation == "relu" else want
    np.testing.assert_allclose(y.asnumpy(), want, rtol=0, atol=1e-5 * max(inputs, 4) ** 0.5)
    assert_same_bits(lambda: linear(*inputs_of, **attrs))


@pytest.mark.parametrize("activation", sorted(set(ACTIVATIONS) - {"none"}))
def test_strassens_product_with_activation(activation):
    x, w = 4 * random(13, 66), random(150, 66)
    y = halved(x, w, channels=150, activation=activation)
    name, attrs = ACTIVATIONS[activation]
    want = find(name).definition.body((x.astype(np.float64) @ w.T).astype(np.float32), **attrs)
    np.testing.assert_allclose(y.asnumpy(), want, rtol=1e-5, atol=6e-5)


@pytest.mark.parametrize("depth", [256, 1024, 4096])
def test_error_of_strassens_product(depth):
    """Relative to the largest result, of normal factors; mycelia_backend_cpu.product states it."""
    x, w = (np.random.default_rng(depth).normal(size=(64, depth)).astype(np.float32) for _ in range(2))
    want = x.astype(np.float64) @ w.T
    y = halved(x, w, channels=64).asnumpy()
    assert np.abs(y - want).max() < 3e-6 * np.abs(want).max()


@pytest.mark.parametrize("rows, at", [(2, 0), (49, 10), (49, 40), (301, 7), (301, 298)])
@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e6, 1e-6])
def test_rows_of_strassens_product_do_not_reach_each_other(rows, at, odd):
    """A row that is not finite, or of another size than the rest, leaves the others exact."""
    x, w, b = random(rows, 130), random(96, 130), random(96)
    x[at] *= np.float32(odd)
    y = halved(x, w, b, channels=96).asnumpy()
    with np.errstate(invalid="ignore"):
        want = x.astype(np.float64) @ w.T + b
    size = np.abs(want).max(1, keepdims=True)
    close = np.abs(y - want) <= 2e-6 * np.where(np.isfinite(size), size, 1)
    assert np.delete(close, at, axis=0).all()
    if np.isfinite(odd):
        assert close[at].all()
    else:
        assert not np.isfinite(y[at]).any()
    assert_same_bits(lambda: halved(x, w, b, channels=96))


@pytest.mark.parametrize("rows, inputs", [(0, 5), (3, 0), (1, 0)])
def test_linear_of_nothing_is_its_bias(rows, inputs):
    b = random(9)
    pack = linear_pack(ms.Tensor(np.zeros((9, inputs), np.float32)))
    y = linear(ms.Tensor(np.zeros((rows, inputs), np.float32)), pack, ms.Tensor(b), channels=9)
    np.testing.assert_array_equal(y.asnumpy(), np.broadcast_to(b, (rows, 9)))


@pytest.mark.parametrize(
    "size",
    [(2, 300, 400), (4, 500, 300), (300, 3, 400), (64, 30, 7000), (5, 7, 40000), (200, 201, 2000)],
    ids=str,
)
def test_products_do_not_depend_on_threads(size):
    m, n, k = size
    for ta in (False, True):
        for tb in (False, True):
            x, y = (ms.Tensor(random(*s)) for s in ((k, m) if ta else (m, k), (n, k) if tb else (k, n)))
            got = linalg.mat_mul(x, y, ta, tb).asnumpy()
            want = (x.asnumpy().T if ta else x.asnumpy()).astype(np.float64) @ (
                y.asnumpy().T if tb else y.asnumpy()
            )
            np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * k**0.5)
            assert_same_bits(lambda x=x, y=y, ta=ta, tb=tb: linalg.mat_mul(x, y, ta, tb))


def test_recurrent_layers_do_not_depend_on_threads():
    x, h, c = (ms.Tensor(random(*s)) for s in ((9, 20, 40), (20, 50), (20, 50)))
    for layer, gates, states in ((rnn._lstm_layer, 4, (h, c)), (gru._gru_layer, 3, (h,))):
        weights = (ms.Tensor(random(gates * 50, 40)), ms.Tensor(random(gates * 50, 50)))
        assert_same_bits(lambda layer=layer, inputs=(x, *states, *weights): layer(*inputs))


@pytest.mark.parametrize(
    "queries, keys, causal", [(1, 300, False), (70, 530, False), (530, 530, True), (33, 7, True)]
)
def test_attention_of_many_keys(queries, keys, causal, threads):
    q, k, v, dy = (random(2, n, d) for n, d in ((queries, 24), (keys, 24), (keys, 19), (queries, 19)))
    settings = dict(scale=0.2, is_causal=causal, p=0.0)
    y, log_sum = attention._attention(*map(ms.Tensor, (q, k, v)), None, None, **settings)
    want = attention._attention.definition.body(q, k, v, None, None, **settings)
    np.testing.assert_allclose(y.asnumpy(), want[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(log_sum.asnumpy(), want[1], rtol=1e-5, atol=1e-5)
    inputs = *map(ms.Tensor, (dy, q, k, v)), y, log_sum, None, None
    got = attention._attention_grad(*inputs, **settings)
    wanted = attention._attention_grad.definition.body(dy, q, k, v, *want, None, None, **settings)
    for g, w in zip(got, wanted):
        np.testing.assert_allclose(g.asnumpy(), w, rtol=1e-4, atol=2e-5)


def test_an_algorithm_that_does_not_suit_is_refused():
    """Odd sizes have no halves, and a pack is read by the algorithm that it was made for."""
    for size in ((9, 6), (8, 5)):
        with pytest.raises(ValueError, match="algorithm 'strassen' is for even numbers"):
            linear_pack(ms.Tensor(random(*size)), algorithm="strassen")
    x, w = ms.Tensor(random(3, 6)), ms.Tensor(random(8, 6))
    plain, fast = linear_pack(w), linear_pack(w, algorithm="strassen")
    for pack, algorithm in ((fast, "plain"), (plain, "strassen")):
        with pytest.raises(ValueError, match=f"w must be the '{algorithm}' pack of 8 x 6 weights"):
            linear(x, pack, channels=8, algorithm=algorithm)
