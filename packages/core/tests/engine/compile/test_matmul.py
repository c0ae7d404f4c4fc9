"""Products of matrices in lowered graphs: packed weights, flags for transposes, attention."""

import re

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.backends import registry
from mycelia.engine.compile.passes import attention
from mycelia.engine.ops.lowered.linear import linear, linear_pack

pytestmark = pytest.mark.skipif("cpu" not in registry.available(), reason="needs kernels")


def rand(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def last_lowered(folder):
    """The text of the graph that was lowered last."""
    return max(
        folder.glob("hwopt_*_after_lower_graph_*"), key=lambda p: int(p.stem.rpartition("_")[2])
    ).read_text()


def ops_of_last(folder):
    return re.findall(r"= (\w+)\(", last_lowered(folder))


@pytest.fixture
def lowered(tmp_path):
    """Runs a function compiled; its result and the ops of its last lowered graph."""

    def run(function, *arguments):
        with ms.config.context(
            save_graphs=2, save_graphs_path=str(tmp_path), passes="-fuse,-layout", check=True
        ):
            result = ms.jit(function)(*arguments)
        return result, ops_of_last(tmp_path)

    return run


def assert_close(got, expected, rtol=2e-5):
    a, b = got.asnumpy(), expected.asnumpy()
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(initial=1e-3))


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "sigmoid", "silu"])
@pytest.mark.parametrize("shape", [(7, 37), (2, 5, 37), (1, 37)])
def test_dense_layer_in_inference(lowered, activation, shape):
    net = nn.Dense(37, 19, activation=activation)
    net.set_train(False)
    x = rand(*shape)
    got, found = lowered(lambda x: net(x), x)
    assert_close(got, net(x))
    assert [op for op in found if op != "reshape"] == ["linear_pack", "linear"]


def test_residual_joins_a_dense_layer(lowered):
    net, x, y = nn.Dense(16, 16), rand(5, 16), rand(5, 16, seed=1)
    got, found = lowered(lambda x, y: ops.relu(net(x) + y), x, y)
    assert_close(got, ops.relu(net(x) + y))
    assert found == ["linear_pack", "linear"]


@pytest.mark.parametrize("product", [
    lambda x, w: ops.matmul(x, w), lambda x, w: x @ w.transpose(1, 0).transpose(1, 0),
    lambda x, w: ops.matmul(x.reshape(2, 3, 8), w) + 1.0,
])  # fmt: skip
def test_product_with_a_parameter(lowered, product):
    weight, x = Parameter(rand(8, 11)), rand(6, 8)
    got, found = lowered(lambda x: product(x, weight), x)
    assert_close(got, product(x, weight))
    assert "linear" in found and "mat_mul" not in found


def test_weights_that_change_are_followed(lowered):
    weight, x = Parameter(rand(8, 11)), rand(6, 8)
    compiled = ms.jit(lambda x: x @ weight)
    for seed in range(3):
        weight.set_data(rand(8, 11, seed=seed))
        assert_close(compiled(x), x @ weight)


@pytest.mark.parametrize("accuracy", ["strict", "normal", "fast"])
def test_large_products_are_halved_where_that_was_asked_for(tmp_path, accuracy):
    net, x = nn.Dense(768, 768, activation="relu").set_train(False), rand(65, 768)
    with ms.config.context(accuracy=accuracy, save_graphs=2, save_graphs_path=str(tmp_path), check=True):
        got = ms.jit(lambda x: net(x))(x)
    found = ops_of_last(tmp_path)
    assert found == ["linear_pack", "linear"]
    assert_close(got, net(x))
    if accuracy != "fast":
        pack = linear_pack(net.weight)
        want = linear(x, pack, net.bias, channels=768, activation="relu")
        np.testing.assert_array_equal(got.asnumpy(), want.asnumpy())


def test_product_of_arguments_is_not_packed(lowered):
    x, w = rand(6, 8), rand(8, 11)
    _, found = lowered(lambda x, w: x @ w, x, w)
    assert found == ["mat_mul"]


def test_training_does_not_pack(lowered):
    net, x = nn.Dense(8, 4), rand(6, 8)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, net.trainable_params())

    def step(x):
        loss, gradients = gradient(x)
        optimizer(gradients)
        return loss

    _, found = lowered(step, x)
    assert "linear" not in found and "linear_pack" not in found


