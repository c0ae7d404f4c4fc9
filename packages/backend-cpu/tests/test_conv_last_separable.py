"""Depthwise and 1x1 convolutions in one op against one after another: the same bits, whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.ops.lowered import channels_last as ops
from mycelia_backend_cpu import _native

# (n, size, channels in, hidden, out, kernel, stride, pad); hidden 0: as many as come in, nothing in front
CASES = {
    "expanded": (1, (30, 28), 24, 144, 24, 3, 1, (1, 1, 1, 1)),
    "expanded, stride": (2, (57, 56), 16, 96, 24, 3, 2, (1, 1, 1, 1)),
    "expanded, uneven padding": (1, (56, 60), 16, 40, 17, 3, 2, (0, 0, 1, 1)),
    "expanded, odd depth": (1, (9, 26), 7, 48, 16, 3, 1, (1, 1, 1, 1)),
    "expanded, rows of whole tiles": (1, (6, 30), 2, 16, 16, 3, 1, (1, 1, 1, 1)),
    "5x5": (2, (29, 31), 12, 72, 40, 5, 1, (2, 2, 2, 2)),
    "5x5, stride": (1, (61, 55), 12, 36, 40, 5, 2, (2, 2, 2, 2)),
    "not expanded": (2, (33, 35), 32, 0, 16, 3, 1, (1, 1, 1, 1)),
    "not expanded, stride": (2, (50, 51), 19, 0, 33, 3, 2, (1, 1, 1, 1)),
    "no padding": (1, (29, 28), 8, 48, 8, 3, 1, (0, 0, 0, 0)),
    "padding beyond the kernel": (2, (25, 26), 5, 17, 9, 3, 1, (4, 5, 4, 5)),
    "a kernel without blocks": (1, (49, 50), 7, 21, 16, 4, 2, (1, 2, 1, 0)),
    "stride beyond the kernel": (1, (80, 78), 9, 18, 10, 2, 3, (0, 0, 0, 0)),
    "few rows": (3, (2, 27), 8, 24, 12, 3, 1, (1, 1, 1, 1)),
    "no image": (0, (28, 28), 8, 24, 12, 3, 1, (1, 1, 1, 1)),
}


@pytest.fixture
def threads():
    before = _native.threads()
    yield _native.set_threads
    _native.set_threads(before)


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    """Arguments of `conv_last_separable`, without attributes, and the attributes."""
    n, size, c, hidden, out, kernel, stride, pad = request.param
    rng = np.random.default_rng(3)

    def rand(*shape):
        return ms.Tensor(rng.uniform(-1, 1, shape).astype(np.float32))

    expand = ops.conv_pack(rand(hidden, c, 1, 1), algorithm="direct") if hidden else None
    expand_b = rand(hidden) if hidden else None
    hidden = hidden or c
    w = ops.conv_pack(rand(hidden, 1, kernel, kernel), algorithm="depthwise", group=hidden)
    project = ops.conv_pack(rand(out, hidden, 1, 1), algorithm="direct")
    places = [(i + pad[d] + pad[d + 2] - kernel) // stride + 1 for d, i in enumerate(size)]
    residual = rand(n, *places, out)
    attrs = dict(hidden=hidden, channels=out, kernel=(kernel, kernel), stride=(stride, stride), pad=pad)
    return [rand(n, *size, c), w, project, rand(hidden), rand(out), residual, expand, expand_b], attrs


def one_by_one(x, w, project, b, project_b, residual, expand, expand_b, *, activations, **attrs):
    point, hidden = dict(kernel=(1, 1)), attrs.pop("hidden")
    channels, (first, second, last) = attrs.pop("channels"), activations
    if expand is not None:
        x = ops.conv_last(x, expand, expand_b, channels=hidden, activation=first, **point)
    x = ops.conv_last(
        x, w, b, channels=hidden, group=hidden, algorithm="depthwise", activation=second, **attrs
    )
    return ops.conv_last(x, project, project_b, residual, channels=channels, activation=last, **point)


@pytest.mark.parametrize("activations", [("relu6", "relu6", "none"), ("hardswish", "silu", "relu")])
def test_same_bits_as_one_after_another(case, activations, threads):
    arguments, attrs = case
    expected = one_by_one(*arguments, activations=activations, **attrs).asnumpy()
    first, second, last = activations
    for count in (1, 2, 3, 5):
        threads(count)
        got = ops.conv_last_separable(
            *arguments, expand_activation=first, hidden_activation=second, activation=last, **attrs
        )
        np.testing.assert_array_equal(got.asnumpy(), expected)


def test_bias_and_residual_may_be_absent(case, threads):
    arguments, attrs = case
    arguments[3] = arguments[4] = arguments[5] = arguments[7] = None
    expected = one_by_one(*arguments, activations=("none",) * 3, **attrs).asnumpy()
    np.testing.assert_array_equal(ops.conv_last_separable(*arguments, **attrs).asnumpy(), expected)


def test_short_rows_and_deep_sums_differ_by_rounding_alone():
    rng = np.random.default_rng(5)
    shapes = (2, 5, 6, 8), (600, 8, 1, 1), (600, 1, 3, 3), (9, 600, 1, 1)
    tensors = [ms.Tensor(rng.uniform(-1, 1, shape).astype(np.float32)) for shape in shapes]
    x, expand, w, project = tensors
    packs = [
        ops.conv_pack(w, algorithm="depthwise", group=600), ops.conv_pack(project, algorithm="direct"),
        None, None, None, ops.conv_pack(expand, algorithm="direct"), None,
    ]  # fmt: skip
    attrs = dict(hidden=600, channels=9, kernel=(3, 3), pad=(1, 1, 1, 1))
    expected = one_by_one(x, *packs, activations=("none",) * 3, **attrs).asnumpy()
    got = ops.conv_last_separable(x, *packs, **attrs).asnumpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
