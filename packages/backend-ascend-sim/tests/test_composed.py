"""Composed ops are sequences of the rules (R10), to the last bit: written out once more with scalars."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia.testing.comparison import on_backend
from mycelia_backend_ascend_sim import testing

F32 = np.float32


@pytest.fixture(autouse=True)
def on_device():
    with on_backend("Ascend"):
        yield


@pytest.fixture(params=[np.float16, np.float32])
def drawn(request):
    """Draws arrays in one dtype, and gives float32 of what was drawn."""

    def draw(*shape, seed=0):
        rng = np.random.default_rng(seed)
        x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 3, shape)).astype(request.param)
        return ms.Tensor(x), x.astype(F32)

    return draw


def exact(function, x):
    return F32(function(np.float64(x)))


def total(terms):
    return testing.pairs_added(list(terms))


def mean(terms):
    terms = list(terms)
    return F32(total(terms) * F32(1 / len(terms)))


def same(got: ms.Tensor, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got.asnumpy(), want.astype(got.asnumpy().dtype))


def test_softmax(drawn):
    x, v = drawn(5, 21)
    want = np.empty_like(v)
    for i, row in enumerate(v):
        e = [exact(np.exp, F32(a - row.max())) for a in row]
        want[i] = [F32(a / total(e)) for a in e]
    same(ops.softmax(x, -1), want)


def test_cross_entropy_and_its_gradient(drawn):
    x, v = drawn(4, 11)
    labels = np.array([0, 10, 3, 3], np.int32)
    losses, gradient = [], np.empty_like(v)
    for i, row in enumerate(v):
        shifted = [F32(a - row.max()) for a in row]
        log_sum = exact(np.log, total(exact(np.exp, a) for a in shifted))
        log_p = [F32(a - log_sum) for a in shifted]
        losses.append(F32(-log_p[labels[i]]))
        p = [exact(np.exp, a) for a in log_p]
        p[labels[i]] = F32(p[labels[i]] - F32(1))
        gradient[i] = [F32(a * F32(1 / 4)) for a in p]
    loss, found = find("sparse_softmax_cross_entropy_with_logits")(x, ms.Tensor(labels))
    same(loss, np.array(F32(total(losses) * F32(1 / 4))))
    same(found, gradient)


def test_layer_norm(drawn):
    x, v = drawn(3, 19)
    gamma, g = drawn(19, seed=1)
    beta, b = drawn(19, seed=2)
    want, rows = np.empty_like(v), np.empty((3, 1), F32)
    for i, row in enumerate(v):
        m = mean(row)
        shifted = [F32(a - m) for a in row]
        inverse = F32(F32(1) / np.sqrt(F32(mean(F32(a * a) for a in shifted) + F32(1e-5))))
        want[i] = [F32(F32(F32(a * inverse) * g[j]) + b[j]) for j, a in enumerate(shifted)]
        rows[i] = inverse
    y, _, inverses = find("layer_norm")(x, gamma, beta, epsilon=1e-5)
    same(y, want)
    same(inverses, rows)


def test_batch_norm_in_training():
    v = np.random.default_rng(3).standard_normal((2, 3, 4, 2)).astype(np.float16)
    channels = [np.linspace(a, b, 3).astype(F32) for a, b in ((-1, 1), (1, 2), (0.5, 1.5), (-0.2, 0.2))]
    running, variance, scale, bias = channels
    want, moved = np.empty(v.shape, F32), np.empty((2, 3), F32)
    for c in range(3):
        x = v[:, c].astype(F32).reshape(-1)
        m = mean(x)
        shifted = [F32(a - m) for a in x]
        spread = mean(F32(a * a) for a in shifted)
        inverse = F32(F32(1) / np.sqrt(F32(spread + F32(1e-5))))
        y = [F32(F32(a * F32(inverse * scale[c])) + bias[c]) for a in shifted]
        want[:, c] = np.array(y, F32).reshape(2, 4, 2)
        unbiased = F32(spread * F32(16 / 15))
        moved[0, c] = F32(running[c] + F32(F32(0.1) * F32(m - running[c])))
        moved[1, c] = F32(variance[c] + F32(F32(0.1) * F32(unbiased - variance[c])))
    state = [ms.Parameter(ms.Tensor(a)) for a in (running, variance)]
    given = [ms.Tensor(a) for a in (v, scale, bias)]
    y = find("batch_norm_train")(*state, *given)[0]
    same(y, want)
    for parameter, numbers in zip(state, moved, strict=True):
        same(parameter.value(), numbers)


def test_average_pool(drawn):
    x, v = drawn(1, 2, 5, 4)
    want = np.empty((1, 2, 2, 1), F32)
    for c, i in np.ndindex(2, 2):
        window = v[0, c, 2 * i : 2 * i + 3, 0:3].reshape(-1)
        want[0, c, i, 0] = F32(total(window) * F32(1 / 9))
    same(find("avg_pool")(x, kernel=(3, 3), stride=(2, 2)), want)


def test_attention(drawn):
    (q, qs), (k, ks), (v, vs) = (drawn(3, 5, seed=s) for s in range(3))
    qs, ks, vs = (a.astype(np.float16).astype(F32) for a in (qs, ks, vs))
    scores = testing.product(qs, ks.T) * F32(0.5)
    weights = np.empty_like(scores)
    for i, row in enumerate(scores):
        e = [exact(np.exp, F32(a - row.max())) for a in row]
        weights[i] = [F32(a / total(e)) for a in e]
    want = testing.product(weights.astype(np.float16).astype(F32), vs)
    same(find("attention")(q, k, v, scale=0.5)[0], want)


def test_momentum_steps():
    rng = np.random.default_rng(4)
    weight, sums, gradient = (rng.standard_normal(40).astype(F32) for _ in range(3))
    rate, momentum = F32(0.1), F32(0.9)
    new = np.array([F32(F32(a * momentum) + g) for a, g in zip(sums, gradient, strict=True)])
    want = np.array([F32(w - F32(rate * a)) for w, a in zip(weight, new, strict=True)])
    parameter, state = ms.Parameter(ms.Tensor(weight)), ms.Parameter(ms.Tensor(sums))
    numbers = ms.Tensor(rate), ms.Tensor(gradient), ms.Tensor(momentum)
    find("apply_momentum")(parameter, state, *numbers)
    same(parameter.value(), want)
    same(state.value(), new)