def test_transposes_become_flags(lowered):
    x, y = rand(3, 6, 8), rand(3, 5, 8)
    got, found = lowered(lambda x, y: ops.bmm(x, y.transpose(0, 2, 1)), x, y)
    assert found == ["batch_matmul"]
    assert_close(got, ops.bmm(x, y.transpose(0, 2, 1)))
    got, found = lowered(lambda x, y: ops.matmul(x.T, y.T), rand(8, 6), rand(5, 8))
    assert found == ["mat_mul"]
    assert_close(got, ops.matmul(rand(8, 6).T, rand(5, 8).T))


@pytest.mark.parametrize("scores", [
    lambda s, m: s * 0.25, lambda s, m: s / 4.0 + m, lambda s, m: m + s * 0.25, lambda s, m: s,
])  # fmt: skip
def test_attention_written_out(lowered, scores):
    q, k, v, m = (
        rand(2, 3, 9, 16),
        rand(2, 3, 7, 16, seed=1),
        rand(2, 3, 7, 8, seed=2),
        rand(2, 1, 1, 7, seed=3),
    )

    def f(q, k, v, m):
        weights = ops.softmax(scores(ops.matmul(q, k.transpose(0, 1, 3, 2)), m), -1)
        return ops.matmul(weights, v)

    got, found = lowered(f, q, k, v, m)
    assert_close(got, f(q, k, v, m))
    assert found == ["attention"]


def test_attention_whose_weights_are_read_stays(lowered):
    q, k, v = rand(2, 9, 16), rand(2, 7, 16, seed=1), rand(2, 7, 8, seed=2)

    def f(q, k, v):
        weights = ops.softmax(ops.bmm(q, k.transpose(0, 2, 1)), -1)
        return ops.bmm(weights, v), weights

    (got, _), found = lowered(f, q, k, v)
    assert "attention" not in found
    assert_close(got, f(q, k, v)[0])


def hiding(*shape):
    """True where a key is hidden; each query sees one."""
    hidden = np.random.default_rng(5).random(shape) < 0.4
    hidden[..., 0] = False
    return Tensor(hidden)


LATER = ops.arange(7) > ops.arange(9)[:, None]


@pytest.mark.parametrize("hide, kind", [
    (lambda s: s.masked_fill(LATER, -1e9), "causal"),
    (lambda s: s.masked_fill(hiding(2, 9, 7), -1e9), "mask"),
    (lambda s: ops.where(hiding(7), -1e9, s), "mask"),
    (lambda s: ops.where(~LATER, s, float("-inf")), "causal"),
    (lambda s: ops.where(s.sum() > 0, s, float("-inf")), None),
    (lambda s: s.masked_fill(LATER, -10.0), None),
    (lambda s: s + ops.where(LATER, -1e9, 0.0), "causal"),
    (lambda s: s + ops.where(LATER, -1.0, 0.0), "mask"),
])  # fmt: skip
def test_attention_with_hidden_keys(lowered, tmp_path, monkeypatch, hide, kind):
    monkeypatch.setattr(attention, "LARGE", 1)
    q, k, v = rand(2, 9, 16), rand(2, 7, 16, seed=1), rand(2, 7, 8, seed=2)

    def f(q, k, v):
        return ops.softmax(hide(q @ turned(k) * 0.25), -1) @ v

    gradient = ms.grad(lambda *a: (f(*a) ** 2).sum(), (0, 1, 2))
    got, found = lowered(f, q, k, v)
    assert_close(got, f(q, k, v))
    assert ("attention" in found) == (kind is not None)
    got, found = lowered(lambda *a: gradient(*a), q, k, v)
    for a, b in zip(got, gradient(q, k, v)):
        assert_close(a, b, 1e-4)
    assert ("attention_grad" in found) == (kind is not None)
    assert ("is_causal=true" in last_lowered(tmp_path)) == (kind == "causal")


