"""Channels-last weight gradients and depthwise convolutions against the NumPy bodies in double precision."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.ops.lowered import channels_last as family
from mycelia.engine.ops.lowered.channels_last_grad import conv_last_input_grad, conv_last_weight_grad
from mycelia.engine.ops.nn_ops.conv_geometry import output_size
from mycelia_backend_cpu import _native

# (n, inputs, outputs, size, kernel, stride, pad, dilation, group)
DENSE = {
    "stem": (2, 3, 64, (33, 31), (7, 7), (2, 2), (3, 3, 3, 3), (1, 1), 1),
    "one input channel": (5, 1, 6, (28, 28), (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1),
    "one input channel, dilated": (2, 1, 6, (18, 17), (3, 3), (1, 2), (0, 2, 1, 1), (2, 3), 1),
    "many images in a block": (40, 13, 9, (7, 7), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "bands of an image": (1, 10, 20, (40, 41), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "deep": (2, 130, 67, (7, 7), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "one block of all": (1, 67, 37, (9, 8), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "stride": (2, 37, 41, (17, 13), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1),
    "stride 3 and 1": (2, 12, 17, (17, 13), (5, 3), (3, 1), (1, 0, 2, 1), (1, 1), 1),
    "1x1": (3, 67, 33, (9, 7), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "1x1 with stride": (4, 64, 32, (15, 14), (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "1x1 with padding": (1, 40, 40, (5, 5), (1, 1), (1, 1), (1, 0, 0, 2), (1, 1), 1),
    "dilation beyond stride": (2, 20, 18, (16, 15), (3, 3), (2, 2), (3, 3, 3, 3), (3, 2), 1),
    "stride beyond kernel": (2, 17, 19, (16, 15), (2, 2), (4, 3), (0, 0, 0, 0), (1, 1), 1),
    "long rows": (1, 5, 7, (1, 700), (1, 3), (1, 1), (0, 1, 0, 1), (1, 1), 1),
    "groups": (2, 24, 36, (9, 8), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
    "groups of few channels": (3, 16, 32, (19, 17), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 8),
    "one element": (1, 1, 1, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
}
DEPTHWISE = {
    "3x3": (2, 33, (19, 21), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3, narrow": (3, 40, (7, 7), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3, taps apart in memory": (1, 251, (9, 10), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3, two columns": (1, 8, (5, 2), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3, two rows": (2, 16, (2, 11), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3, one row": (2, 8, (1, 6), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3, odd rows": (3, 24, (5, 13), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3, rows cut into parts": (1, 8, (61, 67), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3, no rows of zeros": (1, 8, (9, 8), (3, 3), (1, 1), (0, 0, 1, 1), (1, 1)),
    "3x3, zeros above": (2, 8, (6, 9), (3, 3), (1, 1), (1, 0, 1, 1), (1, 1)),
    "3x3, few cache lines": (2, 512, (7, 5), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3, stride 2 and zeros around": (2, 24, (11, 13), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    "3x3, stride 2, even": (2, 20, (12, 10), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    "3x3, stride 2, last window outside": (1, 8, (3, 2), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    "3x3, stride 2, few cache lines": (1, 512, (8, 7), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    "3x3, strides 1 and 3": (1, 16, (7, 17), (3, 3), (1, 3), (1, 1, 1, 1), (1, 1)),
    "3x3, stride 2": (2, 67, (40, 41), (3, 3), (2, 2), (0, 0, 1, 1), (1, 1)),
    "5x5": (1, 24, (12, 15), (5, 5), (1, 1), (2, 2, 2, 2), (1, 1)),
    "5x5, stride 2": (2, 19, (23, 22), (5, 5), (2, 2), (2, 2, 2, 2), (1, 1)),
    "5x5, stride 2, uneven zeros": (1, 13, (10, 9), (5, 5), (2, 2), (1, 2, 1, 2), (1, 1)),
    "5x5, stride 2, many zeros": (1, 8, (6, 7), (5, 5), (2, 2), (3, 3, 4, 4), (1, 1)),
    "5x5, stride 2, one pixel": (1, 8, (1, 1), (5, 5), (2, 2), (2, 2, 2, 2), (1, 1)),
    "3x5": (2, 9, (11, 12), (3, 5), (1, 2), (1, 2, 1, 2), (1, 1)),
    "7x7": (1, 37, (9, 10), (7, 7), (1, 1), (3, 3, 3, 3), (1, 1)),
    "dilated": (1, 16, (14, 13), (3, 3), (1, 1), (2, 3, 2, 3), (2, 3)),
    "stride beyond kernel": (2, 17, (16, 15), (2, 2), (4, 3), (0, 0, 0, 0), (1, 1)),
    "a window larger than the image": (1, 8, (2, 1), (5, 5), (1, 1), (2, 2, 2, 2), (1, 1)),
}


def weight_gradient_case(n, inputs, outputs, size, kernel, stride, pad, dilation, group):
    rng = np.random.default_rng(5)
    how = dict(kernel=kernel, stride=stride, pad=pad, dilation=dilation, group=group)
    positions = output_size(size, kernel, stride, pad, dilation)
    return (rng.uniform(-1, 1, (n, *size, inputs)), rng.uniform(-1, 1, (n, *positions, outputs))), how


def native(op, arrays, attrs):
    return op(*(ms.Tensor(a.astype(np.float32)) for a in arrays), **attrs).asnumpy()


def assert_close(got, want):
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * max(1.0, np.abs(want).max(initial=0)))


@pytest.mark.parametrize("case", DENSE.values(), ids=DENSE)
def test_weight_gradient(case, threads):
    arrays, how = weight_gradient_case(*case)
    want = conv_last_weight_grad.definition.body(*arrays, **how)
    assert_close(native(conv_last_weight_grad, arrays, how), want)


@pytest.mark.parametrize("case", DEPTHWISE.values(), ids=DEPTHWISE)
def test_depthwise_weight_gradient(case, threads):
    n, channels, *geometry = case
    arrays, how = weight_gradient_case(n, channels, channels, *geometry, channels)
    want = conv_last_weight_grad.definition.body(*arrays, **how)
    assert_close(native(conv_last_weight_grad, arrays, how), want)


WINOGRAD = {  # (n, inputs, outputs, size, pad)
    "whole tiles": (2, 32, 48, (16, 16), (1, 1, 1, 1)),
    "odd sizes": (3, 37, 19, (15, 13), (1, 0, 2, 1)),
    "no padding": (1, 16, 16, (30, 18), (0, 0, 0, 0)),
    "several blocks": (3, 67, 33, (45, 47), (1, 1, 1, 1)),
    "padding beyond the kernel": (2, 16, 17, (10, 11), (4, 3, 3, 5)),
    "direct is faster": (1, 130, 5, (7, 7), (1, 1, 1, 1)),
}


def winograd_case(n, inputs, outputs, size, pad):
    arrays, how = weight_gradient_case(n, inputs, outputs, size, (3, 3), (1, 1), pad, (1, 1), 1)
    return arrays, dict(how, algorithm="winograd4")


@pytest.mark.parametrize("case", WINOGRAD.values(), ids=WINOGRAD)
def test_winograd_weight_gradient(case, threads):
    arrays, how = winograd_case(*case)
    want = conv_last_weight_grad.definition.body(*arrays, **how)
    assert_close(native(conv_last_weight_grad, arrays, how), want)


@pytest.mark.parametrize("activation", ["none", "relu6", "hardswish"])
@pytest.mark.parametrize("case", DEPTHWISE.values(), ids=DEPTHWISE)
def test_depthwise(case, activation, threads):
    n, channels, size, kernel, stride, pad, dilation = case
    rng = np.random.default_rng(6)
    packing = dict(algorithm="depthwise", group=channels)
    how = dict(packing, channels=channels, kernel=kernel, stride=stride, pad=pad, dilation=dilation)
    positions = output_size(size, kernel, stride, pad, dilation)
    x, w = rng.uniform(-1, 1, (n, *size, channels)), rng.uniform(-1, 1, (channels, 1, *kernel))
    y = rng.uniform(-1, 1, (n, *positions, channels))
    bias = rng.uniform(-1, 1, channels)

    pack = native(family.conv_pack, (w,), packing)
    by_body = family.conv_pack.definition.body(w, **packing)
    for rest in ((bias,), (bias, y)):
        want = family.conv_last.definition.body(
            x, by_body, *rest, *[None] * (2 - len(rest)), activation=activation, **how
        )
        assert_close(native(family.conv_last, (x, pack, *rest), dict(how, activation=activation)), want)

    how["size"] = size
    pack = native(family.conv_pack, (w,), dict(packing, transposed=True))
    by_body = family.conv_pack.definition.body(w, transposed=True, **packing)
    want = conv_last_input_grad.definition.body(y, by_body, **how)
    assert_close(native(conv_last_input_grad, (y, pack), how), want)


def test_weight_gradients_do_not_depend_on_threads():
    cases = [weight_gradient_case(*case) for case in DENSE.values()]
    cases += [weight_gradient_case(n, c, c, *rest, c) for n, c, *rest in DEPTHWISE.values()]
    cases += [winograd_case(*case) for case in WINOGRAD.values()]
    before = _native.threads()
    for arrays, how in cases:
        results = []
        for count in (1, 2):
            _native.set_threads(count)
            results.append(native(conv_last_weight_grad, arrays, how))
        np.testing.assert_array_equal(*results)
    _native.set_threads(before)
