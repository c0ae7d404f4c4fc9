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
    return max(
        folder.glob("hwopt_*_after_lower_graph_*"), key=lambda p: int(p.stem.rpartition("_")[2])
    ).read_text()


def is_halved(text):
    packed, multiplied = re.findall(r" linear(?:_pack)?\(.*algorithm=\"?(\w+)", text)
    assert packed == multiplied
    return packed == "strassen"


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


# ---- convolutions ------------------------------------------------------------------------------------------

SPREAD = 512  # of Winograd's errors, in units of u and of the bound that docs/performance.md tells
TILES = {"winograd2": 2, "winograd4": 4, "winograd6": 6}


def images(rng, n, channels, size, spread=True):
    x = np.maximum(rng.normal(size=(n, channels, size, size)), 0) + 0.1
    return x * channel_scales(rng, channels)[:, None, None] if spread else x


def channel_scales(rng, channels):
    return scaled(rng, channels, axis=0)


def convolved(x, w):
    """In float64, 3x3 with a border of one pixel."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.einsum("ncijkl,ockl->noij", windows, w.astype(np.float64), optimize=True)


def tile_bound(x, w, m):
    """Sum over channels of the largest weight of a pair times the largest pixel of the tile."""
    n, channels, height, width = x.shape
    largest = np.abs(w).max((2, 3)).astype(np.float64)
    x = np.pad(np.abs(x).astype(np.float64), ((0, 0), (0, 0), (1, m + 1), (1, m + 1)))
    bound = np.zeros((n, len(w), height, width))
    for i in range(0, height, m):
        for j in range(0, width, m):
            peak = x[:, :, i : i + m + 2, j : j + m + 2].max((2, 3))
            bound[:, :, i : i + m, j : j + m] = (peak @ largest.T)[:, :, None, None]
    return bound


def conv3x3(w, algorithm=None):
    """x -> its convolution with w as compiled programs do it, by `algorithm` or by what they choose."""
    from mycelia.engine.ops.lowered import channels_last

    weight = Parameter(Tensor(w))
    if algorithm is None:
        return ms.jit(lambda x: ops.conv2d(x, weight, pad_mode="pad", padding=1))
    pack = channels_last.conv_pack(weight, algorithm=algorithm)

    def run(x):
        y = channels_last.conv_last(
            x.transpose(0, 2, 3, 1),
            pack,
            channels=len(w),
            kernel=(3, 3),
            pad=(1, 1, 1, 1),
            algorithm=algorithm,
        )
        return y.transpose(0, 3, 1, 2)

    return run


@pytest.mark.parametrize("algorithm", TILES)
@pytest.mark.parametrize("seed", range(4))
def test_errors_of_winograd_stay_in_a_tile_and_a_pair_of_channels(algorithm, seed):
    rng = np.random.default_rng(seed)
    x = images(rng, 2, 24, 19).astype(np.float32)
    w = rng.normal(size=(40, 24, 3, 3)) * channel_scales(rng, 40)[:, None, None, None]
    w = (w * channel_scales(rng, 24)[:, None, None]).astype(np.float32)
    got = conv3x3(w, algorithm)(Tensor(x)).asnumpy()
    bound = tile_bound(x, w, TILES[algorithm])
    error = np.abs(got - convolved(x, w))
    assert (error <= SPREAD * U * bound + np.finfo(np.float32).tiny).all(), (
        error / (U * bound + 1e-37)
    ).max()


def planted(rng, x, values, places):
    for value, place in zip(values, places):
        x[place] = value
    return x.astype(np.float32)


CORNERS = [(0, 1, 0, 0), (1, 0, 27, 27), (0, 2, 0, 13), (1, 5, 13, 27), (0, 9, 14, 6), (1, 31, 5, 6)]
VALUES = {
    "nan": [np.nan] * 6,
    "infinite": [np.inf, -np.inf] * 3,
    "mixed": [np.nan, np.inf, -np.inf, np.nan, np.inf, -np.inf],
    "overflow": [3e38, -3e38, 2e38, 1e38, 3e37, -3e37],
}


def inner(y):
    """Without the border: algorithms leave padding out or multiply zeros, which differs with weights that are
    not finite."""
    return y[..., 1:-1, 1:-1]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("into", ["x", "w", "both"])
def test_convolutions_keep_what_is_not_finite_where_it_belongs(values, into):
    rng = np.random.default_rng(1)
    x, w = images(rng, 2, 32, 28, spread=False), rng.normal(size=(32, 32, 3, 3))
    if into != "w":
        x = planted(rng, x, VALUES[values], CORNERS)
    if into != "x":
        w = planted(rng, w, VALUES[values], [(3, 1, 0, 0), (31, 30, 1, 1), (17, 0, 2, 2)])
    x, w = Tensor(x.astype(np.float32)), w.astype(np.float32)
    want = ops.conv2d(x, Tensor(w), pad_mode="pad", padding=1).asnumpy()
    for algorithm in (None, *TILES):
        got = conv3x3(w, algorithm)(x).asnumpy()
        assert_same_specials(*((got, want) if into == "x" else (inner(got), inner(want))))
        usual = np.isfinite(want) & np.isfinite(got) & (np.abs(want) < 1e30)
        np.testing.assert_allclose(got[usual], want[usual], atol=1e-3)


@pytest.mark.parametrize("algorithm", [None, *TILES])
@pytest.mark.parametrize("huge", [1e3, 1e8, 1e30])
def test_a_huge_pixel_does_not_reach_those_around_it(algorithm, huge):
    rng = np.random.default_rng(2)
    x = images(rng, 1, 32, 30, spread=False) * 1e-3
    x[0, :, 7, 8] = huge * rng.normal(size=32)
    x[0, 3, 29, 0] = huge
    x[0, :, 16:, 16:] = 0  # a corner of zeros
    x, w = x.astype(np.float32), rng.normal(size=(32, 32, 3, 3)).astype(np.float32)
    got = conv3x3(w, algorithm)(Tensor(x)).asnumpy()
    size = convolved(np.abs(x), np.abs(w))
    far = size < size.max() / 100  # not under a window with the pixel
    error = np.abs(got - convolved(x, w))
    assert (error <= 16 * SPREAD * U * size)[far].all()
    assert (error <= SPREAD * U * size)[~far].all()
    assert not got[..., 18:, 18:].any()


def gradients(compiled):
    def loss(x, w, dy):
        return (ops.conv2d(x, w, pad_mode="pad", padding=1) * dy).sum()

    gradient = ms.grad(loss, (0, 1))
    return ms.jit(lambda *a: gradient(*a)) if compiled else gradient


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("into", ["x", "w", "dy"])
def test_gradients_of_convolutions_keep_what_is_not_finite_where_it_belongs(values, into):
    rng = np.random.default_rng(3)
    x, w = images(rng, 2, 32, 28, spread=False), rng.normal(size=(32, 32, 3, 3))
    dy = rng.normal(size=(2, 32, 28, 28))
    if into == "x":
        x = planted(rng, x, VALUES[values], CORNERS)
    if into == "dy":
        dy = planted(rng, dy, VALUES[values], CORNERS)
    if into == "w":
        w = planted(rng, w, VALUES[values], [(3, 1, 0, 0), (31, 30, 1, 1), (17, 0, 2, 2)])
    arrays = [Tensor(v.astype(np.float32)) for v in (x, w, dy)]
    dx, dw = (v.asnumpy() for v in gradients(True)(*arrays))
    want_dx, want_dw = (v.asnumpy() for v in gradients(False)(*arrays))
    assert_same_specials(dw, want_dw)
    assert_same_specials(*((inner(dx), inner(want_dx)) if into == "w" else (dx, want_dx)))


def test_errors_of_weight_gradients_stay_in_a_pair_of_channels():
    from mycelia.engine.ops.lowered.channels_last_grad import conv_last_weight_grad

    rng = np.random.default_rng(4)
    x = images(rng, 2, 24, 20)
    dy = rng.normal(size=(2, 32, 20, 20)) * channel_scales(rng, 32)[:, None, None]
    x, dy = (v.transpose(0, 2, 3, 1).astype(np.float32) for v in (x, dy))
    got = conv_last_weight_grad(
        Tensor(x), Tensor(dy), kernel=(3, 3), pad=(1, 1, 1, 1), algorithm="winograd4"
    ).asnumpy()
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    exact = np.stack([
        np.einsum("nijc,nijo->oc", wide[:, a : a + 20, b : b + 20], dy) for a in range(3) for b in range(3)
    ], -1)  # fmt: skip
    tiles = [(slice(i, i + 4), slice(j, j + 4)) for i in range(0, 20, 4) for j in range(0, 20, 4)]
    bound = sum(
        np.einsum(
            "nc,no->oc",
            np.abs(wide[:, i.start : i.stop + 2, j.start : j.stop + 2]).max((1, 2)),
            np.abs(dy[:, i, j]).max((1, 2)),
        )
        for i, j in tiles
    )
    error = np.abs(got.reshape(exact.shape) - exact)
    bound = SPREAD * U * bound[..., None] + np.finfo(np.float32).tiny
    assert (error <= bound).all(), (error / bound).max()


def test_weights_that_a_huge_pixel_does_not_meet_keep_their_gradients():
    rng = np.random.default_rng(5)
    x, dy = rng.normal(size=(1, 32, 20, 20)) * 1e-3, np.zeros((1, 32, 20, 20))
    x[0, :, 0, 0] = 1e8  # the corner is no neighbour of what lies right of or below of another position
    dy[0, :, 0, 0], dy[0, :, 5:9, 5:9] = 1, 1e-3
    arrays = [Tensor(v.astype(np.float32)) for v in (x, np.zeros((32, 32, 3, 3)), dy)]
    got, want = (gradients(compiled)(*arrays)[1].asnumpy() for compiled in (True, False))
    np.testing.assert_allclose(got[..., 2, 2], want[..., 2, 2], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(got[..., 1, 1], want[..., 1, 1], rtol=1e-5)