def test_a_query_that_sees_no_key_averages_all(lowered):
    q, k, v = rand(2, 9, 16) * 100.0, rand(2, 7, 16, seed=1), rand(2, 7, 8, seed=2)
    hidden = np.zeros((2, 9, 7), bool)
    hidden[0, 3] = True

    def f(q, k, v):
        return ops.softmax((q @ turned(k)).masked_fill(Tensor(hidden), -1e9), -1) @ v

    got, found = lowered(f, q, k, v)
    assert "attention" in found
    assert_close(got, f(q, k, v))
    gradient = ms.grad(lambda q: (f(q, k, v) ** 2).sum())
    with ms.config.context(check=True):
        assert_close(ms.jit(lambda q: gradient(q))(q), gradient(q), 1e-4)


def turned(k):
    return k.swapaxes(-1, -2)


ATTENTIONS = {
    "plain": lambda q, k, v: ops.softmax(q @ turned(k) * 0.25, -1) @ v,
    "masked": lambda q, k, v: ops.softmax(q @ turned(k) / 4.5 + ops.triu(ops.full((9, 7), -1e9), 1), -1) @ v,
    "scaled before": lambda q, k, v: ops.bmm(ops.softmax(ops.bmm(q * 0.25, turned(k)), -1), v),
    "flags": lambda q, k, v: ops.BatchMatMul()(ops.softmax(ops.BatchMatMul(False, True)(q, k), -1), v),
    "matrices": lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q[0], k[0].T) * 0.25, -1), v[0]),
}


@pytest.mark.parametrize("large", [1, attention.LARGE])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_gradient_of_attention_written_out(lowered, monkeypatch, name, large):
    monkeypatch.setattr(attention, "LARGE", large)
    q, k, v = rand(2, 9, 16), rand(2, 7, 16, seed=1), rand(2, 7, 8, seed=2)
    gradient = ms.grad(lambda *a: (ATTENTIONS[name](*a) ** 2).sum(), (0, 1, 2))
    got, found = lowered(lambda *a: gradient(*a), q, k, v)
    for a, b in zip(got, gradient(q, k, v)):
        assert_close(a, b, 1e-4)
    fused = large == 1
    assert ("attention" in found, "attention_grad" in found, "softmax" in found) == (fused, fused, not fused)


def test_two_attentions_of_which_one_needs_the_next(lowered, monkeypatch):
    monkeypatch.setattr(attention, "LARGE", 1)
    q, k, v = rand(2, 9, 16), rand(2, 9, 16, seed=1), rand(2, 9, 16, seed=2)
    one = ATTENTIONS["plain"]
    gradient = ms.grad(lambda q, k, v: (one(one(q, k, v), k, q) ** 2).sum(), (0, 1, 2))
    got, found = lowered(lambda *a: gradient(*a), q, k, v)
    for a, b in zip(got, gradient(q, k, v)):
        assert_close(a, b, 1e-4)
    assert found.count("attention_grad") == 2 and "softmax" not in found


@pytest.mark.parametrize("read", [
    lambda q, k, v, m: (ops.softmax(q @ turned(k) + m, -1) @ v).sum() + (q @ turned(k)).max(),
    lambda q, k, v, m: (ops.dropout(ops.softmax(q @ turned(k) + m, -1), p=1e-9) @ v).sum(),
    lambda q, k, v, m: (ops.softmax(q @ turned(k) * m, -1) @ v).sum(),
])  # fmt: skip
def test_gradients_that_need_the_weights_keep_them(lowered, monkeypatch, read):
    monkeypatch.setattr(attention, "LARGE", 1)
    tensors = rand(2, 9, 16), rand(2, 7, 16, seed=1), rand(2, 7, 8, seed=2), rand(2, 9, 7, seed=3)
    gradient = ms.grad(read, (0, 1, 2, 3))
    got, found = lowered(lambda *a: gradient(*a), *tensors)
    for a, b in zip(got, gradient(*tensors)):
        assert_close(a, b, 1e-4)
    assert "attention_grad" not in found


def test_a_training_step_at_long_sequences_holds_no_scores():
    length = 1100
    q = rand(1, length, 8)
    gradient = ms.grad(lambda q: (ATTENTIONS["plain"](q, q + 1.0, q * 2.0) ** 2).sum())
    step = ms.jit(lambda q: gradient(q))
    assert_close(step(q), gradient(q), 1e-3)
    assert step.memory_report().peak < length * length
